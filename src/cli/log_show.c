/* See log_show.h. A record's event decides how its body becomes words: one table, one small
 * function per event; an event that is not known here shows its body as it is. Texts in a body were
 * chosen by whoever ran commands, so control characters are made harmless before they reach a
 * terminal. */
#include "cli/log_show.h"

#include "audit/record.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SESSION_SHOWN = 8, SESSION_TEXT_SIZE = 32 };

static const char red[] = "\033[31m";
static const char yellow[] = "\033[33m";
static const char faint[] = "\033[2m";
static const char plain[] = "\033[0m";

/* --- reading a body --- */

static json_t *body_parse(const struct audit_record *record)
{
    struct err ignored;

    return json_parse(record->body.at, record->body.len, &ignored);
}

/* "" when it is not there or not a text. */
static const char *text_of(const json_t *body, const char *key)
{
    const char *text = json_string_value(json_object_get(body, key));

    return text ? text : "";
}

static json_int_t number_of(const json_t *body, const char *key)
{
    return json_integer_value(json_object_get(body, key));
}

/* " LABEL text", when there is a text. */
static void add_labelled(struct buf *ret, const char *label, const char *text)
{
    if (*text)
        buf_appendf(ret, "%s%s", label, text);
}

static bool needs_quotes(const char *word)
{
    return !*word || word[strcspn(word, " \t\n\"'\\$`;&|<>()*?[]#~!{}")];
}

/* As a shell would read it, near enough. */
static void add_words(struct buf *ret, const json_t *words)
{
    size_t i;
    json_t *item;

    json_array_foreach(words, i, item)
    {
        const char *word = json_string_value(item);
        const char *quote = word && needs_quotes(word) ? "'" : "";

        buf_appendf(ret, "%s%s%s%s", i ? " " : "", quote, word ? word : "?", quote);
    }
}

/* --- one function per event --- */

static void show_begin(const json_t *body, struct buf *ret)
{
    add_words(ret, json_object_get(body, "argv"));
    buf_appendf(ret, "  (in %s, %s", text_of(body, "cwd"), text_of(body, "profile"));
    if (str_eq(text_of(body, "sandbox"), "disabled"))
        buf_append_str(ret, ", no sandbox");
    buf_append_str(ret, ")");
}

static void show_output(const json_t *body, struct buf *ret)
{
    buf_appendf(ret, "%" PRId64 " bytes, and %" PRId64 " of errors",
                (int64_t)number_of(body, "stdout_bytes"), (int64_t)number_of(body, "stderr_bytes"));
}

static void show_asked(const json_t *body, struct buf *ret)
{
    add_words(ret, json_object_get(body, "argv"));
    add_labelled(ret, "  because: ", text_of(body, "reason"));
    add_labelled(ret, "  a yes covers: ", text_of(body, "covers"));
}

static void show_answered(const json_t *body, struct buf *ret)
{
    buf_appendf(ret, "%s, by %s", text_of(body, "decision"), text_of(body, "by"));
    add_labelled(ret, "  new rule: ", text_of(body, "rule"));
}

static void show_denied(const json_t *body, struct buf *ret)
{
    buf_append_str(ret, text_of(body, "operation"));
    add_labelled(ret, " ", text_of(body, "path"));
    add_labelled(ret, " ", text_of(body, "host"));
    add_labelled(ret, " ", text_of(body, "errno"));
    add_labelled(ret, ", by ", text_of(body, "decided_by"));
    if (str_eq(text_of(body, "evidence"), "heuristic"))
        buf_append_str(ret, " (read from the output, so a guess)");
}

static void show_retried(const json_t *body, struct buf *ret)
{
    buf_appendf(ret, "with %s", text_of(body, "grant"));
}

static void show_patch_begin(const json_t *body, struct buf *ret)
{
    buf_appendf(ret, "of %" PRId64 " bytes, in %s", (int64_t)number_of(body, "patch_bytes"),
                text_of(body, "cwd"));
}

static void show_patch_end(const json_t *body, struct buf *ret)
{
    buf_append_str(ret, json_is_true(json_object_get(body, "applied")) ? "applied" : "not applied");
    add_labelled(ret, ": ", text_of(body, "reason"));
}

static void show_end(const json_t *body, struct buf *ret)
{
    const json_t *code = json_object_get(body, "exit_code");

    buf_append_str(ret, text_of(body, "end"));
    if (json_is_integer(code))
        buf_appendf(ret, " %" PRId64, (int64_t)json_integer_value(code));
    if (number_of(body, "signal"))
        buf_appendf(ret, " by signal %" PRId64, (int64_t)number_of(body, "signal"));
    buf_appendf(ret, " after %" PRId64 " ms", (int64_t)number_of(body, "wall_time_ns") / 1000000);
    add_labelled(ret, ": ", text_of(body, "reason"));
}

static void show_body(const struct audit_record *record, const json_t *body, struct buf *ret)
{
    static void (*const shows[])(const json_t *, struct buf *) = {
        [AUDIT_BEGIN] = show_begin,
        [AUDIT_OUTPUT] = show_output,
        [AUDIT_ASKED] = show_asked,
        [AUDIT_ANSWERED] = show_answered,
        [AUDIT_DENIED] = show_denied,
        [AUDIT_RETRIED] = show_retried,
        [AUDIT_PATCH_BEGIN] = show_patch_begin,
        [AUDIT_PATCH_END] = show_patch_end,
        [AUDIT_END] = show_end,
    };

    for (size_t i = 0; body && i < sizeof shows / sizeof *shows; i++)
        if (audit_text_eq(record->event, audit_text_of(audit_event_name((enum audit_event)i)))) {
            shows[i](body, ret);
            return;
        }
    buf_append(ret, record->body.at, record->body.len);
}

/* --- denials --- */

static bool is_refusal(const json_t *body)
{
    static const char *const ends[] = {"denied", "forbidden", "rejected"};
    const char *decision = text_of(body, "decision");
    const char *end = text_of(body, "end");

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (str_eq(end, ends[i]))
            return true;
    return *decision && !str_starts(decision, "approved");
}

bool log_is_denial(const struct audit_record *record)
{
    AUTO_JSON json_t *body = body_parse(record);

    return audit_text_eq(record->event, audit_text_of("denied")) || is_refusal(body);
}

/* --- lines --- */

static void make_harmless(struct buf *text, size_t from)
{
    AUTO_FREE char *line = NULL;

    for (size_t i = from; i < text->len; i++)
        if (text->data[i] == '\n' || !text->data[i])
            text->data[i] = ' ';
    line = text->len > from ? utf8_plain(text->data + from) : alloc_str("");
    text->len = from;
    buf_append_str(text, line);
}

static const char *colour_of(const struct audit_record *record, const json_t *body)
{
    if (log_is_denial(record))
        return red;
    if (audit_text_eq(record->event, audit_text_of("asked")) ||
        audit_text_eq(record->event, audit_text_of("answered")))
        return yellow;
    return number_of(body, "exit_code") || number_of(body, "signal") ? yellow : "";
}

/* The beginning of the id, and of a server's also the number of the command in its session. */
static void session_text(struct audit_text session, char ret[SESSION_TEXT_SIZE])
{
    const char *dot = memrchr(session.at, '.', session.len);
    size_t shown = session.len < SESSION_SHOWN ? session.len : SESSION_SHOWN;
    int rest = dot && dot > session.at + shown ? (int)(session.at + session.len - dot) : 0;

    snprintf(ret, SESSION_TEXT_SIZE, "%.*s%.*s", (int)shown, session.at, rest, rest ? dot : "");
}

void log_show_text(const struct audit_record *record, bool is_coloured, struct buf *ret)
{
    AUTO_JSON json_t *body = body_parse(record);
    const char *colour = is_coloured ? colour_of(record, body) : "";
    char session[SESSION_TEXT_SIZE];
    char time[CLOCK_UTC_SIZE];
    size_t from;

    clock_format_utc(record->time_ns, time);
    session_text(record->session, session);
    buf_appendf(ret, "%s%s  %-*s%s  %s", is_coloured ? faint : "", time, SESSION_SHOWN, session,
                is_coloured ? plain : "", colour);
    from = ret->len;
    buf_appendf(ret, "%-11.*s  ", (int)record->event.len, record->event.at);
    show_body(record, body, ret);
    make_harmless(ret, from);
    buf_appendf(ret, "%s\n", *colour ? plain : "");
}

void log_show_json(const struct audit_record *record, struct buf *ret)
{
    AUTO_JSON json_t *json = json_object();
    AUTO_FREE char *line = NULL;
    json_t *body = body_parse(record);
    char hex[AUDIT_HEX_SIZE];
    char time[CLOCK_UTC_SIZE];

    clock_format_utc(record->time_ns, time);
    audit_hash_format(record->link.hash, hex);
    json_object_set_new(json, "seq", json_integer((json_int_t)record->link.seq));
    json_object_set_new(json, "time", json_string(time));
    json_object_set_new(json, "event", json_stringn(record->event.at, record->event.len));
    json_object_set_new(json, "session", json_stringn(record->session.at, record->session.len));
    json_object_set_new(json, "body", body ? body : json_null());
    json_object_set_new(json, "hash", json_stringn(hex, sizeof hex));
    line = json_dumps(json, JSON_COMPACT);
    buf_appendf(ret, "%s\n", line ? line : "null");
}
