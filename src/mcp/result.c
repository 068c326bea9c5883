/* See result.h. The engine's answer is ours and has the shape that schema/session says, but nothing here depends on that:
 * what is missing is left out. */
#include "mcp/result.h"

#include "base/json.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DENIALS_SHOWN = 5 };

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* --- denials --- */

/* Tried in passing, and not why anything failed. */
static bool is_aside(const json_t *denial)
{
    return json_is_true(json_object_get(denial, "aside"));
}

/* What it was about: a path, or a host with its port. */
static void append_subject(const json_t *denial, struct buf *ret)
{
    const char *path = text_of(denial, "path");
    const char *host = text_of(denial, "host");
    json_int_t port = json_integer_value(json_object_get(denial, "port"));

    if (host && port)
        buf_appendf(ret, " %s port %" JSON_INTEGER_FORMAT, host, port);
    else if (host || path)
        buf_appendf(ret, " %s", host ? host : path);
    if (text_of(denial, "path2"))
        buf_appendf(ret, " and %s", text_of(denial, "path2"));
    if (json_is_true(json_object_get(denial, "below")))
        buf_append_str(ret, " and others below it");
}

void mcp_result_denial(const json_t *denial, struct buf *ret)
{
    const char *operation = text_of(denial, "operation");
    const char *source = text_of(denial, "source");
    const char *entry = text_of(denial, "decided_by");
    const char *remedy = text_of(denial, "remedy");
    bool is_guess = !str_eq(text_of(denial, "evidence") ? text_of(denial, "evidence") : "", "fact");
    bool is_host = source && str_eq(source, "host");

    if (is_aside(denial))
        return;
    buf_appendf(ret, "%s: %s",
                is_host    ? "Refused, but not by the sandbox"
                : is_guess ? "Denied, it seems"
                           : "Denied",
                operation ? operation : "something");
    append_subject(denial, ret);
    if (text_of(denial, "program"))
        buf_appendf(ret, " by %s", text_of(denial, "program"));
    if (entry)
        buf_appendf(ret, " (%s)", entry);
    if (remedy)
        buf_appendf(ret, ". %s", remedy);
}

static size_t count_shown(const json_t *denials)
{
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(denials); i++)
        count += !is_aside(json_array_get(denials, i));
    return count;
}

static void append_denials(const json_t *denials, struct buf *ret)
{
    size_t all = count_shown(denials);
    size_t shown = 0;
    size_t began;

    if (!all)
        return;
    if (ret->len && ret->data[ret->len - 1] != '\n')
        buf_append_str(ret, "\n");
    began = ret->len;
    for (size_t i = 0; shown < DENIALS_SHOWN && i < json_array_size(denials); i++) {
        size_t before = ret->len;

        mcp_result_denial(json_array_get(denials, i), ret);
        if (ret->len == before)
            continue;
        buf_append_str(ret, "\n");
        shown++;
    }
    if (all > shown)
        buf_appendf(ret, "%zu more were denied.\n", all - shown);
    if (strstr(ret->data + began, " --"))
        buf_append_str(ret, "The user can add such options to `cordon mcp` in the client's "
                            "configuration; you cannot.\n");
}

/* Of a command in a change layer: a line of its own, also when nothing was changed. */
static void append_changes(const json_t *changes, struct buf *ret)
{
    json_int_t added = json_integer_value(json_object_get(changes, "added"));
    json_int_t modified = json_integer_value(json_object_get(changes, "modified"));
    json_int_t deleted = json_integer_value(json_object_get(changes, "deleted"));

    if (!json_is_object(changes) || added + modified + deleted == 0)
        return;
    if (ret->len && ret->data[ret->len - 1] != '\n')
        buf_append_str(ret, "\n");
    buf_appendf(ret,
                "In the change layer%s: %" JSON_INTEGER_FORMAT " added, %" JSON_INTEGER_FORMAT
                " modified, %" JSON_INTEGER_FORMAT " deleted; the user's files are as they were.\n",
                json_is_true(json_object_get(changes, "shared")) ? ", with other commands that run"
                                                                 : "",
                added, modified, deleted);
}

void mcp_result_text(const json_t *answer, struct buf *ret)
{
    const json_t *text = json_object_get(answer, "text");

    buf_append(ret, json_is_string(text) ? json_string_value(text) : "", json_string_length(text));
    append_changes(json_object_get(answer, "changes"), ret);
    append_denials(json_object_get(answer, "denials"), ret);
}

/* --- the same as an object --- */

static void copy(json_t *to, const char *name, const json_t *from, const char *key)
{
    json_t *value = json_object_get(from, key);

    if (value && !json_is_null(value))
        json_object_set(to, name, value);
}

static json_t *denial_to_json(const json_t *denial)
{
    json_t *json = json_object();
    const char *evidence = text_of(denial, "evidence");

    copy(json, "operation", denial, "operation");
    copy(json, "path", denial, "path");
    copy(json, "host", denial, "host");
    copy(json, "port", denial, "port");
    copy(json, "program", denial, "program");
    copy(json, "pid", denial, "pid");
    copy(json, "errno", denial, "errno");
    if (json_integer_value(json_object_get(denial, "count")) > 1)
        copy(json, "count", denial, "count");
    json_object_set_new(json, "certain", json_boolean(evidence && str_eq(evidence, "fact")));
    copy(json, "entry", denial, "decided_by");
    copy(json, "remedy", denial, "remedy");
    return json;
}

static json_t *denials_to_list(const json_t *denials)
{
    json_t *list = json_array();

    for (size_t i = 0; i < json_array_size(denials); i++)
        if (!is_aside(json_array_get(denials, i)))
            json_array_append_new(list, denial_to_json(json_array_get(denials, i)));
    return list;
}

static void set_list(json_t *json, const char *name, json_t *list)
{
    if (json_array_size(list))
        json_object_set(json, name, list);
    json_decref(list);
}

static const char output_line[] = "\nOutput:\n";
static const char tokens_line[] = "\nOriginal token count: ";

/* Where the output begins in the text. The lines before it are ours, so that the first of these is no command's. */
static size_t output_at(const json_t *text)
{
    const char *all = json_is_string(text) ? json_string_value(text) : "";
    const char *found = strstr(all, output_line);

    return found ? (size_t)(found - all) + strlen(output_line) : 0;
}

static json_t *output_of(const json_t *answer)
{
    const json_t *text = json_object_get(answer, "text");
    size_t at = output_at(text);

    return json_is_string(text)
               ? json_stringn(json_string_value(text) + at, json_string_length(text) - at)
               : json_string("");
}

static json_t *tokens_of(const json_t *answer)
{
    const char *text = text_of(answer, "text");
    const char *found = text ? strstr(text, tokens_line) : NULL;
    bool is_ours = found && found < text + output_at(json_object_get(answer, "text"));

    return json_integer(is_ours ? strtoll(found + strlen(tokens_line), NULL, 10) : 0);
}

/* Null where the answer has none: the schema wants them. */
static json_t *number_or_null(const json_t *answer, const char *key)
{
    json_t *value = json_object_get(answer, key);

    return json_is_integer(value) ? json_incref(value) : json_null();
}

static json_t *changes_to_json(const json_t *changes)
{
    json_t *json = json_object();

    copy(json, "layer", changes, "layerId");
    copy(json, "step", changes, "stepId");
    copy(json, "shared", changes, "shared");
    copy(json, "added", changes, "added");
    copy(json, "modified", changes, "modified");
    copy(json, "deleted", changes, "deleted");
    return json;
}

json_t *mcp_result_structured(const json_t *answer)
{
    const json_t *changes = json_object_get(answer, "changes");
    json_int_t wall = json_integer_value(json_object_get(answer, "wallTimeMs"));
    json_t *json = json_pack("{s:o, s:o, s:o}", "output", output_of(answer), "exit_code",
                             number_or_null(answer, "exitCode"), "session_id",
                             number_or_null(answer, "sessionId"));

    copy(json, "reason", answer, "reason");
    copy(json, "signal", answer, "signal");
    json_object_set_new(json, "wall_time_seconds", json_real((double)wall / 1000));
    json_object_set_new(json, "original_token_count", tokens_of(answer));
    if (json_integer_value(json_object_get(answer, "omittedBytes")))
        copy(json, "omitted_bytes", answer, "omittedBytes");
    copy(json, "chunk_id", answer, "chunkId");
    set_list(json, "denials", denials_to_list(json_object_get(answer, "denials")));
    if (json_is_object(changes))
        json_object_set_new(json, "changes", changes_to_json(changes));
    set_list(json, "notes", json_incref(json_object_get(answer, "notes")));
    return json;
}
