/* See engine.h. Both ends are in this process and on one loop; what is sent is read in the next round. initialize and what
 * follows it are sent without waiting in between: the server takes them in order. */
#include "mcp/engine.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "loop/loop.h"
#include "mcp/mcp.h"
#include "rpc/rpc.h"
#include "server/server.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct mcp_engine {
    struct rpc_peer *peer; /* NULL: gone */
    char *id;
    struct list calls;
    struct loop_timer *refusal; /* answers what is called when the peer is gone */
    int64_t refused;            /* such calls, so far; their numbers are below 0 */
    struct list listeners;
    mcp_engine_question_fn *on_question;
    void *data;
};

struct engine_call {
    struct list in_engine;
    int64_t number;
    mcp_engine_answer_fn *on_answer;
    void *data;
};

/* --- calls --- */

static void call_on_answer(void *data, const struct rpc_message *answer)
{
    struct engine_call *call = data;
    mcp_engine_answer_fn *on_answer = call->on_answer;
    void *owner = call->data;

    list_remove(&call->in_engine);
    free(call);
    if (on_answer)
        on_answer(owner, answer);
}

int64_t mcp_engine_call(struct mcp_engine *engine, const char *method, json_t *params,
                        mcp_engine_answer_fn *on_answer, void *data)
{
    AUTO_JSON json_t *owned = params;
    struct engine_call *call = alloc_zero(1, sizeof *call);
    const struct rpc_call request = {
        .method = method, .params = owned, .on_answer = call_on_answer, .data = call};

    call->on_answer = on_answer;
    call->data = data;
    list_append(&engine->calls, &call->in_engine);
    if (engine->peer) {
        call->number = rpc_peer_call(engine->peer, &request);
    } else {
        call->number = -++engine->refused;
        loop_timer_start(engine->refusal, 0);
    }
    return call->number;
}

static void on_refusal(void *data)
{
    struct mcp_engine *engine = data;

    if (list_is_empty(&engine->calls))
        return;
    loop_timer_start(engine->refusal, 0);
    call_on_answer(list_first(&engine->calls, struct engine_call, in_engine), NULL);
}

void mcp_engine_forget(struct mcp_engine *engine, int64_t number)
{
    struct engine_call *call;

    list_for_each(call, &engine->calls, in_engine) {
        if (call->number != number)
            continue;
        if (engine->peer)
            rpc_peer_call_cancel(engine->peer, number);
        list_remove(&call->in_engine);
        free(call);
        return;
    }
}

/* --- what comes --- */

void mcp_engine_listen(struct mcp_engine *engine, struct mcp_engine_listener *listener)
{
    list_append(&engine->listeners, &listener->in_engine);
}

void mcp_engine_take_questions(struct mcp_engine *engine, mcp_engine_question_fn *on_question,
                               void *data)
{
    engine->on_question = on_question;
    engine->data = data;
}

void mcp_engine_reply(struct mcp_engine *engine, const json_t *id, json_t *result)
{
    if (engine->peer)
        rpc_peer_result(engine->peer, id, result);
    json_decref(result);
}

static void take_event(struct mcp_engine *engine, const struct rpc_message *message)
{
    struct mcp_engine_listener *listener;
    struct mcp_engine_listener *next;

    list_for_each_safe(listener, next, &engine->listeners, in_engine)
        listener->on_event(listener->data, message->method, message->params);
}

static void on_message(void *data, struct rpc_peer *peer, struct rpc_message *message)
{
    struct mcp_engine *engine = rpc_peer_data(peer);
    bool is_request = message->kind == RPC_REQUEST;

    if (!engine)
        return;
    if (engine->on_question && (str_eq(message->method, "approval/request") ||
                                str_eq(message->method, "approval/withdrawn")))
        engine->on_question(engine->data, message->id, message->params);
    else if (is_request)
        rpc_peer_error(peer, message->id, RPC_UNKNOWN_METHOD, "%s is not for this client",
                       message->method);
    else
        take_event(engine, message);
}

/* Its calls were answered with NULL before. */
static void on_closed(void *data, struct rpc_peer *peer, const char *why)
{
    struct mcp_engine *engine = rpc_peer_data(peer);

    if (engine)
        engine->peer = NULL;
}

const struct rpc_handlers mcp_engine_handlers = {.on_message = on_message, .on_closed = on_closed};

/* --- life --- */

static void on_initialized(void *data, const struct rpc_message *answer)
{
    struct mcp_engine *engine = data;
    const char *id =
        answer ? json_string_value(json_object_get(answer->result, "sessionId")) : NULL;

    if (id)
        engine->id = alloc_str(id);
}

const char *mcp_engine_id(const struct mcp_engine *engine)
{
    return engine->id ? engine->id : "";
}

static int engine_connect(struct mcp_engine *engine, struct mcp *mcp, struct err *err)
{
    int ends[2];
    AUTO_CLOSE int ours = -1;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
        return err_sys(err, "making a pair of sockets");
    ours = ends[1];
    if (!rpc_hub_attach(mcp->options.server->hub, ends[0], ends[0], err))
        return -1;
    engine->peer = rpc_hub_attach(mcp->engines, ours, ours, err);
    (void)TAKE_FD(ours); /* its owner's, also when that failed */
    if (!engine->peer)
        return -1;
    rpc_peer_set_data(engine->peer, engine);
    return 0;
}

struct mcp_engine *mcp_engine_new(struct mcp *mcp, struct err *err)
{
    struct mcp_engine *engine = alloc_zero(1, sizeof *engine);

    if (engine_connect(engine, mcp, err)) {
        free(engine);
        return NULL;
    }
    /* 1 ms: what runs ends with the connection (0 would be as long as anything runs) */
    mcp_engine_call(engine, "initialize",
                    json_pack("{s:s, s:i}", "clientName", "cordon mcp", "detachedLifetimeMs", 1),
                    on_initialized, engine);
    rpc_peer_notify(engine->peer, "initialized", NULL);
    engine->refusal = loop_timer_new(mcp->loop, on_refusal, engine);
    return engine;
}

void mcp_engine_free(struct mcp_engine *engine)
{
    if (!engine)
        return;
    while (!list_is_empty(&engine->calls)) {
        struct engine_call *call = list_first(&engine->calls, struct engine_call, in_engine);

        if (engine->peer)
            rpc_peer_call_cancel(engine->peer, call->number);
        call_on_answer(call, NULL);
    }
    while (!list_is_empty(&engine->listeners))
        list_remove(engine->listeners.next); /* they may be taken out later */
    if (engine->peer) {
        rpc_peer_set_data(engine->peer, NULL);
        rpc_peer_close(engine->peer, RPC_CLOSE_NORMAL, NULL);
    }
    loop_timer_free(engine->refusal);
    free(engine->id);
    free(engine);
}
