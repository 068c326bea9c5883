/* "Fail the n-th system call" for an apply: whichever fails, either the patch is applied, or it
 * says why not and nothing has changed. What could not be cleaned up then, the next patch cleans
 * up. No descriptor stays open. The sources are compiled into this program with CORDON_FAULTS. */
#include "tree.h"

#include "../base/cases.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "base/sys.h"
#include "patch/apply.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifndef CORDON_FAULTS
#error "has to be compiled with -DCORDON_FAULTS, like the sources that it links"
#endif

static const char patch_text[] = "*** Begin Patch\n"
                                 "*** Update File: a\n@@\n-1\n+one\n"
                                 "*** Delete File: d/gone\n"
                                 "*** Add File: new/deep/f\n+f\n"
                                 "*** Update File: m\n*** Move to: d/moved\n@@\n m\n+n\n"
                                 "*** End Patch\n";

static size_t open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* Without what is ours and to be cleaned up later. */
static void drop_own(json_t *tree)
{
    const char *path;
    json_t *value;
    void *next;

    json_object_foreach_safe(tree, next, path, value)
    {
        if (strstr(path, LEDGER_NAME))
            json_object_del(tree, path);
    }
}

static void recover(const char *dir)
{
    AUTO(patch_dir_done) struct patch_dir place = {.fd = -1};
    AUTO(recovery_done) struct recovery recovery = {0};
    AUTO(apply_end) struct apply apply = {.ledger = {.fd = -1}};
    struct err err;

    if (patch_dir_open(dir, &place, &err) || apply_begin(&place, &recovery, &apply, &err))
        fail_msg("%s", err.msg);
}

/* Whether a call failed. */
static bool run_failing(const json_t *old, const json_t *new, unsigned nth, int error)
{
    char *dir = tree_make(old);
    size_t descriptors = open_descriptors();
    const json_t *wanted;
    json_t *got;
    struct err err = {.msg = ""};
    bool has_failed;

    sys_fault_at(nth, error);
    wanted = tree_patch(dir, patch_text, &err) ? old : new;
    has_failed = nth && sys_fault_count() >= nth;
    sys_fault_at(0, 0);
    assert_int_equal(open_descriptors(), descriptors);
    assert_true(wanted == new || *err.msg);
    got = tree_read(dir);
    drop_own(got);
    assert_json_equal(got, wanted);
    json_decref(got);
    recover(dir);
    got = tree_read(dir);
    assert_json_equal(got, wanted);
    json_decref(got);
    tree_remove(dir);
    return has_failed;
}

static void check_every_failure(int error)
{
    AUTO_JSON json_t *old =
        json_pack("{s:s, s:s, s:s, s:s}", "a", "1\n", "d/kept", "k\n", "d/gone", "x\n", "m", "m\n");
    AUTO_JSON json_t *new = json_pack("{s:s, s:s, s:s, s:s}", "a", "one\n", "d/kept", "k\n",
                                      "new/deep/f", "f\n", "d/moved", "m\nn\n");
    unsigned nth = 1;

    assert_false(run_failing(old, new, 0, 0));
    while (run_failing(old, new, nth, error))
        nth++;
    assert_true(nth > 80); /* or not every call can be made to fail */
}

static void input_output_error(void **state)
{
    check_every_failure(EIO);
}

static void no_space(void **state)
{
    check_every_failure(ENOSPC);
}

/* As a file system says it that knows no flags of renameat2(2). */
static void invalid(void **state)
{
    check_every_failure(EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(input_output_error),
        cmocka_unit_test(no_space),
        cmocka_unit_test(invalid),
    };

    return cmocka_run_group_tests_name("patch/faults", tests, NULL, NULL);
}
