/* See dial.h.
 *
 *     resolving -> judged -> connecting to the first address, the next, ... -> its end, by a timer of no delay
 *
 * What is dialled are the addresses that were judged, never a name. Both times that it may take are bounded: that of the
 * resolver, by itself, and that of connecting. An address that says nothing gets three seconds of it while there is another
 * one. The host's own proxy has what is left of it for its reply. */
#include "proxy/dial.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/http_message.h"
#include "loop/loop.h"
#include "proxy/limits.h"
#include "proxy/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint8_t loopback[4] = {127, 0, 0, 1};

struct dial {
    struct command *command;
    struct target target;
    struct deadline whole, attempt; /* to connect: to any address, to this one */
    struct name_waiter waiter;
    struct net_address addresses[LOOP_ADDRESSES_MAX];
    size_t len, next;
    int fd;
    size_t seen; /* bytes of the reply of the host's own proxy */
    struct loop_watch *watch;
    struct loop_timer *done; /* calls back */
    enum dial_end end;
    int error;
    enum network_reason reason;
    const struct upstream *via;   /* the host's own proxy; NULL: directly */
    struct loop_look_up *look_up; /* of its name */
    dial_fn *on_end;
    void *data;
};

static void dial_free(struct dial *dial)
{
    loop_look_up_cancel(dial->look_up);
    name_leave(&dial->waiter);
    deadline_clear(&dial->whole);
    deadline_clear(&dial->attempt);
    loop_watch_free(dial->watch);
    loop_timer_free(dial->done);
    if (dial->fd >= 0)
        close(dial->fd);
    free(dial);
}

void dial_cancel(struct dial *dial)
{
    if (dial)
        dial_free(dial);
}

const char *dial_failure(const struct dial_result *result)
{
    switch (result->end) {
    case DIAL_CONNECTED:
    case DIAL_NOT_ALLOWED:
        return NULL;
    case DIAL_NO_NAME:
        return "no address is known for the name";
    case DIAL_NO_ANSWER:
        return "the host's resolver gives no answer";
    case DIAL_TOO_LONG:
        return "no address of it took the connection within 10 s, which is the limit";
    case DIAL_NO_UPSTREAM:
        return "the host's own proxy cannot be reached";
    case DIAL_UPSTREAM_REFUSES:
        return "the host's own proxy refuses it";
    case DIAL_FAILED:
        break;
    }
    return result->error == ECONNREFUSED ? "the server refuses the connection"
           : result->error == ENETUNREACH || result->error == EHOSTUNREACH
               ? "there is no way to the server"
               : strerror(result->error);
}

static void call_back(void *data)
{
    struct dial *dial = data;
    dial_fn *on_end = dial->on_end;
    void *callee = dial->data;
    struct dial_result result = {
        .end = dial->end,
        .fd = dial->end == DIAL_CONNECTED ? TAKE_FD(dial->fd) : -1,
        .error = dial->error,
        .reason = dial->reason,
        .forwarder = dial->target.protocol == NETWORK_HTTP ? dial->via : NULL,
    };

    dial_free(dial);
    on_end(callee, &result);
}

static void finish(struct dial *dial, enum dial_end end)
{
    deadline_clear(&dial->whole);
    deadline_clear(&dial->attempt);
    loop_watch_free(TAKE_PTR(dial->watch));
    dial->end = end;
    loop_timer_start(dial->done, 0);
}

/* --- connecting --- */

static void connect_next(struct dial *dial);

static void address_failed(struct dial *dial, int error)
{
    loop_watch_free(TAKE_PTR(dial->watch));
    if (dial->fd >= 0)
        close(TAKE_FD(dial->fd));
    dial->error = error;
    connect_next(dial);
}

static void wait_for_more(struct dial *dial, size_t than)
{
    int more = (int)than + 1;

    dial->seen = than;
    setsockopt(dial->fd, SOL_SOCKET, SO_RCVLOWAT, &more, sizeof more);
}

/* The reply of the host's own proxy to CONNECT: its head is read to its end and no further. While it is not whole we are
 * called when there is more of it, or never will be. */
static void on_upstream_reply(void *data, int fd, unsigned ready)
{
    struct dial *dial = data;
    char text[HTTP_MESSAGE_HEAD_MAX + 1];
    ssize_t len = recv(fd, text, HTTP_MESSAGE_HEAD_MAX, MSG_PEEK | MSG_DONTWAIT);
    size_t head = len > 0 ? http_head_len(text, (size_t)len) : 0;
    struct http_reply_head reply;
    struct err ignored;

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (!head && len > (ssize_t)dial->seen && len < HTTP_MESSAGE_HEAD_MAX) {
        wait_for_more(dial, (size_t)len);
        return;
    }
    wait_for_more(dial, 0);
    if (!head || recv(fd, text, head, MSG_DONTWAIT) != (ssize_t)head) {
        finish(dial, DIAL_UPSTREAM_REFUSES);
        return;
    }
    text[head] = '\0';
    if (http_reply_read(text, head, "CONNECT", &reply, &ignored) ||
        (!reply.is_interim && (reply.head.status < 200 || reply.head.status > 299)))
        finish(dial, DIAL_UPSTREAM_REFUSES);
    else if (!reply.is_interim)
        finish(dial, DIAL_CONNECTED);
}

static void ask_upstream(struct dial *dial)
{
    AUTO_FREE char *name = net_host_format(dial->target.host.text, dial->target.port);
    AUTO_FREE char *request =
        alloc_strf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", name, name,
                   dial->via->authorization ? "Proxy-Authorization: " : "",
                   dial->via->authorization ? dial->via->authorization : "",
                   dial->via->authorization ? "\r\n" : "");
    struct err ignored;

    loop_watch_free(TAKE_PTR(dial->watch));
    dial->watch = loop_watch_new(dial->command->proxy->loop, dial->fd, LOOP_READ, on_upstream_reply,
                                 dial, &ignored);
    if (!dial->watch ||
        send(dial->fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        finish(dial, DIAL_UPSTREAM_REFUSES);
}

static void on_connected(void *data, int fd, unsigned ready)
{
    struct dial *dial = data;
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
        error = errno;
    deadline_clear(&dial->attempt);
    if (error)
        address_failed(dial, error);
    else if (dial->via && dial->target.protocol != NETWORK_HTTP)
        ask_upstream(dial);
    else
        finish(dial, DIAL_CONNECTED);
}

static socklen_t socket_address(const struct net_address *from, uint16_t port,
                                struct sockaddr_storage *ret)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

    memset(ret, 0, sizeof *ret);
    if (net_address_is_v4(from)) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        memcpy(&v4->sin_addr, from->bytes + 12, 4);
        return sizeof *v4;
    }
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    memcpy(&v6->sin6_addr, from->bytes, 16);
    return sizeof *v6;
}

/* 0, or why it cannot even begin. */
static int begin_connect(struct dial *dial, const struct net_address *address)
{
    struct sockaddr_storage to;
    socklen_t len = socket_address(address, dial->via ? dial->via->port : dial->target.port, &to);
    struct err ignored;
    const int on = 1;

    dial->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (dial->fd < 0)
        return errno;
    setsockopt(dial->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(dial->fd, (const struct sockaddr *)&to, len) && errno != EINPROGRESS)
        return errno;
    dial->watch = loop_watch_new(dial->command->proxy->loop, dial->fd, LOOP_WRITE, on_connected,
                                 dial, &ignored);
    return dial->watch ? 0 : ENOMEM;
}

static void connect_next(struct dial *dial)
{
    struct proxy *proxy = dial->command->proxy;

    while (dial->next < dial->len) {
        const struct net_address *address = &dial->addresses[dial->next++];
        int error = begin_connect(dial, address);

        if (!error && dial->next < dial->len)
            deadline_set(&dial->attempt, &proxy->trying);
        if (!error)
            return;
        if (dial->fd >= 0)
            close(TAKE_FD(dial->fd));
        dial->error = error;
    }
    finish(dial, dial->error == ETIMEDOUT ? DIAL_TOO_LONG
                 : dial->via              ? DIAL_NO_UPSTREAM
                                          : DIAL_FAILED);
}

static void connect_first(struct dial *dial)
{
    deadline_set(&dial->whole, &dial->command->proxy->connecting);
    connect_next(dial);
}

void dial_on_time(struct deadline *deadline)
{
    finish(container_of(deadline, struct dial, whole), DIAL_TOO_LONG);
}

void dial_on_attempt(struct deadline *deadline)
{
    address_failed(container_of(deadline, struct dial, attempt), ETIMEDOUT);
}

/* --- judging --- */

/* What is sent to an address of our own comes from it. Nothing is sent: a datagram socket only chooses. */
static bool is_own(const struct net_address *address)
{
    struct sockaddr_storage to, from;
    const socklen_t len = socket_address(address, 9, &to);
    socklen_t from_len = sizeof from;
    AUTO_CLOSE int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, len) ||
        getsockname(fd, (struct sockaddr *)&from, &from_len))
        return false; /* there is no way to it either */
    return to.ss_family == AF_INET
               ? memcmp(&((struct sockaddr_in *)&to)->sin_addr,
                        &((struct sockaddr_in *)&from)->sin_addr, sizeof(struct in_addr)) == 0
               : memcmp(&((struct sockaddr_in6 *)&to)->sin6_addr,
                        &((struct sockaddr_in6 *)&from)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

enum network_reason dial_judge(const struct command *command, const struct network_request *request,
                               const struct net_address *address)
{
    return network_policy_judge_address(&command->policy, request, address, is_own(address));
}

static void judge(struct dial *dial)
{
    const struct network_request request = {
        .host = &dial->target.host, .port = dial->target.port, .protocol = dial->target.protocol};

    for (size_t i = 0; i < dial->len; i++) {
        dial->reason = dial_judge(dial->command, &request, &dial->addresses[i]);
        if (dial->reason != NETWORK_REASON_NONE) {
            finish(dial, DIAL_NOT_ALLOWED);
            return;
        }
    }
    connect_first(dial);
}

static void on_resolved(struct name_waiter *waiter, struct name *name)
{
    struct dial *dial = container_of(waiter, struct dial, waiter);

    if (name->found != LOOP_FOUND) {
        finish(dial, name->found == LOOP_NO_ANSWER ? DIAL_NO_ANSWER : DIAL_NO_NAME);
        return;
    }
    dial->len = name->addresses_len;
    memcpy(dial->addresses, name->addresses, dial->len * sizeof *dial->addresses);
    judge(dial);
}

/* Not judged: the host's own environment names it. */
static void on_upstream_found(void *data, enum loop_found found, const struct in6_addr *addresses,
                              size_t count)
{
    struct dial *dial = data;

    dial->look_up = NULL;
    if (found != LOOP_FOUND) {
        finish(dial, DIAL_NO_UPSTREAM);
        return;
    }
    for (dial->len = 0; dial->len < count; dial->len++)
        memcpy(dial->addresses[dial->len].bytes, addresses[dial->len].s6_addr,
               sizeof dial->addresses->bytes);
    connect_first(dial);
}

static void begin_upstream(struct dial *dial)
{
    struct proxy *proxy = dial->command->proxy;
    const struct net_host *host = &dial->via->host;

    if (host->kind == NET_HOST_IS_ADDRESS)
        dial->addresses[dial->len++] = host->address;
    else
        dial->len = hosts_find(&proxy->hosts, host->text, dial->addresses, LOOP_ADDRESSES_MAX);
    if (dial->len) {
        connect_first(dial);
        return;
    }
    proxy_refresh_resolver(proxy);
    dial->look_up = loop_look_up_start(proxy->resolver, host->text, on_upstream_found, dial);
}

/* A port of the host's localhost may have a server at one of its two addresses alone, and a program asks for either. */
static bool is_own_localhost(const struct dial *dial)
{
    static const struct net_address ip6 = {.bytes = {[15] = 1}};
    const struct net_address ip4 = net_address_v4(loopback);
    const struct net_host *host = &dial->target.host;

    return network_policy_takes_port(&dial->command->policy, dial->target.port) &&
           (net_address_equal(&host->address, &ip4) || net_address_equal(&host->address, &ip6));
}

struct dial *dial_start(struct command *command, const struct target *target, struct name *name,
                        dial_fn *on_end, void *data)
{
    struct dial *dial = alloc_zero(1, sizeof *dial);
    struct err ignored;

    *dial = (struct dial){.command = command,
                          .target = *target,
                          .fd = -1,
                          .error = EHOSTUNREACH,
                          .on_end = on_end,
                          .data = data};
    dial->waiter.on_resolved = on_resolved;
    dial->done = loop_timer_new(command->proxy->loop, call_back, dial);
    dial->via = upstream_for(&command->proxy->upstreams, &command->policy, &target->host,
                             target->port, target->protocol);
    if (dial->via) {
        begin_upstream(dial);
        return dial;
    }
    if (name) {
        name_resolve(name, target, &dial->waiter);
        return dial;
    }
    if (target->host.kind == NET_HOST_IS_ADDRESS && is_own_localhost(dial))
        net_host_parse("localhost", strlen("localhost"), &dial->target.host, &ignored);
    if (dial->target.host.kind == NET_HOST_IS_ADDRESS) {
        dial->addresses[dial->len++] = target->host.address;
    } else { /* the machine itself, whatever a resolver would say */
        dial->addresses[dial->len++] = net_address_v4(loopback);
        dial->addresses[dial->len++] = (struct net_address){.bytes = {[15] = 1}};
    }
    judge(dial);
    return dial;
}
