/* pty: the pair and what it keeps; terminal: the user's terminal comes back on every way out. */
#include "../base/support.h"

#include "process/pty.h"
#include "process/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static struct pty open_pty(void)
{
    struct err err = ERR_UNTOUCHED;
    struct pty pty;

    assert_int_equal(pty_open((struct pty_size){0}, NULL, &pty, &err), 0);
    assert_untouched(err);
    return pty;
}

static void test_open(void **state)
{
    struct pty pty = open_pty();
    struct pty_size size = terminal_size(pty.slave);
    struct termios lines;

    assert_int_equal(size.rows, 24);
    assert_int_equal(size.columns, 80);
    assert_true(fcntl(pty.master, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(pty.slave, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(pty.master, F_GETFL) & O_NONBLOCK);
    assert_false(fcntl(pty.slave, F_GETFL) & O_NONBLOCK);
    assert_int_equal(tcgetattr(pty.slave, &lines), 0);
    assert_true(lines.c_iflag & IUTF8);
    assert_int_equal(pty_eof_byte(&pty), 4);
    pty_close(&pty);
    assert_int_equal(pty.master, -1);
    assert_int_equal(pty.slave, -1);
    pty_close(&pty);
}

static void test_settings_are_copied(void **state)
{
    struct pty first = open_pty();
    struct pty second;
    struct termios lines;
    struct err err;

    assert_int_equal(tcgetattr(first.slave, &lines), 0);
    lines.c_cc[VEOF] = 26;
    lines.c_lflag &= ~(tcflag_t)ECHO;
    assert_int_equal(pty_open((struct pty_size){5, 6}, &lines, &second, &err), 0);
    assert_int_equal(tcgetattr(second.slave, &lines), 0);
    assert_false(lines.c_lflag & ECHO);
    assert_int_equal(pty_eof_byte(&second), 26);
    assert_int_equal(terminal_size(second.slave).columns, 6);
    pty_close(&first);
    pty_close(&second);
}

static void test_resize(void **state)
{
    struct pty pty = open_pty();
    struct err err = ERR_UNTOUCHED;

    assert_int_equal(pty_resize(&pty, (struct pty_size){30, 100}, &err), 0);
    assert_int_equal(terminal_size(pty.slave).rows, 30);
    assert_int_equal(terminal_size(pty.slave).columns, 100);
    assert_untouched(err);
    pty_close(&pty);
    assert_int_equal(pty_resize(&pty, (struct pty_size){1, 1}, &err), -1);
    assert_int_equal(err.sys, EBADF);
    assert_int_equal(terminal_size(-1).rows, 0);
}

/* What was written is read before the end is reported, although hang-up shows at once. */
static void test_end_comes_after_the_rest(void **state)
{
    struct pty pty = open_pty();
    struct pollfd poll_master = {.fd = pty.master, .events = POLLIN};
    char text[64];

    assert_int_equal(read(pty.master, text, sizeof text), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(write(pty.slave, "rest\n", 5), 5);
    pty_close_slave(&pty);
    assert_int_equal(poll(&poll_master, 1, 0), 1);
    assert_true(poll_master.revents & POLLHUP);
    assert_int_equal(read(pty.master, text, sizeof text), 6);
    assert_memory_equal(text, "rest\r\n", 6);
    assert_int_equal(read(pty.master, text, sizeof text), -1);
    assert_int_equal(errno, EIO);
    pty_close(&pty);
}

/* In a child with `pty` as its controlling terminal: ready means it is in the foreground. */
static void become_session(const struct pty *pty)
{
    setsid();
    if (ioctl(pty->slave, TIOCSCTTY, 0))
        _exit(90);
}

static void test_signal_reaches_foreground(void **state)
{
    struct pty pty = open_pty();
    struct err err = ERR_UNTOUCHED;
    char byte;
    int ready[2];
    int status;
    pid_t child;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    child = fork();
    if (child == 0) {
        become_session(&pty);
        close(ready[1]);
        pause();
        _exit(91);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0);
    assert_int_equal(pty_signal(&pty, SIGINT, &err), 0);
    assert_untouched(err);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    close(ready[0]);
    pty_close(&pty);
    assert_int_equal(pty_signal(&pty, SIGINT, &err), -1);
}

/* How a program with a raw terminal ends: by a signal, or 0: by one of the calls. */
static const struct way_out {
    int signal;
    bool restores;
} ways[] = {{0, true},       {0, false},       {SIGTERM, false}, {SIGINT, false},
            {SIGHUP, false}, {SIGABRT, false}, {SIGSEGV, false}};

static _Noreturn void leave(const struct way_out *way, struct terminal *terminal)
{
    struct sigaction now;

    if (way->signal)
        raise(way->signal);
    if (!way->restores)
        exit(0);
    terminal_restore(terminal);
    terminal_restore(terminal);
    sigaction(SIGTERM, NULL, &now);
    _exit(now.sa_handler == SIG_DFL ? 0 : 94);
}

static _Noreturn void turn_raw_and_leave(const struct way_out *way, const struct pty *pty)
{
    struct terminal terminal;
    struct termios raw;
    struct err err;

    become_session(pty);
    for (int i = 1; i < 32; i++)
        signal(i, SIG_DFL); /* cmocka has handlers of its own */
    if (terminal_raw(&terminal, pty->slave, &err))
        _exit(92);
    if (tcgetattr(pty->slave, &raw) || (raw.c_lflag & (ICANON | ECHO | ISIG)))
        _exit(93);
    leave(way, &terminal);
}

static void assert_same_lines(const struct termios *a, const struct termios *b)
{
    assert_int_equal(a->c_iflag, b->c_iflag);
    assert_int_equal(a->c_oflag, b->c_oflag);
    assert_int_equal(a->c_cflag, b->c_cflag);
    assert_int_equal(a->c_lflag, b->c_lflag);
    assert_memory_equal(a->c_cc, b->c_cc, sizeof a->c_cc);
}

static void test_terminal_comes_back(void **state)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct pty pty = open_pty();
        struct termios before;
        struct termios after;
        int status;
        pid_t child;

        assert_int_equal(tcgetattr(pty.slave, &before), 0);
        child = fork();
        if (child == 0)
            turn_raw_and_leave(&ways[i], &pty);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (ways[i].signal)
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == ways[i].signal);
        else
            assert_int_equal(status, 0);
        assert_int_equal(tcgetattr(pty.slave, &after), 0);
        assert_same_lines(&before, &after);
        pty_close(&pty);
    }
}

static void test_only_terminals_turn_raw(void **state)
{
    struct terminal terminal;
    struct err err = ERR_UNTOUCHED;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    assert_int_equal(terminal_raw(&terminal, null, &err), -1);
    assert_int_equal(err.sys, ENOTTY);
    terminal_restore(&terminal);
    close(null);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_settings_are_copied),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_end_comes_after_the_rest),
        cmocka_unit_test(test_signal_reaches_foreground),
        cmocka_unit_test(test_terminal_comes_back),
        cmocka_unit_test(test_only_terminals_turn_raw),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
