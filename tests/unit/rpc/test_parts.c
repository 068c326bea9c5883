/* The parts of a connection by themselves: outgoing queue, lines, frame heads, addresses, and the
 * writing of messages. What reads bytes of a peer is tested by fuzz/ and tests/e2e as well. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/buf.h"
#include "rpc/message.h"
#include "rpc/outbox.h"
#include "rpc/text.h"
#include "rpc/transport/address.h"
#include "rpc/transport/http.h"
#include "rpc/transport/lines.h"
#include "rpc/transport/ws.h"

#include <stdlib.h>
#include <string.h>

/* A sequence of numbers that is the same every time (Knuth's linear generator). */
static unsigned next_number(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*state >> 33);
}

static void outbox_push_some(struct outbox *outbox, uint64_t *state, uint8_t *next_byte)
{
    char bytes[3][50];
    struct iovec parts[3];
    size_t total = 0;
    size_t skip;

    for (size_t i = 0; i < 3; i++) {
        parts[i] = (struct iovec){bytes[i], next_number(state) % 50};
        total += parts[i].iov_len;
    }
    skip = next_number(state) % (total + 1);
    total = 0;
    for (size_t i = 0; i < 3; i++) /* what is skipped is no part of the sequence */
        for (size_t j = 0; j < parts[i].iov_len; j++)
            bytes[i][j] = (char)(total++ < skip ? 0xee : (*next_byte)++);
    if (next_number(state) % 2) {
        outbox_push(outbox, parts, 3, skip);
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        size_t len = parts[i].iov_len;
        size_t skipped = skip < len ? skip : len;
        char *copy = malloc(len + 1);

        memcpy(copy, bytes[i], len);
        outbox_push_take(outbox, copy, len, skipped);
        skip -= skipped;
    }
}

/* Takes some of what comes next, and checks it. */
static size_t outbox_take_some(struct outbox *outbox, uint64_t *state, uint8_t *expected)
{
    struct iovec parts[5];
    size_t count = outbox_peek(outbox, parts, 5);
    size_t available = 0;
    size_t taken;
    size_t left;

    for (size_t i = 0; i < count; i++)
        available += parts[i].iov_len;
    taken = available ? next_number(state) % (available + 1) : 0;
    left = taken;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < parts[i].iov_len && left; j++, left--)
            assert_int_equal(((uint8_t *)parts[i].iov_base)[j], (*expected)++);
    outbox_consume(outbox, taken);
    return taken;
}

static void outbox_keeps_every_byte_in_order(void **state)
{
    AUTO(outbox_done) struct outbox outbox = {0};
    uint64_t numbers = 1;
    uint8_t pushed = 0;
    uint8_t expected = 0;

    for (int i = 0; i < 20000; i++) {
        if (next_number(&numbers) % 100 < 55) {
            outbox_push_some(&outbox, &numbers, &pushed);
        } else {
            size_t before = outbox.len;
            size_t taken = outbox_take_some(&outbox, &numbers, &expected);

            assert_int_equal(outbox.len, before - taken);
        }
    }
    while (outbox.len)
        outbox_take_some(&outbox, &numbers, &expected);
    assert_int_equal(expected, pushed);
    assert_null(outbox.pieces); /* idle peers hold no memory */
}

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

static void frame_heads(void **state)
{
    static const struct {
        size_t len;
        const char *head;
        size_t head_len;
    } cases[] = {
        {0, "\x81\x00", 2},
        {125, "\x81\x7d", 2},
        {126, "\x81\x7e\x00\x7e", 4},
        {65535, "\x81\x7e\xff\xff", 4},
        {65536, "\x81\x7f\0\0\0\0\0\1\0\0", 10},
        {0x123456789a, "\x81\x7f\0\0\0\x12\x34\x56\x78\x9a", 10},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t head[WS_HEAD_MAX];

        assert_int_equal(ws_head(cases[i].len, head), cases[i].head_len);
        assert_memory_equal(head, cases[i].head, cases[i].head_len);
    }
}

static void masked_frames_come_back(void **state)
{
    static const size_t lens[] = {0, 1, 3, 4, 125, 126, 70000};

    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        uint8_t plain[WS_HEAD_MAX];
        uint8_t head[WS_HEAD_MAX];
        size_t len = lens[i];
        size_t plain_len = ws_head(len, plain);
        AUTO_FREE char *text = malloc(len + 1);

        memset(text, 'a', len);
        assert_int_equal(ws_head_masked(text, len, head), plain_len + WS_MASK_LEN);
        assert_int_equal(head[1], plain[1] | 0x80);
        head[1] = plain[1];
        assert_memory_equal(head, plain, plain_len);
        for (size_t j = 0; j < len; j++)
            assert_int_equal(text[j] ^ 'a', (char)head[plain_len + j % WS_MASK_LEN]);
    }
}

/* A connection of which the bytes come in parts of one size. */
struct incoming {
    const char *bytes;
    size_t len;
    size_t part;
    char got[64];  /* the messages, each with a ';' behind it */
    char sent[64]; /* control frames */
    size_t sent_len;
};

static ssize_t on_read(void *data, void *ret_bytes, size_t len)
{
    struct incoming *incoming = data;

    len = len < incoming->part ? len : incoming->part;
    len = len < incoming->len ? len : incoming->len;
    memcpy(ret_bytes, incoming->bytes, len);
    incoming->bytes += len;
    incoming->len -= len;
    return (ssize_t)len;
}

static void on_message(void *data, const char *text, size_t len)
{
    struct incoming *incoming = data;
    size_t at = strlen(incoming->got);

    snprintf(incoming->got + at, sizeof incoming->got - at, "%.*s;", (int)len, text);
}

static void on_control(void *data, const void *bytes, size_t len)
{
    struct incoming *incoming = data;

    assert_true(incoming->sent_len + len <= sizeof incoming->sent);
    memcpy(incoming->sent + incoming->sent_len, bytes, len);
    incoming->sent_len += len;
}

/* Masked by "\1\2\3\4"; what is in it was written by hand (RFC 6455, 5.2 and 5.3). */
static void frames_become_messages(void **state)
{
    static const struct ws_events events = {on_read, on_message, on_control};
    static const struct {
        const char *bytes;
        size_t len;
        const char *got;
        enum ws_state state;
    } cases[] = {
        {"\x81\x85\1\2\3\4igohn", 11, "hello;", WS_OPEN},
        {"\x81\x80\1\2\3\4\x82\x81\1\2\3\4y", 13, ";x;", WS_OPEN},
        /* U+00E4, torn by a fragment, with a ping between */
        {"\x01\x82\1\2\3\4`\xc1\x89\x80\1\2\3\4\x80\x82\1\2\3\4\xa5`", 22,
         "a\xc3\xa4"
         "b;",
         WS_OPEN},
        /* its end never comes */
        {"\x01\x82\1\2\3\4`\xc1\x80\x80\1\2\3\4", 14, "", WS_CLOSED_BY_US},
        {"\x81\x81\1\2\3\4\xfe", 7, "", WS_CLOSED_BY_US},
        {"\x82\x81\1\2\3\4\xfe", 7, "\xff;", WS_OPEN}, /* binary */
        {"\x80\x81\1\2\3\4`", 7, "", WS_CLOSED_BY_US}, /* continues nothing */
        {"\x81\x01"
         "a",
         3, "", WS_CLOSED_BY_US},                          /* without a mask */
        {"\x81\xfe\0\1\1\2\3\4`", 9, "", WS_CLOSED_BY_US}, /* a length in too many bytes */
        {"\xc1\x81\1\2\3\4`", 7, "", WS_CLOSED_BY_US},     /* a reserved bit */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t part = 1; part <= cases[i].len; part++) {
            struct incoming incoming = {.bytes = cases[i].bytes, .len = cases[i].len, .part = part};
            struct ws *ws = ws_new(WS_SERVER, &events, &incoming, 1000);

            assert_int_equal(ws_read(ws), cases[i].state);
            assert_string_equal(incoming.got, cases[i].got);
            ws_free(ws);
        }
    }
}

/* The mask is "\0\0\0\0", which changes nothing. */
static void control_frames_are_answered(void **state)
{
#define MASK "\0\0\0\0"
    static const struct ws_events events = {on_read, on_message, on_control};
    static const struct {
        const char *bytes;
        size_t len;
        const char *sent;
        size_t sent_len;
        enum ws_state state;
        uint16_t code;
    } cases[] = {
        {"\x89\x80" MASK, 6, "\x8a\0", 2, WS_OPEN, 0},
        {"\x89\x82" MASK "ab\x89\x81" MASK "c", 15, "\x8a\2ab\x8a\1c", 7, WS_OPEN, 0},
        {"\x8a\x81" MASK "x", 7, "", 0, WS_OPEN, 0}, /* a pong is not */
        {"\x88\x80" MASK, 6, "\x88\0", 2, WS_CLOSED_BY_PEER, 0},
        {"\x88\x81" MASK "x", 7, "\x88\0", 2, WS_CLOSED_BY_PEER, 0},
        {"\x88\x85" MASK "\3\xe8"
         "bye",
         11,
         "\x88\5\3\xe8"
         "bye",
         7, WS_CLOSED_BY_PEER, 1000},
        /* codes that may not be sent, an ill-formed reason */
        {"\x88\x82" MASK "\3\xed", 8, "\x88\2\3\xea", 4, WS_CLOSED_BY_US, 1002},
        {"\x88\x82" MASK "\0\0", 8, "\x88\2\3\xea", 4, WS_CLOSED_BY_US, 1002},
        {"\x88\x83" MASK "\3\xe8\xff", 9, "\x88\2\3\xef", 4, WS_CLOSED_BY_US, 1007},
        /* too long, a fragment, an opcode that is not known, a length with the top bit */
        {"\x89\xfe\0\x7e" MASK, 8, "\x88\2\3\xea", 4, WS_CLOSED_BY_US, 1002},
        {"\x09\x80" MASK, 6, "\x88\2\3\xea", 4, WS_CLOSED_BY_US, 1002},
        {"\x8b\x80" MASK, 6, "\x88\2\3\xea", 4, WS_CLOSED_BY_US, 1002},
        {"\x81\xff\x80\0\0\0\0\0\0\0" MASK, 14, "\x88\2\3\xea", 4, WS_CLOSED_BY_US, 1002},
        /* a frame beyond WS_FRAME_MAX */
        {"\x81\xff\0\0\0\0\1\0\0\1" MASK, 14, "\x88\2\3\xf1", 4, WS_CLOSED_BY_US, 1009},
    };
#undef MASK

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t part = 1; part <= cases[i].len; part++) {
            struct incoming incoming = {.bytes = cases[i].bytes, .len = cases[i].len, .part = part};
            struct ws *ws = ws_new(WS_SERVER, &events, &incoming, 1000);

            assert_int_equal(ws_read(ws), cases[i].state);
            assert_int_equal(ws_code_sent(ws), cases[i].code);
            assert_int_equal(incoming.sent_len, cases[i].sent_len);
            assert_memory_equal(incoming.sent, cases[i].sent, cases[i].sent_len);
            ws_free(ws);
        }
    }
}

static void what_a_server_sends_is_not_masked(void **state)
{
    static const struct ws_events events = {on_read, on_message, on_control};
    struct incoming plain = {.bytes = "\x81\x01y", .len = 3, .part = 1};
    struct incoming masked = {.bytes = "\x81\x81\1\2\3\4y", .len = 7, .part = 1};
    struct ws *ws = ws_new(WS_CLIENT, &events, &plain, 1000);

    assert_int_equal(ws_read(ws), WS_OPEN);
    assert_string_equal(plain.got, "y;");
    ws_free(ws);
    ws = ws_new(WS_CLIENT, &events, &masked, 1000);
    assert_int_equal(ws_read(ws), WS_CLOSED_BY_US);
    assert_string_equal(masked.got, "");
    ws_free(ws);
}

static void check_handshake(const char *reply, enum err_code code)
{
    AUTO_FREE char *text = strdup(reply);
    struct err err = ERR_UNTOUCHED;
    int rc = handshake_check(text, strlen(text), "dGhlIHNhbXBsZSBub25jZQ==", &err);

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
    check_handshake("HTTP/2 101 x\r\n\r\n", ERR_INVALID);
    check_handshake("HTTP/1.1 1010 x\r\n\r\n", ERR_INVALID);
    check_handshake("HTTP/1.1 10\r\n\r\n", ERR_INVALID);
#undef REPLY
#undef ACCEPT
}

static void tokens_stay_in_their_line(void **state)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, 1000);
    handshake_request("ws://[::1]:7", "KEY", "t.o-k_en", &buf);
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

static void messages_are_written_as_the_original_does(void **state)
{
    AUTO(buf_done) struct buf buf;
    AUTO_JSON json_t *id = json_string("i\"");
    AUTO_JSON json_t *data = json_pack("{s:i,s:[]}", "a", 1, "b");

    buf_init(&buf, 1000);
    assert_true(rpc_text_result(&buf, id) && rpc_text_json(&buf, data) && rpc_text_end(&buf));
    assert_string_equal(buf.data, "{\"id\":\"i\\\"\",\"result\":{\"a\":1,\"b\":[]}}");
    buf_clear(&buf);
    assert_true(rpc_text_notification(&buf, "m/n") && buf_append_str(&buf, "{\"chunk\":\"") &&
                rpc_text_base64(&buf, "\0\1\2\3", 4) && buf_append_str(&buf, "\"}") &&
                rpc_text_end(&buf));
    assert_string_equal(buf.data, "{\"method\":\"m/n\",\"params\":{\"chunk\":\"AAECAw==\"}}");
    buf_clear(&buf);
    assert_true(rpc_text_request(&buf, 5, "q") && rpc_text_json(&buf, data) && rpc_text_end(&buf));
    assert_string_equal(buf.data, "{\"id\":5,\"method\":\"q\",\"params\":{\"a\":1,\"b\":[]}}");
    buf_clear(&buf);
    assert_true(rpc_text_error(
        &buf, NULL, &(struct rpc_failure){.code = -32004, .message = "no\n", .data = data}));
    assert_string_equal(buf.data, "{\"error\":{\"code\":-32004,\"message\":\"no\\n\","
                                  "\"data\":{\"a\":1,\"b\":[]}},\"id\":-1}");
}

static void strings_are_escaped_and_made_valid(void **state)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, 1000);
    assert_true(rpc_text_string(&buf, "a\"\\\n\r\t\0\x1f\x7f\xc3\xa4", 11));
    assert_string_equal(buf.data, "\"a\\\"\\\\\\n\\r\\t\\u0000\\u001f\x7f\xc3\xa4\"");
    buf_clear(&buf);
    assert_true(rpc_text_string(&buf, "\xff\xc3", 2));
    assert_string_equal(buf.data, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    buf_clear(&buf);
    assert_true(rpc_text_string(&buf, "", 0));
    assert_string_equal(buf.data, "\"\"");
}

static void limit_of_the_buffer_is_reported(void **state)
{
    AUTO_JSON json_t *id = json_integer(1);

    const size_t whole = strlen("{\"id\":1,\"result\":\"x\\n\"}");

    for (size_t max = 0; max <= whole; max++) {
        AUTO(buf_done) struct buf buf;

        buf_init(&buf, max);
        assert_int_equal(rpc_text_result(&buf, id) && rpc_text_string(&buf, "x\n", 2) &&
                             rpc_text_end(&buf),
                         max == whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outbox_keeps_every_byte_in_order),
        cmocka_unit_test(lines_come_out_whatever_the_parts),
        cmocka_unit_test(line_without_end_is_refused_at_the_limit),
        cmocka_unit_test(frame_heads),
        cmocka_unit_test(masked_frames_come_back),
        cmocka_unit_test(frames_become_messages),
        cmocka_unit_test(control_frames_are_answered),
        cmocka_unit_test(what_a_server_sends_is_not_masked),
        cmocka_unit_test(only_the_right_handshake_is_taken),
        cmocka_unit_test(tokens_stay_in_their_line),
        cmocka_unit_test(addresses_there_and_back),
        cmocka_unit_test(messages_are_written_as_the_original_does),
        cmocka_unit_test(strings_are_escaped_and_made_valid),
        cmocka_unit_test(limit_of_the_buffer_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
