/* job: input, control and end of a command that outlives a call. */
#include "fake_sandbox.h"
#include "run.h"

#include "base/auto.h"
#include "job/job.h"
#include "output/model_cursor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>

struct desk {
    struct job_watch watch; /* first */
    struct loop *loop;
    struct job *job;
    const char *awaited;
    unsigned rooms;
    unsigned ends;
    bool has_come;
    struct output_watch output;
};

static void on_event(struct job_watch *watch, enum job_event event)
{
    struct desk *desk = container_of(watch, struct desk, watch);

    if (event == JOB_STARTED)
        return;
    desk->rooms += event == JOB_ROOM;
    desk->ends += event == JOB_ENDED;
    desk->has_come = true;
}

/* All output so far. */
static char *text_of(const struct job *job)
{
    struct output *output = job_output(job);
    struct buf text;
    char piece[4096];

    buf_init(&text, 1 << 22);
    for (size_t n; (n = output_copy(output, text.len, piece, sizeof piece)) > 0;)
        assert_true(buf_append(&text, piece, n));
    return buf_take(&text);
}

static void on_new(struct output_watch *watch)
{
    struct desk *desk = container_of(watch, struct desk, output);
    AUTO_FREE char *text = text_of(desk->job);

    if (desk->awaited && strstr(text, desk->awaited))
        desk->has_come = true;
}

static void desk_open(struct desk *desk, const char *script, struct process_options options)
{
    char *const argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    struct err err;

    fake = (struct fake){0};
    *desk = (struct desk){.watch.on_event = on_event, .output.on_new = on_new};
    desk->loop = loop_new(&err);
    options.loop = desk->loop;
    options.sandbox = fake_sandbox();
    options.argv = argv;
    options.env = test_env;
    options.cwd = "/";
    desk->job = job_start(&(struct job_options){.id = 1000,
                                                .owner = 7,
                                                .command = script,
                                                .process = &options,
                                                .output.memory_max = 1 << 22},
                          &err);
    assert_non_null(desk->job);
    job_watch(desk->job, &desk->watch);
    output_watch(job_output(desk->job), &desk->output);
}

static void desk_close(struct desk *desk)
{
    job_free(desk->job);
    loop_free(desk->loop);
}

static void until_event(struct desk *desk)
{
    struct err err;

    desk->has_come = false;
    assert_int_equal(loop_run(desk->loop, &desk->has_come, &err), 0);
}

static void until_end(struct desk *desk)
{
    while (!job_end(desk->job))
        until_event(desk);
    assert_int_equal(desk->ends, 1);
}

static void until_text(struct desk *desk, const char *text)
{
    AUTO_FREE char *now = text_of(desk->job);

    desk->awaited = text;
    if (!strstr(now, text))
        until_event(desk);
    desk->awaited = NULL;
}

static enum job_written write_text(struct desk *desk, const char *text, const char *name)
{
    enum job_written written;
    struct err err;

    assert_int_equal(job_write(desk->job, text, strlen(text), name, &written, &err), 0);
    return written;
}

#define assert_wrote(desk, expected)                                                               \
    do {                                                                                           \
        AUTO_FREE char *text_ = text_of((desk)->job);                                              \
        assert_string_equal(text_, expected);                                                      \
    } while (0)

static const struct process_options pipes = {.stdio = PROCESS_PIPES};
static const struct process_options open_pipes = {.stdio = PROCESS_PIPES,
                                                  .input = PROCESS_STDIN_PIPE};
static const struct process_options terminal = {.stdio = PROCESS_TTY};

static void output_and_end_are_kept(void **state)
{
    struct job_info info;
    struct desk desk;

    desk_open(&desk, "echo out; echo err >&2; exit 3", pipes);
    until_end(&desk);
    assert_int_equal(job_end(desk.job)->code, 3);
    assert_int_equal(job_exit_code(desk.job), 3);
    assert_int_equal(job_outcome(desk.job).fate, JOB_FATE_EXITED);
    assert_int_equal(job_outcome(desk.job).number, 3);
    assert_int_equal(output_total(job_output(desk.job)), 8);
    assert_int_equal(model_cursor_len(job_model_cursor(desk.job)), 8);
    job_info(desk.job, &info);
    assert_int_equal(info.id, 1000);
    assert_int_equal(info.owner, 7);
    assert_string_equal(info.command, "echo out; echo err >&2; exit 3");
    assert_string_equal(info.cwd, "/");
    assert_false(info.has_input);
    assert_false(job_is_alive(desk.job));
    desk_close(&desk);
}

static void a_named_write_is_done_once(void **state)
{
    struct desk desk;

    desk_open(&desk, "cat", open_pipes);
    assert_int_equal(write_text(&desk, "one\n", "1"), JOB_WRITTEN);
    assert_int_equal(write_text(&desk, "one\n", "1"), JOB_WRITTEN_BEFORE);
    assert_int_equal(write_text(&desk, "two\n", "2"), JOB_WRITTEN);
    assert_int_equal(write_text(&desk, "three\n", NULL), JOB_WRITTEN);
    assert_int_equal(write_text(&desk, "three\n", NULL), JOB_WRITTEN);
    job_close_input(desk.job);
    assert_int_equal(write_text(&desk, "late", NULL), JOB_NO_INPUT);
    until_end(&desk);
    assert_wrote(&desk, "one\ntwo\nthree\nthree\n");
    assert_int_equal(write_text(&desk, "later", NULL), JOB_IS_OVER);
    desk_close(&desk);
}

static void the_oldest_names_are_forgotten(void **state)
{
    struct desk desk;

    desk_open(&desk, "cat", open_pipes);
    for (int i = 0; i <= 4096; i++) {
        char name[16];

        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(write_text(&desk, "x", name), JOB_WRITTEN);
    }
    assert_int_equal(write_text(&desk, "x", "n1"), JOB_WRITTEN_BEFORE);
    assert_int_equal(write_text(&desk, "x", "n0"), JOB_WRITTEN);
    desk_close(&desk);
}

static void one_byte_interrupts_without_a_terminal(void **state)
{
    struct desk desk;

    desk_open(&desk, "trap 'echo caught; exit 4' INT; echo ready; while :; do sleep 1; done",
              pipes);
    until_text(&desk, "ready");
    assert_int_equal(write_text(&desk, "\003\003", "1"), JOB_NO_INPUT);
    assert_int_equal(write_text(&desk, "\003", "1"), JOB_INTERRUPTED);
    until_end(&desk);
    assert_wrote(&desk, "ready\ncaught\n");
    assert_int_equal(job_exit_code(desk.job), 4);
    desk_close(&desk);
}

static void on_a_terminal_the_same_byte_is_typed(void **state)
{
    struct desk desk;

    desk_open(&desk, "stty -isig -echo -icanon; echo ready; head -c 1 | od -An -tx1", terminal);
    until_text(&desk, "ready");
    assert_int_equal(write_text(&desk, "\003", NULL), JOB_WRITTEN);
    until_end(&desk);
    assert_wrote(&desk, "ready\r\n 03\r\n");
    desk_close(&desk);
}

static void too_much_input_is_refused_until_there_is_room(void **state)
{
    static char block[JOB_INPUT_MAX / 2];
    struct gate gate;
    struct desk desk;
    char script[4200];
    size_t sent = 0;

    gate_init(&gate);
    gate_script(&gate, script, sizeof script, "cat GATE; wc -c");
    desk_open(&desk, script, open_pipes);
    memset(block, 'x', sizeof block);
    for (;;) {
        enum job_written written;
        struct err err;

        assert_int_equal(job_write(desk.job, block, sizeof block, NULL, &written, &err), 0);
        if (written == JOB_NO_ROOM)
            break;
        assert_int_equal(written, JOB_WRITTEN);
        sent += sizeof block;
        assert_true(sent <= 2 * JOB_INPUT_MAX);
    }
    assert_true(sent >= JOB_INPUT_MAX);
    job_close_input(desk.job); /* behind what waits */
    gate_open(&gate);
    until_end(&desk);
    assert_int_equal(desk.rooms, 1);
    {
        AUTO_FREE char *text = text_of(desk.job);

        assert_int_equal(strtoul(text, NULL, 10), sent);
    }
    gate_done(&gate);
    desk_close(&desk);
}

static void terminating_ends_in_the_hard_way(void **state)
{
    struct desk desk;
    struct err err;

    desk_open(&desk, "trap '' TERM; echo ready; while :; do sleep 1; done", pipes);
    until_text(&desk, "ready");
    assert_int_equal(job_terminate(desk.job, CLOCK_NS_PER_MS, &err), 0);
    until_end(&desk);
    assert_int_equal(job_exit_code(desk.job), 128 + SIGKILL);
    assert_int_equal(job_outcome(desk.job).fate, JOB_FATE_TERMINATED);
    assert_int_equal(job_terminate(desk.job, 0, &err), 0);
    desk_close(&desk);
}

static void a_terminal_can_be_resized_and_pipes_cannot(void **state)
{
    const struct pty_size size = {.rows = 33, .columns = 77};
    struct gate gate;
    struct desk desk;
    char script[4200];
    struct err err;

    gate_init(&gate);
    gate_script(&gate, script, sizeof script, "stty size; cat GATE; stty size");
    desk_open(&desk, script, terminal);
    until_text(&desk, "24 80");
    assert_int_equal(job_resize(desk.job, size, &err), 0);
    gate_open(&gate);
    until_end(&desk);
    assert_wrote(&desk, "24 80\r\n33 77\r\n");
    assert_int_equal(job_resize(desk.job, size, &err), 0);
    desk_close(&desk);
    gate_done(&gate);

    desk_open(&desk, "cat", open_pipes);
    assert_int_equal(job_resize(desk.job, size, &err), -1);
    assert_int_equal(err.code, ERR_UNSUPPORTED);
    desk_close(&desk);
}

/* The loop has not been told yet, but the kernel knows. */
static void what_is_alive_is_asked_of_the_kernel(void **state)
{
    struct desk desk;
    struct pollfd pidfd = {.events = POLLIN};

    desk_open(&desk, "cat", open_pipes);
    assert_true(job_is_alive(desk.job));
    pidfd.fd = pidfd_open(fake.init, 0);
    kill(fake.init, SIGKILL);
    assert_int_equal(poll(&pidfd, 1, -1), 1);
    assert_false(job_is_alive(desk.job));
    assert_null(job_end(desk.job));
    close(pidfd.fd);
    desk_close(&desk);
}

static void a_program_that_is_not_there_is_an_end(void **state)
{
    char *const argv[] = {(char *)"/no/such/program", NULL};
    struct process_options options = pipes;
    struct desk desk;
    struct err err;

    desk_open(&desk, "true", pipes);
    job_free(desk.job);
    options.loop = desk.loop;
    options.sandbox = fake_sandbox();
    options.argv = argv;
    options.env = test_env;
    options.cwd = "/";
    desk.job = job_start(&(struct job_options){.command = "none", .process = &options}, &err);
    assert_non_null(desk.job);
    desk.ends = 0;
    job_watch(desk.job, &desk.watch);
    until_end(&desk);
    assert_int_equal(job_exit_code(desk.job), 127);
    assert_int_equal(job_outcome(desk.job).fate, JOB_FATE_FAILED);
    desk_close(&desk);
}

static void freeing_kills(void **state)
{
    struct desk desk;
    pid_t pid;

    desk_open(&desk, "echo $$ ready; exec cat", open_pipes);
    until_text(&desk, "ready");
    {
        AUTO_FREE char *text = text_of(desk.job);

        pid = (pid_t)strtol(text, NULL, 10);
    }
    assert_int_equal(kill(pid, 0), 0);
    desk_close(&desk);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
}

/* What could not be executed is the program, whatever people are shown in its place. */
static void a_denial_names_the_program(void **state)
{
    char *const argv[] = {(char *)"/hidden/sh", (char *)"-c", (char *)"cat a/b", NULL};
    struct access_map map = {.restricted = true, .network = NETWORK_RESTRICTED};
    struct desk desk = {.watch.on_event = on_event};
    struct denials denials = {0};
    struct err err;

    fake = (struct fake){0};
    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "built-in");
    access_map_add(&map, "/hidden", ACCESS_DENY, ACCESS_DIR, "mine");
    desk.loop = loop_new(&err);
    desk.job = job_start(&(struct job_options){.command = "cat a/b",
                                               .access = &map,
                                               .process =
                                                   &(struct process_options){
                                                       .loop = desk.loop,
                                                       .sandbox = fake_sandbox(),
                                                       .argv = argv,
                                                       .env = test_env,
                                                       .cwd = "/",
                                                   }},
                         &err);
    assert_non_null(desk.job);
    job_watch(desk.job, &desk.watch);
    until_end(&desk);
    job_denials(desk.job, &denials);
    assert_int_equal(denials.len, 1);
    assert_string_equal(denials.items[0].path, "/hidden/sh");
    denials_done(&denials);
    desk_close(&desk);
    access_map_done(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_denial_names_the_program),
        cmocka_unit_test(output_and_end_are_kept),
        cmocka_unit_test(a_named_write_is_done_once),
        cmocka_unit_test(the_oldest_names_are_forgotten),
        cmocka_unit_test(one_byte_interrupts_without_a_terminal),
        cmocka_unit_test(on_a_terminal_the_same_byte_is_typed),
        cmocka_unit_test(too_much_input_is_refused_until_there_is_room),
        cmocka_unit_test(terminating_ends_in_the_hard_way),
        cmocka_unit_test(a_terminal_can_be_resized_and_pipes_cannot),
        cmocka_unit_test(what_is_alive_is_asked_of_the_kernel),
        cmocka_unit_test(a_program_that_is_not_there_is_an_end),
        cmocka_unit_test(freeing_kills),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
