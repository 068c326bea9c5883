/* Layers that are made, entered, left and opened again, with real mounts. */
#include "real_layer.h"

#include "../base/support.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "layer/inside.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_a_step_is_kept_apart(void **state)
{
    struct place place;
    struct layer *layer;
    const struct layer_step *steps;
    size_t len;
    struct err err;
    AUTO_FREE char *id = NULL;

    if (!place_init(&place))
        skip();
    layer = place_layer(&place, "work");
    id = alloc_str(layer_id(layer));
    assert_int_equal(layer_state(layer), LAYER_QUIET);
    {
        AUTO_FREE char *script = alloc_strf(
            "cd '%s' && echo new > one && rm sub/two && mkdir x && echo y > x/y", place.root);

        assert_int_equal(place_run(layer, script), 0);
    }
    assert_text(&place, "root/one", "1\n");
    assert_text(&place, "root/sub/two", "2\n");
    assert_none(&place, "root/x");
    steps = layer_steps(layer, &len);
    assert_int_equal(len, 1);
    assert_int_equal(steps[0].number, 1);
    assert_int_equal(steps[0].commands, 1);
    assert_int_equal(steps[0].wait_status, 0);
    assert_true(steps[0].ended.tv_sec);
    {
        AUTO_FREE char *script =
            alloc_strf("cd '%s' && grep -q new one && test ! -e sub/two && grep -q y x/y && exit 7",
                       place.root);

        assert_int_equal(place_run(layer, script), 7);
    }
    layer_steps(layer, &len);
    assert_int_equal(len, 1); /* nothing was written by the second */
    layer_close(layer);

    layer = layer_open("work", NULL, LAYER_CHANGE, "test", &err);
    assert_non_null(layer);
    assert_string_equal(layer_id(layer), id);
    steps = layer_steps(layer, &len);
    assert_int_equal(len, 1);
    assert_string_equal(steps[0].argv.items[0], "sh");
    assert_int_equal(layer_remove(layer, &err), 0);
    place_done(&place);
}

static void test_empty_leaves_nothing(void **state)
{
    struct place place;
    struct layer *layer;
    AUTO_FREE char *folder = NULL;
    struct err err;
    struct stat st;

    if (!place_init(&place))
        skip();
    layer = place_layer(&place, NULL);
    folder = alloc_str(layer_folder(layer));
    assert_int_equal(stat(folder, &st), 0);
    layer_close(layer);
    assert_int_equal(stat(folder, &st), -1);
    assert_null(layer_open(path_name(folder), NULL, LAYER_READ, NULL, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    place_done(&place);
}

static void test_commands_share_a_step(void **state)
{
    struct place place;
    struct layer *layer;
    struct living living;
    const struct layer_step *steps;
    size_t len;
    struct err err;

    if (!place_init(&place))
        skip();
    layer = place_layer(&place, NULL);
    {
        AUTO_FREE char *script = alloc_strf("cd '%s' && read line; grep -q hello from", place.root);
        AUTO_FREE char *other = alloc_strf("echo hello > '%s/from'", place.root);

        living_start(layer, script, &living);
        assert_int_equal(layer_state(layer), LAYER_ALIVE);
        assert_false(layer_is_quiet(layer));
        assert_int_equal(place_run(layer, other), 0);
        assert_int_equal(layer_refresh(layer, &err), 0);
    }
    assert_null(layer_open(layer_id(layer), NULL, LAYER_CHANGE, "other", &err));
    assert_int_equal(err.code, ERR_BUSY);
    assert_contains(err.msg, "test (");
    assert_int_equal(living_end(&living), 0);
    steps = layer_steps(layer, &len);
    assert_int_equal(len, 1);
    assert_int_equal(steps[0].commands, 2);
    assert_int_equal(layer_remove(layer, &err), 0);
    place_done(&place);
}

/* --- mounted ahead --- */

/* Kept open, or else another may get its number. */
static int mounts_of(const struct layer *layer)
{
    int fd = dup(layer->space.mounts);

    assert_true(fd >= 0);
    return fd;
}

/* `before` is closed. */
static bool are_mounts(const struct layer *layer, int before)
{
    struct stat was, is;

    assert_int_equal(fstat(before, &was), 0);
    assert_int_equal(fstat(layer->space.mounts, &is), 0);
    close(before);
    return was.st_ino == is.st_ino;
}

static int run_in_root(struct place *place, struct layer *layer, const char *command)
{
    AUTO_FREE char *script = alloc_strf("cd '%s' && %s", place->root, command);

    return place_run(layer, script);
}

/* Outside; it must work. */
static void edit(const struct place *place, const char *command)
{
    AUTO_FREE char *script = alloc_strf("cd '%s' && %s", place->root, command);

    assert_int_equal(system(script), 0);
}

static void test_mounts_are_kept(void **state)
{
    struct place place;
    struct layer *layer;
    int first;
    size_t len;
    struct err err;

    if (!place_init(&place))
        skip();
    layer = place_layer(&place, NULL);
    assert_int_equal(run_in_root(&place, layer, "cat one sub/two >/dev/null"), 0);
    first = mounts_of(layer);
    assert_int_equal(run_in_root(&place, layer, "grep -q 1 one"), 0);
    assert_true(are_mounts(layer, first));

    /* What it has looked at is replaced: the next one sees that. */
    first = mounts_of(layer);
    edit(&place, "echo other > sub/fresh && mv sub/fresh sub/two && echo 3 > sub/three");
    assert_int_equal(run_in_root(&place, layer, "grep -q other sub/two && grep -q 3 sub/three"), 0);
    assert_true(are_mounts(layer, first));

    /* That was forgotten in a process of its own, or at once where somebody comes before. */
    assert_true(layer_prepare(layer) >= 0);
    assert_int_equal(run_in_root(&place, layer, "grep -q other sub/two"), 0);
    assert_true(layer->is_cached);
    place_prepare(layer);
    assert_false(layer->is_cached);

    /* What was written is a layer of its own, whose upper is mounted never again, even if it is empty in the end. */
    assert_int_equal(run_in_root(&place, layer, "echo x > x && rm x"), 0);
    assert_int_equal(run_in_root(&place, layer, "echo a > a"), 0);
    assert_true(layer->records[0].step.is_shared); /* until its mounts are gone */
    place_prepare(layer);
    assert_false(layer->records[0].step.is_shared);
    assert_true(layer->is_prepared);
    first = mounts_of(layer);
    assert_int_equal(run_in_root(&place, layer, "grep -q a a && echo b > b"), 0);
    assert_true(are_mounts(layer, first));
    layer_steps(layer, &len);
    assert_int_equal(len, 2);
    assert_int_equal(layer_remove(layer, &err), 0);
    place_done(&place);
}

static void protect(struct place *place, const char *name)
{
    AUTO_FREE char *path = path_join(place->root, name);

    access_map_add(&place->map, path, ACCESS_READ, ACCESS_DIR, "test");
    access_map_sort(&place->map);
    for (size_t i = 0; i < place->map.len; i++)
        place->map.entries[i].is_protected |= str_eq(place->map.entries[i].path, path);
}

/* What the mounts lie over is another now: they go, and nothing of them is in the way. */
static void test_mounts_are_made_again(void **state)
{
    static const struct {
        const char *edit;
        const char *check; /* inside */
    } edits[] = {
        {"mv .git .old && mkdir .git && echo new > .git/HEAD", "grep -q new .git/HEAD"},
        {"mv sub/.git sub/.old && mkdir sub/.git && echo new > sub/.git/HEAD",
         "grep -q new sub/.git/HEAD"},
        {"mv sub moved && mkdir sub && mv moved/.git sub/.git && echo new > sub/two",
         "grep -q new sub/two && grep -q new sub/.git/HEAD"},
        {"rm -r .git", "test ! -e .git"},
        {"chmod 0750 .", "test $(stat -c %a .) = 750"},
        {"touch fresh", "test -e fresh"},
    };
    struct place place;
    struct layer *layer;
    struct err err;

    if (!place_init(&place))
        skip();
    edit(&place, "mkdir .git sub/.git && echo old | tee .git/HEAD sub/.git/HEAD >/dev/null");
    protect(&place, ".git");
    protect(&place, "sub/.git");
    layer = place_layer(&place, NULL);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        int first;

        assert_int_equal(
            run_in_root(&place, layer, "cat .git/HEAD sub/.git/HEAD sub/two >look; rm look"), 0);
        place_prepare(layer);
        first = mounts_of(layer);
        edit(&place, edits[i].edit);
        assert_int_equal(run_in_root(&place, layer, edits[i].check), 0);
        assert_false(are_mounts(layer, first));
    }
    place_prepare(layer);
    edit(&place, "cd .. && mv root gone && mkdir root");
    assert_int_equal(layer_view(layer)->enter(layer_view(layer),
                                              &(struct launch_options){
                                                  .argv = (char *[]){(char *)"true", NULL},
                                                  .cwd = "/",
                                              },
                                              &err),
                     -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(layer_remove(layer, &err), 0);
    place_done(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_is_kept_apart),  cmocka_unit_test(test_empty_leaves_nothing),
        cmocka_unit_test(test_commands_share_a_step), cmocka_unit_test(test_mounts_are_kept),
        cmocka_unit_test(test_mounts_are_made_again),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
