/* job_run: what signals to us, the user's terminal and its window do to the command. */
#include "shot.h"

#include "process/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_term_to_us_cancels(void **state)
{
    static const int signals[] = {SIGTERM, SIGHUP};

    for (size_t i = 0; i < 2; i++) {
        struct shot shot;

        shot_init(&shot, "echo ready; kill -STOP $$");
        shot.raises = signals[i];
        shot.options.signals = JOB_RUN_SIGNALS_HANDLE;
        shot.options.kill_after_ns = FAR_NS;
        shot_run(&shot);
        assert_end(&shot, JOB_RUN_CANCELLED, -1, SIGTERM, 128 + signals[i]);
        assert_int_equal(shot.result.cancel_signal, signals[i]);
        shot_done(&shot);
    }
}

/* The command decides what an interrupt means. */
static void test_interrupt_is_passed_on(void **state)
{
    static const int signals[] = {SIGINT, SIGQUIT};

    for (size_t i = 0; i < 2; i++) {
        struct shot shot;

        shot_init(&shot, "trap 'exit 9' INT QUIT; echo ready; while :; do :; done");
        shot.raises = signals[i];
        shot.options.signals = JOB_RUN_SIGNALS_HANDLE;
        shot_run(&shot);
        assert_end(&shot, JOB_RUN_EXITED, 9, 0, 9);
        shot_done(&shot);
    }
}

static void test_ignored_signals_stay_ignored(void **state)
{
    struct shot shot;

    signal(SIGHUP, SIG_IGN);
    shot_init(&shot, "echo ready; exit 5");
    shot.raises = SIGHUP;
    shot.options.signals = JOB_RUN_SIGNALS_HANDLE;
    shot_run(&shot);
    signal(SIGHUP, SIG_DFL);
    assert_end(&shot, JOB_RUN_EXITED, 5, 0, 5);
    shot_done(&shot);
}

/* Ctrl-Z stops us after the command, and going on goes on with both. */
static void test_suspend(void **state)
{
    char *dir = support_scratch_new();
    char script[256];
    char *gate = NULL;
    int status;
    pid_t child;

    assert_true(asprintf(&gate, "%s/gate", dir) > 0);
    assert_int_equal(mkfifo(gate, 0600), 0);
    snprintf(script, sizeof script, "echo ready; cat %s; exit 6", gate);
    child = fork();
    if (child == 0) {
        struct shot shot;

        setpgid(0, 0); /* a group that its parent could continue */
        shot_init(&shot, script);
        shot.raises = SIGTSTP;
        shot.opens = gate;
        shot.options.signals = JOB_RUN_SIGNALS_HANDLE;
        shot_run(&shot);
        _exit(job_result_exit_code(&shot.result));
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    kill(child, SIGCONT);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 6);
    free(gate);
    support_scratch_remove(dir);
}

static void test_tty_without_terminal(void **state)
{
    struct shot shot;

    shot_init(&shot, "test -t 1 && stty size; cat");
    shot.options.stdio = PROCESS_TTY;
    shot.options.size = (struct pty_size){40, 120};
    shot.options.input = JOB_RUN_INPUT_DATA;
    shot.options.input_data = "typed";
    shot.options.input_len = 5;
    shot_run(&shot);
    assert_end(&shot, JOB_RUN_EXITED, 0, 0, 0);
    assert_text_has(&shot, "40 120");
    assert_text_has(&shot, "typed");
    shot_done(&shot);
}

/* `cordon run` at a terminal, seen from that terminal. */
static _Noreturn void be_program_at(int slave, const char *script)
{
    struct shot shot;

    setsid();
    if (ioctl(slave, TIOCSCTTY, 0))
        _exit(90);
    shot_init(&shot, script);
    shot.options.stdio = PROCESS_TTY;
    shot.options.input = JOB_RUN_INPUT_FD;
    shot.options.input_fd = slave;
    shot.options.terminal_fd = slave;
    shot.options.signals = JOB_RUN_SIGNALS_HANDLE;
    shot.shows_on = slave;
    shot_run(&shot);
    _exit(job_result_exit_code(&shot.result));
}

/* Reads what the program shows until `part` has come. */
static void read_until(int master, struct buf *text, const char *part)
{
    struct pollfd wait = {.fd = master, .events = POLLIN};
    char chunk[4096];

    while (!text->data || !strstr(text->data, part)) {
        ssize_t n = poll(&wait, 1, -1) == 1 ? read(master, chunk, sizeof chunk) : -1;

        if (n > 0)
            assert_true(buf_append(text, chunk, (size_t)n));
        else if (n == 0 || errno != EAGAIN)
            fail_msg("ended without '%s': '%s'", part, text->data);
    }
}

static void assert_same_lines(int fd, const struct termios *before)
{
    struct termios after;

    assert_int_equal(tcgetattr(fd, &after), 0);
    assert_int_equal(before->c_lflag, after.c_lflag);
    assert_int_equal(before->c_iflag, after.c_iflag);
    assert_int_equal(before->c_oflag, after.c_oflag);
}

/* Keys go to the command, also those that would end us; its window is as large as ours and follows;
 * the terminal is as it was after. */
static void test_at_a_terminal(void **state)
{
    struct termios before;
    struct pty pty;
    struct buf text;
    struct err err;
    int status;
    pid_t child;

    buf_init(&text, 1 << 20);
    assert_int_equal(pty_open((struct pty_size){33, 99}, NULL, &pty, &err), 0);
    assert_int_equal(tcgetattr(pty.slave, &before), 0);
    child = fork();
    if (child == 0) {
        close(pty.master);
        be_program_at(pty.slave, "trap 'echo interrupted; exit 8' INT; trap 'stty size' WINCH;"
                                 "stty size; read x; echo got $x; while :; do :; done");
    }
    read_until(pty.master, &text, "33 99");
    assert_int_equal(write(pty.master, "word\r", 5), 5);
    read_until(pty.master, &text, "got word");
    assert_int_equal(pty_resize(&pty, (struct pty_size){11, 22}, &err), 0);
    read_until(pty.master, &text, "11 22");
    assert_int_equal(write(pty.master, "\003", 1), 1);
    read_until(pty.master, &text, "interrupted");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 8);
    assert_same_lines(pty.slave, &before);
    pty_close(&pty);
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_term_to_us_cancels),
        cmocka_unit_test(test_interrupt_is_passed_on),
        cmocka_unit_test(test_ignored_signals_stay_ignored),
        cmocka_unit_test(test_suspend),
        cmocka_unit_test(test_tty_without_terminal),
        cmocka_unit_test(test_at_a_terminal),
    };
    static const int taken[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

    /* a shell ignores some of them for what it starts in the background */
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        signal(taken[i], SIG_DFL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
