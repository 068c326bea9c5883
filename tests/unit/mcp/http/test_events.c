/* Events: their text, their ids, and which of them are kept. And the replies that they travel in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "mcp/http/events.h"
#include "mcp/http/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void ids(void **state)
{
    static const struct {
        const char *text;
        bool is_one;
        struct event_id id;
    } cases[] = {
        {"0-0", true, {0, 0}},
        {"3-17", true, {3, 17}},
        {"999999999999999999-1", true, {999999999999999999, 1}},
        {"1000000000000000000-1", false},
        {"", false},
        {"3", false},
        {"3-", false},
        {"-3", false},
        {"3-1 ", false},
        {" 3-1", false},
        {"03-1", false},
        {"3-01", false},
        {"+3-1", false},
        {"3-1-2", false},
        {"a-1", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct event_id id = {7, 7};

        if (event_id_parse(cases[i].text, &id) != cases[i].is_one)
            fail_msg("%s", cases[i].text);
        assert_int_equal(id.stream, cases[i].is_one ? cases[i].id.stream : 7);
        assert_int_equal(id.number, cases[i].is_one ? cases[i].id.number : 7);
    }
}

static void texts(void **state)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, 100);
    assert_true(event_write(&buf, &(struct event_id){2, 0}, NULL, 0));
    assert_true(event_write(&buf, &(struct event_id){2, 1}, "{\"a\":1}", 7));
    assert_string_equal(buf.data, "id: 2-0\nretry: 1000\ndata:\n\n"
                                  "id: 2-1\nevent: message\ndata: {\"a\":1}\n\n");
    assert_false(event_write(&buf, &(struct event_id){2, 2}, "0123456789012345678901", 22));
    assert_int_equal(buf.len, 65);
    assert_int_equal(buf.data[65], 0);
    buf_clear(&buf);
    assert_true(event_write(&buf, NULL, "{}", 2));
    assert_string_equal(buf.data, "event: message\ndata: {}\n\n");
}

static void add(struct event_store *store, uint64_t stream, uint64_t number, size_t len)
{
    char *text = calloc(len + 1, 1);

    assert_non_null(text);
    memset(text, 'x', len);
    event_store_add(store, (struct event_id){stream, number}, text, len);
    free(text);
}

static bool goes_on(const struct event_store *store, uint64_t stream, uint64_t number)
{
    return event_store_goes_on(store, (struct event_id){stream, number});
}

static void kept(void **state)
{
    AUTO(event_store_done) struct event_store store = {.count = 0};
    const struct event *event;

    assert_false(goes_on(&store, 1, 0));
    event_store_add(&store, (struct event_id){1, 0}, NULL, 0);
    add(&store, 2, 0, 3);
    add(&store, 1, 1, 4);
    add(&store, 1, 2, 5);
    assert_true(goes_on(&store, 1, 0));
    assert_true(goes_on(&store, 1, 2));
    assert_false(goes_on(&store, 1, 3));
    assert_false(goes_on(&store, 3, 0));
    assert_true(goes_on(&store, 2, 0));
    assert_null(event_store_after(&store, (struct event_id){2, 0}));
    event = event_store_after(&store, (struct event_id){1, 0});
    assert_non_null(event);
    assert_int_equal(event->len, 4);
    event = event_store_after(&store, event->id);
    assert_non_null(event);
    assert_int_equal(event->len, 5);
    assert_null(event_store_after(&store, event->id));
}

/* What a client has seen is not enough where what came next is gone. */
static void too_many(void **state)
{
    AUTO(event_store_done) struct event_store store = {.count = 0};

    for (unsigned i = 0; i < EVENTS_MAX + 2; i++)
        add(&store, 1, i, 1);
    assert_int_equal(store.count, EVENTS_MAX);
    assert_false(goes_on(&store, 1, 0));
    assert_true(goes_on(&store, 1, 1));
    assert_true(goes_on(&store, 1, 2));
}

static void too_large(void **state)
{
    AUTO(event_store_done) struct event_store store = {.count = 0};

    add(&store, 1, 0, EVENTS_BYTES_MAX / 2);
    add(&store, 1, 1, EVENTS_BYTES_MAX / 2);
    assert_int_equal(store.count, 2);
    add(&store, 1, 2, 1);
    assert_int_equal(store.count, 2);
    assert_int_equal(store.bytes, EVENTS_BYTES_MAX / 2 + 1);
    add(&store, 2, 0, 2 * EVENTS_BYTES_MAX); /* would be lost to who it is for */
    assert_int_equal(store.count, 1);
    assert_true(goes_on(&store, 2, 0));
    assert_false(goes_on(&store, 1, 1));
}

static void replies(void **state)
{
    const struct reply all = {
        .status = 405, .text = "{}", .len = 2, .allow = "GET", .session = "s", .closes = true};
    const struct reply taken = {.status = 202};
    const struct reply nothing = {.status = 204};
    const struct reply stranger = {.status = 401, .text = "{}", .len = 2};
    const struct reply head = {.status = 404, .text = "{}", .len = 2, .is_to_head = true};
    AUTO(buf_done) struct buf buf;

    clock_freeze(0, 0);
    buf_init(&buf, 4096);
    assert_true(reply_write(&all, &buf));
    assert_string_equal(buf.data, "HTTP/1.1 405 Method Not Allowed\r\n"
                                  "date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
                                  "allow: GET\r\nmcp-session-id: s\r\n"
                                  "content-type: application/json\r\ncache-control: no-store\r\n"
                                  "connection: close\r\ncontent-length: 2\r\n\r\n{}");
    buf_clear(&buf);
    assert_true(reply_write(&taken, &buf));
    assert_non_null(strstr(buf.data, "202 Accepted\r\n"));
    assert_non_null(strstr(buf.data, "\r\ncontent-length: 0\r\n\r\n"));
    buf_clear(&buf);
    assert_true(reply_write(&nothing, &buf));
    assert_null(strstr(buf.data, "content-length"));
    buf_clear(&buf);
    assert_true(reply_write(&stranger, &buf));
    assert_non_null(strstr(buf.data, "\r\nwww-authenticate: Bearer\r\n"));
    buf_clear(&buf);
    assert_true(reply_write(&head, &buf));
    assert_true(str_ends(buf.data, "\r\ncontent-length: 2\r\n\r\n"));
    buf_clear(&buf);
    assert_true(reply_write_stream(NULL, true, &buf));
    assert_non_null(strstr(buf.data, "\r\ncontent-type: text/event-stream\r\n"));
    assert_non_null(strstr(buf.data, "\r\ntransfer-encoding: chunked\r\n\r\n"));
    buf_clear(&buf);
    assert_true(reply_write_stream("s", false, &buf));
    assert_null(strstr(buf.data, "chunked"));
    assert_non_null(strstr(buf.data, "\r\nmcp-session-id: s\r\n"));
    assert_non_null(strstr(buf.data, "\r\nconnection: close\r\n\r\n"));
    buf_clear(&buf);
    assert_true(reply_write_chunk("0123456789abcdefg", 17, &buf));
    assert_true(reply_write_chunk(NULL, 0, &buf));
    reply_error_text("no \"such\" thing", &buf);
    assert_string_equal(buf.data, "11\r\n0123456789abcdefg\r\n0\r\n\r\n"
                                  "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,"
                                  "\"message\":\"no \\\"such\\\" thing\"}}");
    clock_release();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids),      cmocka_unit_test(texts),     cmocka_unit_test(kept),
        cmocka_unit_test(too_many), cmocka_unit_test(too_large), cmocka_unit_test(replies),
    };

    return cmocka_run_group_tests_name("mcp/http/events", tests, NULL, NULL);
}
