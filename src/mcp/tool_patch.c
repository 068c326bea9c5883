/* The tool apply_patch: patch/apply of our own protocol. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "mcp/layer.h"
#include "mcp/tools.gen.h"
#include "mcp/tools.h"

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static json_t *without_nulls(const json_t *object)
{
    json_t *json = json_copy((json_t *)object);
    void *next;
    const char *key;
    json_t *value;

    json_object_foreach_safe(json, next, key, value) if (json_is_null(value))
        json_object_del(json, key);
    return json;
}

/* As the original says it: "Success. Updated the following files:", and a letter for each. */
static void append_files(const json_t *files, struct buf *text)
{
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *file = json_array_get(files, i);
        const char *change = text_of(file, "change");
        char letter = change && *change == 'a' ? 'A' : change && *change == 'd' ? 'D' : 'M';

        buf_appendf(text, "%c %s\n", letter, text_of(file, "path"));
    }
}

static void on_result(struct mcp_call *call, const json_t *result)
{
    const json_t *files = json_object_get(result, "files");
    const char *diff = text_of(result, "diff");
    bool is_applied = json_is_true(json_object_get(result, "applied"));
    AUTO_JSON json_t *structured = without_nulls(result);
    AUTO(buf_done) struct buf text;
    json_t *list = json_array();

    buf_init(&text, SIZE_MAX / 2);
    for (size_t i = 0; i < json_array_size(files); i++)
        json_array_append_new(list, without_nulls(json_array_get(files, i)));
    json_object_set_new(structured, "files", list);
    if (!json_array_size(json_object_get(structured, "left_alone")))
        json_object_del(structured, "left_alone");
    if (text_of(result, "recovered"))
        buf_appendf(&text, "An earlier patch that was killed was %s.\n",
                    text_of(result, "recovered"));
    buf_append_str(&text, is_applied ? "Success. Updated the following files:\n"
                                     : "Nothing was changed. It would be:\n");
    append_files(files, &text);
    if (diff)
        buf_append_str(&text, diff);
    mcp_tool_result(call, text.data, TAKE_PTR(structured));
}

static void on_answer(struct mcp_call *call, const json_t *result)
{
    const char *why = text_of(json_object_get(result, "error"), "message");
    AUTO_FREE char *text =
        why ? alloc_strf("The patch was not applied, and nothing was changed: %s", why) : NULL;

    if (text)
        mcp_tool_fail(call, text);
    else
        on_result(call, result);
}

void tool_apply_patch(struct mcp_call *call, const struct apply_patch_arguments *arguments)
{
    AUTO_FREE char *dir = mcp_tool_dir(call, arguments->workdir);
    const struct mcp_request request = {
        .method = "patch/apply",
        .params =
            json_pack("{s:s, s:s, s:o, s:o*, s:s}", "patch", arguments->patch, "cwd", dir,
                      "sandbox", mcp_tool_sandbox(call), "layer", mcp_layer_ref(call->session->mcp),
                      "task", arguments->dry_run ? "diff" : "apply"),
        .on_result = on_answer,
    };

    mcp_tool_ask(call, &request);
}
