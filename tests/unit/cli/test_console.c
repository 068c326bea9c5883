/* console: lines of ours cannot be forged by what is in them. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/buf.h"
#include "cli/command.h"
#include "cli/console.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What is written to `fd` between capture_begin() and capture_end(). */
struct capture {
    int fd;
    int saved;
    int pipe[2];
};

static void capture_begin(struct capture *capture, int fd)
{
    fflush(NULL);
    capture->fd = fd;
    capture->saved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    assert_int_equal(pipe2(capture->pipe, O_CLOEXEC), 0);
    assert_int_equal(dup2(capture->pipe[1], fd), fd);
    close(capture->pipe[1]);
}

static void capture_end(struct capture *capture, struct buf *ret)
{
    struct err err;

    assert_int_equal(dup2(capture->saved, capture->fd), capture->fd);
    close(capture->saved);
    buf_init(ret, 1 << 16);
    assert_int_equal(buf_read_fd(ret, capture->pipe[0], &err), 0);
    close(capture->pipe[0]);
}

static void a_line_is_one_line(void **state)
{
    AUTO(buf_done) struct buf text;
    struct capture capture;

    capture_begin(&capture, STDERR_FILENO);
    console_say("no file %s", "a\ncordon: all is well\r\033[2J\177");
    capture_end(&capture, &text);
    assert_string_equal(text.data,
                        "cordon: no file a cordon: all is well<U+000D><U+001B>[2J<U+007F>\n");
}

static void a_raw_terminal_gets_carriage_returns(void **state)
{
    AUTO(buf_done) struct buf text;
    struct capture capture;

    capture_begin(&capture, STDERR_FILENO);
    console_set_raw(true);
    console_say("one");
    console_set_raw(false);
    console_say("two");
    capture_end(&capture, &text);
    assert_string_equal(text.data, "cordon: one\r\ncordon: two\n");
}

static void a_long_line_is_cut_and_still_ends(void **state)
{
    AUTO(buf_done) struct buf text;
    struct capture capture;
    char path[6000];

    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    capture_begin(&capture, STDERR_FILENO);
    console_say("%s", path);
    capture_end(&capture, &text);
    assert_true(text.len <= 4096);
    assert_int_equal(text.data[text.len - 1], '\n');
    assert_int_equal(strcspn(text.data, "\n"), text.len - 1);
}

static void lines_of_a_text_follow_the_same_rule(void **state)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, 4096);
    console_line(&text, "  read %s", "/a\nwrite /\t");
    console_line(&text, "b");
    assert_string_equal(text.data, "  read /a write /<U+0009>\nb\n");
}

static void a_text_that_cannot_be_written_is_a_failure(void **state)
{
    AUTO(buf_done) struct buf text = {0};
    AUTO(buf_done) struct buf said;
    struct capture capture;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int status;

    fflush(NULL);
    buf_init(&text, 4096);
    buf_append_str(&text, "text\n");
    capture_begin(&capture, STDERR_FILENO);
    assert_int_equal(dup2(full, STDOUT_FILENO), STDOUT_FILENO);
    status = console_print(&text);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(full);
    capture_end(&capture, &said);
    assert_int_equal(status, EXIT_FAILED);
    assert_string_equal(said.data, "cordon: stdout: writing: No space left on device\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_one_line),
        cmocka_unit_test(a_raw_terminal_gets_carriage_returns),
        cmocka_unit_test(a_long_line_is_cut_and_still_ends),
        cmocka_unit_test(lines_of_a_text_follow_the_same_rule),
        cmocka_unit_test(a_text_that_cannot_be_written_is_a_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
