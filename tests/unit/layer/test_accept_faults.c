/* "Fail the n-th system call" of accepting, undoing, dropping and settling: whichever fails, nothing is lost. What was not done is
 * in the layer still, and is done by doing it once more; nothing of ours is left in the real files. And whichever somebody else
 * comes before, with a link that leads out in the place of a folder, nothing is done where it leads. */
#include "accept_trees.h"
#include "hand_layer.h"

#include "../base/support.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/sys.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef CORDON_FAULTS
#error "has to be compiled with -DCORDON_FAULTS, like the sources that it links"
#endif

enum what { WHAT_ACCEPT, WHAT_UNDO, WHAT_DROP, WHAT_SETTLE };

static void begin(struct hand *hand, bool is_far, enum what what)
{
    hand_init(hand, TREE_REAL_TEXT, is_far);
    hand->is_hasty = true;
    hand_step(hand, TREE_STEP_TEXT);
    if (what == WHAT_UNDO)
        free(hand_accept(hand, ACCEPT_MARKED, NULL));
}

static char *act(struct hand *hand, enum what what)
{
    size_t settled;
    struct err err;

    if (what == WHAT_ACCEPT)
        return hand_accept(hand, ACCEPT_MARKED, NULL);
    if (what == WHAT_UNDO)
        return hand_undo(hand, 1, NULL);
    if (what == WHAT_DROP)
        return hand_drop(hand, NULL);
    return alloc_str(change_settle(hand->layer, &settled, &err) ? "failed" : "");
}

/* Once more, as somebody does who reads that it has failed. */
static void again(struct hand *hand, enum what what)
{
    for (int i = 0; i < 3; i++) {
        AUTO_FREE char *left = act(hand, what);

        if (!*left)
            return;
    }
}

static void check(struct hand *hand, enum what what)
{
    if (what == WHAT_ACCEPT) {
        assert_real(hand, TREE_NEW_LINES);
        assert_listed(hand, "");
        for (int i = 0; i < 4; i++) /* in as many parts as it came */
            free(hand_undo(hand, 0, NULL));
        assert_real(hand, TREE_REAL_LINES);
        assert_listed(hand, TREE_LISTED);
    } else {
        assert_real(hand, TREE_REAL_LINES);
        assert_listed(hand, what == WHAT_DROP ? "" : TREE_LISTED);
    }
}

/* Whether a call failed. */
static bool run(bool is_far, enum what what, unsigned nth, int error)
{
    struct hand hand;
    bool has_failed;
    char *left;

    begin(&hand, is_far, what);
    sys_fault_at(nth, error);
    left = act(&hand, what);
    has_failed = nth && sys_fault_count() >= nth;
    sys_fault_at(0, 0);
    free(left);
    hand_close(&hand);
    hand_open(&hand);
    again(&hand, what);
    check(&hand, what);
    hand_done(&hand);
    return has_failed;
}

static void check_every(bool is_far, enum what what, int error)
{
    const unsigned stride = getenv("CORDON_LAYER_ALL") ? 1 : 17;
    unsigned nth = 1;

    assert_false(run(is_far, what, 0, 0));
    while (run(is_far, what, nth, error))
        nth += stride;
    print_message("# %u calls\n", nth);
}

static void accept_near(void **state)
{
    check_every(false, WHAT_ACCEPT, EIO);
}

static void accept_far(void **state)
{
    check_every(true, WHAT_ACCEPT, ENOSPC);
}

static void undo_near(void **state)
{
    check_every(false, WHAT_UNDO, EIO);
}

static void undo_far(void **state)
{
    check_every(true, WHAT_UNDO, ENOSPC);
}

static void drop(void **state)
{
    check_every(false, WHAT_DROP, EIO);
}

static void settle(void **state)
{
    check_every(false, WHAT_SETTLE, EIO);
}

/* --- somebody else meanwhile --- */

static struct {
    char *folders[2];
    char *aside[2];
    char *outside;
} links;

static void put_links(int signal)
{
    for (int i = 0; i < 2; i++)
        if (rename(links.folders[i], links.aside[i]) == 0 &&
            symlink(links.outside, links.folders[i]))
            abort();
}

static void links_init(const struct hand *hand)
{
    links.folders[0] = path_join(hand->real, "d");
    links.folders[1] = path_join(hand->real, "n");
    links.aside[0] = path_join(hand->dir, "aside-d");
    links.aside[1] = path_join(hand->dir, "aside-n");
    links.outside = path_join(hand->dir, "outside");
    hand_write(hand->dir, "f outside/f outside\n");
    assert_int_equal(chmod(links.outside, 0700), 0);
}

static void links_done(void)
{
    for (int i = 0; i < 2; i++) {
        free(links.folders[i]);
        free(links.aside[i]);
    }
    free(links.outside);
}

/* Whether he came. */
static bool run_with_links(unsigned nth)
{
    AUTO(buf_done) struct buf text = {.max = 4096};
    struct hand hand;
    bool has_come;

    hand_init(&hand, "f d/f old\n", false);
    hand.is_hasty = true;
    hand_step(&hand, "c d/f new\nm d\nf n/f new\nm n\n");
    links_init(&hand);
    sys_fault_at(nth, SYS_FAULT_USER1);
    free(hand_accept(&hand, ACCEPT_MARKED, NULL));
    free(hand_undo(&hand, 1, NULL));
    has_come = sys_fault_count() >= nth;
    sys_fault_at(0, 0);
    hand_snapshot(links.outside, false, &text);
    assert_string_equal(text.data, "d 700 .\nf 644 f outside\n");
    links_done();
    hand_done(&hand);
    return has_come;
}

static void links_meanwhile(void **state)
{
    unsigned nth = 1;

    signal(SIGUSR1, put_links);
    while (run_with_links(nth))
        nth += getenv("CORDON_LAYER_ALL") ? 1 : 5;
    print_message("# %u calls\n", nth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accept_near),
        cmocka_unit_test(accept_far),
        cmocka_unit_test(undo_near),
        cmocka_unit_test(undo_far),
        cmocka_unit_test(drop),
        cmocka_unit_test(settle),
        cmocka_unit_test(links_meanwhile),
    };

    return cmocka_run_group_tests_name("layer/accept_faults", tests, NULL, NULL);
}
