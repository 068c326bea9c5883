/* Lines, the handshake of the side that connects, and addresses. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/buf.h"
#include "rpc/peer.h"
#include "rpc/transport/http.h"
#include "rpc/transport/listener.h"

#include <stdlib.h>
#include <string.h>

static void lines_come_out_whatever_the_parts(void **state)
{
    static const char text[] = "one\n\n  \t\r\ntwo \r\n\n{\"a\":\n}\nlast without end";
    static const char *const expected[] = {"one", "two \r", "{\"a\":", "}"};

    for (size_t part = 1; part <= sizeof text; part++) {
        AUTO(rpc_lines_done) struct rpc_lines lines;
        size_t found = 0;

        rpc_lines_init(&lines, 100);
        for (size_t at = 0; at < sizeof text - 1; at += part) {
            size_t left = sizeof text - 1 - at;
            const char *line;
            size_t len;

            assert_true(rpc_lines_append(&lines, text + at, left < part ? left : part));
            while (rpc_lines_next(&lines, &line, &len)) {
                assert_int_equal(len, strlen(expected[found]));
                assert_memory_equal(line, expected[found++], len);
            }
        }
        assert_int_equal(found, 4);
    }
}

static void line_without_end_is_refused_at_the_limit(void **state)
{
    AUTO(rpc_lines_done) struct rpc_lines lines;
    const char *line;
    size_t len;

    rpc_lines_init(&lines, 10);
    assert_true(rpc_lines_append(&lines, "0123456789", 10));
    assert_false(rpc_lines_next(&lines, &line, &len));
    assert_true(rpc_lines_append(&lines, "\nab", 3)); /* it is just complete */
    assert_true(rpc_lines_next(&lines, &line, &len));
    assert_int_equal(len, 10);
    assert_false(rpc_lines_next(&lines, &line, &len));
    assert_true(rpc_lines_append(&lines, "0123456789", 10));
    assert_false(rpc_lines_next(&lines, &line, &len));
    assert_false(rpc_lines_append(&lines, "x", 1));
}

static void check_handshake(const char *reply, enum err_code code)
{
    AUTO_FREE char *text = strdup(reply);
    struct err err = ERR_UNTOUCHED;
    const struct handshake_secret none = {.token = NULL};
    int rc = handshake_check(text, strlen(text), "dGhlIHNhbXBsZSBub25jZQ==", &none, &err);

    assert_int_equal(rc, code ? -1 : 0);
    if (code)
        assert_int_equal(err.code, code);
    else
        assert_untouched(err);
}

/* The key and its answer are the example of RFC 6455, 1.3. */
static void only_the_right_handshake_is_taken(void **state)
{
#define REPLY                                                                                      \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: keep-alive, "           \
    "Upgrade\r\n"
#define ACCEPT "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
    check_handshake(REPLY ACCEPT "\r\n", ERR_NONE);
    check_handshake("HTTP/1.1 101\r\nupgrade: WebSocket\r\nconnection: upgrade\r\n" ACCEPT "\r\n",
                    ERR_NONE);
    check_handshake(REPLY "\r\n", ERR_INVALID);
    check_handshake(REPLY "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOp=\r\n\r\n",
                    ERR_INVALID);
    check_handshake(REPLY ACCEPT "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
                    ERR_INVALID);
    check_handshake(REPLY ACCEPT "Sec-WebSocket-Protocol: chat\r\n\r\n", ERR_INVALID);
    check_handshake("HTTP/1.1 101 x\r\nUpgrade: websocket\r\n" ACCEPT "\r\n", ERR_INVALID);
    check_handshake("HTTP/1.1 401 Unauthorized\r\n\r\n", ERR_FORBIDDEN);
    check_handshake("HTTP/1.1 403 Forbidden\r\n\r\n", ERR_FORBIDDEN);
    check_handshake("HTTP/1.1 503 Busy\r\n\r\n", ERR_LIMIT);
    check_handshake("HTTP/1.1 200 OK\r\n" ACCEPT "\r\n", ERR_INVALID);
    check_handshake("HTTP/1.0 403 Forbidden\r\n\r\n", ERR_FORBIDDEN); /* of an old proxy */
    check_handshake("HTTP/2 101 x\r\n\r\n", ERR_INVALID);
    check_handshake("HTTP/2.0 403 Forbidden\r\n\r\n", ERR_INVALID);
    check_handshake("HTTP/1.1 1010 x\r\n\r\n", ERR_INVALID);
    check_handshake("HTTP/1.1 10\r\n\r\n", ERR_INVALID);
#undef REPLY
#undef ACCEPT
}

static void tokens_stay_in_their_line(void **state)
{
    const struct handshake_secret secret = {.token = "t.o-k_en"};
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, 1000);
    handshake_request("ws://[::1]:7", "KEY", &secret, &buf);
    assert_string_equal(buf.data,
                        "GET / HTTP/1.1\r\nHost: [::1]:7\r\nConnection: Upgrade\r\n"
                        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Key: KEY\r\nAuthorization: Bearer t.o-k_en\r\n\r\n");
    assert_true(handshake_token_is_valid("a.b-c"));
    assert_false(handshake_token_is_valid(""));
    assert_false(handshake_token_is_valid("a\r\nX: y"));
    assert_false(handshake_token_is_valid("a b"));
    assert_false(handshake_token_is_valid("\xc3\xa4"));
}

static void addresses_there_and_back(void **state)
{
    static const struct {
        const char *text;
        const char *again;
        bool is_loopback;
    } cases[] = {
        {"ws://127.0.0.1:0", "ws://127.0.0.1:0", true},
        {"ws://127.9.9.9:65535", "ws://127.9.9.9:65535", true},
        {"ws://[::1]:80", "ws://[::1]:80", true},
        {"ws://[0:0:0:0:0:0:0:1]:80", "ws://[::1]:80", true},
        {"ws://10.0.0.1:1", "ws://10.0.0.1:1", false},
        {"ws://0.0.0.0:1", "ws://0.0.0.0:1", false},
        {"ws://[::]:1", "ws://[::]:1", false},
        {"ws://[::ffff:127.0.0.1]:1", "ws://[::ffff:127.0.0.1]:1", false},
        {"unix:/run/x y", "unix:/run/x y", true},
        {"stdio", "stdio", true},
        {"stdio://", "stdio", true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[RPC_ADDRESS_TEXT_SIZE];
        struct rpc_address address;
        struct err err = ERR_UNTOUCHED;

        assert_int_equal(rpc_address_parse(cases[i].text, &address, &err), 0);
        assert_untouched(err);
        rpc_address_format(&address, text);
        assert_string_equal(text, cases[i].again);
        assert_int_equal(rpc_address_is_loopback(&address), cases[i].is_loopback);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_out_whatever_the_parts),
        cmocka_unit_test(line_without_end_is_refused_at_the_limit),
        cmocka_unit_test(only_the_right_handshake_is_taken),
        cmocka_unit_test(tokens_stay_in_their_line),
        cmocka_unit_test(addresses_there_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
