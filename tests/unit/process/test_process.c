/* process: one command by pipes, PTY or given descriptors, against a sandbox without layers. */
#include "fake_sandbox.h"
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_exit_code_and_streams(void **state)
{
    struct run run;

    run_init(&run);
    run_shell(&run, "echo out; echo err >&2; exit 7");
    assert_int_equal(run.end.how, PROCESS_EXITED);
    assert_int_equal(run.end.code, 7);
    assert_int_equal(run.started, 1);
    assert_string_equal(run_text(&run, STREAM_STDOUT), "out\n");
    assert_string_equal(run_text(&run, STREAM_STDERR), "err\n");
    assert_int_equal(run.end.output_bytes, 8);
    assert_true(run.end.usage_known);
    assert_true(run.end.usage.ru_maxrss > 0);
    assert_true(run.end.ended_ns >= run.end.started_ns);
    assert_false(run.end.drain_cut);
    assert_false(process_is_running(run.process));
    run_done(&run);
}

static void test_death_by_signal(void **state)
{
    struct run run;

    run_init(&run);
    run_shell(&run, "echo before; kill -USR1 $$");
    assert_int_equal(run.end.how, PROCESS_SIGNALED);
    assert_int_equal(run.end.signal, SIGUSR1);
    assert_string_equal(run_text(&run, STREAM_STDOUT), "before\n");
    run_done(&run);
}

static void check_failure(const char *program, const char *cwd, enum launch_stage stage, int sys)
{
    char *const argv[] = {(char *)program, NULL};
    struct run run;

    run_init(&run);
    run.options.argv = argv;
    run.options.cwd = cwd;
    run_start(&run, NULL);
    run_until_end(&run);
    assert_int_equal(run.end.how, PROCESS_FAILED_TO_START);
    assert_int_equal(run.end.stage, stage);
    assert_int_equal(run.end.failure.sys, sys);
    assert_int_equal(run.started, 0);
    run_done(&run);
}

static void test_cannot_execute(void **state)
{
    check_failure("/does/not/exist", "/", LAUNCH_STAGE_EXEC, ENOENT);
    check_failure("/etc/passwd", "/", LAUNCH_STAGE_EXEC, EACCES);
    check_failure("true", "/does/not/exist", LAUNCH_STAGE_CWD, ENOENT);
}

static void test_launcher_fails(void **state)
{
    char *const argv[] = {(char *)"true", NULL};
    struct err err = ERR_UNTOUCHED;
    struct run run;

    run_init(&run);
    fake.breaks_setup = true;
    run_shell(&run, "true");
    assert_int_equal(run.end.how, PROCESS_FAILED_TO_START);
    assert_int_equal(run.end.stage, LAUNCH_STAGE_SANDBOX);
    run_done(&run);

    run_init(&run);
    fake.dies_early = true;
    run_shell(&run, "true");
    assert_int_equal(run.end.how, PROCESS_FAILED_TO_START);
    assert_contains(run.end.failure.msg, "launcher died");
    assert_false(run.end.usage_known);
    run_done(&run);

    run_init(&run);
    fake.fails = true;
    run.options.argv = argv;
    assert_null(process_start(&run.options, &err));
    assert_int_equal(err.code, ERR_UNSUPPORTED);
    fake.launches = 0;
    run_done(&run);
}

static void test_init_killed_from_outside(void **state)
{
    struct run run;

    run_init(&run);
    run.options.input = PROCESS_STDIN_PIPE;
    run_start(&run, "echo ready; read x");
    run_until_text(&run, "ready");
    run_until_started(&run);
    kill(fake.init, SIGKILL);
    /* the fake has no pid namespace: its command only sees its input end */
    process_close_input(run.process);
    run_until_end(&run);
    assert_int_equal(run.end.how, PROCESS_SIGNALED);
    assert_int_equal(run.end.signal, SIGKILL);
    assert_false(run.end.usage_known);
    run_done(&run);
}

static const struct launch_fact facts[] = {
    {.operation = FACT_CREATE, .path = "/etc/x", .program = "touch", .error = EROFS},
    {.operation = FACT_WRITE, .path = "/etc/y", .program = "sed", .error = EROFS},
};

/* As they come, while the command runs, and whatever it makes of them. */
static void test_facts(void **state)
{
    struct gate gate;
    struct run run;
    char script[256];

    gate_init(&gate);
    gate_script(&gate, script, sizeof script, "cat GATE");
    run_init(&run);
    fake.has_guard = true;
    fake.facts = facts;
    fake.facts_len = 2;
    run_start(&run, script);
    assert_true(process_has_facts(run.process));
    run_until_fact(&run, 2);
    assert_int_equal(run.ends, 0);
    gate_open(&gate);
    run_until_end(&run);
    assert_int_equal(run.facts, 2);
    assert_int_equal(run.end.how, PROCESS_EXITED);
    assert_int_equal(run.end.code, 0);
    run_done(&run);
    gate_done(&gate);
}

static void test_no_guard(void **state)
{
    struct run run;

    run_init(&run);
    fake.facts = facts;
    fake.facts_len = 2;
    run_shell(&run, "exit 3");
    assert_int_equal(run.facts, 0);
    assert_int_equal(run.end.code, 3);
    assert_false(process_has_facts(run.process));
    run_done(&run);
}

/* Without its guard a command is ended, with everything that it started, and the reason is said. */
static void test_guard_dies(void **state)
{
    struct run run;

    run_init(&run);
    fake.has_guard = fake.guard_dies = true;
    fake.facts = facts;
    fake.facts_len = 1;
    run_shell(&run, "echo before; sleep 1000 & exec sleep 1000");
    assert_int_equal(run.facts, 1);
    assert_int_equal(run.end.how, PROCESS_FAILED_TO_START);
    assert_int_equal(run.end.stage, LAUNCH_STAGE_SANDBOX);
    assert_contains(run.end.failure.msg, "the guard of the sandbox died");
    run_done(&run);
}

static void test_no_input(void **state)
{
    struct run run;

    run_init(&run);
    run_shell(&run, "cat; echo end");
    assert_string_equal(run_text(&run, STREAM_STDOUT), "end\n");
    assert_int_equal(process_write(run.process, "x", 1), 1);
    run_done(&run);
}

/* More than queue and pipes hold, in pieces as large as are taken. */
static void test_input_with_backpressure(void **state)
{
    const size_t total = (size_t)4 << 20;
    char *data = malloc(total);
    size_t done = 0;
    struct run run;

    for (size_t i = 0; i < total; i++)
        data[i] = (char)('a' + i % 23);
    run_init(&run);
    run.options.input = PROCESS_STDIN_PIPE;
    run_start(&run, "cat");
    while (done < total) {
        struct err err;

        done += process_write(run.process, data + done, total - done);
        run.has_come = done == total;
        assert_int_equal(loop_run(run.loop, &run.has_come, &err), 0);
    }
    process_close_input(run.process);
    run_until_end(&run);
    assert_true(run.room > 1);
    assert_int_equal(run.end.code, 0);
    assert_emitted(run_text(&run, STREAM_STDOUT), run.out[STREAM_STDOUT].len, total);
    free(data);
    run_done(&run);
}

/* Writing to a closed stdin drops the input, says so once, and raises no SIGPIPE. */
static void test_command_closes_input(void **state)
{
    char script[512];
    struct gate gate;
    struct run run;

    gate_init(&gate);
    run_init(&run);
    run.options.input = PROCESS_STDIN_PIPE;
    gate_script(&gate, script, sizeof script, "exec 0<&-; echo closed; cat GATE; echo woken");
    run_start(&run, script);
    run_until_text(&run, "closed");
    run_until_started(&run); /* its init does not hold the pipe any more either */
    assert_int_equal(process_write(run.process, "lost", 4), 4);
    while (!run.closed) {
        struct err err;

        run.has_come = false;
        assert_int_equal(loop_run(run.loop, &run.has_come, &err), 0);
    }
    assert_int_equal(process_write(run.process, "dropped", 7), 7);
    gate_open(&gate);
    run_until_end(&run);
    assert_int_equal(run.closed, 1);
    assert_int_equal(run.room, 0);
    assert_contains(run_text(&run, STREAM_STDOUT), "woken");
    run_done(&run);
    gate_done(&gate);
}

static void test_terminal_is_one(void **state)
{
    struct run run;

    run_init(&run);
    run.options.stdio = PROCESS_TTY;
    run_shell(&run,
              "test -t 0 && test -t 1 && test -t 2 && stty size && echo x >/dev/tty && tty >&2");
    assert_int_equal(run.end.code, 0);
    assert_contains(run_text(&run, STREAM_STDOUT), "24 80\r\nx\r\n/dev/pts/");
    assert_int_equal(run.out[STREAM_STDERR].len, 0);
    run_done(&run);
}

static void test_terminal_echo_and_eof(void **state)
{
    struct run run;

    run_init(&run);
    run.options.stdio = PROCESS_TTY;
    run_start(&run, "cat; echo end");
    process_write(run.process, "hello\n", 6);
    run_until_text(&run, "hello\r\nhello\r\n"); /* the terminal's echo, then cat's */
    process_write(run.process, "tail", 4);
    process_close_input(run.process); /* behind a begun line: takes two */
    run_until_end(&run);
    assert_int_equal(run.end.code, 0);
    assert_contains(run_text(&run, STREAM_STDOUT), "tail");
    assert_contains(run_text(&run, STREAM_STDOUT), "end\r\n");
    run_done(&run);
}

static void test_terminal_resize(void **state)
{
    struct err err = ERR_UNTOUCHED;
    struct run run;

    run_init(&run);
    run.options.stdio = PROCESS_TTY;
    run.options.size = (struct pty_size){.rows = 10, .columns = 20};
    run_start(&run,
              "trap 'stty size; exit 3' WINCH; stty size; echo ready; while :; do read x; done");
    run_until_text(&run, "ready");
    assert_contains(run_text(&run, STREAM_STDOUT), "10 20");
    assert_int_equal(process_resize(run.process, (struct pty_size){50, 132}, &err), 0);
    process_write(run.process, "\n", 1);
    run_until_end(&run);
    assert_int_equal(run.end.code, 3);
    assert_contains(run_text(&run, STREAM_STDOUT), "50 132");
    assert_int_equal(process_resize(run.process, (struct pty_size){5, 5}, &err), 0);
    assert_untouched(err);
    run_done(&run);
}

static void test_no_terminal_to_resize(void **state)
{
    struct err err;
    struct run run;

    run_init(&run);
    run.options.input = PROCESS_STDIN_PIPE;
    run_start(&run, "cat");
    assert_int_equal(process_resize(run.process, (struct pty_size){5, 5}, &err), -1);
    assert_int_equal(err.code, ERR_UNSUPPORTED);
    process_close_input(run.process);
    run_until_end(&run);
    run_done(&run);
}

static void test_interrupt(void **state)
{
    static const enum process_stdio kinds[] = {PROCESS_PIPES, PROCESS_TTY};
    struct err err = ERR_UNTOUCHED;

    for (size_t i = 0; i < 2; i++) {
        struct run run;

        run_init(&run);
        run.options.stdio = kinds[i];
        run.options.input = PROCESS_STDIN_PIPE;
        run_start(&run, "trap 'echo caught; exit 5' INT; echo ready; while :; do :; done");
        run_until_text(&run, "ready");
        assert_int_equal(process_interrupt(run.process, &err), 0);
        run_until_end(&run);
        assert_int_equal(run.end.how, PROCESS_EXITED);
        assert_int_equal(run.end.code, 5);
        assert_contains(run_text(&run, STREAM_STDOUT), "caught");
        assert_int_equal(process_interrupt(run.process, &err), 0); /* ended: no error */
        run_done(&run);
    }
    assert_untouched(err);
}

static void test_terminate_is_enough(void **state)
{
    struct err err;
    struct run run;

    run_init(&run);
    run.options.input = PROCESS_STDIN_PIPE;
    run_start(&run, "echo ready; cat");
    run_until_text(&run, "ready");
    assert_int_equal(process_terminate(run.process, FAR_NS, &err), 0);
    run_until_end(&run);
    assert_int_equal(run.end.how, PROCESS_SIGNALED);
    assert_int_equal(run.end.signal, SIGTERM);
    assert_int_equal(process_terminate(run.process, 0, &err), 0);
    run_done(&run);
}

/* A stopped command gets SIGCONT with the SIGTERM, or it would live on to the KILL. */
static void test_terminate_stopped(void **state)
{
    struct err err;
    struct run run;

    run_init(&run);
    run_start(&run, "trap 'echo bye; exit 9' TERM; echo ready; while :; do :; done");
    run_until_text(&run, "ready");
    assert_int_equal(process_signal(run.process, SIGSTOP, &err), 0);
    assert_int_equal(process_terminate(run.process, FAR_NS, &err), 0);
    run_until_end(&run);
    assert_int_equal(run.end.how, PROCESS_EXITED);
    assert_int_equal(run.end.code, 9);
    run_done(&run);
}

static void test_terminate_escalates(void **state)
{
    struct err err;
    struct run run;

    run_init(&run);
    run.options.input = PROCESS_STDIN_PIPE;
    run_start(&run, "trap 'echo no' TERM; echo ready; while :; do cat; done");
    run_until_text(&run, "ready");
    assert_int_equal(process_terminate(run.process, FAR_NS, &err), 0);
    assert_int_equal(process_terminate(run.process, CLOCK_NS_PER_MS, &err), 0); /* shortens */
    run_until_end(&run);
    assert_int_equal(run.end.how, PROCESS_SIGNALED);
    assert_int_equal(run.end.signal, SIGKILL);
    assert_true(run.end.usage_known); /* the init lived to tell */
    run_done(&run);
}

static void test_kill_at_once(void **state)
{
    struct err err;
    struct run run;

    run_init(&run);
    run_start(&run, "trap '' TERM INT HUP; echo ready; while :; do kill -STOP $$; done");
    run_until_text(&run, "ready");
    assert_int_equal(process_terminate(run.process, 0, &err), 0);
    run_until_end(&run);
    assert_int_equal(run.end.signal, SIGKILL);
    run_done(&run);
}

static void test_free_kills(void **state)
{
    struct run run;
    pid_t pid;

    run_init(&run);
    run_start(&run, "echo ready; kill -STOP $$");
    run_until_text(&run, "ready");
    run_until_started(&run);
    pid = process_pid(run.process);
    assert_int_equal(kill(pid, 0), 0);
    process_free(run.process);
    run.process = NULL;
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
    assert_int_equal(run.ends, 0);
    run_done(&run);
}

static void test_free_in_on_end(void **state)
{
    struct run run;

    run_init(&run);
    run.frees_itself = true;
    run_shell(&run, "echo x");
    assert_null(run.process);
    run_done(&run);
}

static void test_given_descriptors(void **state)
{
    char *dir = support_scratch_new();
    char *path = NULL;
    char text[32] = {0};
    struct run run;

    assert_true(asprintf(&path, "%s/out", dir) > 0);
    run_init(&run);
    run.options.stdio = PROCESS_FDS;
    run.options.fds[0] = run.options.fds[2] = open("/dev/null", O_RDWR | O_CLOEXEC);
    run.options.fds[1] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    run_shell(&run, "echo direct");
    assert_int_equal(run.end.output_bytes, 0);
    assert_int_equal(pread(run.options.fds[1], text, sizeof text - 1, 0), 7);
    assert_string_equal(text, "direct\n");
    close(run.options.fds[0]); /* still ours */
    close(run.options.fds[1]);
    run_done(&run);
    support_scratch_remove(dir);
    free(path);
}

static void test_many_at_once(void **state)
{
    enum { COUNT = 40 };
    struct run runs[COUNT];
    struct loop *loop;

    run_init(&runs[0]);
    loop = runs[0].loop;
    for (size_t i = 0; i < COUNT; i++) {
        if (i) {
            run_init(&runs[i]);
            loop_free(runs[i].loop);
            runs[i].loop = runs[i].options.loop = loop;
        }
        runs[i].options.stdio = i % 2 ? PROCESS_TTY : PROCESS_PIPES;
        run_start(&runs[i], "echo one; echo two");
    }
    for (size_t i = 0; i < COUNT; i++) {
        run_until_end(&runs[i]);
        assert_string_equal(run_text(&runs[i], STREAM_STDOUT),
                            i % 2 ? "one\r\ntwo\r\n" : "one\ntwo\n");
    }
    fake.launches = fake.done;
    for (size_t i = COUNT; i-- > 0;) {
        if (i)
            runs[i].loop = NULL;
        run_done(&runs[i]);
    }
}

static void test_no_descriptor_is_left(void **state)
{
    unsigned before = support_open_fds();

    test_exit_code_and_streams(state);
    test_terminal_is_one(state);
    check_failure("/does/not/exist", "/", LAUNCH_STAGE_EXEC, ENOENT);
    test_launcher_fails(state);
    test_free_kills(state);
    assert_int_equal(support_open_fds(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_code_and_streams),
        cmocka_unit_test(test_death_by_signal),
        cmocka_unit_test(test_cannot_execute),
        cmocka_unit_test(test_launcher_fails),
        cmocka_unit_test(test_init_killed_from_outside),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_no_guard),
        cmocka_unit_test(test_guard_dies),
        cmocka_unit_test(test_no_input),
        cmocka_unit_test(test_input_with_backpressure),
        cmocka_unit_test(test_command_closes_input),
        cmocka_unit_test(test_terminal_is_one),
        cmocka_unit_test(test_terminal_echo_and_eof),
        cmocka_unit_test(test_terminal_resize),
        cmocka_unit_test(test_no_terminal_to_resize),
        cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_terminate_is_enough),
        cmocka_unit_test(test_terminate_stopped),
        cmocka_unit_test(test_terminate_escalates),
        cmocka_unit_test(test_kill_at_once),
        cmocka_unit_test(test_free_kills),
        cmocka_unit_test(test_free_in_on_end),
        cmocka_unit_test(test_given_descriptors),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_no_descriptor_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
