/* WebSocket frames: what comes in, what is answered, heads and masks of what goes out. fuzz_ws and
 * tests/e2e/test_rpc.py have the rest. */
#include "../base/support.h"

#include "base/auto.h"
#include "rpc/transport/ws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame_heads),
        cmocka_unit_test(masked_frames_come_back),
        cmocka_unit_test(frames_become_messages),
        cmocka_unit_test(control_frames_are_answered),
        cmocka_unit_test(what_a_server_sends_is_not_masked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
