/* See http_flow.h. A head that may pass passes as it came, byte for byte: it was read strictly, so the server reads the
 * same. Its body is followed to where it ends, since the next head begins there.
 *
 * Other protocols than HTTP could be switched to and would hide what follows, so that is said no to (the field is left
 * out, which servers may do as well), but for WebSocket as the first request: then nothing more is read until the
 * reply says whether that is what follows.
 *
 *     HEAD -> BODY -> HEAD -> ...
 *               `--> SWITCHING -- 101 --> everything passes
 *                        `-- any other -> HEAD */
#include "proxy/http_flow.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/http_message.h"
#include "base/str.h"
#include "proxy/connection.h"
#include "proxy/ended.h"
#include "proxy/limits.h"
#include "proxy/refusal.h"
#include "proxy/upstream.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum http_flow_state { HEAD, BODY, SWITCHING, SWITCHED };

struct http_flow {
    struct connection *connection;
    enum http_flow_state state;
    struct http_body body;
    bool is_switching; /* once the body is through */
    unsigned requests;
    bool was_head; /* the method of the last one */
};

struct http_flow *http_flow_new(struct connection *connection)
{
    struct http_flow *flow = alloc_zero(1, sizeof *flow);

    flow->connection = connection;
    return flow;
}

void http_flow_free(struct http_flow *flow)
{
    free(flow);
}

/* As a reply, where the client waits for the first one; else by a reset. */
static enum relay_step refuse(struct http_flow *flow, const struct refusal *refusal,
                              const char *method)
{
    struct connection *connection = flow->connection;
    const struct relay_flow *down = &connection->relay.flows[RELAY_DOWN];

    if (!down->moved && !down->held && flow->requests == 0) {
        buf_init(&connection->last_words, LIMIT_HEAD);
        refusal_write(connection, refusal, method, &connection->last_words);
    }
    return RELAY_STOP;
}

static enum relay_step refuse_malformed(struct http_flow *flow, const char *why)
{
    const struct refusal refusal = {.status = 400, .text = why};

    connection_tell(flow->connection, &refusal);
    return refuse(flow, &refusal, NULL);
}

/* --- one request --- */

static bool may_name(struct connection *connection, const char *authority)
{
    struct net_host host;
    struct err ignored;
    uint16_t port;

    if (net_host_parse_port(authority, &host, &port, &ignored)) /* told as what it is */
        return connection_may_name(connection, authority, strlen(authority));
    return connection_may_name(connection, host.text, strlen(host.text));
}

/* NULL: it may pass. */
static const char *judge(struct http_flow *flow, const struct http_request *request,
                         struct refusal *ret)
{
    struct connection *connection = flow->connection;
    struct network_decision decision;

    if (request->form == HTTP_AUTHORITY)
        return "a request that another proxy would have to make sense of";
    *ret = (struct refusal){.reason = NETWORK_NOT_ALLOWED,
                            .text = "the request is for a host that is not the one connected to"};
    if ((request->authority && !may_name(connection, request->authority)) ||
        (request->host && *request->host && !may_name(connection, request->host)))
        return ret->text;
    if (request->says_otherwise && connection->command->policy.mode == NETWORK_MODE_LIMITED)
        return "a field of it says another method, and just the one in its first line is judged";
    *ret = (struct refusal){.reason = NETWORK_MITM_REQUIRED};
    if (ended_has_to(connection)) {
        connection_tell(connection, ret);
        return "";
    }
    *ret = (struct refusal){.reason = NETWORK_REASON_NONE};
    command_decide(connection->command, &connection->target, request->head.method, &decision);
    if (decision.verdict != NETWORK_DENY || decision.reason == NETWORK_NOT_ALLOWED)
        return NULL; /* the connection was allowed, by rule or answer */
    *ret = (struct refusal){.reason = decision.reason, .rule = decision.rule};
    connection_tell(connection, ret);
    return "";
}

static bool wants_websocket(const struct http_request *request)
{
    const char *protocol = http_head_field(&request->head, "Upgrade");

    return protocol && strcasecmp(protocol, "websocket") == 0 &&
           request->body.kind == HTTP_BODY_NONE;
}

/* With the whole URL, for the host's own proxy. */
static bool write_whole_target(const struct connection *connection,
                               const struct http_request *request, struct buf *out)
{
    const struct upstream *to = connection->forwarder;
    AUTO_FREE char *name = net_host_format(
        connection->target.host.text, connection->target.port == 80 ? 0 : connection->target.port);

    return buf_appendf(out, "%s http://%s%s%s HTTP/1.%d\r\n", request->head.method, name,
                       *request->path == '?' ? "/" : "",
                       request->form == HTTP_ASTERISK ? "" : request->path, request->head.minor) &&
           (!to->authorization ||
            buf_appendf(out, "Proxy-Authorization: %s\r\n", to->authorization));
}

/* Without what it would switch to. */
static bool write_anew(const struct connection *connection, const struct http_request *request,
                       struct buf *out)
{
    const char *target = request->form == HTTP_ABSOLUTE ? request->path : request->head.target;

    return (connection->forwarder ? write_whole_target(connection, request, out)
                                  : buf_appendf(out, "%s %s HTTP/1.%d\r\n", request->head.method,
                                                target, request->head.minor)) &&
           (!request->host || buf_appendf(out, "Host: %s\r\n", request->host)) &&
           http_write_fields(&request->head, out) &&
           buf_append_str(out, request->stays ? "\r\n" : "Connection: close\r\n\r\n");
}

static relay_filter_fn look_at_reply;

static enum relay_step pass_head(struct http_flow *flow, const struct http_request *request,
                                 const char *raw, size_t len, struct buf *out)
{
    struct connection *connection = flow->connection;
    struct relay *relay = &connection->relay;
    const struct relay_flow *down = &relay->flows[RELAY_DOWN];
    bool is_anew;

    flow->is_switching = request->wants_upgrade && !connection->forwarder &&
                         wants_websocket(request) && !flow->requests && !down->moved && !down->held;
    if (flow->is_switching) {
        relay_set_filter(relay, RELAY_DOWN, look_at_reply, LIMIT_HELLO);
        relay->flows[RELAY_DOWN].ends_all = true; /* nobody reads of the client before the reply */
    }
    is_anew = connection->forwarder || (request->wants_upgrade && !flow->is_switching);
    if (is_anew && connection->passed)
        return refuse_malformed(flow,
                                "its first line came in pieces, and would have to be another");
    if (is_anew ? !write_anew(connection, request, out)
                : !buf_append(out, raw + connection->passed, len - connection->passed))
        return refuse_malformed(flow, "its head is longer than 8 KiB, which is the limit");
    connection->passed = 0;
    flow->requests++;
    flow->body = request->body;
    flow->state = BODY;
    return RELAY_GO_ON;
}

static enum relay_step take_head(struct http_flow *flow, struct buf *in, struct buf *out)
{
    char text[HTTP_MESSAGE_HEAD_MAX + 1];
    size_t len = http_head_len(in->data, in->len);
    struct refusal refusal = {.reason = NETWORK_REASON_NONE};
    struct http_request request;
    enum relay_step step;
    const char *why;
    struct err err;

    if (len > HTTP_MESSAGE_HEAD_MAX || (!len && in->len >= HTTP_MESSAGE_HEAD_MAX))
        return refuse_malformed(flow, "its head is longer than 8 KiB, which is the limit");
    if (!len && http_head_has_bare_line_feed(in->data, in->len))
        return refuse_malformed(flow, "a line of its head does not end in CR LF");
    if (!len && flow->connection->relay.flows[RELAY_UP].has_ended)
        return refuse_malformed(flow, "its head is not whole");
    if (!len) {
        connection_limit_first_bytes(flow->connection);
        return RELAY_PAUSE;
    }
    memcpy(text, in->data, len);
    text[len] = '\0';
    if (http_request_read(text, len, &request, &err))
        return refuse_malformed(flow, err.msg);
    why = judge(flow, &request, &refusal);
    if (why && !refusal.reason)
        return refuse_malformed(flow, why);
    if (why)
        return refuse(flow, &refusal, request.head.method);
    step = pass_head(flow, &request, in->data, len, out);
    buf_consume(in, len);
    return step;
}

/* RELAY_PAUSE: more has to come. */
static enum relay_step take_body(struct http_flow *flow, struct buf *in, struct buf *out)
{
    size_t used = 0;
    bool is_over;
    struct err err;

    if (http_body_read(&flow->body, in->len ? in->data : "", in->len, &used, &is_over, &err))
        return refuse_malformed(flow, err.msg);
    if (used && !buf_append(out, in->data, used))
        return RELAY_STOP;
    buf_consume(in, used);
    if (is_over)
        flow->state = flow->is_switching ? SWITCHING : HEAD;
    return is_over ? RELAY_GO_ON : RELAY_PAUSE;
}

enum relay_step http_flow_requests(void *data, struct buf *in, struct buf *out)
{
    struct connection *connection = data;
    struct http_flow *flow = connection->http;
    enum relay_step step = RELAY_GO_ON;

    while (step == RELAY_GO_ON && (in->len || flow->state == BODY)) {
        if (flow->state == SWITCHED)
            return RELAY_OPAQUE;
        if (flow->state == SWITCHING)
            return RELAY_PAUSE;
        if (flow->state == HEAD)
            step = take_head(flow, in, out);
        else
            step = take_body(flow, in, out);
        if (step == RELAY_GO_ON)
            connection_limit_idle(connection);
    }
    if (flow->state == SWITCHING)
        return RELAY_PAUSE;
    return step == RELAY_STOP ? RELAY_STOP : RELAY_GO_ON;
}

/* --- the reply to one that would switch --- */

static enum relay_step look_at_reply(void *data, struct buf *in, struct buf *out)
{
    struct connection *connection = data;
    struct http_flow *flow = connection->http;
    char text[HTTP_MESSAGE_HEAD_MAX + 1];
    struct http_reply_head reply;
    struct err ignored;
    size_t len;

    do {
        len = in->len ? http_head_len(in->data, in->len) : 0;
        if (len > HTTP_MESSAGE_HEAD_MAX || (!len && in->len >= HTTP_MESSAGE_HEAD_MAX))
            return RELAY_STOP;
        if (!len)
            return RELAY_GO_ON;
        memcpy(text, in->data, len);
        text[len] = '\0';
        if (http_reply_read(text, len, "GET", &reply, &ignored) || !buf_append(out, in->data, len))
            return RELAY_STOP;
        buf_consume(in, len);
    } while (reply.is_interim);
    flow->state = reply.head.status == 101 ? SWITCHED : HEAD;
    connection->relay.flows[RELAY_DOWN].ends_all = false;
    relay_resume(&connection->relay, RELAY_UP);
    return RELAY_OPAQUE;
}
