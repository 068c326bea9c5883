/* oneshot: every way a command can end, with its output; and what the user's terminal and signals
 * do meanwhile. */
#include "fake_sandbox.h"
#include "run.h"

#include "base/clock.h"
#include "exec/capture.h"
#include "exec/oneshot.h"
#include "exec/terminal.h"

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

#define FAR_NS (600 * CLOCK_NS_PER_S)

/* One run, and something to do once the command says "ready". */
struct shot {
    struct oneshot_options options;
    struct oneshot_result result;
    char *argv[4];
    struct buf live;
    int cancel[2];
    int raises;        /* signal to ourselves when ready */
    bool cancels;      /* when ready */
    const char *opens; /* FIFO to open and close when ready */
    int shows_on;      /* descriptor to copy output to; 0: none */
};

static void on_output(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset)
{
    struct shot *shot = data;

    assert_int_equal(offset, shot->live.len);
    assert_true(buf_append(&shot->live, bytes, len));
    if (shot->shows_on)
        assert_int_equal(write(shot->shows_on, bytes, len), len);
    if (!strstr(shot->live.data, "ready"))
        return;
    if (shot->raises)
        raise(shot->raises);
    if (shot->cancels)
        assert_int_equal(write(shot->cancel[1], "x", 1), 1);
    if (shot->opens)
        close(open(shot->opens, O_WRONLY | O_CLOEXEC));
    shot->raises = 0;
    shot->cancels = false;
    shot->opens = NULL;
}

static void shot_init(struct shot *shot, const char *script)
{
    *shot = (struct shot){.argv = {(char *)"sh", (char *)"-c", (char *)script}};
    fake = (struct fake){0};
    oneshot_defaults(&shot->options);
    assert_int_equal(pipe2(shot->cancel, O_CLOEXEC), 0);
    buf_init(&shot->live, (size_t)64 << 20);
    shot->options.sandbox = fake_sandbox();
    shot->options.argv = shot->argv;
    shot->options.env = test_env;
    shot->options.cwd = "/";
    shot->options.cancel_fd = shot->cancel[0];
    shot->options.cgroup_base = "";
    shot->options.on_output = on_output;
    shot->options.data = shot;
}

static void shot_run(struct shot *shot)
{
    struct err err = ERR_UNTOUCHED;

    if (oneshot_run(&shot->options, &shot->result, &err))
        fail_msg("oneshot_run: %s", err.msg);
    assert_untouched(err);
    assert_int_equal(fake.done, fake.launches);
}

static void shot_done(struct shot *shot)
{
    oneshot_result_done(&shot->result);
    buf_done(&shot->live);
    close(shot->cancel[0]);
    close(shot->cancel[1]);
}

static char *shot_text(struct shot *shot, enum stream stream)
{
    struct buf text;

    buf_init(&text, (size_t)64 << 20);
    capture_render(shot->result.capture, stream, &text);
    return buf_take(&text);
}

static void assert_text(struct shot *shot, enum stream stream, const char *expected)
{
    char *text = shot_text(shot, stream);

    assert_string_equal(text, expected);
    free(text);
}

static void assert_text_has(struct shot *shot, const char *part)
{
    char *text = shot_text(shot, STREAM_STDOUT);

    assert_contains(text, part);
    free(text);
}

static void assert_end(const struct shot *shot, enum oneshot_end end, int exit_code, int signal,
                       int shell_code)
{
    const struct oneshot_result *result = &shot->result;

    assert_string_equal(oneshot_end_name(result->end), oneshot_end_name(end));
    assert_int_equal(result->exit_code, exit_code);
    assert_int_equal(result->signal, signal);
    assert_int_equal(oneshot_exit_code(result), shell_code);
}

static void test_exited(void **state)
{
    struct shot shot;

    shot_init(&shot, "echo out; echo err >&2; exit 7");
    shot_run(&shot);
    assert_end(&shot, ONESHOT_EXITED, 7, 0, 7);
    assert_text(&shot, STREAM_STDOUT, "out\n");
    assert_text(&shot, STREAM_STDERR, "err\n");
    assert_int_equal(shot.live.len, 8);
    assert_true(shot.result.pid > 0);
    assert_true(shot.result.wall_ns > 0);
    assert_true(shot.result.usage_known);
    assert_true(shot.result.usage.memory_peak_kb > 0);
    assert_int_equal(shot.result.denials.len, 0);
    shot_done(&shot);
}

static void test_signaled_keeps_output(void **state)
{
    struct shot shot;

    shot_init(&shot, "echo before; kill -SEGV $$");
    shot_run(&shot);
    assert_end(&shot, ONESHOT_SIGNALED, -1, SIGSEGV, 128 + SIGSEGV);
    assert_text(&shot, STREAM_STDOUT, "before\n");
    shot_done(&shot);
}

/* Real-time signals are what they are (spec/exec-core.md 1.6: 64 was taken for a timeout). */
static void test_signal_64_is_no_timeout(void **state)
{
    struct shot shot;

    shot_init(&shot, "kill -64 $$");
    shot_run(&shot);
    assert_end(&shot, ONESHOT_SIGNALED, -1, 64, 192);
    shot_done(&shot);
}

static void test_timed_out(void **state)
{
    struct shot shot;

    shot_init(&shot, "echo begin; kill -STOP $$");
    shot.options.timeout_ns = 200 * CLOCK_NS_PER_MS;
    shot.options.kill_after_ns = 0;
    shot_run(&shot);
    assert_end(&shot, ONESHOT_TIMED_OUT, -1, SIGKILL, 124);
    assert_text(&shot, STREAM_STDOUT, shot.live.data ? shot.live.data : "");
    shot_done(&shot);
}

static void test_timed_out_with_grace(void **state)
{
    struct shot shot;

    shot_init(&shot, "kill -STOP $$");
    shot.options.timeout_ns = CLOCK_NS_PER_MS;
    shot.options.kill_after_ns = FAR_NS;
    shot_run(&shot);
    assert_end(&shot, ONESHOT_TIMED_OUT, -1, SIGTERM, 124);
    shot_done(&shot);
}

static void test_timeout_not_reached(void **state)
{
    struct shot shot;

    shot_init(&shot, "exit 0");
    shot.options.timeout_ns = FAR_NS;
    shot_run(&shot);
    assert_end(&shot, ONESHOT_EXITED, 0, 0, 0);
    shot_done(&shot);
}

static void test_cancelled(void **state)
{
    struct shot shot;

    shot_init(&shot, "trap 'echo bye; exit 3' TERM; echo ready; while :; do :; done");
    shot.cancels = true;
    shot.options.kill_after_ns = FAR_NS;
    shot_run(&shot);
    assert_end(&shot, ONESHOT_CANCELLED, 3, 0, 128 + SIGTERM);
    assert_text(&shot, STREAM_STDOUT, "ready\nbye\n");
    assert_int_equal(shot.result.cancel_signal, 0);
    shot_done(&shot);
}

static void test_cancelled_by_force(void **state)
{
    struct shot shot;

    shot_init(&shot, "trap '' TERM; echo ready; while :; do :; done");
    shot.cancels = true;
    shot.options.kill_after_ns = CLOCK_NS_PER_MS;
    shot_run(&shot);
    assert_end(&shot, ONESHOT_CANCELLED, -1, SIGKILL, 128 + SIGTERM);
    assert_text(&shot, STREAM_STDOUT, "ready\n");
    shot_done(&shot);
}

static void test_term_to_us_cancels(void **state)
{
    static const int signals[] = {SIGTERM, SIGHUP};

    for (size_t i = 0; i < 2; i++) {
        struct shot shot;

        shot_init(&shot, "echo ready; kill -STOP $$");
        shot.raises = signals[i];
        shot.options.signals = ONESHOT_SIGNALS_HANDLE;
        shot.options.kill_after_ns = FAR_NS;
        shot_run(&shot);
        assert_end(&shot, ONESHOT_CANCELLED, -1, SIGTERM, 128 + signals[i]);
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
        shot.options.signals = ONESHOT_SIGNALS_HANDLE;
        shot_run(&shot);
        assert_end(&shot, ONESHOT_EXITED, 9, 0, 9);
        shot_done(&shot);
    }
}

static void test_ignored_signals_stay_ignored(void **state)
{
    struct shot shot;

    signal(SIGHUP, SIG_IGN);
    shot_init(&shot, "echo ready; exit 5");
    shot.raises = SIGHUP;
    shot.options.signals = ONESHOT_SIGNALS_HANDLE;
    shot_run(&shot);
    signal(SIGHUP, SIG_DFL);
    assert_end(&shot, ONESHOT_EXITED, 5, 0, 5);
    shot_done(&shot);
}

/* Ctrl-Z stops us after the command, and going on goes on with both. */
static void test_suspend(void **state)
{
    char *folder = support_scratch_new();
    char script[256];
    char *gate = NULL;
    int status;
    pid_t child;

    assert_true(asprintf(&gate, "%s/gate", folder) > 0);
    assert_int_equal(mkfifo(gate, 0600), 0);
    snprintf(script, sizeof script, "echo ready; cat %s; exit 6", gate);
    child = fork();
    if (child == 0) {
        struct shot shot;

        shot_init(&shot, script);
        shot.raises = SIGTSTP;
        shot.opens = gate;
        shot.options.signals = ONESHOT_SIGNALS_HANDLE;
        shot_run(&shot);
        _exit(oneshot_exit_code(&shot.result));
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    kill(child, SIGCONT);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 6);
    free(gate);
    support_scratch_remove(folder);
}

static void check_start_failure(const char *program, const char *cwd, int shell_code)
{
    struct shot shot;

    shot_init(&shot, NULL);
    shot.argv[0] = (char *)program;
    shot.argv[1] = NULL;
    shot.options.cwd = cwd;
    shot_run(&shot);
    assert_end(&shot, ONESHOT_FAILED_TO_START, -1, 0, shell_code);
    assert_true(shot.result.failed);
    shot_done(&shot);
}

static void test_failed_to_start(void **state)
{
    check_start_failure("/does/not/exist", "/", 127);
    check_start_failure("does-not-exist-either", "/", 127);
    check_start_failure("/etc/passwd", "/", 126);
    check_start_failure("true", "/does/not/exist", 125);
}

static void test_sandbox_fails(void **state)
{
    struct err err = ERR_UNTOUCHED;
    struct shot shot;

    shot_init(&shot, "true");
    fake.breaks_setup = true;
    shot_run(&shot);
    assert_end(&shot, ONESHOT_FAILED_TO_START, -1, 0, 125);
    assert_int_equal(shot.result.stage, LAUNCH_STAGE_SANDBOX);
    shot_done(&shot);

    shot_init(&shot, "true");
    fake.fails = true;
    assert_int_equal(oneshot_run(&shot.options, &shot.result, &err), -1);
    assert_int_equal(err.code, ERR_UNSUPPORTED);
    shot_done(&shot);

    shot_init(&shot, "true");
    shot.argv[0] = NULL;
    assert_int_equal(oneshot_run(&shot.options, &shot.result, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    shot_done(&shot);
}

static void test_denied(void **state)
{
    struct access_map map = {.restricted = true, .network = NETWORK_RESTRICTED};
    struct shot shot;

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "built-in read-only");
    shot_init(&shot,
              "echo working; echo \"touch: cannot touch '/etc/x': Read-only file system\" >&2;"
              " exit 1");
    shot.options.access = &map;
    shot_run(&shot);
    assert_end(&shot, ONESHOT_DENIED, 1, 0, 1);
    assert_int_equal(shot.result.denials.len, 1);
    assert_string_equal(shot.result.denials.items[0].path, "/etc/x");
    assert_text(&shot, STREAM_STDOUT, "working\n");
    shot_done(&shot);

    shot_init(&shot, "printf 'binary\\0 data\\n'; echo 'cat: /etc/x: Permission denied'; exit 1");
    shot.options.access = &map; /* may read: the host says no, which is no denial of ours */
    shot_run(&shot);
    assert_end(&shot, ONESHOT_EXITED, 1, 0, 1);
    assert_int_equal(shot.result.denials.len, 1);
    assert_int_equal(shot.result.denials.items[0].source, DENIAL_BY_HOST);
    shot_done(&shot);
    access_map_done(&map);
}

static void test_input_data(void **state)
{
    const size_t total = (size_t)3 << 20;
    char *data = malloc(total);
    struct capture_view view;
    struct shot shot;

    for (size_t i = 0; i < total; i++)
        data[i] = (char)('a' + i % 23);
    shot_init(&shot, "cat");
    shot.options.input = ONESHOT_INPUT_DATA;
    shot.options.input_data = data;
    shot.options.input_len = total;
    shot_run(&shot);
    assert_end(&shot, ONESHOT_EXITED, 0, 0, 0);
    assert_emitted(shot.live.data, shot.live.len, total);
    capture_view(shot.result.capture, STREAM_STDOUT, &view);
    assert_int_equal(view.total, total);
    assert_int_equal(view.omitted, total - CAPTURE_DEFAULT_MAX);
    shot_done(&shot);
    free(data);
}

static void check_input_fd(int fd, const char *expected)
{
    struct shot shot;

    shot_init(&shot, "cat; echo end");
    shot.options.input = ONESHOT_INPUT_FD;
    shot.options.input_fd = fd;
    shot_run(&shot);
    assert_text(&shot, STREAM_STDOUT, expected);
    shot_done(&shot);
}

/* A pipe, a file, a device without readiness. */
static void test_input_fd(void **state)
{
    char *folder = support_scratch_new();
    char path[256];
    int ends[2];
    int fd;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], "by pipe\n", 8), 8);
    close(ends[1]);
    check_input_fd(ends[0], "by pipe\nend\n");
    close(ends[0]);

    support_write(folder, "input", "by file\n");
    snprintf(path, sizeof path, "%s/input", folder);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    check_input_fd(fd, "by file\nend\n");
    close(fd);

    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    check_input_fd(fd, "end\n");
    close(fd);
    support_scratch_remove(folder);
}

/* A command that does not read its input is no reason to wait, nor to die of SIGPIPE. */
static void test_input_nobody_reads(void **state)
{
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    struct shot shot;

    shot_init(&shot, "exec 0<&-; echo no input");
    shot.options.input = ONESHOT_INPUT_FD;
    shot.options.input_fd = zero;
    shot_run(&shot);
    assert_end(&shot, ONESHOT_EXITED, 0, 0, 0);
    shot_done(&shot);
    close(zero);
}

static void test_output_bounded(void **state)
{
    struct capture_view view;
    struct shot shot;

    shot_init(&shot, "i=0; while [ $i -lt 1000 ]; do echo 123456789; i=$((i+1)); done; echo e >&2");
    shot.options.max_output = 100;
    shot_run(&shot);
    capture_view(shot.result.capture, STREAM_STDOUT, &view);
    assert_int_equal(view.head_len + view.tail_len, 100);
    assert_int_equal(view.total, 10000);
    assert_int_equal(view.omitted, 9900);
    assert_text(&shot, STREAM_STDERR, "e\n"); /* not pushed out by the other stream */
    assert_int_equal(shot.live.len, 10002);
    shot_done(&shot);
}

static void test_limits_are_passed(void **state)
{
    char *folder = support_scratch_new();
    char script[256];
    struct shot shot;

    snprintf(script, sizeof script, "exec head -c 100000 /dev/zero >%s/large", folder);
    shot_init(&shot, script);
    shot.options.limits = (struct limits){.cpu_time_ns = 1, .pids = 500, .file_size = 4096};
    shot_run(&shot);
    assert_int_equal(fake.limits.cpu_time, 1);
    assert_int_equal(fake.limits.processes, 500);
    assert_int_equal(fake.limits.file_size, 4096);
    assert_int_equal(fake.cgroup, -1);
    assert_end(&shot, ONESHOT_SIGNALED, -1, SIGXFSZ, 128 + SIGXFSZ);
    assert_true(shot.result.limits.hit[LIMIT_FILE_SIZE]);
    assert_int_equal(shot.result.limits.by[LIMIT_FILE_SIZE], LIMIT_BY_RLIMIT);
    assert_int_equal(shot.result.limits.by[LIMIT_MEMORY], LIMIT_UNSET);
    shot_done(&shot);
    support_scratch_remove(folder);
}

static void test_tty_without_terminal(void **state)
{
    struct shot shot;

    shot_init(&shot, "test -t 1 && stty size; cat");
    shot.options.stdio = ONESHOT_TTY;
    shot.options.size = (struct pty_size){40, 120};
    shot.options.input = ONESHOT_INPUT_DATA;
    shot.options.input_data = "typed";
    shot.options.input_len = 5;
    shot_run(&shot);
    assert_end(&shot, ONESHOT_EXITED, 0, 0, 0);
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
    shot.options.stdio = ONESHOT_TTY;
    shot.options.input = ONESHOT_INPUT_FD;
    shot.options.input_fd = slave;
    shot.options.terminal_fd = slave;
    shot.options.signals = ONESHOT_SIGNALS_HANDLE;
    shot.shows_on = slave;
    shot_run(&shot);
    _exit(oneshot_exit_code(&shot.result));
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

static void test_inherited(void **state)
{
    char *folder = support_scratch_new();
    char path[256];
    char text[32] = {0};
    int status;
    int fd;
    pid_t child;

    snprintf(path, sizeof path, "%s/out", folder);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    child = fork();
    if (child == 0) {
        struct shot shot;

        dup2(fd, STDOUT_FILENO);
        shot_init(&shot, "echo direct; exit 4");
        shot.options.stdio = ONESHOT_INHERIT;
        shot_run(&shot);
        _exit(shot.live.len ? 99 : oneshot_exit_code(&shot.result));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 4);
    assert_int_equal(pread(fd, text, sizeof text - 1, 0), 7);
    assert_string_equal(text, "direct\n");
    close(fd);
    support_scratch_remove(folder);
}

/* With a loop of the caller's, several times, nothing stays open. */
static void test_loop_of_the_caller(void **state)
{
    struct err err;
    unsigned before = support_open_fds();
    struct loop *loop = loop_new(&err);

    for (int i = 0; i < 20; i++) {
        struct shot shot;

        shot_init(&shot, "echo x");
        shot.options.loop = loop;
        shot.options.timeout_ns = FAR_NS;
        shot_run(&shot);
        assert_text(&shot, STREAM_STDOUT, "x\n");
        shot_done(&shot);
    }
    loop_free(loop);
    assert_int_equal(support_open_fds(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exited),
        cmocka_unit_test(test_signaled_keeps_output),
        cmocka_unit_test(test_signal_64_is_no_timeout),
        cmocka_unit_test(test_timed_out),
        cmocka_unit_test(test_timed_out_with_grace),
        cmocka_unit_test(test_timeout_not_reached),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_cancelled_by_force),
        cmocka_unit_test(test_term_to_us_cancels),
        cmocka_unit_test(test_interrupt_is_passed_on),
        cmocka_unit_test(test_ignored_signals_stay_ignored),
        cmocka_unit_test(test_suspend),
        cmocka_unit_test(test_failed_to_start),
        cmocka_unit_test(test_sandbox_fails),
        cmocka_unit_test(test_denied),
        cmocka_unit_test(test_input_data),
        cmocka_unit_test(test_input_fd),
        cmocka_unit_test(test_input_nobody_reads),
        cmocka_unit_test(test_output_bounded),
        cmocka_unit_test(test_limits_are_passed),
        cmocka_unit_test(test_tty_without_terminal),
        cmocka_unit_test(test_at_a_terminal),
        cmocka_unit_test(test_inherited),
        cmocka_unit_test(test_loop_of_the_caller),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
