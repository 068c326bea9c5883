/* The tools that show the change layer and throw away what is in it: layer_changes, layer_diff, layer_drop. What takes changes
 * into the user's files is in tool_accept.c. */
#include "mcp/tool_layer.h"

#include "approval/approval.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "mcp/layer.h"
#include "mcp/mcp.h"
#include "mcp/news.h"
#include "mcp/tools.gen.h"
#include "mcp/tools.h"

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static json_int_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

json_t *mcp_layer_paths(struct mcp_call *call, const json_t *paths)
{
    json_t *list = paths ? json_array() : NULL;

    for (size_t i = 0; i < json_array_size(paths); i++) {
        AUTO_FREE char *uri = mcp_tool_dir(call, json_string_value(json_array_get(paths, i)));

        json_array_append_new(list, json_string(uri));
    }
    return list;
}

/* --- in words --- */

/* Names are a stranger's: none passes for a line of ours. */
static void append_plain(const char *name, struct buf *ret)
{
    AUTO_FREE char *plain = approval_plain_text(name);

    buf_append_str(ret, plain);
}

void mcp_layer_append_change(const json_t *change, struct buf *ret)
{
    const json_t *marks = json_object_get(change, "marks");
    const char *run_by = text_of(change, "runBy");

    buf_appendf(ret, "%s ", text_of(change, "kind"));
    append_plain(text_of(change, "path"), ret);
    if (text_of(change, "from")) {
        buf_append_str(ret, " (from ");
        append_plain(text_of(change, "from"), ret);
        buf_append_str(ret, ")");
    }
    for (size_t i = 0; i < json_array_size(marks); i++)
        buf_appendf(ret, "%s%s", i ? ", " : "  [", json_string_value(json_array_get(marks, i)));
    if (json_array_size(marks))
        buf_appendf(ret, "%s%s]", run_by ? ": " : "", run_by ? run_by : "");
}

void mcp_layer_append_counts(const json_t *counts, struct buf *ret)
{
    static const char *const names[] = {"added", "modified", "deleted",  "renamed",
                                        "other", "marked",   "conflicts"};
    static const char *const words[] = {
        "added",  "modified",   "deleted", "renamed", "of another type or mode",
        "marked", "in conflict"};
    const char *before = "";

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_int_t number = number_of(counts, names[i]);

        if (!number)
            continue;
        buf_appendf(ret, "%s%" JSON_INTEGER_FORMAT " %s", before, number, words[i]);
        before = ", ";
    }
    if (!*before)
        buf_append_str(ret, "no changes");
}

void mcp_layer_append_left(const json_t *result, struct buf *ret)
{
    const json_t *left = json_object_get(result, "left");
    const json_t *problems = json_object_get(result, "problems");

    for (size_t i = 0; i < json_array_size(left); i++) {
        const json_t *one = json_array_get(left, i);
        const char *detail = text_of(one, "detail");

        buf_append_str(ret, "Left: ");
        append_plain(text_of(one, "path"), ret);
        buf_appendf(ret, " (%s)%s", text_of(one, "reason"), detail ? ": " : "");
        append_plain(detail, ret);
        buf_append_str(ret, "\n");
    }
    for (size_t i = 0; i < json_array_size(problems); i++) {
        append_plain(json_string_value(json_array_get(problems, i)), ret);
        buf_append_str(ret, "\n");
    }
}

/* --- layer_changes --- */

static json_t *change_of(const json_t *change)
{
    return json_pack(
        "{s:O, s:O, s:O*, s:O*, s:O*, s:O}", "path", json_object_get(change, "path"), "kind",
        json_object_get(change, "kind"), "from", json_object_get(change, "from"), "marks",
        json_array_size(json_object_get(change, "marks")) ? json_object_get(change, "marks") : NULL,
        "run_by", json_object_get(change, "runBy"), "size", json_object_get(change, "size"));
}

json_t *mcp_layer_changes(const struct mcp *mcp, const json_t *result)
{
    const json_t *changes = json_object_get(result, "changes");
    json_t *problems = json_object_get(result, "problems");
    json_t *list = json_array();

    for (size_t i = 0; i < json_array_size(changes); i++)
        json_array_append_new(list, change_of(json_array_get(changes, i)));
    return json_pack("{s:s, s:o, s:O, s:O*, s:O*}", "layer", mcp_layer_name(mcp), "changes", list,
                     "counts", json_object_get(result, "counts"), "next",
                     json_object_get(result, "next"), "problems",
                     json_array_size(problems) ? problems : NULL);
}

static void on_changes(struct mcp_call *call, const json_t *result)
{
    const struct mcp *mcp = call->session->mcp;
    const json_t *changes = json_object_get(result, "changes");
    const json_t *problems = json_object_get(result, "problems");
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    for (size_t i = 0; i < json_array_size(changes); i++) {
        mcp_layer_append_change(json_array_get(changes, i), &text);
        buf_append_str(&text, "\n");
    }
    buf_appendf(&text,
                "In the change layer %s, and not in the user's files: ", mcp_layer_name(mcp));
    mcp_layer_append_counts(json_object_get(result, "counts"), &text);
    buf_append_str(&text, ".\n");
    if (text_of(result, "next"))
        buf_appendf(&text, "There are more: after = \"%s\".\n", text_of(result, "next"));
    for (size_t i = 0; i < json_array_size(problems); i++) {
        append_plain(json_string_value(json_array_get(problems, i)), &text);
        buf_append_str(&text, "\n");
    }
    mcp_tool_result(call, text.data, mcp_layer_changes(mcp, result));
}

void tool_layer_changes(struct mcp_call *call, const struct layer_changes_arguments *arguments)
{
    const struct mcp_request request = {
        .method = "layer/changes",
        .params = json_pack("{s:s, s:o*, s:I, s:s*}", "layerId", mcp_layer_id(call->session->mcp),
                            "paths", mcp_layer_paths(call, arguments->paths), "limit",
                            (json_int_t)arguments->limit, "after", arguments->after),
        .on_result = on_changes,
    };

    mcp_tool_ask(call, &request);
}

/* --- layer_diff --- */

char *mcp_layer_diff_text(const json_t *result)
{
    const char *unified = text_of(result, "unified");

    if (unified)
        return alloc_strf("%s%s", unified,
                          json_is_true(json_object_get(result, "truncated")) ? "... it goes on\n"
                                                                             : "");
    return alloc_strf("No text, or too large: %" JSON_INTEGER_FORMAT
                      " bytes before, %" JSON_INTEGER_FORMAT " now.\n",
                      number_of(result, "oldSize"), number_of(result, "newSize"));
}

static void on_diff(struct mcp_call *call, const json_t *result)
{
    const json_t *change = json_object_get(result, "change");
    json_t *unified = json_object_get(result, "unified");
    AUTO_FREE char *text = mcp_layer_diff_text(result);

    mcp_tool_result(
        call, text,
        json_pack(
            "{s:O, s:O, s:O*, s:O, s:O, s:O}", "path", json_object_get(change, "path"), "kind",
            json_object_get(change, "kind"), "diff", json_is_string(unified) ? unified : NULL,
            "truncated", json_object_get(result, "truncated"), "old_size",
            json_object_get(result, "oldSize"), "new_size", json_object_get(result, "newSize")));
}

void tool_layer_diff(struct mcp_call *call, const struct layer_diff_arguments *arguments)
{
    AUTO_FREE char *uri = mcp_tool_dir(call, arguments->path);
    const struct mcp_request request = {
        .method = "layer/diff",
        .params = json_pack("{s:s, s:s, s:I, s:I}", "layerId", mcp_layer_id(call->session->mcp),
                            "path", uri, "context", (json_int_t)arguments->context, "maxBytes",
                            (json_int_t)arguments->max_bytes),
        .on_result = on_diff,
    };

    mcp_tool_ask(call, &request);
}

/* --- layer_drop --- */

static void on_dropped(struct mcp_call *call, const json_t *result)
{
    const json_t *done = json_object_get(result, "done");
    const json_t *left = json_object_get(result, "left");
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    buf_appendf(&text, "%zu dropped.\n", json_array_size(done));
    mcp_layer_append_left(result, &text);
    mcp_news_changed(call->session->news);
    mcp_tool_result(call, text.data,
                    json_pack("{s:O, s:O*, s:O}", "done", (json_t *)done, "doneBase64",
                              json_object_get(result, "doneBase64"), "left", (json_t *)left));
}

void tool_layer_drop(struct mcp_call *call, const struct layer_drop_arguments *arguments)
{
    const char *id = mcp_layer_id(call->session->mcp);
    json_t *paths = mcp_layer_paths(call, arguments->paths);
    struct mcp_request request = {.method = "layer/drop", .on_result = on_dropped};

    if (arguments->all == (paths != NULL)) {
        json_decref(paths);
        mcp_tool_fail(call, "layer_drop was not called: it takes either `paths`, or `all` = true");
        return;
    }
    request.params = paths ? json_pack("{s:s, s:o}", "layerId", id, "paths", paths)
                           : json_pack("{s:s, s:b}", "layerId", id, "all", 1);
    mcp_tool_ask(call, &request);
}
