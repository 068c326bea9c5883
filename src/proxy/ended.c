/* See ended.h.
 *
 *     left -> both sides shake hands with cordon-tls -> HEAD -> BODY -> REPLY -> HEAD -> ...
 *
 * Requests and replies take turns: the next head is read when the reply is over, so that a refusal is always the next
 * reply, and what is refused is known to be what the client hears of. Heads are written anew, without what is for one hop
 * alone: before the hooks look at them, since the server will see no more than they do. No other protocol is switched to.
 *
 * A server whose certificate is not what it should be is told to the client, once it has asked for something. */
#include "proxy/ended.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/http_message.h"
#include "base/str.h"
#include "loop/loop.h"
#include "policy/network_hook.h"
#include "proxy/connection.h"
#include "proxy/ender.h"
#include "proxy/limits.h"
#include "proxy/proxy.h"
#include "proxy/refusal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ROOM = LIMIT_HELLO + (NETWORK_SECRET_MAX * 2),
    HTTPS_PORT = 443,
    BAD_GATEWAY = 502,
    BAD_REQUEST = 400,
    BAD_METHOD = 405,
};

enum ended_state { HEAD, BODY, REPLY };

struct ended {
    struct connection *connection;
    struct buf read; /* of the client, before */
    struct ender_waiter client, server;
    bool has_client, has_server; /* they speak TLS */
    bool has_begun;
    int plain_server; /* until the relay has it; -1 */
    char *why_not;    /* the server does not */
    enum ended_state state;
    struct http_body body;
    char *method; /* of the request whose reply is due */
    bool stays;
    bool has_reply; /* its head */
    struct http_body reply;
};

bool ended_wants(const struct connection *connection)
{
    const struct network_policy *policy = &connection->command->policy;

    return (policy->hooks && network_hooks_end_tls(policy->hooks, connection->target.host.text)) ||
           (policy->mode == NETWORK_MODE_LIMITED && connection->target.protocol == NETWORK_HTTPS);
}

bool ended_has_to(const struct connection *connection)
{
    const struct network_policy *policy = &connection->command->policy;

    return (policy->hooks &&
            network_hooks_has_hooks(policy->hooks, connection->target.host.text)) ||
           (policy->mode == NETWORK_MODE_LIMITED && connection->target.protocol == NETWORK_HTTPS);
}

void ended_free(struct ended *ended)
{
    if (!ended)
        return;
    ender_forget(&ended->client);
    ender_forget(&ended->server);
    if (ended->plain_server >= 0)
        close(ended->plain_server);
    buf_done(&ended->read);
    free(ended->why_not);
    free(ended->method);
    free(ended);
}

/* --- refusing --- */

/* In place of the reply that is due. */
static enum relay_step refuse(struct ended *ended, const struct refusal *refusal,
                              const char *method)
{
    struct connection *connection = ended->connection;

    buf_init(&connection->last_words, LIMIT_HEAD);
    refusal_write(connection, refusal, method, &connection->last_words);
    return RELAY_STOP;
}

static enum relay_step refuse_malformed(struct ended *ended, int status, const char *why)
{
    const struct refusal refusal = {.status = status, .text = why};

    connection_tell(ended->connection, &refusal);
    return refuse(ended, &refusal, NULL);
}

static enum relay_step refuse_reply(struct ended *ended)
{
    const struct refusal refusal = {.status = BAD_GATEWAY,
                                    .text = "the server's reply cannot be read"};

    return refuse(ended, &refusal, ended->method);
}

/* --- requests --- */

static bool is_for_target(const struct connection *connection, const char *authority)
{
    struct net_host host;
    struct err ignored;
    uint16_t port;

    return net_host_parse_port(authority, &host, &port, &ignored) == 0 &&
           str_eq(host.text, connection->target.host.text) &&
           (port ? port : HTTPS_PORT) == connection->target.port;
}

/* NULL: it is in order. */
static const char *malformed(const struct connection *connection,
                             const struct http_request *request, int *ret_status)
{
    *ret_status = BAD_REQUEST;
    if (request->form == HTTP_AUTHORITY || str_eq(request->head.method, "TRACE")) {
        *ret_status = BAD_METHOD;
        return request->form == HTTP_AUTHORITY
                   ? "CONNECT within TLS that the proxy ends"
                   : "TRACE, whose reply shows what was put into the request";
    }
    if (request->says_otherwise && ended_has_to(connection))
        return "a field of it says another method or path, and just those in its first line are "
               "judged";
    if (request->form == HTTP_ABSOLUTE)
        return "a request that another proxy would have to make sense of";
    if (request->host && !is_for_target(connection, request->host))
        return "the request is for a host that is not the one connected to";
    return NULL;
}

/* The decision of the policy, then that of the hooks. */
static bool may_ask(struct ended *ended, const struct http_request *request,
                    const struct network_hook **ret, struct refusal *ret_refusal)
{
    struct connection *connection = ended->connection;
    const struct network_hooks *hooks = connection->command->policy.hooks;
    const struct network_hook_request what = {.host = connection->target.host.text,
                                              .head = &request->head};
    struct network_decision decision;

    *ret = NULL;
    *ret_refusal = (struct refusal){.reason = NETWORK_REASON_NONE};
    if (hooks)
        ret_refusal->reason = network_hooks_decide(hooks, &what, ret);
    command_decide(connection->command, &connection->target, request->head.method, &decision);
    if (!ret_refusal->reason && decision.verdict == NETWORK_DENY &&
        decision.reason != NETWORK_NOT_ALLOWED) /* the connection was allowed, by rule or answer */
        *ret_refusal = (struct refusal){.reason = decision.reason, .rule = decision.rule};
    if (!ret_refusal->reason)
        return true;
    connection_tell(connection, ret_refusal);
    return false;
}

static bool write_request(struct ended *ended, struct http_request *request,
                          const struct network_hook *hook, struct buf *out, struct err *err)
{
    const struct target *target = &ended->connection->target;
    const struct network_hooks *hooks = ended->connection->command->policy.hooks;
    AUTO_FREE char *host =
        net_host_format(target->host.text, target->port == HTTPS_PORT ? 0 : target->port);
    AUTO(strv_done) struct strv storage = {0};

    if (hooks && network_hooks_apply(hooks, hook, target->host.text, &request->head, &storage, err))
        return false;
    if (buf_appendf(out, "%s %s HTTP/1.%d\r\nHost: %s\r\n", request->head.method,
                    request->head.target, request->head.minor, host) &&
        http_write_fields(&request->head, out) &&
        buf_append_str(out, ended->stays ? "\r\n" : "Connection: close\r\n\r\n"))
        return true;
    err_set(err, ERR_LIMIT, "its head is too long with what is put into it");
    return false;
}

static enum relay_step take_head(struct ended *ended, struct buf *in, struct buf *out)
{
    char text[HTTP_MESSAGE_HEAD_MAX + 1];
    size_t len = http_head_len(in->data, in->len);
    const struct network_hook *hook;
    struct http_request request;
    struct refusal refusal;
    const char *why;
    struct err err;
    int status;

    if (len > HTTP_MESSAGE_HEAD_MAX || (!len && in->len >= HTTP_MESSAGE_HEAD_MAX))
        return refuse_malformed(ended, BAD_REQUEST,
                                "its head is longer than 8 KiB, which is the limit");
    if (!len && http_head_has_bare_line_feed(in->data, in->len))
        return refuse_malformed(ended, BAD_REQUEST, "a line of its head does not end in CR LF");
    if (!len && ended->connection->relay.flows[RELAY_UP].has_ended)
        return refuse_malformed(ended, BAD_REQUEST, "its head is not whole");
    if (!len) {
        connection_limit_first_bytes(ended->connection);
        return RELAY_PAUSE;
    }
    memcpy(text, in->data, len);
    text[len] = '\0';
    buf_consume(in, len);
    if (http_request_read(text, len, &request, &err))
        return refuse_malformed(ended, BAD_REQUEST, err.msg);
    why = malformed(ended->connection, &request, &status);
    if (why)
        return refuse_malformed(ended, status, why);
    http_drop_next_hop(&request.head);
    if (!may_ask(ended, &request, &hook, &refusal))
        return refuse(ended, &refusal, request.head.method);
    ended->stays = request.stays && request.head.minor == 1;
    if (!write_request(ended, &request, hook, out, &err))
        return refuse_malformed(ended, BAD_REQUEST, err.msg);
    free(ended->method);
    ended->method = alloc_str(request.head.method);
    ended->body = request.body;
    ended->body.has_no_trailers = true;
    ended->has_reply = false;
    ended->state = BODY;
    return RELAY_GO_ON;
}

/* RELAY_PAUSE: more has to come. */
static enum relay_step take_body(struct ended *ended, struct buf *in, struct buf *out)
{
    size_t used = 0;
    bool is_over;
    struct err err;

    if (http_body_read(&ended->body, in->len ? in->data : "", in->len, &used, &is_over, &err))
        return refuse_malformed(ended, BAD_REQUEST, err.msg);
    if (used && !buf_append(out, in->data, used))
        return RELAY_STOP;
    buf_consume(in, used);
    if (is_over)
        ended->state = REPLY;
    return is_over ? RELAY_GO_ON : RELAY_PAUSE;
}

static relay_filter_fn requests, replies;

static enum relay_step requests(void *data, struct buf *in, struct buf *out)
{
    struct connection *connection = data;
    struct ended *ended = connection->ended;
    enum relay_step step = RELAY_GO_ON;

    while (step == RELAY_GO_ON && (in->len || ended->state == BODY)) {
        if (ended->state == REPLY)
            return RELAY_PAUSE;
        if (ended->state == HEAD)
            step = take_head(ended, in, out);
        else
            step = take_body(ended, in, out);
        if (step == RELAY_GO_ON)
            connection_limit_idle(connection);
    }
    if (step == RELAY_STOP)
        return RELAY_STOP;
    return ended->state == REPLY ? RELAY_PAUSE : RELAY_GO_ON;
}

/* --- replies --- */

static enum relay_step take_reply_body(struct ended *ended, struct buf *in, struct buf *out)
{
    size_t used = 0;
    bool is_over;
    struct err ignored;

    if (ended->reply.kind == HTTP_BODY_TO_END)
        return RELAY_OPAQUE;
    if (http_body_read(&ended->reply, in->len ? in->data : "", in->len, &used, &is_over,
                       &ignored) ||
        (used && !buf_append(out, in->data, used)))
        return RELAY_STOP;
    buf_consume(in, used);
    if (!is_over)
        return RELAY_GO_ON;
    if (!ended->stays || ended->state != REPLY) /* or it has answered before it has heard all */
        return RELAY_END;
    ended->state = HEAD;
    ended->has_reply = false;
    relay_resume(&ended->connection->relay, RELAY_UP);
    return RELAY_GO_ON;
}

static enum relay_step replies(void *data, struct buf *in, struct buf *out)
{
    struct connection *connection = data;
    struct ended *ended = connection->ended;
    char text[HTTP_MESSAGE_HEAD_MAX + 1];
    struct http_reply_head reply;
    struct err ignored;
    size_t len;

    if (ended->state == HEAD) /* nobody has asked */
        return RELAY_STOP;
    while (!ended->has_reply) {
        len = in->len ? http_head_len(in->data, in->len) : 0;
        if (!len && in->len < HTTP_MESSAGE_HEAD_MAX)
            return RELAY_GO_ON;
        if (!len || len > HTTP_MESSAGE_HEAD_MAX)
            return refuse_reply(ended);
        memcpy(text, in->data, len);
        text[len] = '\0';
        if (http_reply_read(text, len, ended->method, &reply, &ignored) || reply.head.status == 101)
            return refuse_reply(ended);
        buf_consume(in, len);
        ended->has_reply = !reply.is_interim;
        ended->reply = reply.body;
        if (ended->has_reply)
            ended->stays = ended->stays && reply.stays;
        if (!http_write_reply(&reply, ended->has_reply && !ended->stays, out))
            return refuse_reply(ended);
    }
    return take_reply_body(ended, in, out);
}

/* --- the hands are shaken --- */

static void on_first_bytes(void *data, int fd, unsigned ready)
{
    struct connection *connection = data;
    const struct refusal refusal = {.status = BAD_GATEWAY, .text = connection->ended->why_not};

    buf_init(&connection->last_words, LIMIT_HEAD);
    refusal_write(connection, &refusal, NULL, &connection->last_words);
    connection_close(connection);
}

static void wait_for_request(struct connection *connection)
{
    struct err ignored;

    connection_limit_first_bytes(connection);
    connection->watch = loop_watch_new(connection->command->proxy->loop, connection->client,
                                       LOOP_READ, on_first_bytes, connection, &ignored);
    if (!connection->watch)
        connection_free(connection);
}

static void go_on(struct ended *ended)
{
    struct connection *connection = ended->connection;
    struct relay *relay = &connection->relay;

    if (!ended->has_client || (!ended->has_server && !ended->why_not))
        return;
    if (ended->why_not) {
        wait_for_request(connection);
        return;
    }
    connection_relay(connection, TAKE_FD(ended->plain_server));
    relay_set_filter(relay, RELAY_UP, requests, ROOM);
    relay_set_filter(relay, RELAY_DOWN, replies, ROOM);
    relay->flows[RELAY_DOWN].ends_all = true;
    connection_start(connection);
}

static void on_client(struct ender_waiter *waiter, const char *why)
{
    struct ended *ended = container_of(waiter, struct ended, client);
    struct connection *connection = ended->connection;
    const struct refusal refusal = {.reason = NETWORK_MITM_REQUIRED, .text = why};

    ended->has_client = !why;
    if (!why) {
        go_on(ended);
        return;
    }
    connection_tell(connection, &refusal);
    connection_free(connection);
}

static void on_server(struct ender_waiter *waiter, const char *why)
{
    struct ended *ended = container_of(waiter, struct ended, server);
    struct refusal refusal = {.reason = NETWORK_MITM_REQUIRED, .text = why};

    ended->has_server = !why;
    if (why) {
        ended->why_not = alloc_str(why);
        connection_tell(ended->connection, &refusal);
    }
    go_on(ended);
}

enum relay_step ended_leave(struct connection *connection, const struct buf *in)
{
    const struct relay_flow *down = &connection->relay.flows[RELAY_DOWN];
    const struct refusal none = {.reason = NETWORK_MITM_REQUIRED};
    struct ended *ended;

    if (!connection->command->ender || down->moved || down->held || connection->forwarder) {
        connection_tell(connection, &none);
        return RELAY_STOP;
    }
    ended = alloc_zero(1, sizeof *ended);
    *ended = (struct ended){.connection = connection, .plain_server = -1};
    ended->client.on_answer = on_client;
    ended->server.on_answer = on_server;
    buf_init(&ended->read, TLS_READ_MAX);
    buf_append(&ended->read, in->data, in->len);
    connection->ended = ended;
    return RELAY_LEAVE;
}

bool ended_has_begun(const struct ended *ended)
{
    return ended->has_begun;
}

void ended_begin(struct connection *connection)
{
    struct ended *ended = connection->ended;
    struct ender *ender = connection->command->ender;
    const char *name = connection->target.host.text;
    const struct ender_socket server = {
        .kind = TLS_ORDER_DIAL, .name = name, .fd = TAKE_FD(connection->relay.ends[1].fd)};
    const struct ender_socket client = {.kind = TLS_ORDER_SERVE,
                                        .name = name,
                                        .fd = TAKE_FD(connection->relay.ends[0].fd),
                                        .read = ended->read.data,
                                        .read_len = ended->read.len};
    const struct refusal dead = {.reason = NETWORK_MITM_REQUIRED, .text = "cordon-tls has died"};

    ended->has_begun = true;
    relay_done(&connection->relay);
    connection->is_relaying = false;
    ended->plain_server = ender_order(ender, &server, &ended->server);
    connection->client = ender_order(ender, &client, &ended->client);
    buf_done(&ended->read);
    if (connection->client < 0 || ended->plain_server < 0) {
        connection_tell(connection, &dead);
        connection_free(connection);
    }
}
