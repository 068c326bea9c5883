/* Overlays that are mounted for real, and looked into by processes that join them; and every system call on the way failing
 * once. overlay.c and what it calls are compiled into this program once more, with CORDON_FAULTS. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "sandbox/linux/identity.h"
#include "sandbox/linux/overlay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CORDON_FAULTS
#error "has to be compiled with -DCORDON_FAULTS"
#endif

struct tree {
    char *scratch;
    char *root;
    char *git;
    char *up[3];
    char *work[3];
};

static struct tree tree;

static char *made_dir(const char *parent, const char *name)
{
    char *path = path_join(parent, name);

    assert_int_equal(mkdir(path, 0755), 0);
    return path;
}

static void put(const char *dir, const char *name, const char *text)
{
    AUTO_FREE char *path = path_join(dir, name);
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* NULL when it is not there. */
static char *text_of(const char *dir, const char *name)
{
    AUTO_FREE char *path = path_join(dir, name);
    AUTO(buf_done) struct buf text = {0};
    struct err err;

    return fd_read_file(path, 1000, &text, &err) ? NULL : buf_take(&text);
}

static void expect_text(const char *dir, const char *name, const char *text)
{
    AUTO_FREE char *found = text_of(dir, name);

    if (!text && found)
        fail_msg("%s/%s is there", dir, name);
    if (text && !found)
        fail_msg("%s/%s is not there", dir, name);
    if (text)
        assert_string_equal(found, text);
}

static int setup(void **state)
{
    tree.scratch = support_scratch_new();
    tree.root = made_dir(tree.scratch, "root, with: odd\nname");
    tree.git = made_dir(tree.root, ".git");
    put(tree.root, "old", "old");
    put(tree.git, "HEAD", "ref");
    for (int i = 0; i < 3; i++) {
        AUTO_FREE char *up = alloc_strf("up%d", i);
        AUTO_FREE char *work = alloc_strf("work%d", i);

        tree.up[i] = made_dir(tree.scratch, up);
        tree.work[i] = made_dir(tree.scratch, work);
    }
    return 0;
}

/* The kernel's own folders give nobody any right. */
static void open_work(const char *work)
{
    static const char *const dirs[] = {"work", "work/incompat", "work/incompat/volatile"};

    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        AUTO_FREE char *dir = path_join(work, dirs[i]);

        (void)!chmod(dir, 0700);
    }
}

static int teardown(void **state)
{
    for (int i = 0; i < 3; i++) {
        open_work(tree.work[i]);
        free(tree.up[i]);
        free(tree.work[i]);
    }
    support_scratch_remove(tree.scratch);
    free(tree.root);
    free(tree.git);
    tree = (struct tree){0};
    return 0;
}

/* Over the root, with step `step` on top of those before. */
static struct overlay over_root(int step, const char **lowers, const char *const *real)
{
    struct overlay overlay = {.root = tree.root,
                              .lowers = lowers,
                              .upper = tree.up[step],
                              .work = tree.work[step],
                              .real = real};
    struct stat st;

    for (int i = 0; i < step; i++)
        lowers[i] = tree.up[step - 1 - i];
    lowers[step] = NULL;
    assert_int_equal(stat(tree.root, &st), 0);
    overlay.dev = st.st_dev;
    overlay.ino = st.st_ino;
    return overlay;
}

static void skip_without(const struct err *err)
{
    const char *must_work = getenv("CORDON_MUST_WORK");

    if (err->code != ERR_UNSUPPORTED || (must_work && *must_work == '1'))
        fail_msg("%s", err->msg);
    print_message("skipped: %s\n", err->msg);
    skip();
}

static struct overlay_namespace mounted(const struct overlay *overlay, int users)
{
    struct overlay_namespace space;
    struct err err;

    if (overlay_mount(overlay, 1, users, &space, &err))
        skip_without(&err);
    return space;
}

/* Runs `look` in there, in a process of its own. */
static void inside(const struct overlay_namespace *space, void (*look)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (setns(space->users, CLONE_NEWUSER) || setns(space->mounts, CLONE_NEWNS))
            _exit(99);
        look();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "# line %d: %s (%s)\n", __LINE__, #condition, strerror(errno));        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static bool has(const char *dir, const char *name, const char *text)
{
    AUTO_FREE char *found = text_of(dir, name);

    return text ? found && str_eq(found, text) : !found;
}

static void write_first(void)
{
    CHECK(has(tree.root, "old", "old"));
    put(tree.root, "new", "first");
    put(tree.root, "old", "changed");
    put(tree.git, "real", "real");
}

static void look_second(void)
{
    AUTO_FREE char *old = path_join(tree.root, "old");

    CHECK(has(tree.root, "new", "first"));
    CHECK(has(tree.root, "old", "changed"));
    CHECK(unlink(old) == 0);
}

/* Steps lie on one another, none is in the real tree, and what is real is. */
static void test_steps(void **state)
{
    const char *lowers[3];
    const char *const real[] = {tree.git, NULL};
    struct overlay overlay = over_root(0, lowers, real);
    struct overlay_namespace first = mounted(&overlay, -1), next;

    inside(&first, write_first);
    expect_text(tree.root, "old", "old");
    expect_text(tree.root, "new", NULL);
    expect_text(tree.git, "real", "real");
    expect_text(tree.up[0], "old", "changed");
    overlay = over_root(1, lowers, real);
    next = mounted(&overlay, first.users);
    inside(&next, look_second);
    overlay_close(&next);
    overlay = over_root(2, lowers, real);
    next = mounted(&overlay, first.users);
    overlay_close(&first);
    expect_text(tree.root, "old", "old");
    expect_text(tree.up[0], "old", "changed");
    overlay_close(&next);
    overlay_close(&next); /* nothing */
}

static void look_replaced(void)
{
    CHECK(has(tree.root, "old", "old"));
}

static void look_refreshed(void)
{
    CHECK(has(tree.root, "old", "replaced"));
}

static void test_refresh(void **state)
{
    AUTO_FREE char *from = path_join(tree.root, "from");
    AUTO_FREE char *old = path_join(tree.root, "old");
    const char *lowers[3];
    const struct overlay overlay = over_root(0, lowers, NULL);
    struct overlay_namespace space = mounted(&overlay, -1);
    const char *const roots[] = {tree.root, NULL};
    struct err err;

    inside(&space, look_replaced);
    put(tree.root, "from", "replaced");
    assert_int_equal(rename(from, old), 0);
    inside(&space, look_replaced);
    if (overlay_refresh(&space, roots, false, &err))
        fail_msg("%s", err.msg);
    inside(&space, look_refreshed);
    overlay_close(&space);
}

static void test_another_root(void **state)
{
    const char *lowers[3];
    struct overlay overlay = over_root(0, lowers, NULL);
    struct overlay_namespace space;
    struct err err;

    overlay.ino++;
    if (overlay_mount(&overlay, 1, -1, &space, &err) == 0)
        fail_msg("mounted over another directory");
    if (err.code != ERR_CONFLICT)
        skip_without(&err);
    assert_contains(err.msg, "another directory");
    assert_int_equal(space.users, -1);
    assert_int_equal(space.mounts, -1);
}

/* In a mount namespace of its own, with a mount below the root. */
static void mount_below_root(void)
{
    const char *lowers[3];
    AUTO_FREE char *inner = made_dir(tree.root, "inner");
    const struct overlay overlay = over_root(0, lowers, NULL);
    struct overlay_namespace space;
    struct identity identity;
    struct err err;

    identity_init(&identity);
    CHECK(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0);
    CHECK(identity_map(&identity, &err) == 0);
    CHECK(mount("test", inner, "tmpfs", 0, NULL) == 0);
    CHECK(overlay_mount(&overlay, 1, -1, &space, &err) < 0);
    CHECK(err.code == ERR_UNSUPPORTED && strstr(err.msg, "is a mount of its own"));
    CHECK(strstr(err.msg, "/inner is") && strstr(err.msg, "--layer-direct"));
}

static void in_fork(void (*look)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        look();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_mount_below(void **state)
{
    const char *lowers[3];
    const struct overlay overlay = over_root(0, lowers, NULL);
    struct overlay_namespace space = mounted(&overlay, -1);

    overlay_close(&space);
    in_fork(mount_below_root);
}

static size_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static void test_probe(void **state)
{
    const size_t before = count_entries(tree.scratch);
    struct err err;

    if (overlay_probe(tree.root, tree.scratch, &err) || overlay_probe(NULL, tree.scratch, &err))
        skip_without(&err);
    assert_int_equal(count_entries(tree.scratch), before);
    assert_int_equal(overlay_probe(tree.root, "/proc/self", &err), -1);
}

static void look_all_ids(void)
{
    AUTO_FREE char *old = path_join(tree.root, "old");
    struct stat st;

    put(tree.root, "old", "changed");
    CHECK(stat(old, &st) == 0 && st.st_uid == 1500);
}

/* Files of others are copied up, and stay theirs: root's alone. */
static void test_files_of_others(void **state)
{
    AUTO_FREE char *old = path_join(tree.root, "old");
    AUTO_FREE char *copy = path_join(tree.up[0], "old");
    const char *lowers[3];
    const struct overlay overlay = over_root(0, lowers, NULL);
    struct overlay_namespace space;
    struct stat st;

    if (geteuid() != 0)
        return;
    assert_int_equal(chown(old, 1500, 1500), 0);
    space = mounted(&overlay, -1);
    inside(&space, look_all_ids);
    overlay_close(&space);
    expect_text(tree.root, "old", "old");
    assert_int_equal(stat(copy, &st), 0);
    assert_int_equal(st.st_uid, 1500);
}

static void write_both(void)
{
    put(tree.root, "new", "in the root");
    put(tree.git, "new", "in another");
}

/* One lies over where the uppers of both are; the other has its own below that. */
static void test_over_the_uppers(void **state)
{
    AUTO_FREE char *other = made_dir(tree.scratch, "other");
    AUTO_FREE char *kept = made_dir(other, "kept");
    const char *lowers[3];
    struct overlay overlays[2] = {over_root(0, lowers, NULL), over_root(0, lowers, NULL)};
    struct overlay_namespace space;
    char *paths[4];
    struct stat st;
    struct err err;

    for (int i = 0; i < 4; i++) {
        AUTO_FREE char *name = alloc_strf("%d", i);

        paths[i] = made_dir(kept, name);
    }
    overlays[0] = (struct overlay){.root = other, .upper = paths[0], .work = paths[1]};
    assert_int_equal(stat(other, &st), 0);
    overlays[0].dev = st.st_dev;
    overlays[0].ino = st.st_ino;
    overlays[1].upper = paths[2];
    overlays[1].work = paths[3];
    if (overlay_mount(overlays, 2, -1, &space, &err))
        skip_without(&err);
    inside(&space, write_both);
    overlay_close(&space);
    expect_text(tree.root, "new", NULL);
    expect_text(paths[2], "new", "in the root");
    open_work(paths[1]);
    open_work(paths[3]);
    for (int i = 0; i < 4; i++)
        free(paths[i]);
}

static void again(void)
{
    teardown(NULL);
    setup(NULL);
}

/* Whatever fails, nothing stays open, and the error has a text; what is tried in another way then works. */
static void test_faults(void **state)
{
    static const int errors[] = {EPERM, EINVAL, EMFILE};
    const char *lowers[3];
    const char *real[] = {tree.git, NULL};
    struct overlay overlay = over_root(1, lowers, real);
    struct overlay_namespace space = mounted(&overlay, -1);
    unsigned calls;

    overlay_close(&space);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        int failures = 0;

        calls = 100;
        for (unsigned nth = 1; nth <= calls; nth++) {
            const size_t open_before = count_entries("/proc/self/fd");
            struct err err = {0};
            int status;

            again();
            real[0] = tree.git;
            overlay = over_root(1, lowers, real);
            sys_fault_at(nth, errors[i]);
            status = overlay_mount(&overlay, 1, -1, &space, &err);
            if (sys_fault_count() < nth)
                calls = nth;
            sys_fault_at(0, 0);
            failures += status != 0;
            if (status)
                assert_true(err.code && *err.msg);
            assert_int_equal(space.users >= 0, status == 0);
            overlay_close(&space);
            assert_int_equal(count_entries("/proc/self/fd"), open_before);
        }
        assert_in_range(failures, 8, calls);
        assert_in_range(calls, 15, 90);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refresh, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_root, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mount_below, setup, teardown),
        cmocka_unit_test_setup_teardown(test_probe, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files_of_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_over_the_uppers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_faults, setup, teardown),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
