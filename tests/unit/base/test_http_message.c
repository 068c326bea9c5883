/* Requests, replies and bodies: whom they are for, where they end, and what is refused because two programs could
 * read it differently. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/auto.h"
#include "base/buf.h"
#include "base/http_message.h"
#include "mutate.h"

#include <stdio.h>
#include <string.h>

static char text[16384];

static int read_request(const char *bytes, struct http_request *ret)
{
    size_t len = http_head_len(bytes, strlen(bytes));
    struct err err;

    assert_int_equal(len, strlen(bytes));
    memcpy(text, bytes, len);
    return http_request_read(text, len, ret, &err);
}

static void forms(void **state)
{
    static const struct {
        const char *line;
        enum http_form form;
        const char *authority, *path;
    } cases[] = {
        {"GET /a?b", HTTP_ORIGIN, NULL, "/a?b"},
        {"GET //x/y", HTTP_ORIGIN, NULL, "//x/y"},
        {"GET http://h/a", HTTP_ABSOLUTE, "h", "/a"},
        {"GET HTTP://h:8080?q", HTTP_ABSOLUTE, "h:8080", "?q"},
        {"GET http://h", HTTP_ABSOLUTE, "h", "/"},
        {"GET http://[::1]:80/", HTTP_ABSOLUTE, "[::1]:80", "/"},
        {"CONNECT h:443", HTTP_AUTHORITY, "h:443", "h:443"},
        {"CONNECT /h", HTTP_AUTHORITY, "/h", "/h"}, /* for the one who judges it */
        {"OPTIONS *", HTTP_ASTERISK, NULL, "*"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_request request;
        char bytes[256];

        snprintf(bytes, sizeof bytes, "%s HTTP/1.1\r\nHost: h\r\n\r\n", cases[i].line);
        assert_int_equal(read_request(bytes, &request), 0);
        assert_int_equal(request.form, cases[i].form);
        assert_string_equal(request.path, cases[i].path);
        assert_true(!request.authority == !cases[i].authority);
        if (request.authority)
            assert_string_equal(request.authority, cases[i].authority);
        assert_string_equal(request.host, "h");
    }
}

static void requests_that_are_refused(void **state)
{
    static const char *const cases[] = {
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        "GET / HTTP/1.1\r\nX: a\x85host: b\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\xc2\x85Host : b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: \xe2\x80\xa8 Content-Length: 3\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: \xe2\x80\xa9Transfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://user@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a/#b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n",
        "CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_request request;

        if (read_request(cases[i], &request) == 0)
            fail_msg("this was taken:\n%s", cases[i]);
    }
}

static void other_letters(void **state)
{
    struct http_request request;

    assert_int_equal(read_request("GET / HTTP/1.1\r\nHost: a\r\nX: \xc3\x85: b, \xc3\x85hosts: "
                                  "\xe2\x80\xa6 \xe2\x80\xa8\r\nY: \x85\r\n\r\n",
                                  &request),
                     0);
}

static void long_heads(void **state)
{
    struct http_request request;
    static char bytes[HTTP_MESSAGE_HEAD_MAX + 2];
    const size_t pad = HTTP_MESSAGE_HEAD_MAX - strlen("GET / HTTP/1.1\r\nHost: a\r\n\r\n");

    memset(bytes, 'x', sizeof bytes);
    memcpy(bytes, "GET /", 5);
    strcpy(bytes + 5 + pad, " HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(read_request(bytes, &request), 0);
    bytes[5 + pad] = 'x';
    strcpy(bytes + 6 + pad, " HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(read_request(bytes, &request), -1);
}

static void what_a_request_wants(void **state)
{
    struct http_request request;

    assert_int_equal(read_request("GET / HTTP/1.1\r\nHost: a\r\n\r\n", &request), 0);
    assert_true(request.stays && !request.wants_upgrade && !request.wants_continue);
    assert_int_equal(
        read_request("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n", &request), 0);
    assert_false(request.stays);
    assert_int_equal(read_request("GET / HTTP/1.0\r\n\r\n", &request), 0);
    assert_true(!request.stays && !request.host);
    assert_int_equal(read_request("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n"
                                  "Connection: Upgrade\r\nExpect: 100-Continue\r\n\r\n",
                                  &request),
                     0);
    assert_true(request.wants_upgrade && request.wants_continue);
}

static void looks(void **state)
{
    static const struct {
        const char *bytes;
        enum http_look look;
    } cases[] = {
        {"", HTTP_LOOK_MAYBE},
        {"G", HTTP_LOOK_MAYBE},
        {"GET / HTTP/1.1\r\n", HTTP_LOOK_YES},
        {"get\t/ http/1.1\n", HTTP_LOOK_YES},
        {"\r\n\r\nGET / HTTP/1.1", HTTP_LOOK_YES},
        {"PRI * HTTP/2.0\r\n", HTTP_LOOK_YES},
        {"GET /\r\n", HTTP_LOOK_NO},
        {"SSH-2.0-OpenSSH_9.2p1 Debian\r\n", HTTP_LOOK_NO},
        {"*1\r\n$4\r\nPING\r\n", HTTP_LOOK_NO},
        {"PING\r\n", HTTP_LOOK_NO},
        {"PING", HTTP_LOOK_MAYBE},
        {"AMQP\x01", HTTP_LOOK_NO},
        {"a\x80", HTTP_LOOK_NO},
        {"{\"a\":1}", HTTP_LOOK_NO},
        {"G{T / HTTP/1.1\r\n", HTTP_LOOK_NO}, /* no server would take that */
        {"\x16\x03\x01", HTTP_LOOK_NO},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum http_look look = http_looks_like(cases[i].bytes, strlen(cases[i].bytes));

        assert_int_equal(look, cases[i].look);
    }
}

/* --- bodies --- */

/* Given in pieces of every size: how many bytes belong to the body, -1 when it is refused. */
static long chunked_len(const char *bytes)
{
    long first = 0;

    for (size_t piece = 1; piece <= strlen(bytes); piece++) {
        struct http_body body = {.kind = HTTP_BODY_CHUNKED};
        size_t at = 0, len = strlen(bytes);
        bool is_over = false;
        long got = 0;

        while (at < len && !is_over && got >= 0) {
            size_t used, some = len - at < piece ? len - at : piece;
            struct err err;

            got = http_body_read(&body, bytes + at, some, &used, &is_over, &err) ? -1 : got;
            at += used;
        }
        got = got < 0 ? -1 : is_over ? (long)at : -2;
        if (piece == 1)
            first = got;
        assert_int_equal(got, first);
    }
    return first;
}

static void chunks(void **state)
{
    assert_int_equal(chunked_len("0\r\n\r\nGET"), 5);
    assert_int_equal(chunked_len("3\r\nabc\r\n0\r\n\r\nGET"), 13);
    assert_int_equal(chunked_len("A;x=\"y\"\r\n0123456789\r\n00\r\nX: y\r\n\r\n"), 33);
    assert_int_equal(chunked_len("3\r\nabc\r\n"), -2); /* it goes on */
    assert_int_equal(chunked_len("3\nabc\r\n"), -1);
    assert_int_equal(chunked_len("3\r\nabcd\r\n"), -1);
    assert_int_equal(chunked_len("3 \r\nabc\r\n"), -1);
    assert_int_equal(chunked_len("\r\n"), -1);
    assert_int_equal(chunked_len("-1\r\n"), -1);
    assert_int_equal(chunked_len("0x3\r\n"), -1);
    assert_int_equal(chunked_len("1000000000000000\r\n"), -1);
    assert_int_equal(chunked_len("0\r\nX: y\nz\r\n\r\n"), -1);
    assert_int_equal(chunked_len("3;\rx\r\nabc"), -1);
}

static void other_bodies(void **state)
{
    struct http_body body = {.kind = HTTP_BODY_LENGTH, .left = 5};
    size_t used;
    bool is_over;
    struct err err;

    assert_int_equal(http_body_read(&body, "abc", 3, &used, &is_over, &err), 0);
    assert_true(used == 3 && !is_over);
    assert_int_equal(http_body_read(&body, "deGET", 5, &used, &is_over, &err), 0);
    assert_true(used == 2 && is_over);
    body = (struct http_body){.kind = HTTP_BODY_NONE};
    assert_int_equal(http_body_read(&body, "GET", 3, &used, &is_over, &err), 0);
    assert_true(used == 0 && is_over);
    body = (struct http_body){.kind = HTTP_BODY_TO_END};
    assert_int_equal(http_body_read(&body, "abc", 3, &used, &is_over, &err), 0);
    assert_true(used == 3 && !is_over);
}

/* --- replies --- */

static void replies(void **state)
{
    static const struct {
        const char *to, *bytes;
        enum http_body_kind kind;
        bool stays, is_interim;
    } cases[] = {
        {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", HTTP_BODY_LENGTH, true, false},
        {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", HTTP_BODY_NONE, true, false},
        {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", HTTP_BODY_NONE, true, false},
        {"GET", "HTTP/1.1 200 OK\r\n\r\n", HTTP_BODY_TO_END, false, false},
        {"GET", "HTTP/1.1 304 x\r\nContent-Length: 3\r\n\r\n", HTTP_BODY_NONE, true, false},
        {"GET", "HTTP/1.1 100 Continue\r\n\r\n", HTTP_BODY_NONE, true, true},
        {"GET", "HTTP/1.1 101 x\r\n\r\n", HTTP_BODY_NONE, true, false},
        {"GET", "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
         HTTP_BODY_CHUNKED, false, false},
        {"GET", "HTTP/1.0 200 x\r\nContent-Length: 3\r\n\r\n", HTTP_BODY_LENGTH, false, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_reply_head reply;
        struct err err;

        strcpy(text, cases[i].bytes);
        assert_int_equal(http_reply_read(text, strlen(text), cases[i].to, &reply, &err), 0);
        assert_int_equal(reply.body.kind, cases[i].kind);
        assert_int_equal(reply.stays, cases[i].stays);
        assert_int_equal(reply.is_interim, cases[i].is_interim);
    }
}

static void replies_written_anew(void **state)
{
    static const struct {
        const char *bytes, *anew; /* NULL: refused */
    } cases[] = {
        {"HTTP/1.0 404 Not here\r\nKeep-Alive: 3\r\nX: y\r\n\r\n",
         "HTTP/1.1 404 Not here\r\nX: y\r\nConnection: close\r\n\r\n"},
        {"HTTP/1.1 200\r\n\r\n", "HTTP/1.1 200 \r\nConnection: close\r\n\r\n"},
        {"HTTP/1.1 200 \r\n\r\n", "HTTP/1.1 200 \r\nConnection: close\r\n\r\n"},
        {"HTTP/1.1 200 a\033[1mb\r\n\r\n", NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO(buf_done) struct buf anew;
        struct http_reply_head reply;
        struct err err;
        int rc;

        strcpy(text, cases[i].bytes);
        rc = http_reply_read(text, strlen(text), "GET", &reply, &err);
        assert_int_equal(rc, cases[i].anew ? 0 : -1);
        buf_init(&anew, 1024);
        if (rc == 0) {
            assert_true(http_write_reply(&reply, true, &anew));
            assert_string_equal(anew.data, cases[i].anew);
        }
    }
}

static void fields_for_the_next_hop(void **state)
{
    struct http_request request;
    AUTO(buf_done) struct buf fields;

    buf_init(&fields, 1024);
    assert_int_equal(read_request("POST / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X-Mine\r\n"
                                  "X-Mine: 1\r\nKeep-Alive: 5\r\n"
                                  "Proxy-Authorization: Basic x\r\nUpgrade: h2c\r\nTE: x\r\n"
                                  "Content-Length: 4\r\nAccept:  */*\r\n\r\n",
                                  &request),
                     0);
    assert_true(http_write_fields(&request.head, &fields));
    assert_string_equal(fields.data, "Content-Length: 4\r\nAccept: */*\r\n");
    assert_int_equal(read_request("POST / HTTP/1.1\r\nHost: a\r\nConnection: Content-Length\r\n"
                                  "Content-Length: 4\r\n\r\n",
                                  &request),
                     -1);
}

/* What is taken is for one host, and as long as it says in one place. */
static void ten_thousand_broken_ones(void **state)
{
    static const char good[] = "POST http://example.org:80/a HTTP/1.1\r\nHost: example.org:80\r\n"
                               "Content-Length: 12\r\nConnection: close\r\nAccept: */*\r\n\r\n";
    static const char chunked[] = "4;a=b\r\nabcd\r\n1f\r\n0123456789012345678901234567890\r\n0\r\n"
                                  "X: y\r\n\r\n";

    for (unsigned i = 0; i < MUTATIONS; i++) {
        uint8_t bytes[MUTATED_MAX];
        struct http_body body = {.kind = HTTP_BODY_CHUNKED};
        size_t len = mutate(good, sizeof good - 1, i, bytes), used = 0;
        size_t head = http_head_len((char *)bytes, len);
        struct http_request request;
        bool is_over;
        struct err err;

        if (head && http_request_read((char *)bytes, head, &request, &err) == 0) {
            assert_true(request.host || request.head.minor == 0);
            assert_true(request.form != HTTP_ABSOLUTE || *request.authority);
            assert_true(*request.path);
        }
        len = mutate(chunked, sizeof chunked - 1, i, bytes);
        if (http_body_read(&body, (char *)bytes, len, &used, &is_over, &err) == 0 && is_over)
            assert_memory_equal(bytes + used - 2, "\r\n", 2);
        assert_true(used <= len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms),
        cmocka_unit_test(requests_that_are_refused),
        cmocka_unit_test(other_letters),
        cmocka_unit_test(long_heads),
        cmocka_unit_test(what_a_request_wants),
        cmocka_unit_test(looks),
        cmocka_unit_test(chunks),
        cmocka_unit_test(other_bodies),
        cmocka_unit_test(replies),
        cmocka_unit_test(replies_written_anew),
        cmocka_unit_test(fields_for_the_next_hop),
        cmocka_unit_test(ten_thousand_broken_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
