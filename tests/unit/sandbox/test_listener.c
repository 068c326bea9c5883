/* A host on which no filter can ask the guard, because a program around us has a listener already:
 * this one, which cannot take that back. */
#include "launching.h"

#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "sandbox/launcher/kernel.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct ground ground;
static struct sandbox *sandbox;

static int setup(void **state)
{
    ground_init(&ground);
    return 0;
}

static int teardown(void **state)
{
    sandbox_free(TAKE_PTR(sandbox));
    ground_done(&ground);
    return 0;
}

static int take_listener(void)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = 1, .filter = &allow};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    return (int)syscall(SYS_seccomp, K_SECCOMP_SET_MODE_FILTER, K_SECCOMP_FILTER_NEW_LISTENER,
                        &program);
}

static void test_auto_says_so(void **state)
{
    const struct defence_report *guard;

    sandbox = ground_sandbox(&ground, SANDBOX_AUTO);
    guard = sandbox_defence(sandbox, DEFENCE_GUARD);
    assert_int_equal(guard->state, DEFENCE_ABSENT);
    assert_contains(guard->why, "supervises");
    assert_true(sandbox_is_degraded(sandbox));
    assert_contains(sandbox_degradation(sandbox), "supervises");
}

/* Closed, not open: no name is made directly in a root, whatever it is, and none that is held. */
static void test_names_are_held(void **state)
{
    AUTO_FREE char *src = path_join(ground.ws, "src");
    AUTO_FREE char *link = path_join(ground.ws, "link");
    AUTO_FREE char *git = path_join(ground.ws, ".git");
    AUTO_FREE char *text = NULL;

    assert_int_equal(mkdir(src, 0755), 0);
    support_write(ground.ws, "file", "old\n");
    assert_int_equal(symlink(".", link), 0);
    sandbox = ground_sandbox(&ground, SANDBOX_AUTO);
    text = script_output(sandbox, ground.ws,
                         "exec 2>/dev/null; mkdir .git || echo 1; echo x > new || echo 2;"
                         "mkdir link/.git || echo 3; mv src/../file .git || echo 4;"
                         "echo x > src/new && mkdir src/dir && echo y > src/dir/z && echo 5;"
                         "echo more >> file && echo 6; ln src/new .git || echo 7; rm src/new");
    assert_string_equal(text, "1\n2\n3\n4\n5\n6\n7\n");
    assert_int_equal(access(git, F_OK), -1);
}

static void test_require_refuses(void **state)
{
    AUTO(access_map_done) struct access_map map;
    struct sandbox_options options = {.mode = SANDBOX_REQUIRE, .access = &map};
    struct err err;

    ground_map(&ground, &map);
    sandbox = sandbox_new(&options, &err);
    if (sandbox) /* it is found out by the first launch */
        assert_int_equal(sandbox_probe(sandbox, &err), -1);
    assert_int_equal(err.code, ERR_UNSUPPORTED);
    assert_contains(err.msg, "supervises");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_require_refuses),
        TEST(test_auto_says_so),
        TEST(test_names_are_held),
    };

    if (take_listener() < 0 && errno != EBUSY) {
        printf("1..0 # SKIP no listener can be had: %s\n", strerror(errno));
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
