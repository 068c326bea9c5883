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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_10_mb),           cmocka_unit_test(test_held_pipe),
        cmocka_unit_test(test_held_terminal),   cmocka_unit_test(test_late_output),
        cmocka_unit_test(test_talkative_child),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
