/* An apply that is killed: before each of its system calls, one run for each. What the next patch
 * in the directory finds is turned into exactly the old tree or exactly the new one, with nothing left
 * over; also when that is killed in turn, before each of its own calls; and on a file system that
 * cannot exchange two names. */
#include "killed.h"
#include "tree.h"

#include "../base/cases.h"
#include "base/auto.h"
#include "patch/apply.h"

#include <stdlib.h>
#include <string.h>

static const char patch_text[] = "*** Begin Patch\n"
                                 "*** Update File: a\n@@\n-1\n+one\n"
                                 "*** Update File: d/b\n@@\n-2\n+two\n"
                                 "*** Delete File: d/gone\n"
                                 "*** Add File: added\n+new\n"
                                 "*** Add File: new/deep/f\n+f\n"
                                 "*** Add File: new/g\n+g\n"
                                 "*** Update File: m\n*** Move to: d/moved\n@@\n m\n+n\n"
                                 "*** End Patch\n";

struct trees {
    json_t *old;
    json_t *new;
};

static int setup(void **state)
{
    struct trees *trees = malloc(sizeof *trees);

    trees->old = json_pack("{s:s, s:s, s:s, s:s, s:s}", "a", "1\n", "d/b", "2\n", "d/gone", "x\n",
                           "m", "m\n", "kept", "k\n");
    trees->new =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "a", "one\n", "d/b", "two\n", "added",
                  "new\n", "new/deep/f", "f\n", "new/g", "g\n", "d/moved", "m\nn\n", "kept", "k\n");
    *state = trees;
    return 0;
}

static int teardown(void **state)
{
    struct trees *trees = *state;

    json_decref(trees->old);
    json_decref(trees->new);
    free(trees);
    return 0;
}

static int act_patch(const char *dir)
{
    struct err err;

    return tree_patch(dir, patch_text, &err);
}

/* What every patch begins with. */
static int act_recover(const char *dir)
{
    AUTO(patch_dir_done) struct patch_dir place = {.fd = -1};
    AUTO(recovery_done) struct recovery recovery = {0};
    AUTO(apply_end) struct apply apply = {.ledger = {.fd = -1}};
    struct err err;

    if (patch_dir_open(dir, &place, &err) || apply_begin(&place, &recovery, &apply, &err))
        return -1;
    return recovery.left_alone.len ? -1 : 0;
}

/* 0: the old tree; 1: the new one; anything else fails the test. */
static unsigned which_tree(const struct trees *trees, const char *dir)
{
    AUTO_JSON json_t *got = tree_read(dir);

    if (json_equal(got, trees->old))
        return 0;
    assert_json_equal(got, trees->new);
    return 1;
}

/* One apply that is killed at its `nth` call, recovered with a kill at the `mth` (0: none). */
struct run {
    enum renames renames;
    unsigned nth;
    unsigned mth;
};

enum { PATCH_WAS_KILLED = 1, RECOVERY_WAS_KILLED = 2 };

static unsigned run_once(const struct trees *trees, const struct run *run, unsigned *ret_which)
{
    char *dir = tree_make(trees->old);
    unsigned killed = 0;

    if (!killed_run(act_patch, dir, run->renames, run->nth))
        killed |= PATCH_WAS_KILLED;
    if (run->mth && !killed_run(act_recover, dir, run->renames, run->mth))
        killed |= RECOVERY_WAS_KILLED;
    if (!killed_run(act_recover, dir, run->renames, 0))
        fail_msg("it was not killed");
    *ret_which = which_tree(trees, dir);
    tree_remove(dir);
    return killed;
}

/* The number of calls that an apply makes. */
static unsigned check_every_kill(const struct trees *trees, enum renames renames)
{
    unsigned which = 0;
    unsigned last = 0;
    unsigned nth = 0;
    unsigned killed;

    do {
        nth++;
        last = which;
        killed = run_once(trees, &(struct run){.renames = renames, .nth = nth}, &which);
        if (last > which)
            fail_msg("the patch was decided before call %u and is not any more", nth);
    } while (killed);
    assert_int_equal(which, 1);
    assert_true(nth > 100); /* or nothing was killed */
    return nth;
}

static void a_killed_patch_is_old_or_new(void **state)
{
    check_every_kill(*state, RENAMES_ALL);
}

static void without_exchange_too(void **state)
{
    check_every_kill(*state, RENAMES_PLAIN);
}

/* Every system call of the recovery, for every `stride`th one of the apply. */
static void check_killed_recoveries(const struct trees *trees, enum renames renames, unsigned first,
                                    unsigned stride)
{
    unsigned wanted;
    unsigned which;
    struct run run = {.renames = renames, .nth = first};

    for (; run.mth = 0, run_once(trees, &run, &wanted); run.nth += stride)
        for (run.mth = 1; run_once(trees, &run, &which) & RECOVERY_WAS_KILLED; run.mth++)
            assert_int_equal(which, wanted);
}

static void a_killed_recovery_is_recovered_from(void **state)
{
    check_killed_recoveries(*state, RENAMES_ALL, 5, 83);
}

static void a_killed_recovery_without_exchange_too(void **state)
{
    check_killed_recoveries(*state, RENAMES_PLAIN, 9, 97);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_patch_is_old_or_new),
        cmocka_unit_test(without_exchange_too),
        cmocka_unit_test(a_killed_recovery_is_recovered_from),
        cmocka_unit_test(a_killed_recovery_without_exchange_too),
    };

    return cmocka_run_group_tests_name("patch/kill", tests, setup, teardown);
}
