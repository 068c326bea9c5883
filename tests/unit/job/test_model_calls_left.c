/* model_calls: the job that nobody has any more is handed over, whichever way it went. */
#include "fake_sandbox.h"
#include "run.h"

#include "job/model_calls.h"

#include <signal.h>
#include <string.h>

/* Everything that was handed over, and the last answer. */
struct heir {
    struct loop *loop;
    struct model_calls *calls;
    struct job *jobs[4];
    int ids[4];
    size_t len;
    bool has_come;
};

static void on_left(void *data, struct job *job)
{
    struct heir *heir = data;
    struct job_info info;

    assert_true(heir->len < 4);
    job_info(job, &info);
    heir->ids[heir->len] = info.id;
    heir->jobs[heir->len++] = job;
}

static void on_done(void *data, const struct model_call_answer *response)
{
    ((struct heir *)data)->has_come = true;
}

static void heir_open(struct heir *heir, size_t capacity)
{
    struct err err;

    fake = (struct fake){0};
    *heir = (struct heir){.loop = loop_new(&err)};
    heir->calls = model_calls_new(&(struct model_calls_options){.loop = heir->loop,
                                                                .capacity = capacity,
                                                                .ids = JOB_TABLE_IDS_IN_ORDER,
                                                                .on_left = on_left,
                                                                .data = heir},
                                  &err);
    assert_non_null(heir->calls);
}

static void heir_close(struct heir *heir)
{
    for (size_t i = 0; i < heir->len; i++)
        job_free(heir->jobs[i]);
    heir->len = 0;
    model_calls_free(heir->calls);
    for (size_t i = 0; i < heir->len; i++) /* those of calls that were ended by that */
        job_free(heir->jobs[i]);
    loop_free(heir->loop);
}

static struct model_call *start(struct heir *heir, const char *cmd, const char *until)
{
    static const uint64_t far_ms = 30000;
    const struct model_exec exec = {
        .cmd = cmd,
        .shell = "/bin/sh",
        .workdir = "/",
        .env = test_env,
        .sandbox = fake_sandbox(),
        .stdio = PROCESS_PIPES,
        .input = PROCESS_STDIN_PIPE,
        .pace = {.until = MODEL_UNTIL_TEXT,
                 .text = until,
                 .text_len = strlen(until),
                 .yield_ms = &far_ms},
    };
    struct err err;
    struct model_call *call = model_calls_exec(heir->calls, &exec, on_done, heir, &err);

    assert_non_null(call);
    heir->has_come = false;
    return call;
}

static void run(struct heir *heir, const char *cmd, const char *until)
{
    struct err err;

    start(heir, cmd, until);
    assert_int_equal(loop_run(heir->loop, &heir->has_come, &err), 0);
}

static void one_that_has_ended_can_still_be_read(void **state)
{
    struct heir heir;
    char text[16];

    heir_open(&heir, 0);
    run(&heir, "echo all of it", "never");
    assert_int_equal(heir.len, 1);
    assert_non_null(job_end(heir.jobs[0]));
    assert_int_equal(output_copy(job_output(heir.jobs[0]), 0, text, sizeof text), 10);
    assert_memory_equal(text, "all of it\n", 10);
    heir_close(&heir);
}

static void one_that_runs_stays(void **state)
{
    struct heir heir;
    struct err err;

    heir_open(&heir, 0);
    run(&heir, "echo x; exec cat", "x");
    model_call_cancel(start(&heir, "echo y; exec cat", "never"));
    assert_int_equal(heir.len, 0);
    assert_non_null(model_calls_find(heir.calls, 1000, &err));
    assert_non_null(model_calls_find(heir.calls, 1001, &err));
    heir_close(&heir);
}

static bool has_ended;

static void on_end(struct job_watch *watch, enum job_event event)
{
    has_ended |= event == JOB_ENDED;
}

static void one_that_makes_room_is_killed_and_tells_its_end(void **state)
{
    enum { CAPACITY = 9 }; /* the eight used last are protected */
    struct heir heir;
    struct err err;

    heir_open(&heir, CAPACITY);
    for (int i = 0; i <= CAPACITY; i++)
        run(&heir, "echo x; exec cat", "x");
    assert_int_equal(heir.len, 1);
    assert_int_equal(heir.ids[0], 1000);
    job_watch(heir.jobs[0], &(struct job_watch){.on_event = on_end});
    has_ended = job_end(heir.jobs[0]);
    assert_int_equal(loop_run(heir.loop, &has_ended, &err), 0);
    assert_int_equal(job_end(heir.jobs[0])->signal, SIGKILL);
    heir_close(&heir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_has_ended_can_still_be_read),
        cmocka_unit_test(one_that_runs_stays),
        cmocka_unit_test(one_that_makes_room_is_killed_and_tells_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
