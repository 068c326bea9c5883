/* Patches against trees (tests/cases/patch), each in memory and on the disk:
 *
 *     tree      {"path": "text"}
 *     patch     text
 *     result    the tree afterwards; or
 *     error     the whole message; the tree is unchanged then
 *     summary   what a model is told; may be missing
 *     diff      with three lines of context; may be missing
 *     modes     {"path": "755"}: set before on the disk; result_modes: checked afterwards
 *     links     {"path": "target"}, made before on the disk; directories: ["path"], likewise
 *
 * With links or directories only the disk is tried. On the disk ROOT in texts is the directory. */
#include "../base/cases.h"
#include "tree.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "patch/apply.h"
#include "patch/report.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static char *with_root(const char *text, const char *root)
{
    struct buf out;
    const char *at;

    buf_init(&out, 1 << 24);
    while ((at = strstr(text, "ROOT"))) {
        buf_append(&out, text, (size_t)(at - text));
        buf_append_str(&out, root);
        text = at + 4;
    }
    buf_append_str(&out, text);
    return buf_take(&out);
}

static void check_text(const char *wanted, const struct buf *got)
{
    if (wanted && !str_eq(wanted, got->data ? got->data : ""))
        fail_msg("got:\n%s\nwanted:\n%s", got->data, wanted);
}

static void check_reports(const json_t *json, const struct changes *changes)
{
    AUTO(buf_done) struct buf summary;
    AUTO(buf_done) struct buf diff;

    buf_init(&summary, 1 << 24);
    buf_init(&diff, 1 << 24);
    assert_true(report_summary(changes, &summary));
    assert_true(report_diff(changes, 3, &diff));
    check_text(case_string_or(json, "summary", NULL), &summary);
    check_text(case_string_or(json, "diff", NULL), &diff);
}

static void check_error(const json_t *json, const char *root, const struct err *err)
{
    const char *text = case_string_or(json, "error", NULL);
    AUTO_FREE char *wanted = with_root(text ? text : "", root);

    if (!text)
        fail_msg("%s", err->msg);
    if (!str_eq(wanted, err->msg))
        fail_msg("got \"%s\", wanted \"%s\"", err->msg, wanted);
}

static void check_in_memory(const json_t *json)
{
    json_t *tree = json_object_get(json, "tree");
    struct source source = tree_source(tree);
    AUTO_FREE char *text = with_root(case_string(json, "patch"), "/w/s");
    AUTO(patch_changes_done) struct changes changes = {.items = NULL};
    AUTO(patch_auto) struct patch *patch = NULL;
    struct err err;

    patch = patch_parse(text, strlen(text), &err);
    if (!patch || changes_compute(patch, &source, "/w/s", &changes, &err)) {
        check_error(json, "/w/s", &err);
        return;
    }
    if (json_object_get(json, "error"))
        fail_msg("it should have failed");
    check_reports(json, &changes);
    {
        AUTO_JSON json_t *after = tree_changed(tree, &changes);

        assert_json_equal(after, json_object_get(json, "result"));
    }
}

/* --- on the disk --- */

static void set_up(const json_t *json, const char *dir)
{
    const char *path;
    json_t *value;
    size_t i;

    json_object_foreach(json_object_get(json, "modes"), path, value)
    {
        AUTO_FREE char *whole = path_join(dir, path);

        assert_int_equal(chmod(whole, (mode_t)strtoul(json_string_value(value), NULL, 8)), 0);
    }
    json_object_foreach(json_object_get(json, "links"), path, value)
    {
        AUTO_FREE char *whole = path_join(dir, path);

        assert_int_equal(symlink(json_string_value(value), whole), 0);
    }
    json_array_foreach(json_object_get(json, "dirs"), i, value)
    {
        AUTO_FREE char *whole = path_join(dir, json_string_value(value));

        assert_int_equal(mkdir(whole, 0777), 0);
    }
}

static void check_modes(const json_t *json, const char *dir)
{
    const char *path;
    json_t *value;

    json_object_foreach(json_object_get(json, "result_modes"), path, value)
    {
        AUTO_FREE char *whole = path_join(dir, path);
        struct stat st;

        assert_int_equal(stat(whole, &st), 0);
        assert_int_equal(st.st_mode & 07777, strtoul(json_string_value(value), NULL, 8));
    }
}

static void check_on_disk(const json_t *json)
{
    char *dir = tree_make(json_object_get(json, "tree"));
    AUTO_FREE char *text = with_root(case_string(json, "patch"), dir);
    AUTO_JSON json_t *before = NULL;
    AUTO_JSON json_t *after = NULL;
    struct err err;

    set_up(json, dir);
    before = tree_read(dir);
    if (tree_patch(dir, text, &err) == 0) {
        after = tree_read(dir);
        assert_json_equal(after, json_object_get(json, "result"));
        check_modes(json, dir);
    } else {
        after = tree_read(dir);
        check_error(json, dir, &err);
        assert_json_equal(after, before);
    }
    tree_remove(dir);
}

static void patch_case(void **state)
{
    static const char *const known[] = {"why",   "tree",         "patch", "result",
                                        "error", "summary",      "diff",  "modes",
                                        "links", "result_modes", "dirs",  NULL};
    const json_t *json = ((struct test_case *)*state)->json;

    case_check_keys(json, known);
    assert_true(!json_object_get(json, "result") == !!json_object_get(json, "error"));
    if (!json_object_get(json, "links") && !json_object_get(json, "dirs"))
        check_in_memory(json);
    check_on_disk(json);
}

/* Owner and group as far as we may give files away, and attributes where the file system has any.
 */
static void owner_and_attributes_are_kept(void **state)
{
    AUTO_JSON json_t *tree = json_pack("{s:s}", "a", "x\n");
    char *dir = tree_make(tree);
    AUTO_FREE char *path = path_join(dir, "a");
    AUTO_FREE char *moved = path_join(dir, "b");
    bool is_root = geteuid() == 0;
    bool has_attributes = setxattr(path, "user.cordon", "kept", 4, 0) == 0;
    char value[8] = "";
    struct stat st;
    struct err err;

    assert_int_equal(chown(path, is_root ? 1234 : geteuid(), is_root ? 2345 : getegid()), 0);
    if (tree_patch(dir,
                   "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n"
                   "*** End Patch\n",
                   &err))
        fail_msg("%s", err.msg);
    assert_int_equal(stat(moved, &st), 0);
    assert_int_equal(st.st_uid, is_root ? 1234 : geteuid());
    assert_int_equal(st.st_gid, is_root ? 2345 : getegid());
    assert_int_equal(getxattr(moved, "user.cordon", value, sizeof value), has_attributes ? 4 : -1);
    assert_string_equal(value, has_attributes ? "kept" : "");
    tree_remove(dir);
}

int main(void)
{
    const struct CMUnitTest more[] = {cmocka_unit_test(owner_and_attributes_are_kept)};

    umask(022);
    return cases_run("patch", patch_case, more, 1);
}
