/* While somebody is being asked about a command its clocks stand still: the time limit of a run, and
 * what a call of a model waits for. */
#include "fake_sandbox.h"
#include "run.h"

#include "job/job_run.h"
#include "job/model_calls.h"

#include <signal.h>
#include <stdio.h>

#define LIMIT_NS (50 * CLOCK_NS_PER_MS)
#define ASKED_NS (300 * CLOCK_NS_PER_MS)

struct scene {
    struct loop *loop;
    struct gate gate;
    struct job *job;
    struct loop_timer *answer;
    bool opens; /* the gate, with the answer */
    bool is_over;
    uint64_t answered_ns;
};

static void on_answer(void *data)
{
    struct scene *scene = data;

    scene->answered_ns = clock_now_ns();
    job_set_held(scene->job, false);
    if (scene->opens)
        gate_open(&scene->gate);
}

static void scene_init(struct scene *scene, bool opens)
{
    struct err err;

    fake = (struct fake){0};
    *scene = (struct scene){.opens = opens};
    scene->loop = loop_new(&err);
    scene->answer = loop_timer_new(scene->loop, on_answer, scene);
    gate_init(&scene->gate);
}

static void scene_done(struct scene *scene)
{
    loop_timer_free(scene->answer);
    gate_done(&scene->gate);
    loop_free(scene->loop);
}

static void scene_run(struct scene *scene)
{
    struct err err;

    job_set_held(scene->job, true);
    loop_timer_start(scene->answer, ASKED_NS);
    assert_int_equal(loop_run(scene->loop, &scene->is_over, &err), 0);
}

static void on_over(void *data)
{
    ((struct scene *)data)->is_over = true;
}

static void run_limited(struct scene *scene, struct job_result *ret)
{
    char program[] = "cat";
    char *argv[] = {program, scene->gate.path, NULL};
    struct job_run_options options;
    struct job_run *run;
    struct err err;

    job_run_defaults(&options);
    options.loop = scene->loop;
    options.sandbox = fake_sandbox();
    options.argv = argv;
    options.env = test_env;
    options.cwd = "/";
    options.without_cgroup = true;
    options.timeout_ns = LIMIT_NS;
    options.kill_after_ns = 0;
    options.on_over = on_over;
    options.data = scene;
    run = job_run_start(&options, &err);
    assert_non_null(run);
    scene->job = job_run_job(run);
    scene_run(scene);
    job_run_take(run, ret);
    job_run_free(run);
}

static void time_to_answer_is_not_the_command_s(void **state)
{
    struct job_result result;
    struct scene scene;

    scene_init(&scene, true);
    run_limited(&scene, &result);
    assert_int_equal(result.end, JOB_RUN_EXITED);
    assert_true(result.held_ns >= ASKED_NS && result.held_ns <= result.wall_ns);
    job_result_done(&result);
    scene_done(&scene);
}

static void what_was_left_of_its_time_counts_behind_the_answer(void **state)
{
    struct job_result result;
    struct scene scene;

    scene_init(&scene, false);
    run_limited(&scene, &result);
    assert_int_equal(result.end, JOB_RUN_TIMED_OUT);
    assert_true(result.wall_ns >= ASKED_NS);
    job_result_done(&result);
    scene_done(&scene);
}

static void on_done(void *data, const struct model_call_answer *answer)
{
    struct scene *scene = data;

    assert_int_equal(answer->reason, MODEL_CALL_YIELDED);
    assert_true(scene->answered_ns && clock_now_ns() >= scene->answered_ns);
    scene->is_over = true;
}

/* The shortest time that a call may wait is over before the answer comes. */
static void a_call_of_a_model_waits_for_the_answer(void **state)
{
    const uint64_t shortest_ms = 250;
    struct scene scene;
    struct model_calls_options options = {.ids = JOB_TABLE_IDS_IN_ORDER};
    struct model_calls *calls;
    char script[256];
    const struct model_exec exec = {
        .cmd = script,
        .shell = "/bin/sh",
        .workdir = "/",
        .env = test_env,
        .sandbox = fake_sandbox(),
        .pace = {.yield_ms = &shortest_ms},
    };
    struct model_call *call;
    struct err err;

    scene_init(&scene, false);
    gate_script(&scene.gate, script, sizeof script, "cat GATE");
    options.loop = scene.loop;
    calls = model_calls_new(&options, &err);
    call = model_calls_exec(calls, &exec, on_done, &scene, &err);
    assert_non_null(call);
    scene.job = model_calls_find(calls, model_call_id(call), &err);
    scene_run(&scene);
    model_calls_free(calls);
    scene_done(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_to_answer_is_not_the_command_s),
        cmocka_unit_test(what_was_left_of_its_time_counts_behind_the_answer),
        cmocka_unit_test(a_call_of_a_model_waits_for_the_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
