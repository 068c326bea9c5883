/* What is listed of a layer: each case of overlayfs' upper directories, over real files. */
#include "fake_layer.h"

#include "../base/support.h"
#include "base/alloc.h"
#include "base/auto.h"

#include <string.h>
#include <unistd.h>

static void layer_done(struct layer **layer)
{
    fake_layer_free(*layer);
}
#define AUTO_LAYER AUTO(layer_done) struct layer *

static void test_nothing(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);

    fake_file(layer, 0, "a", "a");
    assert_changes(layer, NULL, "");
}

static void test_files(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);

    fake_file(layer, 0, "changed", "one");
    fake_file(layer, 1, "changed", "two");
    fake_file(layer, 0, "longer", "one");
    fake_file(layer, 1, "longer", "one and two");
    fake_file(layer, 0, "touched", "one");
    fake_file(layer, 1, "touched", "one");
    fake_file(layer, 0, "mode", "one");
    fake_file(layer, 1, "mode", "one");
    fake_mode(layer, 1, "mode", 0600);
    fake_file(layer, 0, "gone", "one");
    fake_gone(layer, 1, "gone");
    fake_gone(layer, 1, "never");
    fake_file(layer, 1, "new", "one");
    fake_bytes(layer, 0, "binary", "a\0b", 3);
    fake_bytes(layer, 1, "binary", "a\0c", 3);
    assert_changes(layer, NULL,
                   "M binary binary\n"
                   "M changed\n"
                   "D gone\n"
                   "M longer\n"
                   "m mode\n"
                   "A new\n");
}

static void test_folders(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);

    fake_file(layer, 0, "kept/below/a", "a");
    fake_file(layer, 1, "kept/below/a", "b");
    fake_file(layer, 0, "gone/below/a", "a");
    fake_file(layer, 0, "gone/b", "b");
    fake_gone(layer, 1, "gone");
    fake_dir(layer, 0, "gone-empty");
    fake_gone(layer, 1, "gone-empty");
    fake_dir(layer, 1, "new");
    fake_file(layer, 1, "new/a", "a");
    fake_dir(layer, 0, "mode");
    fake_dir(layer, 1, "mode");
    fake_mode(layer, 1, "mode", 0700);
    fake_file(layer, 0, "replaced/a", "a");
    fake_file(layer, 0, "replaced/same", "a");
    fake_file(layer, 0, "replaced/below/c", "c");
    fake_opaque(layer, 1, "replaced");
    fake_file(layer, 1, "replaced/b", "b");
    fake_file(layer, 1, "replaced/same", "a");
    assert_changes(layer, NULL,
                   "D gone\n"
                   "D gone/b\n"
                   "D gone/below\n"
                   "D gone/below/a\n"
                   "D gone-empty\n"
                   "M kept/below/a\n"
                   "m mode\n"
                   "A new\n"
                   "A new/a\n"
                   "D replaced/a\n"
                   "A replaced/b\n"
                   "D replaced/below\n"
                   "D replaced/below/c\n");
}

static void test_types(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);

    fake_file(layer, 0, "dir-to-file/a", "a");
    fake_file(layer, 1, "dir-to-file", "now a file");
    fake_file(layer, 0, "file-to-dir", "a");
    fake_file(layer, 1, "file-to-dir/a", "a");
    fake_file(layer, 0, "file-to-link", "a");
    fake_link(layer, 1, "file-to-link", "a");
    fake_link(layer, 0, "link", "a");
    fake_link(layer, 1, "link", "b");
    fake_link(layer, 0, "same-link", "a");
    fake_link(layer, 1, "same-link", "a");
    fake_link(layer, 0, "link-to-dir", "a");
    fake_opaque(layer, 1, "link-to-dir");
    fake_file(layer, 0, "pipe", "a");
    fake_pipe(layer, 1, "pipe");
    fake_pipe(layer, 0, "was-pipe");
    fake_file(layer, 1, "was-pipe", "a");
    fake_pipe(layer, 0, "same-pipe");
    fake_pipe(layer, 1, "same-pipe");
    assert_changes(layer, NULL,
                   "D dir-to-file\n"
                   "A dir-to-file\n"
                   "D dir-to-file/a\n"
                   "D file-to-dir\n"
                   "A file-to-dir\n"
                   "A file-to-dir/a\n"
                   "T file-to-link\n"
                   "M link\n"
                   "D link-to-dir\n"
                   "A link-to-dir\n"
                   "T pipe marks=d\n"
                   "T was-pipe\n");
}

static void test_steps(void **state)
{
    const struct change_query one = {.step = 1}, two = {.step = 2}, three = {.step = 3};
    AUTO_LAYER layer = fake_layer_new(3);

    fake_file(layer, 0, "a", "0");
    fake_file(layer, 1, "a", "1");
    fake_file(layer, 3, "a", "3");
    fake_file(layer, 0, "back", "0");
    fake_file(layer, 1, "back", "1");
    fake_file(layer, 2, "back", "0");
    fake_file(layer, 1, "short", "1");
    fake_gone(layer, 2, "short");
    fake_file(layer, 0, "dir/x", "0");
    fake_file(layer, 0, "dir/y", "0");
    fake_file(layer, 1, "dir/x", "1");
    fake_gone(layer, 2, "dir");
    fake_opaque(layer, 3, "dir");
    fake_file(layer, 3, "dir/y", "3");
    fake_file(layer, 2, "late", "2");
    assert_changes(layer, NULL,
                   "M a step=3\n"
                   "D dir/x step=2\n"
                   "M dir/y step=3 first=2\n"
                   "A late step=2 first=2\n");
    assert_changes(layer, &one,
                   "M a\n"
                   "M back\n"
                   "M dir/x\n"
                   "A short\n");
    assert_changes(layer, &two,
                   "M back step=2\n"
                   "D dir step=2\n"
                   "D dir/x step=2\n"
                   "D dir/y step=2 first=2\n"
                   "A late step=2 first=2\n"
                   "D short step=2\n");
    assert_changes(layer, &three,
                   "M a step=3\n"
                   "A dir step=3\n"
                   "A dir/y step=3 first=2\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing), cmocka_unit_test(test_files),
        cmocka_unit_test(test_folders), cmocka_unit_test(test_types),
        cmocka_unit_test(test_steps),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
