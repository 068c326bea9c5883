/* Old steps become one: seen from inside nothing changes, whatever they did. And steps that are taken out. */
#include "real_layer.h"

#include "../base/support.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "layer/inside.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* What is in a tree, with modes and contents. */
#define LIST                                                                                       \
    "find . -printf '%%p %%y %%m %%l\\n' | LC_ALL=C sort; find . -type f -perm -400 | LC_ALL=C "   \
    "sort | xargs -d '\\n' "                                                                       \
    "md5sum"

static uint32_t seed = 1;

static unsigned some(unsigned below)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % below;
}

static const char *name(void)
{
    static const char *const names[] = {"a",     "b",   "c",     "d/e",  "a/b",
                                        "a/b/c", "b/a", "c/c/c", "a/x y"};

    return names[some(sizeof names / sizeof *names)];
}

/* One thing that a command does; the caller frees. */
static char *deed(unsigned number)
{
    switch (some(9)) {
    case 0:
        return alloc_strf("rm -rf '%s'", name());
    case 1:
        return alloc_strf("mkdir -p '%s'", name());
    case 2:
        return alloc_strf("rm -rf '%1$s'; mkdir '%1$s' && echo %2$u > '%1$s/f'", name(), number);
    case 3:
        return alloc_strf("chmod %s '%s'", some(2) ? "0755" : some(2) ? "0555" : "0700", name());
    case 4:
        return alloc_strf("ln -sfn '%u' '%s'", number, name());
    case 5:
        return alloc_strf("mv -T '%s' '%s'", name(), name());
    case 6:
        return alloc_strf("echo %u >> '%s'", number, name());
    default:
        return alloc_strf("mkdir -p \"$(dirname '%1$s')\"; echo %2$u > '%1$s'", name(), number);
    }
}

static void run_both(struct place *place, struct layer *layer, const char *script)
{
    AUTO_FREE char *inside = alloc_strf("exec 2>&-; cd '%s'; %s; true", place->root, script);
    AUTO_FREE char *plain = alloc_strf("exec 2>&-; cd '%s/plain'; %s; true", place->dir, script);

    assert_int_equal(place_run(layer, inside), 0);
    assert_int_equal(system(plain), 0);
}

static void compare(struct place *place, struct layer *layer)
{
    AUTO_FREE char *inside =
        alloc_strf("cd '%s' && { " LIST "; } > '%s/inside'", place->root, place->dir);
    AUTO_FREE char *plain =
        alloc_strf("cd '%1$s/plain' && { " LIST "; } > '%1$s/outside'", place->dir);
    AUTO_FREE char *found = NULL;
    AUTO_FREE char *wanted = NULL;

    place_run(layer, inside);
    assert_true(system(plain) >= 0);
    found = place_text(place, "inside");
    wanted = place_text(place, "outside");
    assert_string_equal(found, wanted);
}

static void test_many_steps(void **state)
{
    struct place place;
    struct layer *layer;
    struct err err;
    size_t most = 0;

    if (!place_init(&place))
        skip();
    seed = getenv("CORDON_SEED") ? (uint32_t)strtoul(getenv("CORDON_SEED"), NULL, 10) : 1;
    {
        AUTO_FREE char *copy =
            alloc_strf("cd '%s' && mkdir -p root/a/b root/c && echo z > root/a/b/c && "
                       "echo y > root/c/c && cp -a root plain",
                       place.dir);

        assert_int_equal(system(copy), 0);
    }
    layer = place_layer(&place, NULL);
    for (unsigned i = 0; i < 110; i++) {
        AUTO_FREE char *one = deed(i);
        AUTO_FREE char *two = deed(i);
        AUTO_FREE char *script = alloc_strf("%s; %s", one, two);
        size_t len;

        run_both(&place, layer, script);
        layer_steps(layer, &len);
        most = len > most ? len : most;
        if (i % 25 == 0 || (len < most && len > 30 && len < 36))
            compare(&place, layer);
    }
    compare(&place, layer);
    assert_in_range(most, 60, 64);
    assert_text(&place, "root/a/b/c", "z\n");
    if (layer_remove(layer, &err))
        fail_msg("%s", err.msg);
    place_done(&place);
}

/* --- what is merged --- */

static void step(struct place *place, struct layer *layer, const char *script)
{
    AUTO_FREE char *inside = alloc_strf("cd '%s' && %s", place->root, script);

    assert_int_equal(place_run(layer, inside), 0);
}

static void test_what_hid_hides(void **state)
{
    static const char *const scripts[] = {"rm -r sub && mkdir sub && echo a > sub/a",
                                          "echo b > sub/b", "echo c > c", "echo d > d"};
    const struct layer_step *steps;
    struct timespec begun;
    struct place place;
    struct layer *layer;
    struct err err;
    size_t len;

    if (!place_init(&place))
        skip();
    layer = place_layer(&place, NULL);
    for (size_t i = 0; i < 4; i++)
        step(&place, layer, scripts[i]);
    steps = layer_steps(layer, &len);
    assert_int_equal(len, 4);
    begun = steps[0].begun;
    if (squash_steps(layer, &err))
        fail_msg("%s", err.msg);
    steps = layer_steps(layer, &len);
    assert_int_equal(len, 3);
    assert_int_equal(steps[0].number, 2);
    assert_int_equal(steps[0].squashed_from, 1);
    assert_memory_equal(&steps[0].begun, &begun, sizeof begun);
    step(&place, layer, "test ! -e sub/two && grep -q a sub/a && grep -q b sub/b && test -e d");
    layer_close(layer);
    place_done(&place);
}

/* --- steps that are taken out --- */

/* 0, or the path that the message names. */
static void check_undo(const char *first, const char *second, const char *conflict,
                       const char *after)
{
    struct place place;
    struct layer *layer;
    struct err err;

    if (!place_init(&place))
        skip();
    layer = place_layer(&place, NULL);
    step(&place, layer, first);
    step(&place, layer, second);
    if (conflict) {
        assert_int_equal(layer_undo_step(layer, 1, &err), -1);
        assert_int_equal(err.code, ERR_CONFLICT);
        assert_contains(err.msg, conflict);
        assert_int_equal(layer_undo_step(layer, 2, &err), 0);
    }
    if (layer_undo_step(layer, 1, &err))
        fail_msg("%s", err.msg);
    step(&place, layer, after);
    layer_close(layer);
    place_done(&place);
}

static void test_undo_apart(void **state)
{
    check_undo("echo a > new && rm one", "echo b > other", NULL,
               "test ! -e new && grep -q 1 one && grep -q b other");
    check_undo("echo a > sub/new", "echo b > sub/other", NULL,
               "test ! -e sub/new && grep -q b sub/other");
    check_undo("rm -r sub", "echo b > one", NULL, "grep -q 2 sub/two && grep -q b one");
}

static void test_undo_conflict(void **state)
{
    check_undo("echo a > one", "echo b > one", "/root/one", "grep -q 1 one");
    check_undo("mkdir d && echo a > d/f", "echo b > d/g", "/root/d", "test ! -e d");
    check_undo("echo a > sub/two", "rm -r sub", "/root/sub", "grep -q 2 sub/two");
    check_undo("echo a > sub/new", "rm -r sub && mkdir sub && echo x > sub/x", "/root/sub",
               "grep -q 2 sub/two");
    check_undo("rm -r sub", "mkdir sub && echo x > sub/x", "/root/sub", "grep -q 2 sub/two");
    check_undo("chmod 0700 sub && echo x > sub/x", "echo y > sub/y", "/root/sub",
               "test $(stat -c %a sub) = 755");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_steps),
        cmocka_unit_test(test_what_hid_hides),
        cmocka_unit_test(test_undo_apart),
        cmocka_unit_test(test_undo_conflict),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
