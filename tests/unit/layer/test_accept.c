/* Accepting, dropping and undoing: each kind of change, near and far, and what has to stay. */
#include "hand_layer.h"

#include "../base/support.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/path.h"

#include <stdlib.h>
#include <unistd.h>

static const char real_text[] = "f keep k\n"
                                "f mod old\n"
                                "x tool t\n"
                                "f gone g\n"
                                "l link here\n"
                                "f type file\n"
                                "f dir/a a\n"
                                "f dir/b b\n"
                                "f tree/one 1\n"
                                "f tree/sub/two 2\n"
                                "f swap/x x\n"
                                "f flat f\n";
static const char real_lines[] = "d 755 .\n"
                                 "d 755 dir\n"
                                 "f 644 dir/a a\n"
                                 "f 644 dir/b b\n"
                                 "f 644 flat f\n"
                                 "f 644 gone g\n"
                                 "f 644 keep k\n"
                                 "l 777 link here\n"
                                 "f 644 mod old\n"
                                 "d 755 swap\n"
                                 "f 644 swap/x x\n"
                                 "f 755 tool t\n"
                                 "d 755 tree\n"
                                 "f 644 tree/one 1\n"
                                 "d 755 tree/sub\n"
                                 "f 644 tree/sub/two 2\n"
                                 "f 644 type file\n";
static const char step_text[] = "c mod new\n"
                                "w gone\n"
                                "l type there\n"
                                "f new/deep/file n\n"
                                "d empty\n"
                                "o dir\n"
                                "f dir/c c\n"
                                "f dir/b b\n"
                                "w tree\n"
                                "f swap s\n"
                                "f flat/in i\n"
                                "c keep k\n";
static const char new_lines[] = "d 755 .\n"
                                "d 755 dir\n"
                                "f 644 dir/b b\n"
                                "f 644 dir/c c\n"
                                "d 755 empty\n"
                                "d 755 flat\n"
                                "f 644 flat/in i\n"
                                "f 644 keep k\n"
                                "l 777 link here\n"
                                "f 644 mod new\n"
                                "d 755 new\n"
                                "d 755 new/deep\n"
                                "f 644 new/deep/file n\n"
                                "f 644 swap s\n"
                                "f 755 tool t\n"
                                "l 777 type there\n";
static const char all_listed[] = "D dir/a\n"
                                 "A dir/c\n"
                                 "A empty\n"
                                 "D flat\n"
                                 "A flat\n"
                                 "A flat/in\n"
                                 "D gone\n"
                                 "M mod\n"
                                 "A new\n"
                                 "A new/deep\n"
                                 "A new/deep/file\n"
                                 "D swap\n"
                                 "A swap\n"
                                 "D swap/x\n"
                                 "D tree\n"
                                 "D tree/one\n"
                                 "D tree/sub\n"
                                 "D tree/sub/two\n"
                                 "T type\n";

static void assert_none_left(char *left)
{
    assert_string_equal(left, "");
    free(left);
}

static void assert_left(char *left, const char *wanted)
{
    assert_string_equal(left, wanted);
    free(left);
}

static void all_and_back(bool is_far)
{
    AUTO(buf_done) struct buf before = {.max = 1 << 20};
    AUTO(buf_done) struct buf after = {.max = 1 << 20};
    struct hand hand;

    hand_init(&hand, real_text, is_far);
    hand_snapshot(hand.real, true, &before);
    hand_step(&hand, step_text);
    assert_listed(&hand, all_listed);
    assert_real(&hand, real_lines);
    for (int i = 0; i < 3; i++) {
        assert_none_left(hand_accept(&hand, ACCEPT_MARKED, NULL));
        assert_real(&hand, new_lines);
        assert_listed(&hand, "");
        assert_none_left(hand_undo(&hand, 0, NULL));
        buf_clear(&after);
        hand_snapshot(hand.real, true, &after);
        assert_string_equal(after.data, before.data);
        assert_listed(&hand, all_listed);
    }
    hand_done(&hand);
}

static void near(void **state)
{
    all_and_back(false);
}

static void far(void **state)
{
    all_and_back(true);
}

static void one_by_one(void **state)
{
    struct hand hand;
    const char *const c[] = {"dir/c", NULL};
    const char *const deep[] = {"new/deep/file", NULL};
    const char *const sub[] = {"tree/sub", NULL};
    const char *const flat[] = {"flat", NULL};

    hand_init(&hand, real_text, false);
    hand_step(&hand, step_text);
    assert_none_left(hand_accept(&hand, 0, c));
    assert_none_left(hand_accept(&hand, 0, deep));
    assert_none_left(hand_accept(&hand, 0, sub));
    assert_none_left(hand_accept(&hand, 0, flat));
    assert_listed(&hand, "D dir/a\nA empty\nD gone\nM mod\nD swap\nA swap\nD swap/x\nD tree\nD "
                         "tree/one\nT type\n");
    assert_none_left(hand_undo(&hand, 0, NULL));
    assert_none_left(hand_undo(&hand, 0, NULL));
    assert_none_left(hand_undo(&hand, 0, NULL));
    assert_none_left(hand_undo(&hand, 0, NULL));
    assert_listed(&hand, all_listed);
    assert_real(&hand, real_lines);
    hand_done(&hand);
}

static void dropped(void **state)
{
    struct hand hand;
    const char *const c[] = {"dir", NULL};
    const char *const tree[] = {"tree/sub/two", NULL};

    hand_init(&hand, real_text, false);
    hand_step(&hand, step_text);
    assert_none_left(hand_drop(&hand, c));
    assert_left(hand_drop(&hand, tree), "");
    assert_listed(&hand, "A empty\nD flat\nA flat\nA flat/in\nD gone\nM mod\nA new\nA new/deep\n"
                         "A new/deep/file\nD swap\nA swap\nD swap/x\nD tree/one\nT type\n");
    assert_none_left(hand_drop(&hand, NULL));
    assert_listed(&hand, "");
    assert_real(&hand, real_lines);
    hand_done(&hand);
}

static void several_steps(void **state)
{
    struct hand hand;

    hand_init(&hand, real_text, false);
    hand_step(&hand, "c mod one\nf made 1\nw tree\nf gone/x y\nf dir/a A\n");
    hand_step(&hand, "c mod two\nw made\no tree\nf tree/one other\nw gone/x\nw dir\n");
    hand_step(&hand, "f mod three\nf again 3\n");
    assert_none_left(hand_accept(&hand, ACCEPT_MARKED, NULL));
    assert_real(&hand,
                "d 755 .\nf 644 again 3\nf 644 flat f\nd 755 gone\nf 644 keep k\nl 777 link here\n"
                "f 644 mod three\nd 755 swap\nf 644 swap/x x\nf 755 tool t\nd 755 tree\nf 644 "
                "tree/one other\n"
                "f 644 type file\n");
    assert_listed(&hand, "");
    assert_none_left(hand_undo(&hand, 0, NULL));
    assert_real(&hand, real_lines);
    hand_done(&hand);
}

/* What a later step has removed does not come back into the layer. */
static void removed_later(void **state)
{
    struct hand hand;

    hand_init(&hand, "f mod old\n", false);
    hand_step(&hand, "c mod new\nf made/sub/x 1\nf made/y 2\n");
    assert_none_left(hand_accept(&hand, ACCEPT_MARKED, NULL));
    hand_step(&hand, "w made\nw mod\n");
    assert_none_left(hand_undo(&hand, 0, NULL));
    assert_real(&hand, "d 755 .\nf 644 mod old\n");
    assert_listed(&hand, "D mod\n");
    hand_done(&hand);
}

static void settled(void **state)
{
    struct hand hand;
    size_t settled, steps;
    struct err err;

    hand_init(&hand, real_text, false);
    hand_step(&hand, step_text);
    assert_int_equal(change_settle(hand.layer, &settled, &err), 0);
    assert_int_equal(settled, 2); /* dir/b and keep */
    assert_listed(&hand, all_listed);
    hand_step(&hand, "f dir/more 1\n");
    assert_none_left(hand_accept(&hand, ACCEPT_MARKED, NULL));
    assert_int_equal(change_settle(hand.layer, &settled, &err), 0);
    assert_listed(&hand, "");
    layer_steps(hand.layer, &steps);
    assert_int_equal(steps, 1); /* for what is taken back */
    assert_none_left(hand_undo(&hand, 0, NULL));
    hand_done(&hand);
}

/* Who takes a part of what conflicts has not said that the rest may be taken, too. */
static void a_part_over_a_conflict(void **state)
{
    AUTO(accept_result_done) struct accept_result result = {0};
    AUTO_FREE char *path = NULL;
    struct accept_text text = {.text = "mine, and a part", .len = 16};
    char *paths[] = {NULL, NULL};
    const struct accept_request request = {.paths = paths, .flags = ACCEPT_FORCE, .text = &text};
    struct hand hand;
    struct err err;

    hand_init(&hand, "f mod old\n", false);
    hand_step(&hand, "c mod new\n");
    hand_write(hand.real, "f mod mine\n");
    assert_listed(&hand, "M mod conflict\n");
    path = path_join(hand.real, "mod");
    text.path = paths[0] = path;
    assert_int_equal(change_accept(hand.layer, &request, &result, &err), 0);
    assert_int_equal(result.done.len, 1);
    assert_listed(&hand, "M mod conflict\n");
    assert_left(hand_accept(&hand, 0, NULL), "mod: conflict\n");
    assert_none_left(hand_undo(&hand, 0, NULL));
    assert_real(&hand, "d 755 .\nf 644 mod mine\n");
    assert_listed(&hand, "M mod conflict\n");
    hand_done(&hand);
}

/* What has to be told twice, and what is never taken. */
static void left_in_the_layer(void **state)
{
    struct hand hand;
    const char *const tool[] = {"tool", NULL};

    hand_init(&hand, "f a a\nf b b\n", false);
    hand_step(&hand, "c a layer\nc b layer\nx tool t\np pipe\nl out /etc\n");
    hand_write(hand.real, "f a person\n");
    assert_left(hand_accept(&hand, 0, NULL),
                "a: conflict\nout: marked\npipe: special\ntool: marked\n");
    assert_none_left(hand_accept(&hand, 0, tool));
    assert_left(hand_accept(&hand, ACCEPT_MARKED | ACCEPT_FORCE, NULL), "pipe: special\n");
    assert_real(&hand, "d 755 .\nf 644 a layer\nf 644 b layer\nl 777 out /etc\nf 755 tool t\n");
    assert_none_left(hand_undo(&hand, 0, NULL));
    assert_real(&hand, "d 755 .\nf 644 a person\nf 644 b layer\nf 755 tool t\n");
    assert_left(hand_accept(&hand, ACCEPT_MARKED, NULL), "a: conflict\npipe: special\n");
    hand_done(&hand);
}

/* What a folder hides, of the real files and of an older step, stays hidden when one path in it is real. */
static void one_in_a_folder_that_hides(void **state)
{
    const char *const one[] = {"d/new", NULL};
    struct hand hand;

    hand_init(&hand, "f d/real r\nf d/sub/below b\n", false);
    hand_step(&hand, "f d/old 1\n");
    hand_step(&hand, "o d\nf d/new 2\nf d/sub/x 2\n");
    assert_none_left(hand_accept(&hand, 0, one));
    assert_real(&hand, "d 755 .\nd 755 d\nf 644 d/new 2\nf 644 d/real r\nd 755 d/sub\nf 644 "
                       "d/sub/below b\n");
    assert_listed(&hand, "D d/real\nD d/sub/below\nA d/sub/x\n");
    hand_done(&hand);
}

static void what_was_shown(void **state)
{
    AUTO(accept_result_done) struct accept_result result = {0};
    AUTO_FREE char *path = NULL;
    struct accept_expected expected = {.layer = {.ino = 1}};
    const struct accept_request request = {.expected = &expected, .expected_len = 1};
    struct hand hand;
    struct err err;

    hand_init(&hand, "f a a\n", false);
    hand_step(&hand, "c a layer\n");
    expected.path = path = path_join(hand.real, "a");
    assert_int_equal(change_accept(hand.layer, &request, &result, &err), 0);
    assert_int_equal(result.left_len, 1);
    assert_int_equal(result.left[0].why, LEFT_CHANGED);
    assert_real(&hand, "d 755 .\nf 644 a a\n");
    hand_done(&hand);
}

/* Commands live: copies, the layer keeps its own, and goes on from there. */
static void while_it_lives(void **state)
{
    AUTO(buf_done) struct buf before = {.max = 1 << 20};
    AUTO(buf_done) struct buf after = {.max = 1 << 20};
    struct hand hand;
    size_t settled;
    struct err err;

    hand_init(&hand, real_text, false);
    hand_snapshot(hand.real, true, &before);
    hand_step(&hand, step_text);
    hand_live(&hand, true);
    assert_none_left(hand_accept(&hand, ACCEPT_MARKED, NULL));
    assert_real(&hand, new_lines);
    assert_listed(&hand, "");
    hand_add(&hand, 1, "c mod newer\n");
    assert_listed(&hand, "M mod\n");
    assert_none_left(hand_accept(&hand, 0, NULL));
    assert_listed(&hand, "");
    assert_none_left(hand_undo(&hand, 0, NULL));
    assert_none_left(hand_undo(&hand, 0, NULL));
    hand_snapshot(hand.real, true, &after);
    assert_string_equal(after.data, before.data);
    assert_listed(&hand, all_listed);
    assert_none_left(hand_accept(&hand, ACCEPT_MARKED, NULL));
    hand_live(&hand, false);
    assert_int_equal(change_settle(hand.layer, &settled, &err), 0);
    assert_listed(&hand, "");
    assert_none_left(hand_undo(&hand, 0, NULL));
    hand_done(&hand);
}

static void a_part_and_the_rest(bool is_far)
{
    AUTO(accept_result_done) struct accept_result result = {0};
    AUTO_FREE char *path = NULL;
    char *paths[2] = {NULL};
    struct accept_text text = {.text = "half", .len = 4};
    const struct accept_request request = {.paths = paths, .text = &text};
    struct hand hand;
    struct err err;

    hand_init(&hand, "f a old\n", is_far);
    hand_step(&hand, "c a layer\n");
    text.path = paths[0] = path = path_join(hand.real, "a");
    assert_int_equal(change_accept(hand.layer, &request, &result, &err), 0);
    assert_int_equal(result.left_len, 0);
    assert_real(&hand, "d 755 .\nf 644 a half\n");
    assert_listed(&hand, "M a\n");
    assert_none_left(hand_accept(&hand, 0, NULL));
    assert_real(&hand, "d 755 .\nf 644 a layer\n");
    assert_none_left(hand_undo(&hand, 0, NULL));
    assert_real(&hand, "d 755 .\nf 644 a half\n");
    assert_none_left(hand_undo(&hand, 0, NULL));
    assert_real(&hand, "d 755 .\nf 644 a old\n");
    assert_listed(&hand, "M a\n");
    hand_done(&hand);
}

static void a_part_of_it(void **state)
{
    a_part_and_the_rest(false);
    a_part_and_the_rest(true);
}

/* What somebody did since is not undone. */
static void changed_since(void **state)
{
    struct hand hand;

    hand_init(&hand, "f a a\nf b b\nf c c\n", false);
    hand_step(&hand, "c a layer\nc b layer\nw c\nf d d\nf e/f f\n");
    assert_none_left(hand_accept(&hand, 0, NULL));
    hand_write(hand.real, "f a person\nf c person\nf d person\nf e/g person\n");
    assert_left(hand_undo(&hand, 0, NULL), "e: later\nd: later\na: later\nc: later\n");
    assert_real(&hand,
                "d 755 .\nf 644 a person\nf 644 b b\nf 644 c person\nf 644 d person\nd 755 e\n"
                "f 644 e/g person\n");
    hand_done(&hand);
}

/* As many as CORDON_LAYER_CHANGES says: a third each made, changed and removed, twenty in a folder. */
static void many(bool is_far)
{
    const char *wanted = getenv("CORDON_LAYER_CHANGES");
    const int count = wanted ? atoi(wanted) : is_far ? 100 : 300;
    AUTO(buf_done) struct buf real = {.max = 64 << 20};
    AUTO(buf_done) struct buf step = {.max = 64 << 20};
    AUTO(buf_done) struct buf before = {.max = 64 << 20};
    AUTO(buf_done) struct buf after = {.max = 64 << 20};
    uint64_t begun, listed, accepted, undone;
    struct hand hand;

    for (int i = 0; i < count; i++) {
        if (i % 3)
            buf_appendf(&real, "f d%d/e%d/f%d text of %d\n", i / 400, i / 20, i, i);
        buf_appendf(&step, i % 3 == 2 ? "w d%d/e%d/f%d\n" : "c d%d/e%d/f%d text\n", i / 400, i / 20,
                    i);
    }
    hand_init(&hand, real.data, is_far);
    hand_snapshot(hand.real, true, &before);
    hand_step(&hand, step.data);
    begun = clock_now_ns();
    hand_list(&hand);
    listed = clock_now_ns();
    assert_none_left(hand_accept(&hand, ACCEPT_MARKED, NULL));
    accepted = clock_now_ns();
    assert_none_left(hand_undo(&hand, 0, NULL));
    undone = clock_now_ns();
    print_message("# %d changes%s: list %d us, accept %d us, undo %d us\n", count,
                  is_far ? ", far" : "", (int)((listed - begun) / 1000),
                  (int)((accepted - listed) / 1000), (int)((undone - accepted) / 1000));
    hand_snapshot(hand.real, true, &after);
    assert_string_equal(after.data, before.data);
    hand_done(&hand);
}

static void many_near(void **state)
{
    many(false);
}

static void many_far(void **state)
{
    many(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near),
        cmocka_unit_test(far),
        cmocka_unit_test(one_by_one),
        cmocka_unit_test(dropped),
        cmocka_unit_test(several_steps),
        cmocka_unit_test(settled),
        cmocka_unit_test(one_in_a_folder_that_hides),
        cmocka_unit_test(a_part_over_a_conflict),
        cmocka_unit_test(left_in_the_layer),
        cmocka_unit_test(what_was_shown),
        cmocka_unit_test(while_it_lives),
        cmocka_unit_test(a_part_of_it),
        cmocka_unit_test(changed_since),
        cmocka_unit_test(removed_later),
        cmocka_unit_test(many_near),
        cmocka_unit_test(many_far),
    };

    return cmocka_run_group_tests_name("layer/accept", tests, NULL, NULL);
}
