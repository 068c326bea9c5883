/* See tools.h. tools/list and tools/call; and a tool call that waits for the engine:
 *
 *     mcp_tool_ask() ---answer---> on_result, or what went wrong as a result
 *         |  \____ each second: notifications/progress, when a token asked for it
 *         \---cancelled---> session/cancel; the command is interrupted, and stays a session */
#include "mcp/tools.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "loop/loop.h"
#include "mcp/engine.h"
#include "mcp/mcp.h"
#include "policy/config/config.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- tools/list --- */

static bool is_there(const struct mcp *mcp, const struct mcp_tool *tool)
{
    return !tool->wants_layer || mcp->layer;
}

static void append_tools(const struct mcp *mcp, const struct mcp_tool *tools, json_t *list)
{
    for (; tools && tools->name; tools++)
        if (is_there(mcp, tools))
            json_array_append_new(list, json_loads(tools->definition, 0, NULL));
}

static void forget_what_is_newer(json_t *list)
{
    size_t i;
    json_t *tool;

    json_array_foreach(list, i, tool)
    {
        json_object_del(tool, "title");
        json_object_del(tool, "outputSchema");
    }
}

static void list_tools(struct mcp_call *call)
{
    const struct mcp_extra *extra = call->session->mcp->options.extra;
    json_t *list = json_array();

    append_tools(call->session->mcp, mcp_tools, list);
    append_tools(call->session->mcp, extra ? extra->tools : NULL, list);
    if (!mcp_version_has(call->version, MCP_HAS_STRUCTURED))
        forget_what_is_newer(list);
    mcp_call_result(call, json_pack("{s:o}", "tools", list));
}

/* --- tools/call --- */

static const struct mcp_tool *find_in(const struct mcp_tool *tools, const char *name)
{
    for (; tools && tools->name; tools++)
        if (str_eq(tools->name, name))
            return tools;
    return NULL;
}

static const struct mcp_tool *tool_find(const struct mcp *mcp, const char *name)
{
    const struct mcp_tool *tool = find_in(mcp_tools, name);

    if (tool && !is_there(mcp, tool))
        return NULL;
    return tool || !mcp->options.extra ? tool : find_in(mcp->options.extra->tools, name);
}

/* Models invent arguments, and should not believe that those did something. */
static int check_names(const struct mcp_tool *tool, const struct json_at *arguments,
                       struct err *err)
{
    AUTO(strv_done) struct strv known = {0};

    for (const struct schema_field *field = tool->arguments->fields; field && field->name; field++)
        strv_push(&known, field->name);
    return json_at_check_keys(arguments, (const char *const *)strv_view(&known), NULL, err);
}

static void append_names(const struct mcp_tool *tool, struct buf *text)
{
    const struct schema_field *field = tool->arguments->fields;

    for (const char *before = ". Its arguments are "; field && field->name; field++, before = ", ")
        buf_appendf(text, "%s%s", before, field->name);
}

/* The struct of the tool's arguments; NULL on failure. */
static void *read_arguments(const struct mcp_tool *tool, const json_t *given, struct err *err)
{
    const struct json_at at = json_at_root(given);
    AUTO_FREE char *path = NULL;
    AUTO_FREE void *arguments = alloc_zero(1, tool->arguments_size + 1);

    if (check_names(tool, &at, err))
        return NULL;
    if (schema_read(tool->arguments, &at, arguments, &path, err)) {
        err_wrap(err, "%s", path);
        return NULL;
    }
    return TAKE_PTR(arguments);
}

static void run_tool(struct mcp_call *call, const struct mcp_tool *tool, const json_t *given)
{
    AUTO_FREE void *arguments = NULL;
    AUTO(buf_done) struct buf text = {0};
    struct err err;

    if (!tool->arguments) {
        tool->handle(call, given);
        return;
    }
    arguments = read_arguments(tool, given, &err);
    if (arguments) {
        tool->handle(call, arguments);
        return;
    }
    buf_init(&text, 4096);
    buf_appendf(&text, "%s was not called: %s", tool->name, err.msg);
    append_names(tool, &text);
    mcp_tool_fail(call, text.data);
}

static void call_tool(struct mcp_call *call)
{
    const json_t *given = json_object_get(call->params, "arguments");
    const char *name = json_string_value(json_object_get(call->params, "name"));
    const struct mcp_tool *tool = name ? tool_find(call->session->mcp, name) : NULL;
    AUTO_JSON json_t *none = json_object();

    if (!name)
        mcp_call_fail(call, MCP_INVALID_PARAMS, "\"name\" should be the name of a tool");
    else if (!tool)
        mcp_call_fail(call, MCP_INVALID_PARAMS, "Unknown tool: %.100s", name);
    else if (given && !json_is_null(given) && !json_is_object(given))
        mcp_tool_fail(call, "\"arguments\" should be an object");
    else
        run_tool(call, tool, json_is_object(given) ? given : none);
}

const struct mcp_method mcp_tool_methods[] = {
    {.name = "tools/list", .eras = MCP_BOTH, .handle = list_tools},
    {.name = "tools/call", .eras = MCP_BOTH, .handle = call_tool},
    {NULL},
};

/* --- answers --- */

static json_t *content_of(json_t *text)
{
    return json_pack("[{s:s, s:o}]", "type", "text", "text", text);
}

void mcp_tool_result(struct mcp_call *call, const char *text, json_t *structured)
{
    mcp_tool_result_text(call, json_lossy(text), structured);
}

void mcp_tool_result_text(struct mcp_call *call, json_t *text, json_t *structured)
{
    json_t *result = json_pack("{s:o}", "content", content_of(text));

    if (structured && mcp_version_has(call->version, MCP_HAS_STRUCTURED))
        json_object_set(result, "structuredContent", structured);
    json_decref(structured);
    json_object_set_new(result, "isError", json_false());
    mcp_call_result(call, result);
}

void mcp_tool_fail(struct mcp_call *call, const char *text)
{
    mcp_call_result(call,
                    json_pack("{s:o, s:b}", "content", content_of(json_lossy(text)), "isError", 1));
}

/* --- asking the engine --- */

struct request {
    struct mcp_call *call;
    struct mcp_engine *engine;
    int64_t number;
    void (*on_result)(struct mcp_call *call, const json_t *result);
    unsigned flags;
    uint64_t began_ns;
    uint64_t wait_ms;
    struct loop_timer *timer;            /* of its progress; NULL: nobody wants to know */
    struct mcp_engine_listener listener; /* for session/progress, likewise */
    char *line;                          /* that its command wrote last; NULL: not known */
};

static void request_free(struct request *request)
{
    loop_timer_free(request->timer);
    list_remove(&request->listener.in_engine);
    free(request->line);
    free(request);
}

static void on_event(void *data, const char *method, const json_t *params)
{
    struct request *request = data;
    const json_t *number = json_object_get(params, "requestId");
    const char *line = json_string_value(json_object_get(params, "lastLine"));

    if (!str_eq(method, "session/progress") || json_integer_value(number) != request->number ||
        !line)
        return;
    free(request->line);
    request->line = alloc_str(line);
}

static void on_time(void *data)
{
    struct request *request = data;
    uint64_t seconds = (clock_now_ns() - request->began_ns) / CLOCK_NS_PER_S;
    bool has_line = request->line && *request->line;
    AUTO_FREE char *text = has_line ? NULL : alloc_strf("waited for %" PRIu64 " s", seconds);

    mcp_call_progress(request->call, seconds, request->wait_ms / 1000,
                      has_line ? request->line : text);
    loop_timer_start(request->timer, CLOCK_NS_PER_S);
}

/* What a model is to see, or else the message. */
static void fail_with(struct mcp_call *call, const struct rpc_message *answer)
{
    const char *text = json_string_value(json_object_get(answer->data, "text"));

    mcp_tool_fail(call, text ? text : answer->error_text);
}

static void on_answer(void *data, const struct rpc_message *answer)
{
    struct request *request = data;
    struct mcp_call *call = request->call;
    void (*on_result)(struct mcp_call * call, const json_t *result) = request->on_result;

    request_free(request);
    if (!answer)
        mcp_call_fail(call, MCP_INTERNAL, "the server that runs commands is gone");
    else if (answer->kind == RPC_RESULT)
        on_result(call, answer->result);
    else
        fail_with(call, answer);
}

/* --- cancelling --- */

/* The call is gone, and the engine may go, too. What becomes of the command is the user's to say (config.h). */
static void interrupt(void *data, const struct rpc_message *answer)
{
    struct mcp_engine *engine = data;
    json_t *session = answer ? json_object_get(answer->result, "sessionId") : NULL;

    if (json_is_integer(session))
        mcp_engine_call(engine, "session/write",
                        json_pack("{s:O, s:s}", "sessionId", session, "chars", "\x03"), NULL, NULL);
}

static void terminate(void *data, const struct rpc_message *answer)
{
    json_t *session = answer ? json_object_get(answer->result, "sessionId") : NULL;

    if (json_is_integer(session))
        mcp_engine_call(data, "session/terminate", json_pack("{s:O}", "sessionId", session), NULL,
                        NULL);
}

static mcp_engine_answer_fn *const when_cancelled[] = {
    [CONFIG_MCP_CANCEL_INTERRUPT] = interrupt,
    [CONFIG_MCP_CANCEL_LEAVE] = NULL,
    [CONFIG_MCP_CANCEL_TERMINATE] = terminate,
};

static void on_cancel(void *data)
{
    struct request *request = data;
    const struct config_mcp *config = mcp_config(request->call->session->mcp);

    mcp_engine_forget(request->engine, request->number);
    if (request->flags & MCP_REQUEST_WAITS)
        mcp_engine_call(request->engine, "session/cancel",
                        json_pack("{s:I}", "requestId", (json_int_t)request->number),
                        when_cancelled[config->on_cancel], request->engine);
    request_free(request);
}

bool mcp_tool_waits_for(const struct mcp_call *call, int64_t number)
{
    const struct request *request = call->data;

    return call->on_cancel == on_cancel && request->number == number;
}

void mcp_tool_ask(struct mcp_call *call, const struct mcp_request *asked)
{
    struct err err;
    struct mcp_engine *engine = mcp_session_engine(call->session, &err);
    struct request *request;

    if (!engine) {
        json_decref(asked->params);
        mcp_call_fail(call, MCP_INTERNAL, "%s", err.msg);
        return;
    }
    request = alloc_zero(1, sizeof *request);
    *request = (struct request){
        .call = call,
        .engine = engine,
        .on_result = asked->on_result,
        .flags = asked->flags,
        .wait_ms = asked->wait_ms,
    };
    mcp_call_on_cancel(call, on_cancel, request);
    if (call->progress_token && asked->flags & MCP_REQUEST_WAITS) {
        request->began_ns = clock_now_ns();
        request->timer = loop_timer_new(call->session->mcp->loop, on_time, request);
        loop_timer_start(request->timer, CLOCK_NS_PER_S);
        request->listener = (struct mcp_engine_listener){.on_event = on_event, .data = request};
        mcp_engine_listen(engine, &request->listener);
        if (asked->wait_ms)
            json_object_set_new(asked->params, "progressMs", json_integer(500));
    }
    request->number = mcp_engine_call(engine, asked->method, asked->params, on_answer, request);
}
