/* See hub_fixture.h. */
#include "hub_fixture.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "rpc/transport/auth.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void fixture_on_open(void *data, struct rpc_peer *peer)
{
    struct fixture *f = data;

    f->peer = peer;
    f->is_opened = true;
}

static void on_message(void *data, struct rpc_peer *peer, struct rpc_message *message)
{
    struct fixture *f = data;

    rpc_message_done(&f->message);
    f->message = rpc_message_take(message);
    f->has_message = true;
    f->messages++;
}

static void on_room(void *data, struct rpc_peer *peer)
{
    struct fixture *f = data;

    f->has_room = true;
}

void fixture_on_closed(void *data, struct rpc_peer *peer, const char *why)
{
    struct fixture *f = data;

    f->is_closed = true;
    f->was_answered_before_close = f->is_answered;
    snprintf(f->why, sizeof f->why, "%s", why);
}

static void on_idle(void *data)
{
    struct fixture *f = data;

    f->is_idle = true;
}

static const struct rpc_handlers handlers = {.on_open = fixture_on_open,
                                             .on_message = on_message,
                                             .on_room = on_room,
                                             .on_closed = fixture_on_closed,
                                             .on_idle = on_idle};

void open_hub(struct fixture *f, const struct rpc_hub_options *options)
{
    struct rpc_address address;
    struct err err;

    f->hub = rpc_hub_new(f->loop, options);
    assert_int_equal(rpc_address_parse("ws://127.0.0.1:0", &address, &err), 0);
    f->listener = rpc_hub_listen(f->hub, &address, &err);
    assert_non_null(f->listener);
}

int fixture_setup(void **state)
{
    struct fixture *f = alloc_zero(1, sizeof *f);
    const struct rpc_auth_options anybody = {.mode = RPC_AUTH_ANYBODY};
    struct rpc_hub_options options = {.handlers = &handlers, .data = f};
    struct err err;

    clock_freeze(1000 * CLOCK_NS_PER_S, 0);
    f->loop = loop_new(&err);
    assert_int_equal(rpc_auth_new(&anybody, &f->auth, &err), 0);
    options.auth = f->auth;
    open_hub(f, &options);
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;

    rpc_message_done(&f->message);
    rpc_hub_free(f->hub);
    rpc_auth_free(f->auth);
    loop_free(f->loop);
    free(f);
    clock_release();
    return 0;
}

void wait_for(struct fixture *f, bool *flag)
{
    struct err err;

    assert_int_equal(loop_run(f->loop, flag, &err), 0);
    *flag = false;
}

static void readable(void *data, int fd, unsigned ready)
{
    *(bool *)data = true;
}

size_t receive(struct fixture *f, int fd, char *ret, size_t size)
{
    struct err err;
    struct loop_watch *watch =
        loop_watch_new(f->loop, fd, LOOP_READ, readable, &f->is_readable, &err);
    ssize_t n;

    assert_non_null(watch);
    wait_for(f, &f->is_readable);
    loop_watch_free(watch);
    n = recv(fd, ret, size - 1, 0);
    ret[n < 0 ? 0 : n] = '\0';
    return n < 0 ? 0 : (size_t)n;
}

void later(struct fixture *f, uint64_t ms)
{
    clock_advance(ms * CLOCK_NS_PER_MS);
    rpc_hub_tick(f->hub);
}

int dial(struct fixture *f)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_port = htons((uint16_t)atoi(strrchr(rpc_listener_url(f->listener), ':') + 1));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

void put(int fd, const void *data, size_t len)
{
    assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), len);
}

int dial_ws(struct fixture *f)
{
    static const char head[] = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\n"
                               "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    int fd = dial(f);
    char reply[1000];

    put(fd, head, sizeof head - 1);
    receive(f, fd, reply, sizeof reply);
    assert_contains(reply, " 101 ");
    f->is_opened = false;
    return fd;
}

int attach(struct fixture *f)
{
    struct err err;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_non_null(rpc_hub_attach(f->hub, ends[0], ends[0], &err));
    wait_for(f, &f->is_opened);
    return ends[1];
}

void put_line(int fd, const char *line)
{
    put(fd, line, strlen(line));
    put(fd, "\n", 1);
}

void assert_ping(struct fixture *f, int fd)
{
    char got[10];

    assert_int_equal(receive(f, fd, got, sizeof got), 2);
    assert_memory_equal(got, "\x89\x00", 2);
}

void assert_nothing_to_read(int fd)
{
    char byte;

    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
}

void later_exactly(struct fixture *f, int fd, uint64_t ms)
{
    later(f, ms - 1);
    assert_nothing_to_read(fd);
    later(f, 1);
}

void wait_for_bytes(struct fixture *f, uint64_t bytes_in)
{
    struct rpc_stats stats;
    struct err err;

    do {
        assert_int_equal(loop_dispatch(f->loop, &err), 0);
        rpc_hub_stats(f->hub, &stats);
    } while (stats.bytes_in < bytes_in);
}
