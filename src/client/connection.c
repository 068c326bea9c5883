/* A hub of one peer. Everything that can end the wait of connection_call() or
 * connection_run() sets a flag that the loop looks at; a server that goes answers every open call
 * with NULL first (rpc.h), so no call waits for ever. */
#include "client/connection.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "loop/loop.h"
#include "rpc/rpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    INITIALIZE_S = 10, /* as Codex's client */
    BRIEFLY_S = 1,
};

struct connection {
    struct loop *loop;
    struct rpc_hub *hub;
    struct rpc_peer *peer; /* NULL: gone */
    char *url;
    char *session;
    char *dir;
    char why[160]; /* it is gone */
    connection_event_fn *on_event;
    void *data;
    connection_question_fn *on_question;
    void *questions;
    bool is_over; /* connection_run() has to return */
    bool knows_profiles;
};

static void on_message(void *data, struct rpc_peer *peer, struct rpc_message *message)
{
    struct connection *connection = data;

    if (message->kind == RPC_REQUEST && connection->on_question &&
        str_eq(message->method, "approval/request"))
        connection->on_question(connection->questions, message->id, message->params);
    else if (connection->on_question && str_eq(message->method, "approval/withdrawn"))
        connection->on_question(connection->questions, NULL, message->params);
    else if (message->kind == RPC_REQUEST)
        rpc_peer_error(peer, message->id, RPC_UNKNOWN_METHOD, "%s is not for this client",
                       message->method);
    else if (connection->on_event)
        connection->on_event(connection->data, message->method, message->params);
}

static void on_closed(void *data, struct rpc_peer *peer, const char *why)
{
    struct connection *connection = data;

    connection->peer = NULL;
    connection->is_over = true;
    snprintf(connection->why, sizeof connection->why, "%s", why);
}

static const struct rpc_handlers handlers = {.on_message = on_message, .on_closed = on_closed};

/* --- asking --- */

static int fail_lost(const struct connection *connection, struct err *err)
{
    err_set(err, ERR_SYSTEM, "the server at %s is gone (%s)", connection->url, connection->why);
    err->sys = ECONNRESET;
    return -1;
}

static enum err_code code_of(int64_t code)
{
    switch (code) {
    case RPC_UNKNOWN_METHOD:
        return ERR_UNSUPPORTED;
    case RPC_NOT_FOUND:
        return ERR_NOT_FOUND;
    case RPC_SESSION_ATTACHED:
        return ERR_LIMIT;
    case RPC_INVALID_REQUEST:
    case RPC_INVALID_PARAMS:
        return ERR_INVALID;
    default:
        return ERR_SYSTEM;
    }
}

void connection_answer_err(const struct rpc_message *answer, struct err *ret)
{
    json_int_t exit_code = json_integer_value(json_object_get(answer->data, "exitCode"));
    bool is_forbidden = str_eq(connection_text(answer->data, "reason"), "forbidden");

    err_set(ret, is_forbidden || exit_code ? ERR_FORBIDDEN : code_of(answer->code), "%s",
            answer->error_text);
    ret->sys = exit_code == 127 ? ENOENT : 0;
}

/* A call that is waited for. */
struct waiting {
    struct connection *connection;
    json_t *result;
    struct err err;
    bool is_done;
};

static void waiting_on_answer(void *data, const struct rpc_message *answer)
{
    struct waiting *waiting = data;

    waiting->is_done = true;
    connection_pause(waiting->connection); /* no event before the caller had its turn */
    if (answer && answer->kind == RPC_RESULT)
        waiting->result = json_incref((json_t *)answer->result);
    else if (answer)
        connection_answer_err(answer, &waiting->err);
}

/* `timeout_ns` 0: none. */
static json_t *call_within(struct connection *connection, const char *method, json_t *params,
                           uint64_t timeout_ns, struct err *err)
{
    AUTO_JSON json_t *owned = params;
    struct waiting waiting = {.connection = connection};
    const struct rpc_call call = {
        .method = method,
        .params = owned,
        .timeout_ns = timeout_ns,
        .on_answer = waiting_on_answer,
        .data = &waiting,
    };

    if (!connection->peer) {
        fail_lost(connection, err);
        return NULL;
    }
    rpc_peer_call(connection->peer, &call);
    if (loop_run(connection->loop, &waiting.is_done, err))
        return NULL;
    connection_resume(connection);
    if (waiting.result)
        return waiting.result;
    *err = waiting.err;
    if (!waiting.err.code) /* no answer; on_closed comes right behind */
        err_set(err, ERR_SYSTEM, "the server at %s ended the connection, or does not answer",
                connection->url);
    return NULL;
}

/* --- opening --- */

static int fail_connect(const char *url, struct err *err)
{
    struct err cause = *err;

    if (cause.code == ERR_FORBIDDEN)
        return err_set(err, cause.code,
                       "%s: %s; its token is read from --auth-token-file FILE or the file that "
                       "$CORDON_TOKEN_FILE names",
                       url, cause.msg);
    if (cause.code != ERR_SYSTEM)
        return err_wrap(err, "%s", url);
    err_set(err, cause.code,
            "%s: %s; is the server running? This would start one: cordon serve --listen %s", url,
            cause.msg, url);
    err->sys = cause.sys;
    return -1;
}

static int connection_connect(struct connection *connection,
                              const struct connection_options *server, struct err *err)
{
    const struct rpc_hub_options hub = {.handlers = &handlers, .data = connection};
    struct rpc_target target = {.token = server->token, .user_token = server->user_token};

    if (rpc_address_parse(server->url, &target.address, err))
        return -1;
    if (target.address.transport == RPC_STDIO)
        return err_set(err, ERR_INVALID,
                       "\"%.80s\" is nothing to connect to: should be ws://IP:PORT or unix:PATH",
                       server->url);
    connection->loop = loop_new(err);
    if (!connection->loop)
        return -1;
    connection->hub = rpc_hub_new(connection->loop, &hub);
    connection->peer = rpc_hub_connect(connection->hub, &target, err);
    return connection->peer ? 0 : fail_connect(server->url, err);
}

static int connection_initialize(struct connection *connection, int64_t lifetime_ms,
                                 const char *resume, struct err *err)
{
    json_t *params = json_pack("{s:s, s:s?}", "clientName", "cordon", "resumeSessionId", resume);
    AUTO_JSON json_t *result = NULL;
    AUTO_FREE char *plain = NULL;
    const json_t *info;

    if (lifetime_ms != CONNECTION_KEEPS_SESSION)
        json_object_set_new(params, "detachedLifetimeMs", json_integer((json_int_t)lifetime_ms));
    result = call_within(connection, "initialize", params, INITIALIZE_S * CLOCK_NS_PER_S, err);
    if (!result)
        return err->code == ERR_LIMIT
                   ? err_set(err, ERR_LIMIT,
                             "session %s belongs to another connection now, and this server lets "
                             "no other one watch; try again when that one is closed",
                             resume)
                   : err_wrap(err, "%s", connection->url);
    connection->session = alloc_str(connection_text(result, "sessionId"));
    info = json_object_get(result, "environmentInfo");
    connection->dir = alloc_str(json_string_value(json_object_get(info, "cwd")));
    connection->knows_profiles =
        json_is_true(json_object_get(json_object_get(info, "capabilities"), "sandboxProfiles"));
    plain = utf8_plain(connection->session); /* a word that can be shown, and typed again */
    if (!*plain || !str_eq(plain, connection->session))
        return err_set(err, ERR_INVALID, "%s is no exec server: initialize gives no sessionId",
                       connection->url);
    if (connection->peer)
        rpc_peer_notify(connection->peer, "initialized", NULL);
    return 0;
}

struct connection *connection_open(const struct connection_options *server, int64_t lifetime_ms,
                                   const char *resume, struct err *err)
{
    struct connection *connection = alloc_zero(1, sizeof *connection);

    connection->url = alloc_str(server->url);
    if (connection_connect(connection, server, err) == 0 &&
        connection_initialize(connection, lifetime_ms, resume, err) == 0)
        return connection;
    connection_free(connection);
    return NULL;
}

void connection_free(struct connection *connection)
{
    if (!connection)
        return;
    rpc_hub_free(connection->hub);
    loop_free(connection->loop);
    free(connection->url);
    free(connection->session);
    free(connection->dir);
    free(connection);
}

struct loop *connection_loop(const struct connection *connection)
{
    return connection->loop;
}

const char *connection_session(const struct connection *connection)
{
    return connection->session;
}

const char *connection_dir(const struct connection *connection)
{
    return connection->dir;
}

void connection_take_questions(struct connection *connection, connection_question_fn *on_question,
                               void *data)
{
    connection->on_question = on_question;
    connection->questions = data;
}

void connection_reply(struct connection *connection, const json_t *id, json_t *result)
{
    if (connection->peer)
        rpc_peer_result(connection->peer, id, result);
    json_decref(result);
}

void connection_refuse(struct connection *connection, const json_t *id, const char *why)
{
    if (connection->peer)
        rpc_peer_error(connection->peer, id, RPC_INVALID_PARAMS, "%s", why);
}

bool connection_knows_profiles(const struct connection *connection)
{
    return connection->knows_profiles;
}

bool connection_is_lost(const struct connection *connection)
{
    return !connection->peer;
}

void connection_listen(struct connection *connection, connection_event_fn *on_event, void *data)
{
    connection->on_event = on_event;
    connection->data = data;
}

/* --- the calls of others --- */

json_t *connection_call(struct connection *connection, const char *method, json_t *params,
                        struct err *err)
{
    return call_within(connection, method, params, 0, err);
}

void connection_call_briefly(struct connection *connection, const char *method, json_t *params)
{
    struct err ignored;

    json_decref(call_within(connection, method, params, BRIEFLY_S * CLOCK_NS_PER_S, &ignored));
}

int64_t connection_send(struct connection *connection, const struct connection_request *request)
{
    AUTO_JSON json_t *params = request->params;
    const struct rpc_call call = {
        .method = request->method,
        .params = params,
        .on_answer = request->on_answer,
        .data = request->data,
    };

    if (connection->peer)
        return rpc_peer_call(connection->peer, &call);
    if (request->on_answer)
        request->on_answer(request->data, NULL);
    return 0;
}

void connection_send_about(struct connection *connection, const char *process_id,
                           const char *method, json_t *params)
{
    const struct connection_request request = {.method = method, .params = params};

    json_object_set_new(params, "processId", json_string(process_id));
    connection_send(connection, &request);
}

void connection_cancel(struct connection *connection, int64_t id)
{
    if (connection->peer && id)
        rpc_peer_call_cancel(connection->peer, id);
}

int connection_run(struct connection *connection, struct err *err)
{
    if (connection->peer && loop_run(connection->loop, &connection->is_over, err))
        return -1;
    if (!connection->peer)
        return fail_lost(connection, err);
    connection->is_over = false;
    return 0;
}

void connection_stop(struct connection *connection)
{
    connection->is_over = true;
}

void connection_pause(struct connection *connection)
{
    if (connection->peer)
        rpc_peer_pause(connection->peer);
}

void connection_resume(struct connection *connection)
{
    if (connection->peer)
        rpc_peer_resume(connection->peer);
}

const char *connection_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}
