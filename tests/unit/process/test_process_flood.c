/* process: thousands of commands that print and end at once, many at a time, by pipe and by
 * terminal, also when a child of each stays and holds its output open: every byte comes, in order.
 *
 * The quiet time is next to nothing, so that whoever does not read everything before giving up
 * loses something. The naive loop, which stops at hang-up, loses the tail of most terminals; one
 * that trusts its timer loses what the kernel had no room to report in the same turn. */
#include "../base/sanitized.h"
#include "fake_sandbox.h"
#include "run.h"

#include <stdio.h>
#include <stdlib.h>

#define AT_ONCE_NS 1

enum { FLOOD = SANITIZED ? 300 : 3000, IN_FLIGHT = 60 };

struct flood {
    struct loop *loop;
    enum process_stdio stdio;
    bool holds; /* a child of each holds its output open */
    size_t total;
    size_t started;
    size_t ended;
    bool is_over;
};

struct emitter {
    struct flood *flood;
    struct process *process;
    size_t expected;
    size_t got;
};

/* Around what a terminal and a pipe take at a time, and all kinds of others. */
static size_t flood_size(size_t i)
{
    static const size_t edges[] = {0, 1, 4095, 4096, 4097, 8192, 65535, 65536, 65537, 131073};
    const size_t len = sizeof edges / sizeof *edges;

    return i % 10 == 0 ? edges[i / 10 % len] : (i * 7919) % 20011;
}

static void emitter_start(struct flood *flood);

static void emitter_on_output(void *data, enum stream stream, const char *bytes, size_t len,
                              uint64_t offset)
{
    struct emitter *emitter = data;

    assert_int_equal(offset, emitter->got);
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != (char)('a' + (emitter->got + i) % 23))
            fail_msg("byte %zu of %zu is wrong", emitter->got + i, emitter->expected);
    emitter->got += len;
}

static void emitter_on_end(void *data, const struct process_end *end)
{
    struct emitter *emitter = data;
    struct flood *flood = emitter->flood;

    assert_int_equal(end->how, PROCESS_EXITED);
    assert_int_equal(end->code, 0);
    assert_int_equal(emitter->got, emitter->expected);
    assert_int_equal(end->drain_cut, flood->holds);
    process_free(emitter->process);
    free(emitter);
    flood->is_over = ++flood->ended == flood->total;
    if (flood->started < flood->total)
        emitter_start(flood);
}

static void emitter_start(struct flood *flood)
{
    static const struct process_events events = {.on_output = emitter_on_output,
                                                 .on_end = emitter_on_end};
    struct emitter *emitter = calloc(1, sizeof *emitter);
    char size[32];
    char *const argv[] = {(char *)getenv("EMIT"), size, (char *)(flood->holds ? "hold" : NULL),
                          NULL};
    struct err err;

    assert_non_null(emitter);
    emitter->flood = flood;
    emitter->expected = flood_size(flood->started++);
    snprintf(size, sizeof size, "%zu", emitter->expected);
    emitter->process = process_start(
        &(struct process_options){
            .loop = flood->loop,
            .sandbox = fake_sandbox(),
            .argv = argv,
            .env = test_env,
            .cwd = "/",
            .stdio = flood->stdio,
            .drain = {.quiet_ns = AT_ONCE_NS, .total_ns = FAR_NS},
            .events = &events,
            .data = emitter,
        },
        &err);
    if (!emitter->process)
        fail_msg("process_start: %s", err.msg);
}

static void check_flood(enum process_stdio stdio, bool holds)
{
    struct err err;
    struct flood flood = {.loop = loop_new(&err), .stdio = stdio, .holds = holds, .total = FLOOD};

    fake = (struct fake){.leaves_children = holds};
    assert_non_null(flood.loop);
    while (flood.started < IN_FLIGHT)
        emitter_start(&flood);
    if (loop_run(flood.loop, &flood.is_over, &err))
        fail_msg("loop_run: %s", err.msg);
    loop_free(flood.loop);
    assert_int_equal(fake.done, flood.total);
}

static void test_flood_of_pipes(void **state)
{
    check_flood(PROCESS_PIPES, false);
}

static void test_flood_of_terminals(void **state)
{
    check_flood(PROCESS_TTY, false);
}

static void test_flood_of_held_pipes(void **state)
{
    check_flood(PROCESS_PIPES, true);
}

static void test_flood_of_held_terminals(void **state)
{
    check_flood(PROCESS_TTY, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flood_of_pipes),
        cmocka_unit_test(test_flood_of_terminals),
        cmocka_unit_test(test_flood_of_held_pipes),
        cmocka_unit_test(test_flood_of_held_terminals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
