/* plan_reader: a plan with one thing wrong is refused, whatever it is. (That what is taken can be
 * used: fuzz/fuzz_plan.c.) */
#include "../base/support.h"

#include "sandbox/launcher/plan_reader.h"

#include <stdbool.h>
#include <string.h>

/* The smallest plan with one of everything. */
struct small_plan {
    struct plan_header header;
    struct plan_record record;
    struct plan_filter filter;
    char strings[16];
};

static const struct small_plan sound = {
    .header = {.magic = PLAN_MAGIC,
               .version = PLAN_VERSION,
               .bytes = sizeof(struct small_plan),
               .records = 1,
               .filters = 1,
               .strings = sizeof sound.strings,
               .argv = 1,
               .argc = 2,
               .envp = 7,
               .envc = 1},
    .record = {.op = PLAN_LINK, .path = 1, .other = 4, .slot = PLAN_MAX_SLOTS - 1},
    .strings = "\0ls\0-l\0A=B\0/etc", /* and the NUL behind it */
};

static bool is_taken(const struct small_plan *plan)
{
    struct plan_view view;
    struct err err;

    return plan_view_init(&view, plan, sizeof *plan, &err) == 0;
}

/* At the greatest value that there may be, and right behind it. */
#define CHECK_BOUND(member, greatest)                                                              \
    do {                                                                                           \
        struct small_plan plan = sound;                                                            \
                                                                                                   \
        plan.member = (greatest);                                                                  \
        assert_true(is_taken(&plan));                                                              \
        plan.member++;                                                                             \
        assert_false(is_taken(&plan));                                                             \
    } while (0)

#define CHECK_EXACT(member)                                                                        \
    do {                                                                                           \
        struct small_plan plan = sound;                                                            \
                                                                                                   \
        plan.member++;                                                                             \
        assert_false(is_taken(&plan));                                                             \
        plan.member -= 2;                                                                          \
        assert_false(is_taken(&plan));                                                             \
    } while (0)

static void indexes_stay_in_their_tables(void **state)
{
    CHECK_BOUND(record.op, PLAN_OP_COUNT - 1);
    CHECK_BOUND(record.slot, PLAN_MAX_SLOTS - 1);
    CHECK_BOUND(record.path, sizeof sound.strings - 1);
    CHECK_BOUND(record.other, sizeof sound.strings - 1);
    CHECK_BOUND(header.program, sizeof sound.strings - 1);
    CHECK_BOUND(header.cwd, sizeof sound.strings - 1);
}

static void lists_end_within_the_strings(void **state)
{
    CHECK_BOUND(header.argc, 4);
    CHECK_BOUND(header.envc, 2);
    CHECK_BOUND(header.argv, 10); /* the NUL in front of the last one: two */
    CHECK_BOUND(header.envp, sizeof sound.strings - 1);
}

static void sizes_and_numbers_are_exact(void **state)
{
    CHECK_EXACT(header.magic);
    CHECK_EXACT(header.version);
    CHECK_EXACT(header.bytes);
    CHECK_EXACT(header.records);
    CHECK_EXACT(header.filters);
    CHECK_EXACT(header.strings);
}

static void there_is_a_command_and_an_end(void **state)
{
    struct small_plan plan = sound;
    struct plan_view view;
    struct err err;

    assert_true(is_taken(&plan));
    plan.header.argc = 0;
    assert_false(is_taken(&plan));
    plan = sound;
    plan.strings[sizeof plan.strings - 1] = 'x';
    assert_false(is_taken(&plan));
    plan = sound;
    plan.strings[0] = 'x'; /* offset 0 is the empty string */
    assert_false(is_taken(&plan));
    for (size_t bytes = 0; bytes < sizeof sound; bytes++)
        assert_int_equal(plan_view_init(&view, &sound, bytes, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indexes_stay_in_their_tables),
        cmocka_unit_test(lists_end_within_the_strings),
        cmocka_unit_test(sizes_and_numbers_are_exact),
        cmocka_unit_test(there_is_a_command_and_an_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
