/* The tools that change the user's own files by the change layer, and therefore ask: layer_accept and layer_undo.
 *
 *     layer/changes (or layer/undo, as a dry run) ---> elicitation/create ---"accept" with a decision that was offered--->
 *         layer/accept, layer/undo of what was shown, each path only if it still is what it was
 *
 * A model cannot answer: what is no such answer of the client is a no, and a client that cannot ask is told the command by
 * which its user does the same. What is marked as something that others would run is shown first, and has a yes of its own, which is
 * offered only when all of it is shown. */
#include "approval/approval.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/str.h"
#include "mcp/ask.h"
#include "mcp/layer.h"
#include "mcp/mcp.h"
#include "mcp/news.h"
#include "mcp/tool_layer.h"
#include "mcp/tools.gen.h"
#include "mcp/tools.h"
#include "policy/config/config.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN_MAX = 60, ASKED_MAX = 10000 }; /* lines of a question; changes that one is about */

#define UNSHOWN ", also what is not shown here"

/* One that the person is asked about. */
struct asking {
    struct mcp_call *call;
    int64_t question;
    const char *method; /* that a yes leads to */
    json_t *params;     /* of that: what is not marked; owned, as is the next */
    json_t *marked;     /* the same with what is marked; NULL: not offered */
};

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void asking_free(struct asking *asking)
{
    json_decref(asking->params);
    json_decref(asking->marked);
    free(asking);
}

/* --- who can be asked --- */

/* false: the call was answered with what its user can do. */
static bool can_ask(struct mcp_call *call, const char *command)
{
    const struct mcp *mcp = call->session->mcp;
    const bool is_never = mcp_config(mcp)->approvals == CONFIG_MCP_APPROVALS_NEVER;
    AUTO_FREE char *text = NULL;

    if (!is_never && mcp_ask_can(call))
        return true;
    text =
        alloc_strf("Nothing was done: %s. The user can do it in a terminal: cordon %s %s",
                   is_never ? "the user's configuration asks nobody ([mcp] approvals = \"never\")"
                            : "this client cannot ask its user (it has no elicitation)",
                   command, mcp_layer_name(mcp));
    mcp_tool_fail(call, text);
    return false;
}

/* --- the result --- */

/* Takes `json`, which has all but "done" and "left". */
static void answer(struct mcp_call *call, const json_t *result, json_t *json, const char *verb)
{
    const json_t *left = json_object_get(result, "left");
    json_t *done = json_object_get(result, "done");
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    json_object_set_new(json, "done", done ? json_incref(done) : json_array());
    if (json_object_get(result, "doneBase64"))
        json_object_set(json, "doneBase64", json_object_get(result, "doneBase64"));
    json_object_set_new(json, "left", left ? json_incref((json_t *)left) : json_array());
    if (text_of(json, "reason"))
        buf_appendf(&text, "Nothing was done: %s\n", text_of(json, "reason"));
    else
        buf_appendf(&text, "%zu %s.\n", json_array_size(done), verb);
    mcp_layer_append_left(result, &text);
    mcp_tool_result(call, text.data, json);
}

static void answer_no(struct mcp_call *call, const char *why)
{
    answer(call, NULL, json_pack("{s:b, s:o}", "accepted", 0, "reason", json_lossy(why)), "");
}

static void on_done(struct mcp_call *call, const json_t *result)
{
    const json_t *id = json_object_get(result, "acceptId");
    const char *tool = text_of(call->params, "name");
    bool is_undo = tool && str_eq(tool, "layer_undo");

    mcp_news_changed(call->session->news);
    answer(call, result, json_pack("{s:b, s:O*}", "accepted", 1, "accept_id", (json_t *)id),
           is_undo ? "taken back, and in the layer again" : "accepted into the user's files");
}

/* --- the answer of the person --- */

/* Takes the reference. */
static void carry_out(struct mcp_call *call, const char *method, json_t *params)
{
    const struct mcp_request request = {.method = method, .params = params, .on_result = on_done};

    mcp_tool_ask(call, &request);
}

/* The decision that was offered and taken; NULL with the reason why there is none, which is borrowed. */
static const char *decision_of(const struct mcp_message *message, const char **ret_why)
{
    const json_t *result = message->kind == MCP_RESULT ? message->result : NULL;
    const char *action = text_of(result, "action");
    const json_t *content = json_object_get(result, "content");
    const char *decision = text_of(content, "decision");
    const char *reason = text_of(content, "reason");

    const bool is_answer = action && str_eq(action, "accept");

    *ret_why = !result             ? "the client could not ask"
               : !is_answer        ? "the user did not say yes"
               : reason && *reason ? reason
                                   : "the user said no";
    return is_answer ? decision : NULL;
}

static void on_answer(void *data, const struct mcp_message *message)
{
    struct asking *asking = data;
    struct mcp_call *call = asking->call;
    const char *decision;
    const char *why;

    asking->question = 0;
    if (!message && !call->parked)
        return; /* its session ends, and the call with it: on_cancel() */
    call->on_cancel = NULL;
    decision = message ? decision_of(message, &why) : NULL;
    if (!message)
        answer_no(call, "nobody answered");
    else if (decision && str_eq(decision, "yes") && asking->params)
        carry_out(call, asking->method, json_incref(asking->params));
    else if (decision && str_eq(decision, "yes_with_marked") && asking->marked)
        carry_out(call, asking->method, json_incref(asking->marked));
    else
        answer_no(call, why);
    asking_free(asking);
}

static void on_cancel(void *data)
{
    struct asking *asking = data;

    if (asking->question)
        mcp_session_withdraw(asking->call->session, asking->question, "the call was cancelled");
    asking_free(asking);
}

/* --- the question --- */

/* In the words of the version, as in ask.c. Without `yes` all is marked. */
static json_t *decision_schema(const struct mcp_call *call, const char *yes, bool has_marked)
{
    const bool has_titles = mcp_version_has(call->version, MCP_HAS_ELICITATION_MODES);
    const char *const words[] = {"yes", "yes_with_marked", "no"};
    const char *const titles[] = {
        yes, yes ? "Yes, also what is marked" : "Yes, all of it is marked", "No"};
    const bool is_offered[] = {yes, has_marked, true};
    json_t *schema = json_pack("{s:s, s:s}", "type", "string", "title", "Decision");
    json_t *list = json_array();
    json_t *names = json_array();

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!is_offered[i])
            continue;
        json_array_append_new(
            list, has_titles ? json_pack("{s:s, s:s}", "const", words[i], "title", titles[i])
                             : json_string(words[i]));
        json_array_append_new(names, json_string(titles[i]));
    }
    json_object_set_new(schema, has_titles ? "oneOf" : "enum", list);
    if (has_titles)
        json_object_set_new(schema, "default", json_string("no"));
    else
        json_object_set(schema, "enumNames", names);
    json_decref(names);
    return schema;
}

static json_t *question_params(const struct mcp_call *call, const char *message, json_t *decision)
{
    json_t *params =
        json_pack("{s:o, s:{s:s, s:{s:o, s:{s:s, s:s, s:s}}, s:[s]}}", "message",
                  json_lossy(message), "requestedSchema", "type", "object", "properties",
                  "decision", decision, "reason", "type", "string", "title", "Reason",
                  "description", "For the model, if you like", "required", "decision");

    if (mcp_version_has(call->version, MCP_HAS_ELICITATION_MODES))
        json_object_set_new(params, "mode", json_string("form"));
    return params;
}

/* What is in `asking` is taken. */
static void ask(struct mcp_call *call, const struct asking *from, const char *message,
                const char *yes)
{
    struct asking *asking = alloc_zero(1, sizeof *asking);
    const struct mcp_question question = {
        .call = call,
        .method = "elicitation/create",
        .params = question_params(call, message, decision_schema(call, yes, from->marked)),
        .on_answer = on_answer,
        .data = asking,
    };

    *asking = *from;
    asking->call = call;
    mcp_call_on_cancel(call, on_cancel, asking);
    asking->question = mcp_session_ask(call->session, &question);
    if (asking->question)
        return;
    call->on_cancel = NULL;
    asking_free(asking);
    mcp_tool_fail(call, "Nothing was done: too many questions are open already");
}

/* A model's own words, as such. */
static void append_why(const struct mcp_call *call, struct buf *text)
{
    const char *why = text_of(json_object_get(call->params, "arguments"), "why");
    AUTO_FREE char *plain = why && *why ? approval_plain_text(why) : NULL;

    if (plain)
        buf_appendf(text, "The model says: %s\n", plain);
}

/* --- layer_accept --- */

/* A mark but a conflict, which stays in any case, and what cannot be accepted. */
static bool is_marked(const json_t *change)
{
    const json_t *marks = json_object_get(change, "marks");

    for (size_t i = 0; i < json_array_size(marks); i++) {
        const char *mark = json_string_value(json_array_get(marks, i));

        if (!str_eq(mark, "conflict") && !str_eq(mark, "special"))
            return true;
    }
    return false;
}

/* Lines of those that are marked, or of the others, `*ret_shown` more; how many there are. */
static size_t append_changes(const json_t *changes, bool marked, size_t *ret_shown,
                             struct buf *text)
{
    size_t len = 0;

    for (size_t i = 0; i < json_array_size(changes); i++) {
        const json_t *change = json_array_get(changes, i);

        if (is_marked(change) != marked)
            continue;
        len++;
        if (*ret_shown >= SHOWN_MAX)
            continue;
        buf_append_str(text, "  ");
        mcp_layer_append_change(change, text);
        buf_append_str(text, "\n");
        (*ret_shown)++;
    }
    return len;
}

/* It comes back into the path, whatever bytes that is of: `base64` where it is no UTF-8. The caller frees. */
static char *uri_of(const json_t *path, const json_t *base64)
{
    const char *text = json_string_value(base64);
    const size_t len = text ? strlen(text) : 0;
    AUTO_FREE char *bytes = alloc_zero(base64_decoded_len(text ? text : "", len) + 1, 1);
    struct err ignored; /* the server wrote it */

    if (!text || base64_decode(text, len, bytes, &ignored))
        return file_uri_format(json_string_value(path));
    return file_uri_format(bytes);
}

/* By their own paths, each with what it was when it was shown; of a rename, that the other goes. */
static json_t *accept_params(const struct mcp_call *call, const json_t *changes, bool marked)
{
    json_t *paths = json_array();
    json_t *expect = json_object();

    for (size_t i = 0; i < json_array_size(changes); i++) {
        const json_t *change = json_array_get(changes, i);
        const json_t *from = json_object_get(change, "from");
        AUTO_FREE char *uri =
            uri_of(json_object_get(change, "path"), json_object_get(change, "pathBase64"));
        AUTO_FREE char *from_uri =
            from ? uri_of(from, json_object_get(change, "fromBase64")) : NULL;

        if (!marked && is_marked(change))
            continue;
        json_array_append_new(paths, json_string(uri));
        json_object_set(expect, uri, json_object_get(change, "stamp"));
        if (from_uri)
            json_object_set_new(expect, from_uri, json_string(""));
    }
    return json_pack("{s:s, s:o, s:o}", "layerId", mcp_layer_id(call->session->mcp), "paths", paths,
                     "expect", expect);
}

static void ask_to_accept(struct mcp_call *call, const json_t *result)
{
    const json_t *changes = json_object_get(result, "changes");
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    struct asking asking = {.method = "layer/accept"};
    AUTO_FREE char *yes = NULL;
    size_t shown = 0;
    size_t marked;
    size_t plain;

    buf_appendf(&text, "Take these changes of the layer %s into your files?\n",
                mcp_layer_name(call->session->mcp));
    append_why(call, &text);
    marked = append_changes(changes, true, &shown, &text);
    if (marked && marked == shown) {
        asking.marked = accept_params(call, changes, true);
        buf_append_str(&text, "The marked ones above are things that others would run or obey.\n");
    }
    plain = append_changes(changes, false, &shown, &text);
    if (marked + plain > shown)
        buf_appendf(&text, "  and %zu more, which cordon changes %s shows\n",
                    marked + plain - shown, mcp_layer_name(call->session->mcp));
    mcp_layer_append_counts(json_object_get(result, "counts"), &text);
    if (!plain && marked && !asking.marked) {
        mcp_tool_fail(call, "Nothing was done: all of it is marked, and too much to be shown in a "
                            "question. The user can accept it in a terminal: cordon accept");
        return;
    }
    if (plain || !marked)
        asking.params = accept_params(call, changes, false);
    yes = alloc_strf("Yes%s%s", marked ? ", but not what is marked" : "",
                     marked + plain > shown && plain ? UNSHOWN : "");
    ask(call, &asking, text.data, asking.params ? yes : NULL);
}

static void on_changes(struct mcp_call *call, const json_t *result)
{
    AUTO_FREE char *text = NULL;

    if (!json_array_size(json_object_get(result, "changes"))) {
        answer_no(call, "there is nothing to accept");
        return;
    }
    if (!json_object_get(result, "next")) {
        ask_to_accept(call, result);
        return;
    }
    text = alloc_strf("Nothing was done: there are more than %d changes. Ask for some, by `paths`; "
                      "or the user can take all in a terminal: cordon accept %s --all",
                      ASKED_MAX, mcp_layer_name(call->session->mcp));
    mcp_tool_fail(call, text);
}

void tool_layer_accept(struct mcp_call *call, const struct layer_accept_arguments *arguments)
{
    struct mcp_request request = {.method = "layer/changes", .on_result = on_changes};

    if (!can_ask(call, "accept"))
        return;
    request.params =
        json_pack("{s:s, s:o*, s:i}", "layerId", mcp_layer_id(call->session->mcp), "paths",
                  mcp_layer_paths(call, arguments->paths), "limit", ASKED_MAX);
    mcp_tool_ask(call, &request);
}

/* --- layer_undo --- */

static void on_dry_run(struct mcp_call *call, const json_t *result)
{
    const json_t *done = json_object_get(result, "done");
    const json_t *bytes = json_object_get(result, "doneBase64");
    const json_t *left = json_object_get(result, "left");
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    struct asking asking = {.method = "layer/undo"};
    json_t *id = json_object_get(result, "acceptId");
    json_t *paths;

    if (!json_array_size(done)) {
        answer(call, result,
               json_pack("{s:b, s:s}", "accepted", 0, "reason", "there is nothing to take back"),
               "");
        return;
    }
    buf_append_str(&text, "Take back what was accepted, so that these files are what they were?\n");
    append_why(call, &text);
    for (size_t i = 0; i < json_array_size(done) && i < SHOWN_MAX; i++) {
        AUTO_FREE char *path = approval_plain_text(json_string_value(json_array_get(done, i)));

        buf_appendf(&text, "  %s\n", path);
    }
    if (json_array_size(done) > SHOWN_MAX)
        buf_appendf(&text, "  and %zu more\n", json_array_size(done) - SHOWN_MAX);
    if (json_array_size(left))
        buf_appendf(&text, "%zu stay as they are: they were changed since.\n",
                    json_array_size(left));
    paths = json_array();
    for (size_t i = 0; i < json_array_size(done); i++) {
        AUTO_FREE char *uri = uri_of(json_array_get(done, i), json_array_get(bytes, i));

        json_array_append_new(paths, json_string(uri));
    }
    asking.params = json_pack("{s:s, s:O*, s:o}", "layerId", mcp_layer_id(call->session->mcp),
                              "acceptId", id, "paths", paths);
    ask(call, &asking, text.data, json_array_size(done) > SHOWN_MAX ? "Yes" UNSHOWN : "Yes");
}

void tool_layer_undo(struct mcp_call *call, const struct layer_undo_arguments *arguments)
{
    struct mcp_request request = {.method = "layer/undo", .on_result = on_dry_run};

    if (!can_ask(call, "undo"))
        return;
    request.params = json_pack("{s:s, s:o*, s:b}", "layerId", mcp_layer_id(call->session->mcp),
                               "paths", mcp_layer_paths(call, arguments->paths), "dryRun", 1);
    if (arguments->accept_id != UINT64_MAX)
        json_object_set_new(request.params, "acceptId",
                            json_integer((json_int_t)arguments->accept_id));
    mcp_tool_ask(call, &request);
}
