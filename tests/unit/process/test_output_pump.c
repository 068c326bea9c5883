/* relay: output is passed on whole, at the pace of who reads it, to any kind of descriptor. */
#include "fake_sandbox.h"
#include "run.h"

#include "base/auto.h"
#include "base/clock.h"
#include "job/job_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LARGE ((size_t)4 << 20) /* bytes; more than all buffers on the way hold */

/* A run whose stdout goes to `theirs`, while a watch in the same loop reads `ours`. */
struct scene {
    struct loop *loop;
    struct job_run_options options;
    struct job_result result;
    int ours;
    int theirs;
    struct loop_watch *watch;
    struct loop_timer *timer;
    size_t begins_at; /* reading begins when the command has said so much; 0: at once */
    struct buf got;
};

static void read_some(void *data, int fd, unsigned ready)
{
    struct scene *scene = data;
    char bytes[3000];
    ssize_t n = read(fd, bytes, sizeof bytes);

    if (n > 0)
        assert_true(buf_append(&scene->got, bytes, (size_t)n));
    if (n == 0)
        loop_watch_set(scene->watch, LOOP_NOTHING);
}

static void scene_init(struct scene *scene, int ours, int theirs)
{
    struct err err;

    *scene = (struct scene){.loop = loop_new(&err), .ours = ours, .theirs = theirs};
    assert_non_null(scene->loop);
    buf_init(&scene->got, (size_t)64 << 20);
    fake = (struct fake){0};
    job_run_defaults(&scene->options);
    scene->options.loop = scene->loop;
    scene->options.sandbox = fake_sandbox();
    scene->options.env = test_env;
    scene->options.cwd = "/";
    scene->options.pump_fds[STREAM_STDOUT] = theirs;
    if (ours < 0)
        return;
    scene->watch = loop_watch_new(scene->loop, ours, LOOP_READ, read_some, scene, &err);
    assert_non_null(scene->watch);
}

static void scene_init_pipe(struct scene *scene)
{
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    scene_init(scene, ends[0], ends[1]);
}

static void scene_run(struct scene *scene, const char *script)
{
    char *const argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    struct err err = ERR_UNTOUCHED;

    scene->options.argv = argv;
    if (job_run(&scene->options, &scene->result, &err))
        fail_msg("job_run: %s", err.msg);
    assert_untouched(err);
}

/* Reads what still lies in the pipe. */
static void scene_read_rest(struct scene *scene)
{
    struct err err;

    close(scene->theirs);
    scene->theirs = -1;
    assert_int_equal(buf_read_fd(&scene->got, scene->ours, &err), 0);
}

static void scene_done(struct scene *scene)
{
    job_result_done(&scene->result);
    loop_watch_free(scene->watch);
    loop_timer_free(scene->timer);
    loop_free(scene->loop);
    buf_done(&scene->got);
    if (scene->ours >= 0)
        close(scene->ours);
    if (scene->theirs >= 0)
        close(scene->theirs);
}

static void emit_large(struct scene *scene)
{
    AUTO_FREE char *script = NULL;

    assert_true(asprintf(&script, "exec \"%s\" %zu", getenv("EMIT"), LARGE) > 0);
    scene_run(scene, script);
}

static void assert_all_came(struct scene *scene)
{
    assert_int_equal(scene->result.end, JOB_RUN_EXITED);
    assert_int_equal(scene->result.pump_error[STREAM_STDOUT], 0);
    assert_false(scene->result.drain_cut);
    assert_emitted(scene->got.data, scene->got.len, LARGE);
}

static void a_pipe_gets_everything(void **state)
{
    struct scene scene;

    scene_init_pipe(&scene);
    emit_large(&scene);
    scene_read_rest(&scene);
    assert_all_came(&scene);
    scene_done(&scene);
}

static void a_socket_gets_everything(void **state)
{
    struct scene scene;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    scene_init(&scene, ends[0], ends[1]);
    emit_large(&scene);
    scene_read_rest(&scene);
    assert_all_came(&scene);
    scene_done(&scene);
}

static void a_file_gets_everything(void **state)
{
    struct scene scene;
    char *dir = support_scratch_new();
    char path[256];
    struct err err;

    snprintf(path, sizeof path, "%s/out", dir);
    scene_init(&scene, -1, open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    emit_large(&scene);
    assert_int_equal(lseek(scene.theirs, 0, SEEK_SET), 0);
    assert_int_equal(buf_read_fd(&scene.got, scene.theirs, &err), 0);
    assert_all_came(&scene);
    scene_done(&scene);
    support_scratch_remove(dir);
}

static void flags_of_the_descriptor_stay(void **state)
{
    struct scene scene;
    int before;

    scene_init_pipe(&scene);
    before = fcntl(scene.theirs, F_GETFL);
    scene_run(&scene, "echo out");
    assert_int_equal(fcntl(scene.theirs, F_GETFL), before);
    scene_read_rest(&scene);
    assert_string_equal(scene.got.data, "out\n");
    scene_done(&scene);
}

static void begin_reading(void *data)
{
    struct scene *scene = data;

    loop_watch_set(scene->watch, LOOP_READ);
}

/* The command ends at once, its output waits; the drain of 20 ms is long over when somebody comes
 * for it. */
static void the_drain_waits_for_a_slow_reader(void **state)
{
    struct scene scene;

    scene_init_pipe(&scene);
    loop_watch_set(scene.watch, LOOP_NOTHING);
    scene.timer = loop_timer_new(scene.loop, begin_reading, &scene);
    loop_timer_start(scene.timer, 300 * CLOCK_NS_PER_MS);
    scene.options.drain = (struct process_drain){10 * CLOCK_NS_PER_MS, 20 * CLOCK_NS_PER_MS};
    scene_run(&scene, "exec head -c 150000 /dev/zero");
    scene_read_rest(&scene);
    assert_int_equal(scene.got.len, 150000);
    assert_int_equal(scene.result.end, JOB_RUN_EXITED);
    assert_false(scene.result.drain_cut);
    scene_done(&scene);
}

static void time_is_up_although_nobody_reads(void **state)
{
    struct scene scene;

    scene_init_pipe(&scene);
    loop_watch_set(scene.watch, LOOP_NOTHING);
    scene.options.timeout_ns = CLOCK_NS_PER_S;
    scene.options.drain = (struct process_drain){10 * CLOCK_NS_PER_MS, 20 * CLOCK_NS_PER_MS};
    scene_run(&scene, "exec yes");
    assert_int_equal(scene.result.end, JOB_RUN_TIMED_OUT);
    assert_true(scene.result.drain_cut);
    scene_done(&scene);
}

static void one_stream_does_not_hold_up_the_other(void **state)
{
    struct scene scene;
    int errors[2];
    char word[8] = "";

    assert_int_equal(pipe2(errors, O_CLOEXEC), 0);
    scene_init_pipe(&scene);
    loop_watch_set(scene.watch, LOOP_NOTHING);
    scene.options.pump_fds[STREAM_STDERR] = errors[1];
    scene.options.timeout_ns = CLOCK_NS_PER_S;
    scene.options.drain = (struct process_drain){10 * CLOCK_NS_PER_MS, 20 * CLOCK_NS_PER_MS};
    scene_run(&scene, "yes & sleep 0.1; echo err >&2; wait");
    assert_int_equal(read(errors[0], word, sizeof word), 4);
    assert_string_equal(word, "err\n");
    close(errors[0]);
    close(errors[1]);
    scene_done(&scene);
}

static void a_reader_that_goes_away_ends_the_command(void **state)
{
    struct scene scene;

    scene_init_pipe(&scene);
    loop_watch_free(scene.watch);
    scene.watch = NULL;
    close(scene.ours);
    scene.ours = -1;
    scene_run(&scene, "exec yes");
    assert_int_equal(scene.result.end, JOB_RUN_SIGNALED);
    assert_int_equal(scene.result.process->signal, SIGPIPE);
    assert_int_equal(scene.result.pump_error[STREAM_STDOUT], EPIPE);
    scene_done(&scene);
}

/* SIGPIPE is the host's; here it would have ended the test. What was pending before stays. */
static void no_signal_reaches_the_host(void **state)
{
    sigset_t pending;

    a_reader_that_goes_away_ends_the_command(state);
    sigpending(&pending);
    assert_false(sigismember(&pending, SIGPIPE));
}

static void a_full_disk_is_told(void **state)
{
    struct scene scene;

    scene_init(&scene, -1, open("/dev/full", O_WRONLY | O_CLOEXEC));
    scene_run(&scene, "echo out; echo more >&2");
    assert_int_equal(scene.result.pump_error[STREAM_STDOUT], ENOSPC);
    assert_int_equal(scene.result.pump_error[STREAM_STDERR], 0);
    scene_done(&scene);
}

static void a_descriptor_that_is_not_open_is_an_error(void **state)
{
    char *const argv[] = {(char *)"true", NULL};
    struct scene scene;
    struct err err;

    scene_init(&scene, -1, -1);
    scene.options.argv = argv;
    scene.options.pump_fds[STREAM_STDOUT] = 1000;
    assert_int_equal(job_run(&scene.options, &scene.result, &err), -1);
    assert_int_equal(err.sys, EBADF);
    assert_contains(err.msg, "passing output on");
    scene_done(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_gets_everything),
        cmocka_unit_test(a_socket_gets_everything),
        cmocka_unit_test(a_file_gets_everything),
        cmocka_unit_test(flags_of_the_descriptor_stay),
        cmocka_unit_test(the_drain_waits_for_a_slow_reader),
        cmocka_unit_test(time_is_up_although_nobody_reads),
        cmocka_unit_test(one_stream_does_not_hold_up_the_other),
        cmocka_unit_test(a_reader_that_goes_away_ends_the_command),
        cmocka_unit_test(no_signal_reaches_the_host),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(a_descriptor_that_is_not_open_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
