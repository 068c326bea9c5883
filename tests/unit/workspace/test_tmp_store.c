/* Private temporary folders on the disk: made in no wrong place, emptied of nothing else. */
#include "workspace/tmp_store.h"

#include "../base/support.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DAY = 24 * 3600, STEPS = 20 };

static char *cache;

static int setup(void **state)
{
    cache = support_scratch_new();
    return setenv("XDG_CACHE_HOME", cache, 1);
}

static int teardown(void **state)
{
    support_scratch_remove(cache);
    return 0;
}

static struct tmp_store opened(const char *root)
{
    struct tmp_store store;

    tmp_store_open(root, false, &store);
    if (!store.folder)
        fail_msg("%s", store.why.msg);
    return store;
}

static bool is_there(const char *dir, const char *name)
{
    AUTO_FREE char *path = path_join(dir, name);
    struct stat st;

    return lstat(path, &st) == 0;
}

static void make_file(const struct tmp_store *store, const char *name)
{
    AUTO_CLOSE int fd = openat(store->lock, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
}

static void one_for_each_workspace(void **state)
{
    AUTO(tmp_store_close) struct tmp_store one = opened("/w/a");
    AUTO(tmp_store_close) struct tmp_store again = opened("/w/a");
    AUTO(tmp_store_close) struct tmp_store other = opened("/v/a");
    struct stat st;

    assert_string_equal(one.folder, again.folder);
    assert_string_not_equal(one.folder, other.folder);
    assert_true(path_is_within(one.folder, one.base));
    assert_int_equal(fstat(one.lock, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(fstatat(one.lock, "tmp", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 01777);
}

static void without_a_root_only_the_base(void **state)
{
    AUTO(tmp_store_close) struct tmp_store store;

    tmp_store_open(NULL, false, &store);
    assert_null(store.folder);
    assert_non_null(store.base);
}

/* Each place on the way is a link in its turn; what it leads to gets nothing. */
static void no_link_is_followed(void **state)
{
    static const char *const names[] = {"cordon", "cordon/tmp", NULL};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        AUTO(tmp_store_close) struct tmp_store made = opened("/w");
        AUTO_FREE char *path = names[i] ? path_join(cache, names[i]) : alloc_str(made.folder);
        AUTO_FREE char *away = path_join(cache, "away");
        AUTO_FREE char *elsewhere = path_join(cache, "elsewhere");
        AUTO(tmp_store_close) struct tmp_store store;

        assert_int_equal(rename(path, away), 0);
        assert_int_equal(mkdir(elsewhere, 0700), 0);
        assert_int_equal(symlink(elsewhere, path), 0);
        tmp_store_open("/w", false, &store);
        assert_null(store.folder);
        assert_contains(store.why.msg, path);
        assert_int_equal(rmdir(elsewhere), 0);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rename(away, path), 0);
    }
}

static void directories_for_tmpdir(void **state)
{
    AUTO(tmp_store_close) struct tmp_store store = opened("/w");

    assert_true(tmp_store_make_dir(&store, "/tmp"));
    assert_true(tmp_store_make_dir(&store, "/tmp/a/b"));
    assert_true(tmp_store_make_dir(&store, "/tmp/a/b"));
    assert_true(tmp_store_make_dir(&store, "/var/tmp/c"));
    assert_true(is_there(store.folder, "tmp/a/b"));
    assert_true(is_there(store.folder, "var-tmp/c"));
    assert_false(tmp_store_make_dir(&store, "/tmpfile"));
    assert_false(tmp_store_make_dir(&store, "/srv"));
    assert_int_equal(symlinkat("/", store.lock, "tmp/link"), 0);
    assert_false(tmp_store_make_dir(&store, "/tmp/link/made-by-a-test"));
    make_file(&store, "tmp/file");
    assert_false(tmp_store_make_dir(&store, "/tmp/file/x"));
}

static void what_is_old_goes(void **state)
{
    AUTO_FREE char *kept = path_join(cache, "kept");
    AUTO_FREE char *folder = NULL;
    AUTO_FREE char *base = NULL;
    const time_t now = time(NULL);
    struct tmp_store store = opened("/w");

    folder = alloc_str(store.folder);
    base = alloc_str(store.base);
    assert_int_equal(mkdir(kept, 0700), 0);
    support_write(kept, "x", "not of the folder");
    assert_true(tmp_store_make_dir(&store, "/tmp/d/e"));
    make_file(&store, "tmp/d/e/file");
    make_file(&store, "var-tmp/file");
    assert_int_equal(symlinkat(kept, store.lock, "tmp/d/link"), 0);
    assert_int_equal(fchmodat(store.lock, "tmp/d/e", 0, 0), 0);

    tmp_store_empty(base, now + 11 * DAY, STEPS);
    assert_true(is_there(folder, "tmp/d/e")); /* it is in use */
    tmp_store_close(&store);
    tmp_store_empty(base, now + 9 * DAY, STEPS);
    assert_true(is_there(folder, "tmp/d/link"));
    tmp_store_empty(base, now + 11 * DAY, STEPS);
    assert_false(is_there(folder, "tmp"));
    assert_true(is_there(folder, "var-tmp/file"));
    assert_true(is_there(kept, "x"));
    tmp_store_empty(base, now + 31 * DAY, STEPS);
    assert_false(is_there(folder, ""));
}

static void once_a_day(void **state)
{
    AUTO(tmp_store_close) struct tmp_store store = opened("/w");
    const time_t now = time(NULL);

    assert_true(tmp_store_is_due(store.base, now));
    tmp_store_empty(store.base, now, STEPS);
    assert_false(tmp_store_is_due(store.base, time(NULL)));
    assert_true(tmp_store_is_due(store.base, now + 2 * DAY));
    assert_false(tmp_store_is_due(NULL, now));
}

/* More than one part of it: the next one goes on where there is something left. */
static void much_is_done_in_parts(void **state)
{
    struct tmp_store store = opened("/w");
    AUTO_FREE char *folder = alloc_str(store.folder);
    AUTO_FREE char *base = alloc_str(store.base);
    const time_t then = time(NULL) + 40 * DAY;
    int parts = 0;

    for (int i = 0; i < 45; i++) {
        AUTO_FREE char *name = alloc_strf("tmp/%d", i);

        make_file(&store, name);
    }
    tmp_store_close(&store);
    for (; parts < 4 && is_there(folder, ""); parts++)
        tmp_store_empty(base, then, STEPS);
    assert_int_equal(parts, 3);
}

/* What is new in one workspace takes all of the steps, but not every time. */
static void what_is_new_elsewhere_is_not_in_the_way(void **state)
{
    struct tmp_store full = opened("/full");
    struct tmp_store store = opened("/w");
    AUTO_FREE char *folder = alloc_str(store.folder);
    AUTO_FREE char *base = alloc_str(store.base);
    AUTO_FREE char *stamp = path_join(base, "emptied");
    const struct timespec later = {.tv_sec = time(NULL) + 40 * DAY};
    const struct timespec before = {.tv_sec = time(NULL) - 2 * DAY};

    for (int i = 0; i < 25; i++) {
        AUTO_FREE char *name = alloc_strf("tmp/%d", i);

        make_file(&full, name);
        assert_int_equal(
            utimensat(full.lock, name, (struct timespec[]){later, later}, AT_SYMLINK_NOFOLLOW), 0);
    }
    tmp_store_close(&full);
    tmp_store_close(&store);
    tmp_store_empty(base, later.tv_sec, STEPS);
    tmp_store_empty(base, later.tv_sec + 1, STEPS);
    assert_false(is_there(folder, ""));
    utimensat(AT_FDCWD, stamp, (struct timespec[]){before, before}, 0);
    assert_true(tmp_store_is_due(base, time(NULL)));
    tmp_store_empty(base, later.tv_sec, STEPS);
    assert_false(tmp_store_is_due(base, time(NULL))); /* nothing went: not again today */
}

/* By modes that a command has set: of what is old, but not of what is new. */
static void modes_keep_nothing(void **state)
{
    struct tmp_store store = opened("/w");
    AUTO_FREE char *folder = alloc_str(store.folder);
    AUTO_FREE char *base = alloc_str(store.base);
    const time_t now = time(NULL);
    struct stat st;

    assert_true(tmp_store_make_dir(&store, "/tmp/d"));
    assert_true(tmp_store_make_dir(&store, "/tmp/hidden"));
    make_file(&store, "tmp/d/file");
    assert_int_equal(fchmodat(store.lock, "tmp/d", 0500, 0), 0);
    assert_int_equal(fchmodat(store.lock, "tmp/hidden", 0, 0), 0);
    assert_int_equal(fchmodat(store.lock, "tmp", 0, 0), 0);
    tmp_store_close(&store);
    store = opened("/w");
    assert_int_equal(fstatat(store.lock, "tmp", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 01777);
    tmp_store_empty(base, now, STEPS);
    assert_int_equal(fstatat(store.lock, "tmp/hidden", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0);
    tmp_store_close(&store);
    tmp_store_empty(base, now + 40 * DAY, STEPS);
    assert_false(is_there(folder, ""));
}

#define IN_CACHE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_CACHE(one_for_each_workspace), IN_CACHE(without_a_root_only_the_base),
        IN_CACHE(no_link_is_followed),    IN_CACHE(directories_for_tmpdir),
        IN_CACHE(what_is_old_goes),       IN_CACHE(once_a_day),
        IN_CACHE(much_is_done_in_parts),  IN_CACHE(what_is_new_elsewhere_is_not_in_the_way),
        IN_CACHE(modes_keep_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
