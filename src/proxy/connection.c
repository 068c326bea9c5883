/* See connection.h.
 *
 * What a connection is meant for: an address of the pool is the name that has it; any other address is itself, or the name that
 * the host's /etc/hosts has for it, if that is allowed. Port 53 is the resolver. What comes to the listener by its own
 * address comes from a client that knows of us (explicit.h).
 *
 * Until somebody has decided, and while the server is dialled, nothing of the client is read; it may send ahead, and the
 * kernel keeps it. What it sends first is held until it is known what it is, unless the server speaks first: then it
 * is neither TLS nor HTTP. At port 80 it has to be HTTP whoever speaks first. */
#include "proxy/connection.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/http_message.h"
#include "base/str.h"
#include "loop/loop.h"
#include "policy/network_hook.h"
#include "proxy/dial.h"
#include "proxy/ended.h"
#include "proxy/explicit.h"
#include "proxy/http_flow.h"
#include "proxy/limits.h"
#include "proxy/proxy.h"
#include "proxy/tls_hello.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    DNS_PORT = 53,
    ORIGINAL_DST = 80, /* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST of the headers of netfilter */
    LOOK_ROOM = LIMIT_HELLO + 1024, /* the heads of its records, too */
    HELD_BYTES = 64 << 10,          /* of one that waits, before it is read no more */
    TLS_FIRST = 0x16,
};

/* --- its end --- */

void connection_free(struct connection *connection)
{
    list_remove(&connection->in_connections);
    connection->command->connections_len--;
    deadline_clear(&connection->deadline);
    question_leave(connection->command, &connection->held);
    dial_cancel(connection->dial);
    loop_watch_free(connection->watch);
    if (connection->is_relaying)
        relay_done(&connection->relay);
    if (connection->client >= 0)
        relay_reset(connection->client);
    explicit_free(connection->explicit);
    http_flow_free(connection->http);
    ended_free(connection->ended);
    buf_done(&connection->last_words);
    free(connection);
}

void connection_on_time(struct deadline *deadline)
{
    struct connection *connection = container_of(deadline, struct connection, deadline);

    if (connection->is_relaying)
        connection->relay.is_broken = true;
    connection_free(connection);
}

void connection_on_first_bytes(struct deadline *deadline)
{
    const struct refusal late = {
        .text = "its first bytes were not whole after 30 s, which is the limit"};

    connection_tell(container_of(deadline, struct connection, deadline), &late);
    connection_on_time(deadline);
}

void connection_on_idle(struct deadline *deadline)
{
    const struct refusal idle = {.text = "nothing was said on it for an hour, which is the limit"};

    connection_tell(container_of(deadline, struct connection, deadline), &idle);
    connection_on_time(deadline);
}

/* What a client sends after it was refused is read, or it would not get to see the refusal: a close with unread bytes
 * is a reset. */
static void drain(void *data, int fd, unsigned ready)
{
    static char block[16 << 10];
    struct connection *connection = data;
    ssize_t len = recv(fd, block, sizeof block, MSG_DONTWAIT);

    if (len > 0 || (len < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    close(TAKE_FD(connection->client));
    connection_free(connection);
}

void connection_close(struct connection *connection)
{
    const struct buf *words = &connection->last_words;
    struct err ignored;

    loop_watch_free(TAKE_PTR(connection->watch));
    if (words->len) /* it fits: nothing else is on its way */
        send(connection->client, words->data, words->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(connection->client, SHUT_WR);
    deadline_set(&connection->deadline, &connection->command->proxy->closing);
    connection->watch = loop_watch_new(connection->command->proxy->loop, connection->client,
                                       LOOP_READ, drain, connection, &ignored);
    if (!connection->watch)
        connection_free(connection);
}

void connection_tell(struct connection *connection, const struct refusal *refusal)
{
    facts_denied(connection->command, &connection->target,
                 refusal->text ? refusal->text : network_reason_word(refusal->reason),
                 refusal->rule ? refusal->rule->origin : NULL);
}

static void refuse(struct connection *connection, const struct refusal *refusal)
{
    connection_tell(connection, refusal);
    if (connection->explicit)
        explicit_refuse(connection, refusal);
    else
        connection_free(connection);
}

/* --- what is said first --- */

void connection_limit_first_bytes(struct connection *connection)
{
    struct deadline_queue *queue = &connection->command->proxy->first_bytes;

    if (connection->deadline.queue != queue)
        deadline_set(&connection->deadline, queue);
}

/* Whoever connects by number names what is there; and a short name of the host is its name, too. */
static bool is_free_to_name(struct connection *connection, const char *name)
{
    struct proxy *proxy = connection->command->proxy;

    if (connection->target.host.kind == NET_HOST_IS_ADDRESS)
        return true;
    proxy_refresh_resolver(proxy);
    return search_leads_to(&proxy->search, name, connection->target.host.text);
}

bool connection_may_name(struct connection *connection, const char *name, size_t len)
{
    struct target said = connection->target;
    struct network_decision decision;
    struct refusal refusal = {.reason = NETWORK_NOT_ALLOWED};
    struct err ignored;

    if (net_host_parse(name, len, &said.host, &ignored)) {
        refusal.text = "the name that it gives the server is none";
        connection_tell(connection, &refusal);
        return false;
    }
    if (str_eq(said.host.text, connection->target.host.text))
        return true;
    command_decide(connection->command, &said, NULL, &decision);
    if (decision.verdict == NETWORK_ALLOW ||
        (decision.reason != NETWORK_DENIED && is_free_to_name(connection, said.host.text)))
        return true;
    facts_denied(connection->command, &said,
                 network_reason_word(decision.reason ? decision.reason : NETWORK_NOT_ALLOWED),
                 decision.rule ? decision.rule->origin : NULL);
    return false;
}

static enum relay_step refuse_bytes(struct connection *connection, enum network_reason reason,
                                    const char *text)
{
    const struct refusal refusal = {.reason = reason, .text = text};

    connection_tell(connection, &refusal);
    return RELAY_STOP;
}

void connection_limit_idle(struct connection *connection)
{
    deadline_set(&connection->deadline, &connection->command->proxy->idle);
}

static enum relay_step opaque(struct connection *connection, struct buf *in)
{
    buf_consume(in, connection->passed);
    connection_limit_idle(connection);
    return RELAY_OPAQUE;
}

/* The beginning of a line that may become a request goes on as it comes: there are programs that say a word and wait. Who the
 * request is for comes behind its first line, and stays here. */
static enum relay_step pass_beginning(struct connection *connection, const struct buf *in,
                                      struct buf *out)
{
    if (connection->forwarder) /* which wants another first line */
        return RELAY_GO_ON;
    if (!buf_append(out, in->data + connection->passed, in->len - connection->passed))
        return RELAY_STOP;
    connection->passed = in->len;
    return RELAY_GO_ON;
}

/* Of a name that is connected to by another one, or by number, hooks would say nothing. */
static bool names_hooked(const struct connection *connection, const char *name)
{
    const struct network_hooks *hooks = connection->command->policy.hooks;

    return hooks && network_hooks_has_hooks(hooks, name) &&
           !str_eq(name, connection->target.host.text);
}

static enum relay_step look_at_tls(struct connection *connection, const struct tls_hello *hello,
                                   struct buf *in)
{
    if (connection->target.protocol == NETWORK_HTTP &&
        connection->command->policy.mode == NETWORK_MODE_LIMITED)
        return refuse_bytes(connection, NETWORK_MITM_REQUIRED, NULL);
    if (connection->forwarder)
        return refuse_bytes(connection, NETWORK_NOT_ALLOWED,
                            "TLS at port 80 does not go through the host's own proxy");
    if (*hello->name && !connection_may_name(connection, hello->name, strlen(hello->name)))
        return RELAY_STOP;
    if (names_hooked(connection, hello->name))
        return refuse_bytes(connection, NETWORK_MITM_REQUIRED, NULL);
    return ended_wants(connection) ? ended_leave(connection, in) : opaque(connection, in);
}

static enum relay_step not_ended(struct connection *connection, struct buf *in)
{
    return ended_has_to(connection) ? refuse_bytes(connection, NETWORK_MITM_REQUIRED, NULL)
                                    : opaque(connection, in);
}

/* HTTP/2 without TLS (gRPC) says whom it is for where that is not read. At a port of the host's own there is nobody else. */
static bool is_http2_of_host_port(const struct connection *connection, const struct buf *in)
{
    static const char preface[] = "PRI * HTTP/"; /* RFC 9113, 3.4 */

    return net_host_is_loopback(&connection->target.host) &&
           connection->target.protocol != NETWORK_HTTP && in->len >= sizeof preface - 1 &&
           memcmp(in->data, preface, sizeof preface - 1) == 0;
}

static enum relay_step look_at_http(struct connection *connection, struct buf *in, struct buf *out)
{
    switch (http_looks_like(in->data, in->len)) {
    case HTTP_LOOK_NO:
        if (connection->target.protocol == NETWORK_HTTP)
            return refuse_bytes(connection, NETWORK_NOT_ALLOWED, "it is not HTTP, at port 80");
        return not_ended(connection, in);
    case HTTP_LOOK_MAYBE:
        if (connection->target.protocol == NETWORK_HTTP &&
            connection->relay.flows[RELAY_UP].has_ended)
            return refuse_bytes(connection, NETWORK_NOT_ALLOWED, "it is not HTTP, at port 80");
        if (connection->relay.flows[RELAY_UP].has_ended)
            return not_ended(connection, in);
        return ended_has_to(connection) ? RELAY_GO_ON : pass_beginning(connection, in, out);
    case HTTP_LOOK_YES:
        if (is_http2_of_host_port(connection, in))
            return not_ended(connection, in);
        break;
    }
    connection->http = http_flow_new(connection);
    connection->relay.flows[RELAY_UP].filter = http_flow_requests;
    return http_flow_requests(connection, in, out);
}

enum relay_step connection_look(void *data, struct buf *in, struct buf *out)
{
    struct connection *connection = data;
    struct tls_hello hello;

    if (!in->len)
        return RELAY_GO_ON;
    if (connection->relay.flows[RELAY_DOWN].moved && connection->target.protocol != NETWORK_HTTP)
        return not_ended(connection, in);
    switch (tls_hello_read((const uint8_t *)in->data, in->len, &hello)) {
    case TLS_NONE:
        if (*in->data == TLS_FIRST && connection->target.protocol == NETWORK_HTTPS)
            break; /* a server might forgive what is wrong with it */
        return look_at_http(connection, in, out);
    case TLS_WHOLE:
        return look_at_tls(connection, &hello, in);
    case TLS_MORE:
        connection_limit_first_bytes(connection);
        if (in->len < in->max && !connection->relay.flows[RELAY_UP].has_ended)
            return RELAY_GO_ON;
        break;
    case TLS_BAD:
        break;
    }
    return refuse_bytes(connection, NETWORK_NOT_ALLOWED,
                        "its hello of TLS cannot be read, is not whole, or is longer than 16 KiB");
}

/* --- relaying --- */

static void on_moved(void *data, enum relay_direction direction)
{
    struct connection *connection = data;

    if (connection->deadline.queue == &connection->command->proxy->idle)
        deadline_touch(&connection->deadline);
}

static void on_relay_end(void *data)
{
    struct connection *connection = data;

    if (connection->ended && connection->relay.ends[1].fd >= 0 && !connection->relay.is_broken &&
        !ended_has_begun(connection->ended)) {
        ended_begin(connection);
        return;
    }
    if (!connection->last_words.len) {
        connection_free(connection);
        return;
    }
    connection->client = TAKE_FD(connection->relay.ends[0].fd);
    relay_done(&connection->relay);
    connection->is_relaying = false;
    connection_close(connection);
}

void connection_relay(struct connection *connection, int server)
{
    struct relay *relay = &connection->relay;

    loop_watch_free(TAKE_PTR(connection->watch));
    relay_init(relay, connection->command->proxy->loop, TAKE_FD(connection->client), server);
    relay->data = connection;
    relay->on_moved = on_moved;
    relay->on_end = on_relay_end;
    connection->is_relaying = true;
    connection_limit_idle(connection);
}

void connection_start(struct connection *connection)
{
    struct err ignored;

    if (relay_start(&connection->relay, &ignored))
        connection_free(connection);
}

static void on_dialled(void *data, const struct dial_result *result)
{
    struct connection *connection = data;
    const struct refusal refusal = {.reason = result->reason};

    connection->dial = NULL;
    if (result->end == DIAL_NOT_ALLOWED) {
        refuse(connection, &refusal);
        return;
    }
    if (result->end != DIAL_CONNECTED) {
        facts_failed(connection->command, &connection->target, dial_failure(result));
        if (connection->explicit)
            explicit_fail(connection, result);
        else
            connection_free(connection);
        return;
    }
    connection->forwarder = result->forwarder;
    facts_done(connection->command, &connection->target);
    connection_relay(connection, result->fd);
    relay_set_filter(&connection->relay, RELAY_UP, connection_look, LOOK_ROOM);
    if (connection->explicit)
        explicit_begin(connection);
    connection_start(connection);
}

/* --- deciding --- */

static void dial(struct connection *connection)
{
    struct command *command = connection->command;
    const struct net_host *host = &connection->target.host;
    struct name *name = NULL;
    struct refusal refusal = {.text = NULL};

    if (host->kind == NET_HOST_IS_NAME && !net_host_name_is_local(host->text)) {
        name = names_get(command, host, &refusal.text);
        if (!name) {
            refuse(connection, &refusal);
            return;
        }
    }
    loop_watch_set(connection->watch, LOOP_NOTHING);
    connection->dial = dial_start(command, &connection->target, name, on_dialled, connection);
}

/* A client that waits for an answer has something to say, or is gone: it has closed, or reset. Who has sent something
 * that is not TLS and said that it will send no more may still want to hear. */
static void on_held(void *data, int fd, unsigned ready)
{
    struct connection *connection = data;
    unsigned char first;
    ssize_t len = recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    struct tcp_info info;
    socklen_t info_len = sizeof info;
    bool is_half_closed = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_len) == 0 &&
                          info.tcpi_state == TCP_CLOSE_WAIT;

    if (len < 0 && errno == EAGAIN)
        return;
    if (len <= 0 || (first == TLS_FIRST && is_half_closed))
        connection_free(connection);
    else
        loop_watch_set(connection->watch, LOOP_NOTHING);
}

static void on_answer(struct question_waiter *waiter, bool is_yes)
{
    struct connection *connection = container_of(waiter, struct connection, held);
    const struct refusal no = {.reason = NETWORK_POLICY_DENIED};
    const int one = 1;

    if (!is_yes) {
        refuse(connection, &no);
        return;
    }
    setsockopt(connection->client, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
    dial(connection);
}

static void ask(struct connection *connection)
{
    const int much = HELD_BYTES; /* so that a close is told, and a hello is not */
    struct refusal refusal = {.reason = NETWORK_NOT_ALLOWED};
    struct err ignored;

    connection->held.on_answer = on_answer;
    if (!question_ask(connection->command, &connection->target, &connection->held, &refusal.text)) {
        refuse(connection, &refusal);
        return;
    }
    deadline_clear(&connection->deadline); /* it ends when the question does */
    setsockopt(connection->client, SOL_SOCKET, SO_RCVLOWAT, &much, sizeof much);
    loop_watch_free(TAKE_PTR(connection->watch));
    connection->watch = loop_watch_new(connection->command->proxy->loop, connection->client,
                                       LOOP_READ, on_held, connection, &ignored);
}

void connection_reach(struct connection *connection)
{
    struct network_decision decision;
    struct refusal refusal;

    command_decide(connection->command, &connection->target, NULL, &decision);
    refusal = (struct refusal){.reason = decision.reason, .rule = decision.rule};
    if (decision.verdict == NETWORK_DENY)
        refuse(connection, &refusal);
    else if (decision.verdict == NETWORK_ASK)
        ask(connection);
    else
        dial(connection);
}

/* --- what is meant --- */

static void from_socket_address(const struct sockaddr_storage *from, struct net_address *ret,
                                uint16_t *ret_port)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;

    if (from->ss_family == AF_INET) {
        *ret = net_address_v4((const uint8_t *)&v4->sin_addr);
        *ret_port = ntohs(v4->sin_port);
    } else {
        memcpy(ret->bytes, &v6->sin6_addr, sizeof ret->bytes);
        *ret_port = ntohs(v6->sin6_port);
    }
}

/* Where the program connected to, before that was redirected to us. */
static bool read_meant(int fd, struct net_address *ret, uint16_t *ret_port, uint16_t *ret_listening)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;

    if (getsockname(fd, (struct sockaddr *)&address, &len))
        return false;
    from_socket_address(&address, ret, ret_listening);
    *ret_port = *ret_listening;
    len = sizeof address;
    if (getsockopt(fd, net_address_is_v4(ret) ? SOL_IP : SOL_IPV6, ORIGINAL_DST, &address, &len) ==
        0)
        from_socket_address(&address, ret, ret_port);
    return true; /* without a redirect it is where it came */
}

/* A name that the host's /etc/hosts has for the address, and that is allowed, in its place. */
static void name_by_hosts(struct connection *connection)
{
    struct target named = connection->target;
    struct network_decision decision;

    command_decide(connection->command, &connection->target, NULL, &decision);
    if (decision.verdict == NETWORK_ALLOW || decision.reason == NETWORK_DENIED)
        return;
    for (size_t i = 0; hosts_name_of(&connection->command->proxy->hosts,
                                     &connection->target.host.address, i, &named.host);
         i++) {
        command_decide(connection->command, &named, NULL, &decision);
        if (decision.verdict != NETWORK_ALLOW)
            continue;
        connection->target = named;
        return;
    }
}

static void reach_address(struct connection *connection, const struct net_address *address)
{
    struct target *target = &connection->target;
    const struct name *name = names_at(&connection->command->names, address);

    target->protocol = network_protocol_of_port(target->port);
    if (name) {
        target->host = name->host;
    } else {
        net_host_from_address(address, &target->host);
        if (names_is_pool(address)) {
            const struct refusal nobody = {.text = "no name has this address"};

            refuse(connection, &nobody);
            return;
        }
        name_by_hosts(connection);
    }
    connection_reach(connection);
}

static bool is_loopback(const struct net_address *address)
{
    const char *special = net_address_special(address);

    return special && str_eq(special, "loopback");
}

/* Nothing to do before it is known who is meant. */
static void on_early(void *data, int fd, unsigned ready)
{
}

static void refuse_too_many(struct connection *connection)
{
    const struct refusal limit = {.text =
                                      "the command has 1024 connections open, which is the limit"};

    connection->target.protocol = network_protocol_of_port(connection->target.port);
    net_host_from_address(&connection->target.meant, &connection->target.host);
    refuse(connection, &limit);
}

static void reach_meant(struct connection *connection, bool is_own_port)
{
    struct command *command = connection->command;
    struct target *target = &connection->target;

    if (command->connections_len > LIMIT_CONNECTIONS) {
        refuse_too_many(connection);
    } else if (target->port == DNS_PORT) {
        dns_server_add_stream(command, TAKE_FD(connection->client));
        connection_free(connection);
    } else if (is_own_port && is_loopback(&target->meant)) {
        explicit_new(connection);
    } else {
        reach_address(connection, &target->meant);
    }
}

/* The guard has sent all three bytes at once. Whoever else begins so means what he says, as everybody does. */
static void on_led(void *data, int fd, unsigned ready)
{
    struct connection *connection = data;
    uint8_t bytes[PROXY_LED_BYTES];
    const ssize_t len = recv(fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    const bool is_led = len == (ssize_t)sizeof bytes && bytes[0] == PROXY_LED;

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len <= 0 || (bytes[0] == PROXY_LED && (!is_led || !(bytes[1] | bytes[2])))) {
        connection_free(connection);
        return;
    }
    deadline_clear(&connection->deadline);
    loop_watch_set(connection->watch, LOOP_NOTHING);
    connection->target.host =
        (struct net_host){.kind = NET_HOST_IS_NAME}; /* until somebody is meant */
    if (is_led) {
        recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        connection->target.port = (uint16_t)(bytes[1] << 8 | bytes[2]);
    }
    reach_meant(connection, !is_led);
}

void connection_new(struct command *command, int client)
{
    struct connection *connection = alloc_zero(1, sizeof *connection);
    struct target *target = &connection->target;
    struct sockaddr_storage peer = {0};
    socklen_t len = sizeof peer;
    struct net_address from;
    uint16_t listening = 0;
    const int on = 1;
    struct err ignored;

    connection->command = command;
    connection->client = client;
    connection->relay.ends[0].fd = connection->relay.ends[1].fd = -1;
    list_append(&command->connections, &connection->in_connections);
    command->connections_len++;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection->watch =
        loop_watch_new(command->proxy->loop, client, LOOP_NOTHING, on_early, connection, &ignored);
    if (!connection->watch || getpeername(client, (struct sockaddr *)&peer, &len) ||
        !read_meant(client, &target->meant, &target->port, &listening)) {
        connection_free(connection);
        return;
    }
    from_socket_address(&peer, &from, &target->local_port);
    if (command->is_led) {
        net_host_from_address(&target->meant, &target->host);
        connection_limit_first_bytes(connection);
        loop_watch_free(connection->watch);
        connection->watch =
            loop_watch_new(command->proxy->loop, client, LOOP_READ, on_led, connection, &ignored);
        if (!connection->watch)
            connection_free(connection);
    } else {
        reach_meant(connection, target->port == listening);
    }
}
