/* job_run: every way a command can end, with its output; its input, its limits. */
#include "fake_sandbox.h"
#include "shot.h"

#include "output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_exited(void **state)
{
    struct shot shot;

    shot_init(&shot, "echo out; echo err >&2; exit 7");
    shot_run(&shot);
    assert_end(&shot, JOB_RUN_EXITED, 7, 0, 7);
    assert_text(&shot, STREAM_STDOUT, "out\n");
    assert_text(&shot, STREAM_STDERR, "err\n");
    assert_int_equal(shot.live.len, 8);
    assert_true(shot.result.wall_ns > 0);
    assert_true(shot.result.process->usage_known);
    assert_true(shot.result.process->usage.ru_maxrss > 0);
    assert_int_equal(shot.result.denials.len, 0);
    shot_done(&shot);
}

static void test_signaled_keeps_output(void **state)
{
    struct shot shot;

    shot_init(&shot, "echo before; kill -SEGV $$");
    shot_run(&shot);
    assert_end(&shot, JOB_RUN_SIGNALED, -1, SIGSEGV, 128 + SIGSEGV);
    assert_text(&shot, STREAM_STDOUT, "before\n");
    shot_done(&shot);
}

/* Real-time signals are what they are: Codex takes 64 for a timeout. */
static void test_signal_64_is_no_timeout(void **state)
{
    struct shot shot;

    shot_init(&shot, "kill -64 $$");
    shot_run(&shot);
    assert_end(&shot, JOB_RUN_SIGNALED, -1, 64, 192);
    shot_done(&shot);
}

static void test_timed_out(void **state)
{
    struct shot shot;

    shot_init(&shot, "echo begin; kill -STOP $$");
    shot.options.timeout_ns = 200 * CLOCK_NS_PER_MS;
    shot.options.kill_after_ns = 0;
    shot_run(&shot);
    assert_end(&shot, JOB_RUN_TIMED_OUT, -1, SIGKILL, 124);
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
    assert_end(&shot, JOB_RUN_TIMED_OUT, -1, SIGTERM, 124);
    shot_done(&shot);
}

static void test_timeout_not_reached(void **state)
{
    struct shot shot;

    shot_init(&shot, "exit 0");
    shot.options.timeout_ns = FAR_NS;
    shot_run(&shot);
    assert_end(&shot, JOB_RUN_EXITED, 0, 0, 0);
    shot_done(&shot);
}

static void test_cancelled(void **state)
{
    struct shot shot;

    shot_init(&shot, "trap 'echo bye; exit 3' TERM; echo ready; while :; do :; done");
    shot.cancels = true;
    shot.options.kill_after_ns = FAR_NS;
    shot_run(&shot);
    assert_end(&shot, JOB_RUN_CANCELLED, 3, 0, 128 + SIGTERM);
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
    assert_end(&shot, JOB_RUN_CANCELLED, -1, SIGKILL, 128 + SIGTERM);
    assert_text(&shot, STREAM_STDOUT, "ready\n");
    shot_done(&shot);
}

static void check_start_failure(const char *program, const char *cwd, int shell_code)
{
    struct shot shot;

    shot_init(&shot, NULL);
    shot.argv[0] = (char *)program;
    shot.argv[1] = NULL;
    shot.options.cwd = cwd;
    shot_run(&shot);
    assert_end(&shot, JOB_RUN_FAILED_TO_START, -1, 0, shell_code);
    assert_true(job_result_has_failed(&shot.result));
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
    assert_end(&shot, JOB_RUN_FAILED_TO_START, -1, 0, 125);
    assert_int_equal(shot.result.process->stage, LAUNCH_STAGE_SANDBOX);
    shot_done(&shot);

    shot_init(&shot, "true");
    fake.fails = true;
    assert_int_equal(job_run(&shot.options, &shot.result, &err), -1);
    assert_int_equal(err.code, ERR_UNSUPPORTED);
    shot_done(&shot);

    shot_init(&shot, "true");
    shot.argv[0] = NULL;
    assert_int_equal(job_run(&shot.options, &shot.result, &err), -1);
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
    assert_end(&shot, JOB_RUN_DENIED, 1, 0, 1);
    assert_int_equal(shot.result.denials.len, 1);
    assert_string_equal(shot.result.denials.items[0].path, "/etc/x");
    assert_text(&shot, STREAM_STDOUT, "working\n");
    shot_done(&shot);

    shot_init(&shot, "printf 'binary\\0 data\\n'; echo 'cat: /etc/x: Permission denied'; exit 1");
    shot.options.access = &map; /* may read: the host says no, which is no denial of ours */
    shot_run(&shot);
    assert_end(&shot, JOB_RUN_EXITED, 1, 0, 1);
    assert_int_equal(shot.result.denials.len, 1);
    assert_int_equal(shot.result.denials.items[0].source, DENIAL_BY_HOST);
    shot_done(&shot);
    access_map_done(&map);
}

static const struct launch_fact refused[] = {
    {.operation = FACT_CREATE, .path = "/etc/x", .program = "mkdir", .error = EROFS, .pid = 7}};

/* What the guard tells counts, and no words: whether the command hides it, speaks of it in another
 * language, or speaks of what never was. */
static void check_facts(const char *script, size_t facts, size_t denials, enum job_run_end end)
{
    struct access_map map = {.restricted = true, .network = NETWORK_RESTRICTED};
    struct shot shot;

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "built-in read-only");
    shot_init(&shot, script);
    fake.has_guard = true;
    fake.facts = refused;
    fake.facts_len = facts;
    shot.options.access = &map;
    shot_run(&shot);
    assert_int_equal(shot.result.end, end);
    assert_int_equal(shot.result.denials.len, denials);
    if (denials) {
        assert_string_equal(shot.result.denials.items[0].path, "/etc/x");
        assert_string_equal(shot.result.denials.items[0].program, "mkdir");
        assert_int_equal(shot.result.denials.items[0].evidence, DENIAL_FACT);
    }
    shot_done(&shot);
    access_map_done(&map);
}

static void test_denied_by_facts(void **state)
{
    check_facts("exit 1", 1, 1, JOB_RUN_DENIED);
    check_facts("echo 'Keine Berechtigung' >&2; exit 1", 1, 1, JOB_RUN_DENIED);
    check_facts("exit 0", 1, 1, JOB_RUN_EXITED);
    check_facts("echo \"touch: cannot touch '/etc/x': Read-only file system\" >&2; exit 1", 0, 0,
                JOB_RUN_EXITED);
    check_facts("echo \"touch: cannot touch '/etc/y': Read-only file system\" >&2; exit 1", 1, 1,
                JOB_RUN_DENIED);
}

/* A guard that is not to tell any leaves it to the words. */
static void test_denied_without_facts(void **state)
{
    struct access_map map = {.restricted = true, .network = NETWORK_RESTRICTED};
    struct shot shot;

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "built-in read-only");
    shot_init(&shot, "echo \"touch: cannot touch '/etc/y': Read-only file system\" >&2; exit 1");
    fake.has_guard = fake.is_silent = true;
    shot.options.access = &map;
    shot_run(&shot);
    assert_end(&shot, JOB_RUN_DENIED, 1, 0, 1);
    assert_string_equal(shot.result.denials.items[0].path, "/etc/y");
    assert_int_equal(shot.result.denials.items[0].evidence, DENIAL_HEURISTIC);
    shot_done(&shot);
    access_map_done(&map);
}

/* It is no denial, whatever was refused before. */
static void test_guard_dies(void **state)
{
    struct access_map map = {.restricted = true, .network = NETWORK_RESTRICTED};
    struct shot shot;

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "built-in read-only");
    shot_init(&shot, "echo before; exec sleep 1000");
    fake.has_guard = fake.guard_dies = true;
    fake.facts = refused;
    fake.facts_len = 1;
    shot.options.access = &map;
    shot_run(&shot);
    assert_end(&shot, JOB_RUN_FAILED_TO_START, -1, 0, 125);
    assert_contains(shot.result.process->failure.msg, "the guard of the sandbox died");
    assert_int_equal(shot.result.denials.len, 1);
    shot_done(&shot);
    access_map_done(&map);
}

static void test_input_data(void **state)
{
    const size_t total = (size_t)3 << 20;
    char *data = malloc(total);
    struct output_info info;
    struct shot shot;

    for (size_t i = 0; i < total; i++)
        data[i] = (char)('a' + i % 23);
    shot_init(&shot, "cat");
    shot.options.input = JOB_RUN_INPUT_DATA;
    shot.options.input_data = data;
    shot.options.input_len = total;
    shot_run(&shot);
    assert_end(&shot, JOB_RUN_EXITED, 0, 0, 0);
    assert_emitted(shot.live.data, shot.live.len, total);
    output_info(job_stream(shot.result.job, STREAM_STDOUT), &info);
    assert_int_equal(info.total, total);
    assert_int_equal(info.tail_start - info.prefix_end, total - OUTPUT_MEMORY_DEFAULT);
    shot_done(&shot);
    free(data);
}

static void check_input_fd(int fd, const char *expected)
{
    struct shot shot;

    shot_init(&shot, "cat; echo end");
    shot.options.input = JOB_RUN_INPUT_FD;
    shot.options.input_fd = fd;
    shot_run(&shot);
    assert_text(&shot, STREAM_STDOUT, expected);
    shot_done(&shot);
}

/* A pipe, a file, a device without readiness. */
static void test_input_fd(void **state)
{
    char *dir = support_scratch_new();
    char path[256];
    int ends[2];
    int fd;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], "by pipe\n", 8), 8);
    close(ends[1]);
    check_input_fd(ends[0], "by pipe\nend\n");
    close(ends[0]);

    support_write(dir, "input", "by file\n");
    snprintf(path, sizeof path, "%s/input", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    check_input_fd(fd, "by file\nend\n");
    close(fd);

    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    check_input_fd(fd, "end\n");
    close(fd);
    support_scratch_remove(dir);
}

/* A command that does not read its input is no reason to wait, nor to die of SIGPIPE. */
static void test_input_nobody_reads(void **state)
{
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    struct shot shot;

    shot_init(&shot, "exec 0<&-; echo no input");
    shot.options.input = JOB_RUN_INPUT_FD;
    shot.options.input_fd = zero;
    shot_run(&shot);
    assert_end(&shot, JOB_RUN_EXITED, 0, 0, 0);
    shot_done(&shot);
    close(zero);
}

static void test_output_bounded(void **state)
{
    struct output_info info;
    struct shot shot;

    shot_init(&shot, "i=0; while [ $i -lt 1000 ]; do echo 123456789; i=$((i+1)); done; echo e >&2");
    shot.options.max_output = 100;
    shot_run(&shot);
    output_info(job_stream(shot.result.job, STREAM_STDOUT), &info);
    assert_int_equal(info.prefix_end, 50);
    assert_int_equal(info.total - info.tail_start, 50);
    assert_int_equal(info.total, 10000);
    assert_text(&shot, STREAM_STDERR, "e\n"); /* not pushed out by the other stream */
    assert_int_equal(shot.live.len, 10002);
    shot_done(&shot);
}

static void test_limits_are_passed(void **state)
{
    char *dir = support_scratch_new();
    struct resource_limits_report limits;
    char script[256];
    struct shot shot;

    snprintf(script, sizeof script, "exec head -c 100000 /dev/zero >%s/large", dir);
    shot_init(&shot, script);
    shot.options.limits =
        (struct resource_limits){.of = {[LIMIT_CPU_TIME] = 1, [LIMIT_FILE_SIZE] = 4096}};
    fake.asked.of[LIMIT_PIDS] = 500; /* what its sandbox says counts where nothing else is said */
    fake.asked.of[LIMIT_FILE_SIZE] = 1;
    shot_run(&shot);
    assert_int_equal(fake.limits.cpu_time, 1);
    assert_int_equal(fake.limits.processes, 500);
    assert_int_equal(fake.limits.file_size, 4096);
    assert_end(&shot, JOB_RUN_SIGNALED, -1, SIGXFSZ, 128 + SIGXFSZ);
    job_limits(shot.result.job, &limits);
    assert_int_equal(limits.hit[LIMIT_FILE_SIZE], LIMIT_HIT);
    assert_int_equal(limits.by[LIMIT_FILE_SIZE], LIMIT_BY_RLIMIT);
    assert_int_equal(limits.by[LIMIT_MEMORY], LIMIT_UNSET);
    shot_done(&shot);
    fake.asked = (struct resource_limits){0};
    support_scratch_remove(dir);
}

static void test_inherited(void **state)
{
    char *dir = support_scratch_new();
    char path[256];
    char text[32] = {0};
    int status;
    int fd;
    pid_t child;

    snprintf(path, sizeof path, "%s/out", dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    child = fork();
    if (child == 0) {
        struct shot shot;

        dup2(fd, STDOUT_FILENO);
        shot_init(&shot, "echo direct; exit 4");
        shot.options.stdio = PROCESS_FDS;
        shot_run(&shot);
        _exit(shot.live.len ? 99 : job_result_exit_code(&shot.result));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 4);
    assert_int_equal(pread(fd, text, sizeof text - 1, 0), 7);
    assert_string_equal(text, "direct\n");
    close(fd);
    support_scratch_remove(dir);
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
        cmocka_unit_test(test_failed_to_start),
        cmocka_unit_test(test_sandbox_fails),
        cmocka_unit_test(test_denied),
        cmocka_unit_test(test_denied_by_facts),
        cmocka_unit_test(test_denied_without_facts),
        cmocka_unit_test(test_guard_dies),
        cmocka_unit_test(test_input_data),
        cmocka_unit_test(test_input_fd),
        cmocka_unit_test(test_input_nobody_reads),
        cmocka_unit_test(test_output_bounded),
        cmocka_unit_test(test_limits_are_passed),
        cmocka_unit_test(test_inherited),
        cmocka_unit_test(test_loop_of_the_caller),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
