/* See published.h. A visitor that has asked for a socket stays until it has come, since they come in order; what ends it
 * before is the end of the way in alone. Few ask at a time and the others wait for their turn, so that neither what is asked
 * nor what comes back is ever more than the way in has room for, however slow the init is. */
#include "proxy/published.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/pass.h"
#include "loop/loop.h"
#include "proxy/command.h"
#include "proxy/deadline.h"
#include "proxy/limits.h"
#include "proxy/proxy.h"
#include "proxy/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACCEPT_BATCH = 16, ASKING_MAX = 16 };

#define ACCEPT_PAUSE_NS (100 * CLOCK_NS_PER_MS)

struct published {
    struct command *command;
    struct list in_published;
    uint16_t port;
    int listener;
    struct loop_watch *watch;
    struct loop_timer *accept_again; /* runs while there are no descriptors */
    struct list visitors;
    unsigned visitors_len;
};

struct visitor {
    struct published *published;
    struct list in_visitors;
    struct list in_way; /* of those that wait, or that ask */
    struct deadline deadline;
    int client, server; /* -1: not there, or the relay has it */
    uint8_t family;     /* of the address that is tried */
    struct loop_watch *watch;
    bool is_relaying;
    struct relay relay;
};

static void visitor_free(struct visitor *visitor)
{
    deadline_clear(&visitor->deadline);
    loop_watch_free(visitor->watch);
    if (visitor->is_relaying)
        relay_done(&visitor->relay);
    if (visitor->client >= 0) /* it was never led in */
        relay_reset(visitor->client);
    if (visitor->server >= 0)
        close(visitor->server);
    list_remove(&visitor->in_way);
    list_remove(&visitor->in_visitors);
    visitor->published->visitors_len--;
    free(visitor);
}

void published_on_time(struct deadline *deadline)
{
    visitor_free(container_of(deadline, struct visitor, deadline));
}

/* --- relaying --- */

static void on_moved(void *data, enum relay_direction direction)
{
}

static void on_relay_end(void *data)
{
    visitor_free(data);
}

static void relay_visitor(struct visitor *visitor)
{
    struct err ignored;
    const int on = 1;

    deadline_clear(&visitor->deadline);
    loop_watch_free(TAKE_PTR(visitor->watch));
    setsockopt(visitor->client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(visitor->client, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(visitor->server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    relay_init(&visitor->relay, visitor->published->command->proxy->loop, TAKE_FD(visitor->client),
               TAKE_FD(visitor->server));
    visitor->relay.data = visitor;
    visitor->relay.on_moved = on_moved;
    visitor->relay.on_end = on_relay_end;
    visitor->is_relaying = true;
    if (relay_start(&visitor->relay, &ignored))
        visitor_free(visitor);
}

/* --- connecting --- */

static void ask_next(struct way_in *way_in)
{
    struct visitor *visitor;

    while (way_in->asking_len < ASKING_MAX &&
           (visitor = list_first(&way_in->waiting, struct visitor, in_way))) {
        list_remove(&visitor->in_way);
        if (send(way_in->sockets, &visitor->family, sizeof visitor->family,
                 MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
            visitor_free(visitor);
        } else {
            list_append(&way_in->asking, &visitor->in_way);
            way_in->asking_len++;
        }
    }
}

/* The visitor may be gone then. */
static void ask_socket(struct visitor *visitor)
{
    struct way_in *way_in = &visitor->published->command->way_in;

    list_append(&way_in->waiting, &visitor->in_way);
    ask_next(way_in);
}

/* A server may have just one of the two addresses that `localhost` has. */
static void connect_failed(struct visitor *visitor, int error)
{
    loop_watch_free(TAKE_PTR(visitor->watch));
    close(TAKE_FD(visitor->server));
    if (error != ECONNREFUSED || visitor->family == AF_INET6) {
        visitor_free(visitor);
        return;
    }
    deadline_clear(&visitor->deadline);
    visitor->family = AF_INET6;
    ask_socket(visitor);
}

static void on_connected(void *data, int fd, unsigned ready)
{
    struct visitor *visitor = data;
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
        error = errno;
    if (error)
        connect_failed(visitor, error);
    else
        relay_visitor(visitor);
}

/* Takes the socket. */
static void connect_visitor(struct visitor *visitor, int fd)
{
    struct proxy *proxy = visitor->published->command->proxy;
    const in_port_t port = htons(visitor->published->port);
    const struct sockaddr_in ip4 = {
        .sin_family = AF_INET, .sin_port = port, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct sockaddr_in6 ip6 = {
        .sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const struct sockaddr *to =
        visitor->family == AF_INET ? (const struct sockaddr *)&ip4 : (const struct sockaddr *)&ip6;
    struct err ignored;

    visitor->server = fd;
    deadline_set(&visitor->deadline, &proxy->visitors);
    if (connect(fd, to, visitor->family == AF_INET ? sizeof ip4 : sizeof ip6) &&
        errno != EINPROGRESS) {
        connect_failed(visitor, errno);
        return;
    }
    visitor->watch = loop_watch_new(proxy->loop, fd, LOOP_WRITE, on_connected, visitor, &ignored);
    if (!visitor->watch)
        visitor_free(visitor);
}

/* --- the way in --- */

static void on_socket(void *data, int fd, unsigned ready)
{
    struct command *command = data;
    struct way_in *way_in = &command->way_in;
    struct visitor *visitor;
    uint8_t family;
    int fds[PASS_MAX];
    size_t count;
    ssize_t len = pass_receive(fd, &family, sizeof family, MSG_DONTWAIT, fds, &count);

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    visitor = list_first(&way_in->asking, struct visitor, in_way);
    if (len <= 0 || count > 1 || !visitor) { /* the command has ended */
        pass_close(fds, count);
        way_in_done(way_in);
        return;
    }
    list_remove(&visitor->in_way);
    way_in->asking_len--;
    if (count)
        connect_visitor(visitor, fds[0]);
    else
        visitor_free(visitor);
    ask_next(way_in);
}

/* --- who comes --- */

static void accept_again(void *data)
{
    struct published *published = data;

    loop_watch_set(published->watch, LOOP_READ);
}

static void tell_limit(const struct published *published)
{
    static const char why[] =
        "1024 connections from outside are open at this published port, which is the limit";
    struct target target = {.port = published->port,
                            .protocol = network_protocol_of_port(published->port),
                            .meant = {.bytes = {[10] = 0xff, 0xff, 127, 0, 0, 1}}};

    _Static_assert(LIMIT_VISITORS == 1024, "the sentence says so");
    net_host_from_address(&target.meant, &target.host);
    facts_failed(published->command, &target, why);
}

static void visitor_new(struct published *published, int client)
{
    struct visitor *visitor;

    if (published->visitors_len == LIMIT_VISITORS) {
        tell_limit(published);
        relay_reset(client);
        return;
    }
    visitor = alloc_zero(1, sizeof *visitor);
    visitor->published = published;
    visitor->client = client;
    visitor->server = -1;
    visitor->family = AF_INET;
    list_append(&published->visitors, &visitor->in_visitors);
    published->visitors_len++;
    ask_socket(visitor);
}

static void on_visitor(void *data, int fd, unsigned ready)
{
    struct published *published = data;

    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (client >= 0) {
            visitor_new(published, client);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            loop_watch_set(published->watch, LOOP_NOTHING);
            loop_timer_start(published->accept_again, ACCEPT_PAUSE_NS);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

static void published_free(struct published *published)
{
    struct visitor *visitor, *following;

    list_for_each_safe(visitor, following, &published->visitors, in_visitors)
        visitor_free(visitor);
    loop_watch_free(published->watch);
    loop_timer_free(published->accept_again);
    close(published->listener);
    list_remove(&published->in_published);
    free(published);
}

void way_in_init(struct way_in *way_in)
{
    way_in->sockets = -1;
}

void way_in_done(struct way_in *way_in)
{
    struct published *published, *following;

    list_for_each_safe(published, following, &way_in->published, in_published)
        published_free(published);
    loop_watch_free(TAKE_PTR(way_in->watch));
    if (way_in->sockets >= 0)
        close(TAKE_FD(way_in->sockets));
    way_in->asking_len = 0;
}

void published_add(struct command *command, uint16_t port, const int fds[PROXY_WAYS_IN])
{
    struct way_in *way_in = &command->way_in;
    struct loop *loop = command->proxy->loop;
    struct published *published = alloc_zero(1, sizeof *published);
    struct err ignored;

    published->command = command;
    published->port = port;
    published->listener = fds[PROXY_WAY_IN_LISTENER];
    list_append(&way_in->published, &published->in_published);
    if (way_in->sockets >= 0) {
        close(fds[PROXY_WAY_IN_SOCKETS]);
    } else {
        way_in->sockets = fds[PROXY_WAY_IN_SOCKETS];
        way_in->watch =
            loop_watch_new(loop, way_in->sockets, LOOP_READ, on_socket, command, &ignored);
    }
    published->accept_again = loop_timer_new(loop, accept_again, published);
    published->watch =
        loop_watch_new(loop, published->listener, LOOP_READ, on_visitor, published, &ignored);
    if (!published->watch || !way_in->watch)
        published_free(published);
}
