/* What comes over a connection, cut into requests (tests/cases/mcp_intake). A case is a list of streams:
 *
 *     bytes      what comes; "<N>" of "repeat" stands for so many bytes
 *     requests   ["METHOD PATH BODY"]: those that come out of it
 *     status     what is wrong with the rest; 0: nothing
 *     error      a part of what is said about that
 *
 * Each comes as a whole, byte by byte, and in pieces of seven. */
#include "../../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "mcp/http/intake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct piece {
    size_t len;
} pieces[] = {{SIZE_MAX}, {1}, {7}};

/* Takes what is whole, as a server does that lets everybody in. */
static void take_requests(struct intake *intake, json_t *requests)
{
    for (;;) {
        enum intake_state was = intake->state;
        enum intake_state state = intake_step(intake);

        if (state == INTAKE_HEAD_READ) {
            intake_take_body(intake);
        } else if (state == INTAKE_WHOLE) {
            AUTO_FREE char *text =
                alloc_strf("%s %s %s", intake->request.head.method, intake->request.path,
                           intake->body.data ? intake->body.data : "");

            json_array_append_new(requests, json_string(text));
            intake_next(intake);
        } else if (state == was) {
            return;
        }
    }
}

static void check_stream(const json_t *stream, const char *bytes, size_t len, size_t piece)
{
    AUTO_JSON json_t *requests = json_array();
    const json_t *wanted = json_object_get(stream, "requests");
    int status = (int)json_integer_value(json_object_get(stream, "status"));
    AUTO(intake_done) struct intake intake;

    intake_init(&intake);
    for (size_t at = 0; at < len;) {
        size_t room = intake_room(&intake);
        size_t some = len - at < piece ? len - at : piece;

        if (!room)
            break;
        some = some < room ? some : room;
        intake_append(&intake, bytes + at, some);
        at += some;
        take_requests(&intake, requests);
    }
    assert_json_equal(requests, wanted);
    assert_int_equal(intake.state == INTAKE_WRONG ? intake.status : 0, status);
    if (status)
        assert_contains(intake.err.msg, case_string_or(stream, "error", ""));
}

/* "repeat": {"<N>": [text, times]} */
static char *expand(const json_t *stream, size_t *ret_len)
{
    const char *text = case_string(stream, "bytes");
    json_t *repeat = json_object_get(stream, "repeat");
    const char *mark = json_object_iter_key(json_object_iter(repeat));
    const json_t *what = mark ? json_object_get(repeat, mark) : NULL;
    const char *at = mark ? strstr(text, mark) : NULL;
    struct buf buf;

    buf_init(&buf, 64 << 20);
    buf_append(&buf, text, at ? (size_t)(at - text) : strlen(text));
    for (json_int_t i = 0; at && i < json_integer_value(json_array_get(what, 1)); i++)
        buf_append_str(&buf, json_string_value(json_array_get(what, 0)));
    if (at)
        buf_append_str(&buf, at + strlen(mark));
    *ret_len = buf.len;
    return buf_take(&buf);
}

static void intake_case(void **state)
{
    const struct test_case *given = *state;
    const json_t *stream;
    size_t i;

    json_array_foreach(json_object_get(given->json, "streams"), i, stream)
    {
        static const char *const keys[] = {"bytes", "requests", "status", "error", "repeat", NULL};
        size_t len;
        AUTO_FREE char *bytes = expand(stream, &len);

        case_check_keys(stream, keys);
        for (size_t j = 0; j < sizeof pieces / sizeof *pieces; j++)
            if (len < 1 << 20 || j != 1)
                check_stream(stream, bytes, len, pieces[j].len);
    }
    assert_true(i > 0);
}

/* A request that waits for its answer keeps what comes behind it, up to a limit. */
static void ahead(void **state)
{
    static const char first[] = "GET /mcp HTTP/1.1\r\nHost: a\r\n\r\n";
    AUTO(intake_done) struct intake intake;

    intake_init(&intake);
    assert_true(intake_is_empty(&intake));
    intake_append(&intake, first, sizeof first - 1);
    assert_false(intake_is_empty(&intake));
    assert_int_equal(intake_step(&intake), INTAKE_HEAD_READ);
    assert_int_equal(intake_step(&intake), INTAKE_HEAD_READ);
    intake_take_body(&intake);
    assert_int_equal(intake_step(&intake), INTAKE_WHOLE);
    while (intake_room(&intake) >= sizeof first - 1)
        intake_append(&intake, first, sizeof first - 1);
    assert_int_equal(intake_step(&intake), INTAKE_WHOLE);
    for (size_t i = 0; i < INTAKE_AHEAD_MAX / (sizeof first - 1); i++) {
        intake_next(&intake);
        assert_int_equal(intake_step(&intake), INTAKE_HEAD_READ);
        intake_take_body(&intake);
        assert_int_equal(intake_step(&intake), INTAKE_WHOLE);
    }
    intake_next(&intake);
    assert_int_equal(intake_step(&intake), INTAKE_HEAD);
    assert_true(intake_is_empty(&intake));
}

int main(void)
{
    const struct CMUnitTest more[] = {cmocka_unit_test(ahead)};

    return cases_run("mcp_intake", intake_case, more, sizeof more / sizeof *more);
}
