/* process: not a byte of output is lost, whoever else holds the pipe or terminal, and nobody who
 * holds it can keep us. */
#include "fake_sandbox.h"
#include "run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_large(enum process_stdio stdio, const char *size, size_t bytes)
{
    char *const argv[] = {(char *)getenv("EMIT"), (char *)size, NULL};
    struct run run;

    run_init(&run);
    run.options.stdio = stdio;
    run.options.argv = argv;
    run_start(&run, NULL);
    run_until_end(&run);
    assert_int_equal(run.end.code, 0);
    assert_emitted(run_text(&run, STREAM_STDOUT), run.out[STREAM_STDOUT].len, bytes);
    assert_false(run.end.drain_cut);
    run_done(&run);
}

static void test_10_mb(void **state)
{
    check_large(PROCESS_PIPES, "10000000", 10000000);
    check_large(PROCESS_TTY, "10000000", 10000000);
}

/* The command is over, a child of its holds the pipe and says nothing: a short drain, and all that
 * was read stays. */
static void check_held_output(enum process_stdio stdio)
{
    char script[512];
    struct gate gate;
    struct run run;

    gate_init(&gate);
    run_init(&run);
    fake.leaves_children = true;
    run.options.stdio = stdio;
    run.options.drain = (struct process_drain){CLOCK_NS_PER_MS, FAR_NS};
    gate_script(&gate, script, sizeof script,
                "trap 'exit 4' USR1; me=$$; echo early; "
                "(trap '' HUP; echo held; kill -USR1 $me; exec setsid cat GATE) & "
                "while :; do :; done");
    run_start(&run, script);
    run_until_text(&run, "held");
    run_until_end(&run);
    assert_int_equal(run.end.how, PROCESS_EXITED);
    assert_int_equal(run.end.code, 4);
    assert_true(run.end.drain_cut);
    assert_contains(run_text(&run, STREAM_STDOUT), "early");
    assert_contains(run_text(&run, STREAM_STDOUT), "held");
    gate_open(&gate);
    run_done(&run);
    gate_done(&gate);
}

static void test_held_pipe(void **state)
{
    check_held_output(PROCESS_PIPES);
}

static void test_held_terminal(void **state)
{
    check_held_output(PROCESS_TTY);
}

/* What a background child still says within the drain is there. */
static void test_late_output(void **state)
{
    char script[512];
    struct gate gate;
    struct run run;

    gate_init(&gate);
    run_init(&run);
    fake.leaves_children = true;
    run.options.drain = (struct process_drain){FAR_NS, FAR_NS};
    gate_script(&gate, script, sizeof script, "(cat GATE; echo late) & echo early; exit 4");
    run_start(&run, script);
    run_until_text(&run, "early");
    gate_open(&gate);
    run_until_end(&run);
    assert_int_equal(run.end.code, 4);
    assert_false(run.end.drain_cut);
    assert_contains(run_text(&run, STREAM_STDOUT), "late");
    run_done(&run);
    gate_done(&gate);
}

/* A background child that never stops talking is cut off at the total, not kept alive by talk. */
static void test_talkative_child(void **state)
{
    struct run run;

    run_init(&run);
    fake.leaves_children = true;
    run.options.drain = (struct process_drain){FAR_NS, 20 * CLOCK_NS_PER_MS};
    run_shell(&run, "while :; do echo x; done & exit 0"); /* SIGPIPE ends it when we close */
    assert_true(run.end.drain_cut);
    assert_int_equal(run.end.code, 0);
    run_done(&run);
}

static void set_flag(void *data)
{
    *(bool *)data = true;
}

/* Until the end, but not for longer than `ns` on the real clock. */
static void run_for(struct run *run, uint64_t ns)
{
    struct loop_timer *timer = loop_timer_new(run->loop, set_flag, &run->has_come);
    struct err err;

    run->has_come = run->is_over;
    loop_timer_start(timer, ns);
    assert_int_equal(loop_run(run->loop, &run->has_come, &err), 0);
    loop_timer_free(timer);
}

static void run_until_drain(struct run *run)
{
    while (process_is_running(run->process))
        run_for(run, CLOCK_NS_PER_MS);
}

static void hold(const struct run *run, bool on)
{
    for (int i = 0; i < STREAM_COUNT; i++)
        process_hold_output(run->process, (enum stream)i, on);
}

/* While output is held the drain stands still, and then goes on with the time that was left: not
 * with all of it, */
static void test_held_drain_ends(void **state)
{
    struct gate gate;
    char script[512];
    struct run run;

    gate_init(&gate);
    run_init(&run);
    fake.leaves_children = true;
    clock_freeze(CLOCK_NS_PER_S, 0);
    run.options.drain = (struct process_drain){FAR_NS, FAR_NS};
    gate_script(&gate, script, sizeof script, "cat GATE & exit 0");
    run_start(&run, script);
    run_until_drain(&run);
    clock_advance(FAR_NS - CLOCK_NS_PER_MS);
    hold(&run, true);
    clock_advance(FAR_NS);
    hold(&run, false);
    run_for(&run, 20 * CLOCK_NS_PER_S);
    assert_int_equal(run.ends, 1);
    assert_true(run.end.drain_cut);
    clock_release();
    gate_open(&gate);
    run_done(&run);
    gate_done(&gate);
}

/* and not with none. */
static void test_held_drain_goes_on(void **state)
{
    struct gate gate;
    char script[512];
    struct run run;

    gate_init(&gate);
    run_init(&run);
    fake.leaves_children = true;
    clock_freeze(CLOCK_NS_PER_S, 0);
    run.options.drain = (struct process_drain){FAR_NS, FAR_NS};
    gate_script(&gate, script, sizeof script, "(cat GATE; echo late) & exit 0");
    run_start(&run, script);
    run_until_drain(&run);
    hold(&run, true);
    clock_advance(2 * FAR_NS);
    hold(&run, false);
    run_for(&run, 5 * CLOCK_NS_PER_MS);
    assert_int_equal(run.ends, 0);
    gate_open(&gate);
    run_until_end(&run);
    assert_false(run.end.drain_cut);
    assert_contains(run_text(&run, STREAM_STDOUT), "late");
    clock_release();
    run_done(&run);
    gate_done(&gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_10_mb),
        cmocka_unit_test(test_held_pipe),
        cmocka_unit_test(test_held_terminal),
        cmocka_unit_test(test_late_output),
        cmocka_unit_test(test_talkative_child),
        cmocka_unit_test(test_held_drain_ends),
        cmocka_unit_test(test_held_drain_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
