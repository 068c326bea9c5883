/* Placeholders that another process is about to remove: one who needs it waits for that, but not
 * for ever. Each use of the module is in a process of its own, since it keeps one table per
 * process. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/path.h"
#include "sandbox/linux/placeholder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HELD, HELD_ANEW, KEPT_LOCKED, FAILED };

static char scratch[] = "/tmp/test_placeholder_lock-XXXXXX";
static char *git;

static int setup(void **state)
{
    if (!mkdtemp(scratch) || setenv("XDG_RUNTIME_DIR", scratch, 1))
        return -1;
    git = path_join(scratch, ".git");
    return 0;
}

static int teardown(void **state)
{
    AUTO_FREE char *registry = path_join(scratch, "cordon");
    AUTO_FREE char *lasting = path_join(registry, "0");

    free(git);
    unlink(lasting);
    return rmdir(registry) || rmdir(scratch); /* nothing else is left */
}

/* A placeholder as a killed process leaves it, in the hands of one that is about to remove it. */
static int make_locked(void)
{
    int fd;

    assert_int_equal(mkdir(git, 0700) || chmod(git, 01555), 0);
    fd = open(git, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    return fd;
}

/* What becomes of an attempt to hold it. */
static int try_to_hold(ino_t old)
{
    const struct plan_placeholder item = {.path = git, .kind = PLAN_PLACEHOLDER_DIR};
    struct placeholders *placeholders;
    struct err err = {0};
    struct stat st;

    if (placeholders_acquire(&item, 1, &placeholders, &err))
        return strstr(err.msg, "keeps") ? KEPT_LOCKED : FAILED;
    if (stat(git, &st))
        return FAILED;
    placeholders_release(placeholders);
    return st.st_ino == old ? HELD : HELD_ANEW;
}

static pid_t start(int locked)
{
    struct stat st;
    pid_t pid;

    assert_int_equal(fstat(locked, &st), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(locked);
        _exit(try_to_hold(st.st_ino));
    }
    return pid;
}

static int result_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* `locked` stays open until then, so that no other one gets its inode number. */
static void test_removed_after_all(void **state)
{
    int locked = make_locked();
    pid_t pid = start(locked);

    assert_int_equal(rmdir(git), 0);
    assert_int_equal(flock(locked, LOCK_UN), 0);
    assert_int_equal(result_of(pid), HELD_ANEW);
    close(locked);
}

static void test_given_up_by_who_died(void **state)
{
    int locked = make_locked();
    pid_t pid = start(locked);

    close(locked);
    assert_int_equal(result_of(pid), HELD);
}

static void test_never_given_up(void **state)
{
    int locked = make_locked();

    assert_int_equal(result_of(start(locked)), KEPT_LOCKED);
    close(locked);
    assert_int_equal(rmdir(git), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_removed_after_all),
        cmocka_unit_test(test_given_up_by_who_died),
        cmocka_unit_test(test_never_given_up),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
