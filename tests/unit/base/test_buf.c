/* buf: the limit holds, the text is always terminated, a refused append changes nothing. */
#include "support.h"

#include "base/auto.h"
#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void append_up_to_the_limit_and_not_beyond(void **state)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, 5);
    assert_true(buf_append(&buf, "abc", 3));
    assert_false(buf_append(&buf, "def", 3));
    assert_int_equal(buf.len, 3);
    assert_string_equal(buf.data, "abc");
    assert_true(buf_append_str(&buf, "de"));
    assert_string_equal(buf.data, "abcde");
    assert_true(buf_append(&buf, NULL, 0));
    assert_false(buf_append(&buf, "", 1));
    assert_int_equal(buf.len, 5);
}

static void limit_of_zero_takes_only_nothing(void **state)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, 0);
    assert_true(buf_append(&buf, NULL, 0));
    assert_string_equal(buf.data, "");
    assert_false(buf_append_str(&buf, "a"));
    assert_int_equal(buf.len, 0);
}

static void huge_request_does_not_wrap_around(void **state)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, 100);
    assert_true(buf_append_str(&buf, "abc"));
    assert_false(buf_append(&buf, "x", SIZE_MAX));
    assert_false(buf_append(&buf, "x", SIZE_MAX - 2));
    assert_string_equal(buf.data, "abc");
}

static void binary_data_and_growth(void **state)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, 100000);
    for (unsigned i = 0; i < 100000; i++) {
        unsigned char byte = (unsigned char)(i % 251);

        assert_true(buf_append(&buf, &byte, 1));
        assert_int_equal(buf.data[buf.len], '\0');
    }
    for (unsigned i = 0; i < 100000; i++)
        assert_int_equal((unsigned char)buf.data[i], i % 251);
    assert_false(buf_append(&buf, "", 1));
}

static void appendf_formats_or_leaves_alone(void **state)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, 8);
    assert_true(buf_appendf(&buf, "%d-%s", 42, "ab"));
    assert_string_equal(buf.data, "42-ab");
    assert_false(buf_appendf(&buf, "%s", "four"));
    assert_string_equal(buf.data, "42-ab");
}

static void extend_gives_room_to_fill(void **state)
{
    AUTO(buf_done) struct buf buf;
    char *room;

    buf_init(&buf, 5);
    buf_append_str(&buf, "ab");
    room = buf_extend(&buf, 3);
    assert_non_null(room);
    memcpy(room, "cde", 4); /* its NUL too */
    assert_string_equal(buf.data, "abcde");
    assert_int_equal(buf.len, 5);
    assert_null(buf_extend(&buf, 1));
    assert_non_null(buf_extend(&buf, 0));
    assert_string_equal(buf.data, "abcde");
}

static void consume_drops_the_front(void **state)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, 100);
    buf_consume(&buf, 3); /* of nothing */
    assert_int_equal(buf.len, 0);
    buf_append_str(&buf, "abcdef");
    buf_consume(&buf, 0);
    buf_consume(&buf, 2);
    assert_string_equal(buf.data, "cdef");
    buf_consume(&buf, 99);
    assert_int_equal(buf.len, 0);
    assert_string_equal(buf.data, "");
}

static void clear_keeps_the_memory_and_the_limit(void **state)
{
    AUTO(buf_done) struct buf buf;
    size_t cap;

    buf_init(&buf, 3);
    buf_clear(&buf);
    buf_append_str(&buf, "abc");
    cap = buf.cap;
    buf_clear(&buf);
    assert_int_equal(buf.cap, cap);
    assert_string_equal(buf.data, "");
    assert_false(buf_append_str(&buf, "abcd"));
}

static void take_hands_over_and_leaves_an_empty_buffer(void **state)
{
    AUTO(buf_done) struct buf buf;
    AUTO_FREE char *empty = NULL;
    AUTO_FREE char *text = NULL;

    buf_init(&buf, 3);
    empty = buf_take(&buf);
    assert_string_equal(empty, "");
    buf_append_str(&buf, "abc");
    text = buf_take(&buf);
    assert_string_equal(text, "abc");
    assert_int_equal(buf.len, 0);
    assert_null(buf.data);
    assert_true(buf_append_str(&buf, "xyz")); /* usable again, limit kept */
    assert_false(buf_append_str(&buf, "!"));
}

static void done_is_safe_twice_and_on_zero(void **state)
{
    struct buf buf = {0};

    buf_done(&buf);
    buf_init(&buf, 10);
    buf_append_str(&buf, "abc");
    buf_done(&buf);
    buf_done(&buf);
    assert_int_equal(buf.max, 10);
    assert_null(buf.data);
}

/* The read end of a pipe that holds `len` bytes and then ends. */
static int pipe_with(size_t len)
{
    int ends[2];
    char chunk[1000];

    memset(chunk, 'p', sizeof chunk);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    while (len) {
        size_t n = len < sizeof chunk ? len : sizeof chunk;

        assert_int_equal(write(ends[1], chunk, n), n);
        len -= n;
    }
    close(ends[1]);
    return ends[0];
}

static void read_fd_reads_to_the_end(void **state)
{
    AUTO(buf_done) struct buf buf;
    AUTO_CLOSE int fd = pipe_with(50000);
    struct err err = ERR_UNTOUCHED;

    buf_init(&buf, 50000);
    assert_int_equal(buf_read_fd(&buf, fd, &err), 0);
    assert_int_equal(buf.len, 50000);
    assert_untouched(err);
}

static void read_fd_of_nothing_is_no_error(void **state)
{
    AUTO(buf_done) struct buf buf;
    AUTO_CLOSE int fd = pipe_with(0);
    struct err err = ERR_UNTOUCHED;

    buf_init(&buf, 10);
    assert_int_equal(buf_read_fd(&buf, fd, &err), 0);
    assert_int_equal(buf.len, 0);
    assert_untouched(err);
}

static void read_fd_stops_at_the_limit(void **state)
{
    AUTO(buf_done) struct buf buf;
    AUTO_CLOSE int fd = pipe_with(20001);
    struct err err;

    buf_init(&buf, 20000);
    assert_int_equal(buf_read_fd(&buf, fd, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_contains(err.msg, "20000");
}

static void read_fd_reports_errno(void **state)
{
    AUTO(buf_done) struct buf buf;
    struct err err;

    buf_init(&buf, 10);
    assert_int_equal(buf_read_fd(&buf, -1, &err), -1);
    assert_int_equal(err.sys, EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_up_to_the_limit_and_not_beyond),
        cmocka_unit_test(limit_of_zero_takes_only_nothing),
        cmocka_unit_test(huge_request_does_not_wrap_around),
        cmocka_unit_test(binary_data_and_growth),
        cmocka_unit_test(appendf_formats_or_leaves_alone),
        cmocka_unit_test(extend_gives_room_to_fill),
        cmocka_unit_test(consume_drops_the_front),
        cmocka_unit_test(clear_keeps_the_memory_and_the_limit),
        cmocka_unit_test(take_hands_over_and_leaves_an_empty_buffer),
        cmocka_unit_test(done_is_safe_twice_and_on_zero),
        cmocka_unit_test(read_fd_reads_to_the_end),
        cmocka_unit_test(read_fd_of_nothing_is_no_error),
        cmocka_unit_test(read_fd_stops_at_the_limit),
        cmocka_unit_test(read_fd_reports_errno),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
