/* Layers that are made, entered, left and opened again, with real mounts. */
#include "real_layer.h"

#include "../base/support.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_is_kept_apart),
        cmocka_unit_test(test_empty_leaves_nothing),
        cmocka_unit_test(test_commands_share_a_step),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
