/* See resources.h. Every method is a request to the engine, whose answer is put into other words; a request that is
 * cancelled is forgotten, because none of them changes anything. What has changed is told by news.c. */
#include "mcp/resources.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "mcp/engine.h"
#include "mcp/layer.h"
#include "mcp/mcp.h"
#include "mcp/news.h"
#include "mcp/tool_layer.h"
#include "mcp/tools.h"
#include "output/headtail.h"
#include "rpc/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMPLETIONS_MAX = 100, /* that the specification allows in an answer */
    DIFFS_MAX = 200,       /* that are listed, and read */
};

/* What a URI names. */
enum resource_kind {
    RESOURCE_SESSIONS,
    RESOURCE_PERMISSIONS,
    RESOURCE_OUTPUT,
    RESOURCE_SCREEN,
    RESOURCE_INFO,
    RESOURCE_CHANGES,
    RESOURCE_DIFF,
};

struct resource_name {
    enum resource_kind kind;
    int64_t number;   /* of the session; 0: of none */
    const char *path; /* RESOURCE_DIFF: as in a file URI; the end of this one */
};

static const struct part {
    const char *word; /* the end of the URI */
    enum resource_kind kind;
    const char *title;
    const char *mime;
    const char *about;
} parts[] = {
    {"output", RESOURCE_OUTPUT, "Output", "text/plain",
     "What is kept of what the session wrote. Reading it takes nothing from write_stdin and "
     "wait_for."},
    {"screen", RESOURCE_SCREEN, "Screen", "text/plain",
     "What the terminal of the session shows. For sessions with tty."},
    {"info", RESOURCE_INFO, "State", "application/json",
     "Command, directory, pid, how much it wrote, how it ended."},
};

enum { PARTS_LEN = sizeof parts / sizeof *parts };

#define SESSION_PREFIX "cordon://session/"

static const struct whole {
    const char *uri;
    enum resource_kind kind;
    const char *name;
    const char *title;
    const char *about;
} wholes[] = {
    {"cordon://sessions", RESOURCE_SESSIONS, "sessions", "Running sessions",
     "The commands that run, as list_sessions tells them."},
    {"cordon://permissions", RESOURCE_PERMISSIONS, "permissions", "Permissions",
     "What commands may do here, and who decided it, as explain_permissions tells it."},
};

enum { WHOLES_LEN = sizeof wholes / sizeof *wholes };

/* "1000/output" */
static bool name_parse_session(const char *text, struct resource_name *ret)
{
    size_t len = strspn(text, "0123456789");

    if (len == 0 || len > 9 || *text == '0' || text[len] != '/')
        return false;
    ret->number = strtol(text, NULL, 10);
    for (size_t i = 0; i < PARTS_LEN; i++) {
        ret->kind = parts[i].kind;
        if (str_eq(text + len + 1, parts[i].word))
            return true;
    }
    return false;
}

/* "ID/changes", "ID/diff/home/me/file" */
static bool name_parse_layer(const struct mcp *mcp, const char *text, struct resource_name *ret)
{
    const char *id = mcp_layer_id(mcp);

    if (!id || !str_starts(text, id) || text[strlen(id)] != '/')
        return false;
    text += strlen(id) + 1;
    ret->kind = RESOURCE_CHANGES;
    if (str_eq(text, "changes"))
        return true;
    ret->kind = RESOURCE_DIFF;
    ret->path = text + strlen("diff");
    return str_starts(text, "diff/");
}

/* false: there is no such resource. */
static bool name_parse(const struct mcp *mcp, const char *uri, struct resource_name *ret)
{
    *ret = (struct resource_name){0};
    if (str_starts(uri, MCP_LAYER_URIS))
        return name_parse_layer(mcp, uri + strlen(MCP_LAYER_URIS), ret);
    for (size_t i = 0; i < WHOLES_LEN; i++) {
        ret->kind = wholes[i].kind;
        if (str_eq(uri, wholes[i].uri))
            return true;
    }
    return str_starts(uri, SESSION_PREFIX) && name_parse_session(uri + strlen(SESSION_PREFIX), ret);
}

/* --- requests that wait for the engine --- */

struct pending {
    struct mcp_call *call;
    struct mcp_session *session;
    int64_t engine_call;
    struct resource_name name;
    char *uri;                                                   /* read, subscribe */
    char *prefix;                                                /* completion */
    json_t *list;                                                /* resources so far; NULL: none */
    void (*done)(struct pending *pending, const json_t *result); /* answers the call */
};

static void pending_free(struct pending *pending)
{
    free(pending->uri);
    free(pending->prefix);
    json_decref(pending->list);
    free(pending);
}

static void pending_on_cancel(void *data)
{
    struct pending *pending = data;

    mcp_engine_forget(pending->session->engine, pending->engine_call);
    pending_free(pending);
}

static void fail_missing(struct mcp_call *call, const char *uri, const char *why)
{
    AUTO_FREE char *text = alloc_strf("there is no resource %.200s: %s", uri, why);

    mcp_call_fail_data(call, MCP_NO_RESOURCE, text, json_pack("{s:o}", "uri", json_lossy(uri)));
}

static void pending_on_answer(void *data, const struct rpc_message *answer)
{
    struct pending *pending = data;

    if (!answer)
        mcp_call_fail(pending->call, MCP_INTERNAL, "the server behind this connection has ended");
    else if (answer->kind == RPC_RESULT)
        pending->done(pending, answer->result);
    else if (pending->uri &&
             (answer->code ==
                  RPC_INVALID_REQUEST || /* a session that it does not know, or without a screen */
              answer->code == RPC_NOT_FOUND)) /* a path that was not changed */
        fail_missing(pending->call, pending->uri, answer->error_text);
    else
        mcp_call_fail(pending->call, MCP_INTERNAL, "%s", answer->error_text);
    pending_free(pending);
}

/* Takes `params`; `from` is copied, and its texts taken. */
static void pending_ask(const struct pending *from, const char *method, json_t *params)
{
    struct pending *pending = alloc_zero(1, sizeof *pending);
    struct err err;

    *pending = *from;
    pending->session = from->call->session;
    if (!mcp_session_engine(from->call->session, &err)) {
        mcp_call_fail(from->call, MCP_INTERNAL, "%s", err.msg);
        json_decref(params);
        pending_free(pending);
        return;
    }
    mcp_call_on_cancel(pending->call, pending_on_cancel, pending);
    pending->engine_call =
        mcp_engine_call(pending->session->engine, method, params, pending_on_answer, pending);
}

/* --- resources/list and resources/templates/list --- */

static json_t *part_to_json(const struct part *part, const char *key, const char *uri)
{
    return json_pack("{s:s, s:s, s:s, s:s}", key, uri, "title", part->title, "mimeType", part->mime,
                     "description", part->about);
}

/* The command of a session, for a title: one line, not too long. */
static char *title_of(const struct part *part, const json_t *session)
{
    AUTO_FREE char *command = utf8_plain(json_string_value(json_object_get(session, "command")));
    size_t len = utf8_cut(command, strlen(command), 60);

    return alloc_strf("%s: %.*s%s", part->title, (int)len, command, command[len] ? "..." : "");
}

static void list_session(const json_t *session, json_t *list)
{
    int64_t number = json_integer_value(json_object_get(session, "sessionId"));

    for (size_t i = 0; i < PARTS_LEN; i++) {
        AUTO_FREE char *uri = alloc_strf(SESSION_PREFIX "%" PRId64 "/%s", number, parts[i].word);
        AUTO_FREE char *name = alloc_strf("session %" PRId64 " %s", number, parts[i].word);
        AUTO_FREE char *title = title_of(&parts[i], session);
        json_t *item;

        if (parts[i].kind == RESOURCE_SCREEN && !json_is_true(json_object_get(session, "tty")))
            continue;
        item = part_to_json(&parts[i], "uri", uri);
        json_object_set_new(item, "name", json_string(name));
        json_object_set_new(item, "title", json_string(title));
        json_array_append_new(list, item);
    }
}

static void list_layer_done(struct pending *pending, const json_t *result)
{
    mcp_layer_list(pending->session->mcp, json_object_get(result, "changes"), pending->list);
    mcp_call_result(pending->call, json_pack("{s:O}", "resources", pending->list));
}

static json_t *changes_params(const struct mcp *mcp)
{
    return json_pack("{s:s, s:i}", "layerId", mcp_layer_id(mcp), "limit", DIFFS_MAX);
}

static void list_done(struct pending *pending, const json_t *result)
{
    const struct mcp *mcp = pending->session->mcp;
    json_t *list = json_array();
    const json_t *session;
    size_t i;

    for (i = 0; i < WHOLES_LEN; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:s, s:s}", "uri", wholes[i].uri, "name",
                                        wholes[i].name, "title", wholes[i].title, "mimeType",
                                        "application/json", "description", wholes[i].about));
    json_array_foreach(json_object_get(result, "sessions"), i, session) list_session(session, list);
    if (mcp->layer)
        pending_ask(&(struct pending){.call = pending->call, .list = list, .done = list_layer_done},
                    "layer/changes", changes_params(mcp));
    else
        mcp_call_result(pending->call, json_pack("{s:o}", "resources", list));
}

/* Everything is on the first page. */
static bool has_cursor(struct mcp_call *call)
{
    if (!json_object_get(call->params, "cursor"))
        return false;
    mcp_call_fail(call, MCP_INVALID_PARAMS,
                  "\"cursor\" is none of ours: everything is on one page");
    return true;
}

static void method_list(struct mcp_call *call)
{
    if (!has_cursor(call))
        pending_ask(&(struct pending){.call = call, .done = list_done}, "session/list", NULL);
}

static void method_templates(struct mcp_call *call)
{
    json_t *list;

    if (has_cursor(call))
        return;
    list = json_array();
    for (size_t i = 0; i < PARTS_LEN; i++) {
        AUTO_FREE char *uri = alloc_strf(SESSION_PREFIX "{id}/%s", parts[i].word);
        AUTO_FREE char *name = alloc_strf("session %s", parts[i].word);
        json_t *item = part_to_json(&parts[i], "uriTemplate", uri);

        json_object_set_new(item, "name", json_string(name));
        json_array_append_new(list, item);
    }
    if (call->session->mcp->layer)
        json_array_append_new(
            list, json_pack("{s:s++, s:s, s:s, s:s, s:s}", "uriTemplate", MCP_LAYER_URIS,
                            mcp_layer_id(call->session->mcp), "/diff{+path}", "name", "diff",
                            "title", "Difference", "mimeType", "text/x-diff", "description",
                            "How a file in the change layer differs from the user's own; the path "
                            "is absolute."));
    mcp_call_result(call, json_pack("{s:o}", "resourceTemplates", list));
}

/* --- resources/read --- */

static json_t *process_id(int64_t number)
{
    return json_sprintf("session:%" PRId64, number);
}

/* Takes `text`. */
static void read_answer(const struct pending *pending, const char *mime, json_t *text)
{
    mcp_call_result(pending->call, json_pack("{s:[{s:s, s:s, s:o}]}", "contents", "uri",
                                             pending->uri, "mimeType", mime, "text", text));
}

static void read_answer_json(const struct pending *pending, json_t *value)
{
    AUTO_JSON json_t *owned = value;
    AUTO_FREE char *text = json_dumps(owned, JSON_COMPACT);

    read_answer(pending, "application/json", json_string(text));
}

static void read_sessions_done(struct pending *pending, const json_t *result)
{
    read_answer_json(pending, mcp_sessions_to_json(result));
}

static void read_permissions_done(struct pending *pending, const json_t *result)
{
    read_answer_json(pending, json_incref(json_object_get(result, "answer")));
}

/* Where something is not kept any more, a line says how much. */
static void append_gap(const json_t *lost, struct buf *text)
{
    uint64_t bytes = (uint64_t)json_integer_value(json_object_get(lost, "bytes"));

    buf_appendf(text, "%s" HEADTAIL_MARKER "\n",
                text->len && text->data[text->len - 1] != '\n' ? "\n" : "", bytes);
}

static void append_chunk(const json_t *chunk, struct buf *text)
{
    const json_t *value = json_object_get(chunk, "chunk");
    const char *encoded = json_string_value(value);
    size_t encoded_len = json_string_length(value);
    size_t len = base64_decoded_len(encoded, encoded_len);
    char *place = buf_extend(text, len);
    struct err ignored;

    if (base64_decode(encoded, encoded_len, place, &ignored))
        memset(place, '?', len);
}

static void read_output_done(struct pending *pending, const json_t *result)
{
    const json_t *lost = json_object_get(result, "lost");
    AUTO(buf_done) struct buf bytes = {0};
    AUTO(buf_done) struct buf text = {0};
    const json_t *chunk;
    size_t gap = 0;
    size_t i;

    buf_init(&bytes, SIZE_MAX / 2);
    buf_init(&text, SIZE_MAX / 2);
    json_array_foreach(json_object_get(result, "chunks"), i, chunk)
    {
        int64_t offset = json_integer_value(json_object_get(chunk, "offset"));

        for (; gap < json_array_size(lost) &&
               json_integer_value(json_object_get(json_array_get(lost, gap), "offset")) < offset;
             gap++)
            append_gap(json_array_get(lost, gap), &bytes);
        append_chunk(chunk, &bytes);
    }
    if (bytes.len)
        utf8_append_lossy(&text, bytes.data, bytes.len);
    read_answer(pending, "text/plain", json_stringn(text.len ? text.data : "", text.len));
}

static void read_screen_done(struct pending *pending, const json_t *result)
{
    AUTO(buf_done) struct buf text = {0};
    const json_t *line;
    size_t i;

    buf_init(&text, SIZE_MAX / 2);
    json_array_foreach(json_object_get(result, "lines"), i, line)
    {
        buf_append(&text, json_string_value(line), json_string_length(line));
        buf_append_str(&text, "\n");
    }
    while (text.len > 1 && text.data[text.len - 2] == '\n') /* empty lines at the bottom */
        text.len--;
    read_answer(pending, "text/plain", json_stringn(text.len ? text.data : "", text.len));
}

static json_t *info_to_json(const json_t *process)
{
    AUTO_FREE char *cwd = NULL;
    struct err ignored;

    cwd = file_uri_parse(json_string_value(json_object_get(process, "cwd")), &ignored);
    return json_pack("{s:O, s:O, s:o, s:O, s:O, s:O, s:b, s:O, s:O}", "session_id",
                     json_object_get(process, "modelSession"), "argv",
                     json_object_get(process, "argv"), "workdir", json_lossy(cwd), "tty",
                     json_object_get(process, "tty"), "pid", json_object_get(process, "pid"),
                     "started_at_ms", json_object_get(process, "startedAtMs"), "running",
                     !json_is_true(json_object_get(process, "exited")), "exit_code",
                     json_object_get(process, "exitCode"), "output_bytes",
                     json_object_get(process, "nextOffset"));
}

static void read_info_done(struct pending *pending, const json_t *result)
{
    const json_t *process;
    size_t i;

    json_array_foreach(json_object_get(result, "processes"), i, process)
    {
        if (json_integer_value(json_object_get(process, "modelSession")) != pending->name.number)
            continue;
        read_answer_json(pending, info_to_json(process));
        return;
    }
    fail_missing(pending->call, pending->uri, "no session has this number");
}

static void read_changes_done(struct pending *pending, const json_t *result)
{
    read_answer_json(pending, mcp_layer_changes(pending->session->mcp, result));
}

static void read_diff_done(struct pending *pending, const json_t *result)
{
    AUTO_FREE char *text = mcp_layer_diff_text(result);

    read_answer(pending, "text/x-diff", json_lossy(text));
}

/* The URI that a call is about, and what it names; NULL: the call has been answered. */
static const char *read_uri(struct mcp_call *call, struct resource_name *ret)
{
    const char *uri = json_string_value(json_object_get(call->params, "uri"));

    if (!uri)
        mcp_call_fail(call, MCP_INVALID_PARAMS, "\"uri\" is missing, or no string");
    else if (!name_parse(call->session->mcp, uri, ret))
        fail_missing(call, uri, "resources/list has those that there are now");
    else
        return uri;
    return NULL;
}

static void method_read(struct mcp_call *call)
{
    struct pending pending = {.call = call};
    const char *uri = read_uri(call, &pending.name);
    AUTO_FREE char *dir = NULL;

    if (!uri)
        return;
    pending.uri = alloc_str(uri);
    switch (pending.name.kind) {
    case RESOURCE_SESSIONS:
        pending.done = read_sessions_done;
        pending_ask(&pending, "session/list", NULL);
        break;
    case RESOURCE_PERMISSIONS:
        pending.done = read_permissions_done;
        dir = mcp_tool_dir(call, NULL);
        pending_ask(&pending, "permissions/explain",
                    json_pack("{s:s, s:o}", "cwd", dir, "sandbox", mcp_tool_sandbox(call)));
        break;
    case RESOURCE_OUTPUT:
        pending.done = read_output_done;
        pending_ask(
            &pending, "process/read",
            json_pack("{s:o, s:i}", "processId", process_id(pending.name.number), "offset", 0));
        break;
    case RESOURCE_SCREEN:
        pending.done = read_screen_done;
        pending_ask(&pending, "session/screen",
                    json_pack("{s:I}", "sessionId", pending.name.number));
        break;
    case RESOURCE_INFO:
        pending.done = read_info_done;
        pending_ask(&pending, "process/list", NULL);
        break;
    case RESOURCE_CHANGES:
        pending.done = read_changes_done;
        pending_ask(&pending, "layer/changes", changes_params(call->session->mcp));
        break;
    case RESOURCE_DIFF:
        pending.done = read_diff_done;
        dir = alloc_strf("file://%s", pending.name.path);
        pending_ask(
            &pending, "layer/diff",
            json_pack("{s:s, s:s}", "layerId", mcp_layer_id(call->session->mcp), "path", dir));
        break;
    }
}

/* --- resources/subscribe and resources/unsubscribe --- */

/* As in news.h. */
static int64_t news_of(const struct resource_name *name)
{
    if (name->kind == RESOURCE_PERMISSIONS)
        return MCP_NEWS_OF_NOTHING;
    if (name->kind == RESOURCE_CHANGES || name->kind == RESOURCE_DIFF)
        return MCP_NEWS_OF_LAYER;
    return name->number;
}

/* What is there is known to the client, or can be read now: it hears of what comes behind it. */
static void subscribe_done(struct pending *pending, const json_t *result)
{
    struct mcp_news *news = pending->session->news;
    const char *alias = json_string_value(json_object_get(result, "alias"));
    bool is_over = json_is_true(json_object_get(result, "exited"));

    mcp_news_subscribe(news, mcp_news_own(news), pending->uri, news_of(&pending->name),
                       is_over ? NULL : alias);
    mcp_call_result(pending->call, json_object());
}

static void method_subscribe(struct mcp_call *call)
{
    struct pending pending = {.call = call, .done = subscribe_done};
    const struct mcp_engine *engine = call->session->engine;
    const char *uri = read_uri(call, &pending.name);

    if (!uri)
        return;
    if (mcp_listener_is_full(mcp_news_own(call->session->news))) {
        mcp_call_fail(call, MCP_INVALID_REQUEST,
                      "too many resources are subscribed to: unsubscribe from some");
        return;
    }
    pending.uri = alloc_str(uri);
    if (pending.name.number)
        pending_ask(&pending, "process/attach",
                    json_pack("{s:s, s:o, s:b}", "sessionId", engine ? mcp_engine_id(engine) : "",
                              "processId", process_id(pending.name.number), "output", false));
    else
        pending_ask(&pending, "session/list", NULL);
}

static void method_unsubscribe(struct mcp_call *call)
{
    const char *uri = json_string_value(json_object_get(call->params, "uri"));
    struct mcp_news *news = call->session->news;

    if (!uri) {
        mcp_call_fail(call, MCP_INVALID_PARAMS, "\"uri\" is missing, or no string");
        return;
    }
    mcp_news_unsubscribe(news, mcp_news_own(news), uri);
    mcp_call_result(call, json_object());
}

/* A process/attach that is not answered yet. */
struct follow {
    struct mcp_session *session;
    int64_t number;
};

static void on_attached(void *data, const struct rpc_message *answer)
{
    struct follow *follow = data;
    const char *alias = answer ? json_string_value(json_object_get(answer->result, "alias")) : NULL;

    if (alias && !json_is_true(json_object_get(answer->result, "exited")))
        mcp_news_attach(follow->session->news, follow->number, alias);
    free(follow);
}

/* The session of the call is there as long as its engine, which answers before it goes. */
bool mcp_resource_follow(struct mcp_session *session, struct mcp_listener *listener,
                         const char *uri)
{
    struct resource_name name;
    struct err err;
    struct mcp_engine *engine = mcp_session_engine(session, &err);
    struct follow *follow;

    if (!engine || mcp_listener_is_full(listener) || !name_parse(session->mcp, uri, &name))
        return false;
    mcp_news_subscribe(session->news, listener, uri, news_of(&name), NULL);
    if (!name.number)
        return true;
    follow = alloc_zero(1, sizeof *follow);
    *follow = (struct follow){.session = session, .number = name.number};
    mcp_engine_call(engine, "process/attach",
                    json_pack("{s:s, s:o, s:b}", "sessionId", mcp_engine_id(engine), "processId",
                              process_id(name.number), "output", 0),
                    on_attached, follow);
    return true;
}

/* --- completion/complete --- */

static void complete_answer(struct mcp_call *call, json_t *values, size_t total)
{
    mcp_call_result(call, json_pack("{s:{s:o, s:I, s:b}}", "completion", "values", values, "total",
                                    (json_int_t)total, "hasMore", total > json_array_size(values)));
}

static void complete_done(struct pending *pending, const json_t *result)
{
    json_t *values = json_array();
    const json_t *session;
    size_t total = 0;
    size_t i;

    json_array_foreach(json_object_get(result, "sessions"), i, session)
    {
        char number[24];

        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT,
                 json_integer_value(json_object_get(session, "sessionId")));
        if (!str_starts(number, pending->prefix))
            continue;
        if (total++ < COMPLETIONS_MAX)
            json_array_append_new(values, json_string(number));
    }
    complete_answer(pending->call, values, total);
}

/* Whether it is the one thing that can be completed: {id} of a template. */
static bool is_session_id(const json_t *ref, const char *argument)
{
    const char *type = json_string_value(json_object_get(ref, "type"));
    const char *uri = json_string_value(json_object_get(ref, "uri"));

    return type && str_eq(type, "ref/resource") && uri && str_starts(uri, SESSION_PREFIX "{id}") &&
           str_eq(argument, "id");
}

static void method_complete(struct mcp_call *call)
{
    const json_t *ref = json_object_get(call->params, "ref");
    const json_t *argument = json_object_get(call->params, "argument");
    const char *name = json_string_value(json_object_get(argument, "name"));
    const char *value = json_string_value(json_object_get(argument, "value"));

    if (!json_is_object(ref) || !name || !value)
        mcp_call_fail(
            call, MCP_INVALID_PARAMS,
            "completion needs \"ref\", an object, and \"argument\" with \"name\" and \"value\"");
    else if (is_session_id(ref, name))
        pending_ask(
            &(struct pending){.call = call, .prefix = alloc_str(value), .done = complete_done},
            "session/list", NULL);
    else
        complete_answer(call, json_array(), 0);
}

const struct mcp_method mcp_resource_methods[] = {
    {.name = "resources/list", .eras = MCP_BOTH, .handle = method_list},
    {.name = "resources/templates/list", .eras = MCP_BOTH, .handle = method_templates},
    {.name = "resources/read", .eras = MCP_BOTH, .handle = method_read},
    {.name = "resources/subscribe", .eras = MCP_LEGACY, .handle = method_subscribe},
    {.name = "resources/unsubscribe", .eras = MCP_LEGACY, .handle = method_unsubscribe},
    {.name = "completion/complete", .eras = MCP_BOTH, .handle = method_complete},
    {NULL},
};
