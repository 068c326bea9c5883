/* Time and room of MCP over HTTP, with a clock that stands still: how long a client may take for what, how long a session
 * waits for one, and what becomes of a client that does not read. */
#include "../../base/support.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "mcp/http/connection.h"
#include "mcp/http/server.h"
#include "mcp/mcp.h"
#include "mcp/session.h"
#include "rpc/transport/auth.h"
#include "rpc/transport/listener.h"

#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define FIELDS                                                                                     \
    "Host: localhost\r\nAccept: application/json, text/event-stream\r\n"                           \
    "Content-Type: application/json\r\n"
#define INITIALIZE                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\",\"capabilities\":{}}}"
#define WAIT "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"wait\"}"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"

enum { IDLE_S = 1800 };

static struct place {
    struct loop *loop;
    struct mcp mcp;
    struct rpc_auth *auth;
    struct mcp_http *http;
    struct mcp_call *call; /* of "wait"; NULL: none */
    char session[80];      /* the field with its id */
} place;

/* --- the server --- */

static void on_cancel(void *data)
{
    place.call = NULL;
}

static void wait_for_test(struct mcp_call *call)
{
    place.call = call;
    mcp_call_on_cancel(call, on_cancel, NULL);
}

static int begin(void **state)
{
    static const struct mcp_method methods[] = {
        {.name = "wait", .eras = MCP_LEGACY, .handle = wait_for_test}, {NULL}};
    static const struct mcp_extra extra = {.methods = methods};
    const struct rpc_auth_options anybody = {.mode = RPC_AUTH_ANYBODY};
    struct mcp_http_options options = {
        .mcp = &place.mcp, .addresses_len = 1, .session_idle_ns = IDLE_S * CLOCK_NS_PER_S};
    struct rpc_address address;
    struct err err;

    clock_freeze(CLOCK_NS_PER_S, CLOCK_NS_PER_S);
    place.loop = loop_new(&err);
    place.mcp = (struct mcp){.loop = place.loop, .options = {.extra = &extra, .version = "1"}};
    assert_int_equal(rpc_auth_new(&anybody, &place.auth, &err), 0);
    assert_int_equal(rpc_address_parse_http("http://127.0.0.1:0/mcp", "/mcp", &address, &err), 0);
    options.addresses = &address;
    options.auth = place.auth;
    place.http = mcp_http_new(&options, &err);
    assert_non_null(place.http);
    return 0;
}

static int end(void **state)
{
    mcp_http_free(place.http);
    rpc_auth_free(place.auth);
    loop_free(place.loop);
    clock_release();
    assert_null(place.call);
    return 0;
}

static void pump(void)
{
    struct err err;

    for (int i = 0; i < 30; i++)
        assert_int_equal(loop_dispatch(place.loop, &err), 0);
}

/* Something may be on its way between two sockets for a while. */
static void wait_a_little(void)
{
    struct err err;

    loop_wait(place.loop, 2, &err);
    pump();
}

static void pass_ms(uint64_t ms)
{
    clock_advance(ms * CLOCK_NS_PER_MS);
    mcp_http_tick(place.http);
    pump();
}

/* --- clients --- */

static int dial(int room)
{
    const size_t before = place.http->connections_len;
    struct rpc_address address;
    struct err err;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(rpc_address_parse_http(mcp_http_url(place.http, 0), "/mcp", &address, &err),
                     0);
    if (room)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    assert_int_equal(connect(fd, &address.ip.any, rpc_address_ip_len(&address)), 0);
    while (place.http->connections_len == before)
        wait_a_little();
    return fd;
}

static void tell(int fd, const char *text)
{
    int left = 1;

    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    for (; left; wait_a_little()) /* tcp(7): what the other end does not have yet */
        assert_int_equal(ioctl(fd, SIOCOUTQ, &left), 0);
    pump();
}

static void post(int fd, const char *body)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, 4096);
    buf_appendf(&text, "POST /mcp HTTP/1.1\r\n" FIELDS "%sContent-Length: %zu\r\n\r\n%s",
                place.session, strlen(body), body);
    tell(fd, text.data);
}

static void listen_at(int fd, const char *last)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, 4096);
    buf_appendf(&text, "GET /mcp HTTP/1.1\r\n" FIELDS "%s%s\r\n", place.session, last);
    tell(fd, text.data);
}

/* Waits for this text from the server. */
static const char *hears(int fd, const char *part)
{
    static char text[8192];
    size_t len = 0;

    for (*text = '\0'; !strstr(text, part); wait_a_little()) {
        ssize_t n = recv(fd, text + len, sizeof text - 1 - len, MSG_DONTWAIT);

        if (n == 0)
            fail_msg("the end came before \"%s\": %s", part, text);
        len += n > 0 ? (size_t)n : 0;
        text[len] = '\0';
    }
    return text;
}

static bool is_silent(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
}

/* Waits for the end. */
static void ends_without(int fd, const char *part)
{
    static char bytes[1 << 16];

    for (ssize_t n = 1; n != 0;) {
        n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        assert_null(n > 0 ? memmem(bytes, (size_t)n, part, strlen(part)) : NULL);
        if (n < 0)
            wait_a_little();
        else
            pump();
    }
}

static void ends(int fd)
{
    ends_without(fd, "no such words");
}

static int connect_session(void)
{
    int fd = dial(0);
    const char *id;

    *place.session = '\0';
    post(fd, INITIALIZE);
    id = strstr(hears(fd, "\"instructions\":"), "mcp-session-id: ");
    assert_non_null(id);
    snprintf(place.session, sizeof place.session, "%.50s", id);
    assert_int_equal(strlen(place.session), strlen("mcp-session-id: \r\n") + 32);
    return fd;
}

/* --- the tests --- */

static void who_says_nothing_is_closed(void **state)
{
    AUTO_CLOSE int silent = dial(0);
    AUTO_CLOSE int idle = connect_session();

    pass_ms(9999);
    assert_true(is_silent(silent));
    pass_ms(1);
    ends(silent);
    pass_ms(64999);
    assert_true(is_silent(idle));
    pass_ms(1);
    ends(idle);
}

/* A byte now and then is not enough. */
static void a_slow_request_is_refused(void **state)
{
    AUTO_CLOSE int head = dial(0);
    AUTO_CLOSE int body = connect_session();

    tell(head, "POST /mcp HTTP/1.1\r\n");
    tell(body, "POST /mcp HTTP/1.1\r\n" FIELDS "Content-Length: 100\r\n\r\n");
    for (int i = 0; i < 10; i++) {
        assert_true(is_silent(head));
        tell(head, "X");
        pass_ms(1000);
    }
    hears(head, "408 Request Timeout");
    ends(head);
    for (int i = 0; i < 20; i++) {
        assert_true(is_silent(body));
        tell(body, " ");
        pass_ms(1000);
    }
    hears(body, "408 Request Timeout");
    ends(body);
}

static void a_stream_shows_signs_of_life(void **state)
{
    AUTO_CLOSE int asking = connect_session();
    AUTO_CLOSE int listening = dial(0);

    listen_at(listening, "");
    hears(listening, "id: 0-0\nretry: 1000\ndata:\n\n");
    for (int i = 0; i < 3; i++) {
        pass_ms(14999);
        assert_true(is_silent(listening));
        pass_ms(1);
        hears(listening, "3\r\n:\n\n\r\n");
    }
    pass_ms(10000);
    post(asking, WAIT);
    hears(asking, "data:\n\n");
    mcp_call_log(place.call, MCP_LEVEL_ERROR, "x", json_string("y"));
    pass_ms(10000);
    hears(asking, "\"y\"");
    assert_true(is_silent(asking));
}

static void a_session_ends_when_nobody_wants_it(void **state)
{
    close(connect_session());
    pass_ms(IDLE_S * 1000 - 1);
    {
        AUTO_CLOSE int other = dial(0);

        post(other, PING); /* which counts */
        hears(other, "\"result\":{}");
    }
    pass_ms(IDLE_S * 1000 - 1);
    {
        AUTO_CLOSE int other = dial(0);

        post(other, WAIT);
        assert_non_null(place.call);
    }
    pump();
    pass_ms(10 * IDLE_S * 1000); /* a request is open, though nobody listens */
    assert_non_null(place.call);
    mcp_call_result(place.call, json_object());
    place.call = NULL;
    {
        AUTO_CLOSE int other = dial(0);

        listen_at(other, "");
        hears(other, "data:\n\n");
        pass_ms(10 * IDLE_S * 1000);
    }
    pump();
    pass_ms(IDLE_S * 1000 - 1);
    {
        AUTO_CLOSE int other = dial(0);

        post(other, PING);
        hears(other, "\"result\":{}");
        pass_ms(IDLE_S * 1000);
    }
    {
        AUTO_CLOSE int other = dial(0);

        post(other, PING);
        hears(other, "404 Not Found");
    }
}

/* --- who does not read --- */

enum { ROOM = 4096, PIECE = 64 << 10 };

static json_t *piece(void)
{
    static char text[PIECE + 1];

    memset(text, 'x', PIECE);
    return json_string(text);
}

/* Until it is full for messages that may be lost. Returns how many went. */
static size_t fill(void)
{
    const struct mcp_sender *sender = &place.call->session->sender;
    size_t count = 0;

    for (; !sender->is_full(sender->context, place.call->stream); count++)
        mcp_call_log(place.call, MCP_LEVEL_ERROR, "x", piece());
    return count;
}

static void who_does_not_read_loses_what_may_be_lost(void **state)
{
    const int first = connect_session();
    AUTO_CLOSE int slow = dial(ROOM);
    size_t count;

    close(first);
    post(slow, WAIT);
    count = fill();
    assert_true(count * PIECE >= 1 << 20 && count * PIECE < 8 << 20); /* the kernel has some */
    mcp_call_log(place.call, MCP_LEVEL_ERROR, "x", json_string("lost"));
    mcp_call_result(place.call, json_string("the answer")); /* never is */
    place.call = NULL;
    pass_ms(60000); /* whoever takes nothing for a minute goes */
    ends_without(slow, "the answer");
    {
        AUTO_CLOSE int back = dial(1 << 22);
        char last[64];

        snprintf(last, sizeof last, "Last-Event-ID: 2-%zu\r\n", count);
        listen_at(back, last);
        hears(back, "\"result\":\"the answer\"");
    }
}

static void ignore(void *data, const struct mcp_message *message)
{
}

/* Questions are not left out; but a client does not get to have any amount queued. */
static void who_does_not_read_at_all_is_closed(void **state)
{
    const int first = connect_session();
    AUTO_CLOSE int slow = dial(ROOM);

    close(first);
    post(slow, WAIT);
    for (size_t i = 0; i < MCP_QUESTIONS_MAX; i++) /* 16 MiB in all */
        mcp_session_ask(place.call->session, &(struct mcp_question){.call = place.call,
                                                                    .method = "x",
                                                                    .params = piece(),
                                                                    .on_answer = ignore});
    ends(slow);
    assert_non_null(place.call); /* which is not cancelled by that */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_says_nothing_is_closed, begin, end),
        cmocka_unit_test_setup_teardown(a_slow_request_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_stream_shows_signs_of_life, begin, end),
        cmocka_unit_test_setup_teardown(a_session_ends_when_nobody_wants_it, begin, end),
        cmocka_unit_test_setup_teardown(who_does_not_read_loses_what_may_be_lost, begin, end),
        cmocka_unit_test_setup_teardown(who_does_not_read_at_all_is_closed, begin, end),
    };

    return cmocka_run_group_tests_name("mcp/http/server", tests, NULL, NULL);
}
