/* See explicit.h.
 *
 *     first byte 5: greeting -> request ----.
 *     HTTP head: CONNECT -------------------+-> reached -> said -> the tunnel is looked at like any connection
 *                whole URL -----------------'           `-> one request, one reply, the end
 *
 * A request with a whole URL is written anew for its server: the path alone, its Host, and the fields that are meant for
 * it. The connection is for that one request, which both sides are told, so that nothing can follow it that is meant for
 * another server. The reply is written anew the same way. */
#include "proxy/explicit.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/http_message.h"
#include "base/str.h"
#include "loop/loop.h"
#include "proxy/connection.h"
#include "proxy/dial.h"
#include "proxy/ended.h"
#include "proxy/limits.h"
#include "proxy/proxy.h"
#include "proxy/refusal.h"
#include "proxy/socks.h"
#include "proxy/upstream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { ROOM = LIMIT_HELLO + 1024 };

enum explicit_kind { UNKNOWN, SOCKS, TUNNEL, FORWARD };

struct explicit_client {
    enum explicit_kind kind;
    bool is_greeted;
    struct buf in;          /* read and not used yet */
    struct buf head;        /* FORWARD: for the server, without the method */
    struct http_body body;  /* FORWARD: of the request, then of the reply */
    struct http_body reply; /* once its head is through */
    bool has_reply;
    char *method; /* FORWARD */
};

void explicit_free(struct explicit_client *client)
{
    if (!client)
        return;
    buf_done(&client->in);
    buf_done(&client->head);
    free(client->method);
    free(client);
}

/* --- what it hears --- */

static void say(struct connection *connection, const void *data, size_t len)
{
    send(connection->client, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void say_socks(struct connection *connection, enum socks_reply reply)
{
    uint8_t bytes[SOCKS_REPLY_BYTES];

    socks_write_reply(reply, bytes);
    say(connection, bytes, sizeof bytes);
}

static void close_with(struct connection *connection, const struct refusal *refusal,
                       enum socks_reply reply)
{
    if (connection->explicit->kind == SOCKS) {
        say_socks(connection, reply);
    } else {
        buf_init(&connection->last_words, LIMIT_HEAD);
        refusal_write(connection, refusal, connection->explicit->method, &connection->last_words);
    }
    connection_close(connection);
}

void explicit_refuse(struct connection *connection, const struct refusal *refusal)
{
    close_with(connection, refusal, SOCKS_NOT_ALLOWED);
}

void explicit_fail(struct connection *connection, const struct dial_result *result)
{
    const struct refusal refusal = {.status = result->end == DIAL_TOO_LONG ? 504 : 502,
                                    .text = dial_failure(result)};
    enum socks_reply reply = SOCKS_HOST_UNREACHABLE;

    if (result->end == DIAL_TOO_LONG)
        reply = SOCKS_EXPIRED;
    else if (result->end == DIAL_FAILED && result->error == ECONNREFUSED)
        reply = SOCKS_REFUSED;
    else if (result->end == DIAL_FAILED && result->error == ENETUNREACH)
        reply = SOCKS_NETWORK_UNREACHABLE;
    close_with(connection, &refusal, reply);
}

static void refuse_malformed(struct connection *connection, const char *why, int status)
{
    const struct refusal refusal = {.status = status, .text = why};

    connection_tell(connection, &refusal);
    close_with(connection, &refusal, SOCKS_FAILURE);
}

/* --- one request with a whole URL --- */

/* Its body; what comes after that is nobody's. */
static enum relay_step pass_request(void *data, struct buf *in, struct buf *out)
{
    struct connection *connection = data;
    size_t used = 0;
    bool is_over;
    struct err ignored;

    if (http_body_read(&connection->explicit->body, in->len ? in->data : "", in->len, &used,
                       &is_over, &ignored) ||
        (used && !buf_append(out, in->data, used)))
        return RELAY_STOP;
    buf_consume(in, is_over ? in->len : used);
    return RELAY_GO_ON;
}

static enum relay_step pass_reply_body(struct explicit_client *client, struct buf *in,
                                       struct buf *out)
{
    size_t used = 0;
    bool is_over;
    struct err ignored;

    if (client->reply.kind == HTTP_BODY_TO_END)
        return RELAY_OPAQUE;
    if (http_body_read(&client->reply, in->len ? in->data : "", in->len, &used, &is_over,
                       &ignored) ||
        (used && !buf_append(out, in->data, used)))
        return RELAY_STOP;
    buf_consume(in, used);
    return is_over ? RELAY_END : RELAY_GO_ON;
}

static enum relay_step pass_reply(void *data, struct buf *in, struct buf *out)
{
    struct connection *connection = data;
    struct explicit_client *client = connection->explicit;
    const struct refusal bad = {.status = 502, .text = "the server's reply cannot be read"};
    char text[HTTP_MESSAGE_HEAD_MAX + 1];
    struct http_reply_head reply;
    struct err ignored;
    size_t len;

    while (!client->has_reply) {
        len = in->len ? http_head_len(in->data, in->len) : 0;
        if (!len && in->len < HTTP_MESSAGE_HEAD_MAX)
            return RELAY_GO_ON;
        if (!len || len > HTTP_MESSAGE_HEAD_MAX) {
            buf_init(&connection->last_words, LIMIT_HEAD);
            refusal_write(connection, &bad, client->method, &connection->last_words);
            return RELAY_STOP;
        }
        memcpy(text, in->data, len);
        text[len] = '\0';
        if (http_reply_read(text, len, client->method, &reply, &ignored) ||
            reply.head.status == 101 || !http_write_reply(&reply, !reply.is_interim, out)) {
            buf_init(&connection->last_words, LIMIT_HEAD);
            refusal_write(connection, &bad, client->method, &connection->last_words);
            return RELAY_STOP;
        }
        buf_consume(in, len);
        client->has_reply = !reply.is_interim;
        client->reply = reply.body;
    }
    return pass_reply_body(client, in, out);
}

/* --- the server is there --- */

/* Its first line begins with the path, or for the host's own proxy with the whole URL, as which it came. */
static void begin_request(const struct connection *connection, struct buf *out)
{
    const struct explicit_client *client = connection->explicit;
    const struct upstream *to = connection->forwarder;
    const size_t line = strcspn(client->head.data, "\n") + 1;
    AUTO_FREE char *name = net_host_format(
        connection->target.host.text, connection->target.port == 80 ? 0 : connection->target.port);

    buf_appendf(out, "%s %s%s", client->method, to ? "http://" : "", to ? name : "");
    buf_append(out, client->head.data, line);
    if (to && to->authorization)
        buf_appendf(out, "Proxy-Authorization: %s\r\n", to->authorization);
    buf_append(out, client->head.data + line, client->head.len - line);
}

void explicit_begin(struct connection *connection)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    struct explicit_client *client = connection->explicit;
    struct relay *relay = &connection->relay;
    struct relay_flow *up = &relay->flows[RELAY_UP];

    if (client->kind == FORWARD) {
        relay_set_filter(relay, RELAY_UP, pass_request, ROOM);
        relay_set_filter(relay, RELAY_DOWN, pass_reply, ROOM);
        begin_request(connection, &up->out);
    } else if (client->kind == TUNNEL) {
        send(relay->ends[0].fd, established, sizeof established - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else {
        uint8_t bytes[SOCKS_REPLY_BYTES];

        socks_write_reply(SOCKS_OK, bytes);
        send(relay->ends[0].fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    buf_append(&up->in, client->in.data, client->in.len);
    buf_done(&client->in);
    buf_done(&client->head);
}

/* --- whom it wants to reach --- */

static void reach(struct connection *connection)
{
    deadline_clear(&connection->deadline);
    loop_watch_set(connection->watch, LOOP_NOTHING);
    connection_reach(connection);
}

static bool set_target(struct connection *connection, const char *authority, uint16_t usual_port,
                       enum network_protocol protocol)
{
    struct target *target = &connection->target;
    struct err ignored;

    target->protocol = protocol;
    if (net_host_parse_port(authority, &target->host, &target->port, &ignored))
        return false;
    if (!target->port)
        target->port = usual_port;
    return target->port != 0;
}

static bool write_request(const struct connection *connection, const struct http_request *request,
                          struct buf *ret)
{
    AUTO_FREE char *host = net_host_format(
        connection->target.host.text, connection->target.port == 80 ? 0 : connection->target.port);

    return buf_appendf(ret, "%s%s HTTP/1.%d\r\nHost: %s\r\n", *request->path == '?' ? "/" : "",
                       request->path, request->head.minor, host) &&
           http_write_fields(&request->head, ret) &&
           buf_append_str(ret, "Connection: close\r\n\r\n");
}

/* The same host, however it is written. */
static bool is_same(const struct connection *connection, const char *authority)
{
    struct net_host host;
    struct err ignored;
    uint16_t port;

    return net_host_parse_port(authority, &host, &port, &ignored) == 0 &&
           str_eq(host.text, connection->target.host.text) &&
           (port ? port : 80) == connection->target.port;
}

static void forward(struct connection *connection, const struct http_request *request)
{
    struct explicit_client *client = connection->explicit;
    struct network_decision decision;
    struct refusal refusal;

    client->kind = FORWARD;
    client->body = request->body;
    if (!set_target(connection, request->authority, 80, NETWORK_HTTP)) {
        refuse_malformed(connection, "the host of the target is none", 400);
        return;
    }
    if (request->host && !is_same(connection, request->host)) {
        refuse_malformed(connection, "Host and target name different hosts", 400);
        return;
    }
    if (request->says_otherwise && connection->command->policy.mode == NETWORK_MODE_LIMITED) {
        refuse_malformed(connection, "a field of it says another method", 400);
        return;
    }
    if (!write_request(connection, request, &client->head)) {
        refuse_malformed(connection, "its head is longer than 8 KiB, which is the limit", 400);
        return;
    }
    command_decide(connection->command, &connection->target, request->head.method, &decision);
    refusal = (struct refusal){.reason = decision.reason, .rule = decision.rule};
    if (decision.verdict != NETWORK_DENY && ended_has_to(connection))
        refusal = (struct refusal){.reason = NETWORK_MITM_REQUIRED};
    else if (decision.verdict != NETWORK_DENY) {
        reach(connection);
        return;
    }
    connection_tell(connection, &refusal);
    explicit_refuse(connection, &refusal);
}

static void tunnel(struct connection *connection, const struct http_request *request)
{
    connection->explicit->kind = TUNNEL;
    if (!set_target(connection, request->authority, 0, NETWORK_HTTPS))
        refuse_malformed(connection, "CONNECT needs a host and a port", 400);
    else
        reach(connection);
}

static void read_http(struct connection *connection)
{
    struct explicit_client *client = connection->explicit;
    char text[HTTP_MESSAGE_HEAD_MAX + 1];
    size_t len = http_head_len(client->in.data, client->in.len);
    struct http_request request;
    struct err err;

    if (len > HTTP_MESSAGE_HEAD_MAX || (!len && client->in.len >= HTTP_MESSAGE_HEAD_MAX)) {
        refuse_malformed(connection, "its head is longer than 8 KiB, which is the limit", 400);
        return;
    }
    if (!len && http_looks_like(client->in.data, client->in.len) == HTTP_LOOK_NO)
        refuse_malformed(connection, "it is neither HTTP nor SOCKS 5", 400);
    else if (!len && http_head_has_bare_line_feed(client->in.data, client->in.len))
        refuse_malformed(connection, "a line of its head does not end in CR LF", 400);
    if (!len)
        return;
    memcpy(text, client->in.data, len);
    text[len] = '\0';
    if (http_request_read(text, len, &request, &err)) {
        refuse_malformed(connection, err.msg, 400);
        return;
    }
    buf_consume(&client->in, len);
    client->method = alloc_str(request.head.method);
    if (request.form == HTTP_AUTHORITY)
        tunnel(connection, &request);
    else if (request.form == HTTP_ABSOLUTE)
        forward(connection, &request);
    else
        refuse_malformed(connection, "this is a proxy: the target has to be a whole URL", 400);
}

/* --- SOCKS --- */

/* Whoever associates for UDP has no host yet, and says zeros. */
static void refuse_command(struct connection *connection, const struct socks_request *request)
{
    const struct refusal refusal = {.text = "of SOCKS it is CONNECT alone that there is"};
    struct target *target = &connection->target;
    struct net_host host;
    struct err ignored;

    if (request->command == SOCKS_UDP)
        target->protocol = NETWORK_SOCKS5_UDP;
    if (request->port &&
        net_host_parse(request->host, strlen(request->host), &host, &ignored) == 0) {
        target->host = host;
        target->port = request->port;
    }
    connection_tell(connection, &refusal);
    close_with(connection, &refusal, SOCKS_NO_COMMAND);
}

/* False: more has to come, or the connection is gone. */
static bool greet(struct connection *connection)
{
    const struct refusal bad = {.text = "it greets without the method of no authentication"};
    struct explicit_client *client = connection->explicit;
    size_t used;

    switch (socks_read_greeting((const uint8_t *)client->in.data, client->in.len, &used)) {
    case SOCKS_MORE:
        return false;
    case SOCKS_WHOLE:
        buf_consume(&client->in, used);
        client->is_greeted = true;
        say(connection, socks_no_authentication, sizeof socks_no_authentication);
        return true;
    case SOCKS_BAD:
        break;
    }
    connection_tell(connection, &bad);
    say(connection, socks_no_method, sizeof socks_no_method);
    connection_close(connection);
    return false;
}

static void read_socks(struct connection *connection)
{
    const struct refusal bad = {.text = "its request of SOCKS 5 cannot be read"};
    struct explicit_client *client = connection->explicit;
    struct socks_request request;
    enum socks_reply reply = SOCKS_FAILURE;
    struct net_host host;
    struct err ignored;
    size_t used;

    client->kind = SOCKS;
    connection->target.protocol = NETWORK_SOCKS5_TCP;
    if (!client->is_greeted && !greet(connection))
        return;
    switch (socks_read_request((const uint8_t *)client->in.data, client->in.len, &request, &used,
                               &reply)) {
    case SOCKS_MORE:
        return;
    case SOCKS_WHOLE:
        break;
    case SOCKS_BAD:
        connection_tell(connection, &bad);
        close_with(connection, &bad, reply);
        return;
    }
    buf_consume(&client->in, used);
    if (request.command != SOCKS_CONNECT) {
        refuse_command(connection, &request);
    } else if (!request.port ||
               net_host_parse(request.host, strlen(request.host), &host, &ignored)) {
        refuse_malformed(connection, "the host of the request is none", 400);
    } else {
        connection->target.host = host;
        connection->target.port = request.port;
        reach(connection);
    }
}

/* --- its first bytes --- */

static void on_bytes(void *data, int fd, unsigned ready)
{
    struct connection *connection = data;
    struct explicit_client *client = connection->explicit;
    char block[4096];
    size_t room = client->in.max - client->in.len;
    ssize_t len = recv(fd, block, room < sizeof block ? room : sizeof block, MSG_DONTWAIT);

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len <= 0 || !buf_append(&client->in, block, (size_t)len)) {
        connection_free(connection);
        return;
    }
    if (client->kind == SOCKS || client->in.data[0] == SOCKS_VERSION)
        read_socks(connection);
    else
        read_http(connection);
}

/* Who has said nothing at all keeps a connection ready, as browsers do, and hears nothing. */
void explicit_on_time(struct deadline *deadline)
{
    struct connection *connection = container_of(deadline, struct connection, deadline);
    const struct explicit_client *client = connection->explicit;

    if (client->in.len || client->is_greeted)
        refuse_malformed(connection,
                         "its request to the proxy was not whole after 10 s, which is the limit",
                         408);
    else
        connection_free(connection);
}

void explicit_new(struct connection *connection)
{
    struct err ignored;

    connection->explicit = alloc_zero(1, sizeof *connection->explicit);
    buf_init(&connection->explicit->in, ROOM);
    buf_init(&connection->explicit->head, 2 * LIMIT_HEAD);
    connection->target.host = (struct net_host){.text = "the proxy"}; /* it has said no other yet */
    loop_watch_free(TAKE_PTR(connection->watch));
    connection->watch = loop_watch_new(connection->command->proxy->loop, connection->client,
                                       LOOP_READ, on_bytes, connection, &ignored);
    if (connection->watch)
        deadline_set(&connection->deadline, &connection->command->proxy->explicit_head);
    else
        connection_free(connection);
}
