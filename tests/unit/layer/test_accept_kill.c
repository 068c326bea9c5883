/* An accept, an undo and a drop that are killed with SIGKILL before each of their system calls: who opens the layer next finds the
 * old tree or the new one, and never one in between; and nothing of ours in it. */
#include "accept_trees.h"
#include "hand_layer.h"

#include "../base/support.h"
#include "../patch/killed.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"

#include <stdlib.h>

enum what { WHAT_ACCEPT, WHAT_UNDO, WHAT_DROP };

static struct hand hand;
static enum what what;

static int act(const char *id)
{
    AUTO_FREE char *left = NULL;

    hand_open(&hand);
    left = what == WHAT_ACCEPT ? hand_accept(&hand, ACCEPT_MARKED, NULL)
           : what == WHAT_UNDO ? hand_undo(&hand, 1, NULL)
                               : hand_drop(&hand, NULL);
    return *left ? -1 : 0;
}

/* Which of the two it is; anything else fails the test. */
static bool is_new(void)
{
    AUTO(buf_done) struct buf text = {.max = 1 << 20};

    hand_snapshot(hand.real, false, &text);
    if (str_eq(text.data, TREE_NEW_LINES))
        return true;
    assert_string_equal(text.data, TREE_REAL_LINES);
    return false;
}

/* A server has the layer open all the time: the next one that it lends it to goes on with what was cut off, and then does its own;
 * but not while commands live, since what was planned before them is moved. */
static void accept_lent(void)
{
    const struct accept_request dry = {.flags = ACCEPT_MARKED | ACCEPT_DRY_RUN};
    AUTO(accept_result_done) struct accept_result result = {0};
    struct err err;

    hand_lend(&hand, true);
    if (change_accept(hand.layer, &dry, &result, &err))
        assert_int_equal(err.code, ERR_BUSY);
    hand_close(&hand);
    hand_lend(&hand, false);
    free(hand_accept(&hand, ACCEPT_MARKED, NULL));
    assert_true(is_new());
    hand_close(&hand);
}

/* True when it came to its end. */
static bool run(bool is_far, unsigned nth)
{
    bool came;

    hand_init(&hand, TREE_REAL_TEXT, is_far);
    hand.is_hasty = true;
    hand_step(&hand, TREE_STEP_TEXT);
    if (what == WHAT_UNDO)
        free(hand_accept(&hand, ACCEPT_MARKED, NULL));
    hand_close(&hand);
    came = killed_run(act, hand.id, RENAMES_ALL, nth);
    if (what == WHAT_ACCEPT && nth % 2 == 0)
        accept_lent();
    hand_open(&hand);
    if (what == WHAT_DROP) {
        const size_t left = hand_list(&hand);

        assert_false(is_new());
        assert_true(left == 0 || left == 19);
    } else if (is_new()) {
        assert_listed(&hand, "");
        free(hand_undo(&hand, 0, NULL));
        assert_false(is_new());
    } else {
        assert_listed(&hand, TREE_LISTED);
        free(hand_accept(&hand, ACCEPT_MARKED, NULL));
        assert_true(is_new());
    }
    hand_done(&hand);
    return came;
}

static void check_every(bool is_far, enum what wanted)
{
    const unsigned stride = getenv("CORDON_LAYER_ALL") ? 1 : 41;
    unsigned nth = 1;

    what = wanted;
    while (!run(is_far, nth))
        nth += stride;
    print_message("# %u calls\n", nth);
    assert_true(nth > 100); /* or nothing was killed */
}

static void accept_near(void **state)
{
    check_every(false, WHAT_ACCEPT);
}

static void accept_far(void **state)
{
    check_every(true, WHAT_ACCEPT);
}

static void undo_near(void **state)
{
    check_every(false, WHAT_UNDO);
}

static void undo_far(void **state)
{
    check_every(true, WHAT_UNDO);
}

static void drop(void **state)
{
    check_every(false, WHAT_DROP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accept_near), cmocka_unit_test(accept_far), cmocka_unit_test(undo_near),
        cmocka_unit_test(undo_far),    cmocka_unit_test(drop),
    };

    return cmocka_run_group_tests_name("layer/accept_kill", tests, NULL, NULL);
}
