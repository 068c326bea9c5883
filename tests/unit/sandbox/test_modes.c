/* The three modes, on a host that gives every layer and (with the argument "forbidden") on one that
 * gives no namespaces. The second makes itself such a host first, which cannot be taken back. */
#include "launching.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
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

/* The tree readable, and `ws` writable if `has_ws`. */
static struct sandbox *sandbox_of(enum sandbox_mode mode, bool has_ws, struct err *err)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};
    struct sandbox_options options = {.mode = mode, .access = &map};

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "test");
    if (has_ws)
        access_map_add(&map, ground.ws, ACCESS_WRITE, ACCESS_DIR, "test");
    access_map_sort(&map);
    return sandbox_new(&options, err);
}

static char *output(const char *script)
{
    return script_output(sandbox, ground.ws, script);
}

/* -- a host with everything */

static void test_require_holds_all(void **state)
{
    AUTO_FREE char *text = NULL;

    sandbox = ground_sandbox(&ground, SANDBOX_REQUIRE);
    assert_false(sandbox_is_degraded(sandbox));
    assert_string_equal(sandbox_degradation(sandbox), "");
    for (int layer = 0; layer < DEFENCE_COUNT; layer++)
        if (layer != DEFENCE_PROXY &&
            sandbox_defence(sandbox, (enum defence)layer)->state != DEFENCE_ENFORCED)
            fail_msg("%s: %s", defence_name((enum defence)layer),
                     sandbox_defence(sandbox, (enum defence)layer)->why);
    text = output("grep -E '^(NoNewPrivs|Seccomp|CapEff|CapBnd|CapAmb|CapPrm|CapInh):' "
                  "/proc/self/status | tr -d '\\n\\t '; echo $PPID");
    assert_string_equal(text, "CapInh:0000000000000000CapPrm:0000000000000000"
                              "CapEff:0000000000000000CapBnd:0000000000000000"
                              "CapAmb:0000000000000000NoNewPrivs:1Seccomp:21\n");
}

/* A command that finds a way to its init must not gain anything by it. */
static void test_the_init_has_no_capabilities_either(void **state)
{
    AUTO_FREE char *text = NULL;

    sandbox = ground_sandbox(&ground, SANDBOX_REQUIRE);
    text = output("grep -E '^(NoNewPrivs|CapEff|CapBnd|CapAmb|CapPrm|CapInh):' "
                  "/proc/1/status | tr -d '\\n\\t '");
    assert_string_equal(text, "CapInh:0000000000000000CapPrm:0000000000000000"
                              "CapEff:0000000000000000CapBnd:0000000000000000"
                              "CapAmb:0000000000000000NoNewPrivs:1");
}

static void test_disabled_restricts_nothing(void **state)
{
    AUTO_FREE char *outside = path_join(ground.scratch, "outside");
    AUTO_FREE char *script = alloc_strf("echo 1 > %s && readlink /proc/self/ns/net", outside);
    AUTO_FREE char *text = NULL;
    char own[64] = "";
    struct err err;

    sandbox = sandbox_of(SANDBOX_DISABLED, false, &err);
    assert_non_null(sandbox);
    for (int layer = 0; layer < DEFENCE_COUNT; layer++) {
        assert_int_equal(sandbox_defence(sandbox, (enum defence)layer)->state, DEFENCE_ABSENT);
        assert_string_not_equal(sandbox_defence(sandbox, (enum defence)layer)->why, "");
    }
    text = output(script);
    assert_int_equal(access(outside, F_OK), 0);
    assert_true(readlink("/proc/self/ns/net", own, sizeof own - 1) > 0);
    assert_int_equal(strncmp(text, own, strlen(own)), 0);
}

/* Unrestricted, but not uncared for. */
static void test_disabled_leaves_nothing_behind(void **state)
{
    AUTO(ended_done) struct ended ended = {0};
    struct err err;

    sandbox = sandbox_of(SANDBOX_DISABLED, false, &err);
    assert_non_null(sandbox);
    ended = run_script(sandbox, ground.ws, "sleep 1000 & setsid sleep 1000 & exit 9");
    assert_exited(ended, 9);
}

/* Without a pid namespace too a signal for all reaches more than the command's own process, which
 * would be another signal to a shell that waits for its children. */
static void check_group_signal(void)
{
    AUTO(ended_done) struct ended ended = {0};
    char *const argv[] = {(char *)"sh", (char *)"-c",
                          (char *)"trap 'echo parent' TERM; "
                                  "(trap 'echo child; exit 0' TERM; sleep 1000 & echo up; wait) & "
                                  "until wait $!; do :; done; exit 3",
                          NULL};
    struct command command;
    struct err err;

    command_start(&command, sandbox, launch_in("/", argv));
    command_expect(&command, "up\n");
    assert_int_equal(launch_signal(&command.launch, SIGTERM, false, &err), 0);
    command_expect(&command, "parent\n");
    assert_null(strstr(command.text.data, "child"));
    assert_int_equal(launch_signal(&command.launch, SIGTERM, true, &err), 0);
    command_expect(&command, "child\n");
    ended = command_finish(&command);
    assert_exited(ended, 3);
}

static void test_disabled_signals_the_group(void **state)
{
    struct err err;

    sandbox = sandbox_of(SANDBOX_DISABLED, false, &err);
    assert_non_null(sandbox);
    check_group_signal();
}

static void test_disabled_passes_failures_on(void **state)
{
    AUTO(ended_done) struct ended ended = {0};
    struct err err;

    sandbox = sandbox_of(SANDBOX_DISABLED, false, &err);
    assert_non_null(sandbox);
    ended = run_argv(sandbox, ground.ws, ARGV((char *)"/nowhere/program"));
    assert_int_equal(ended.report.event, LAUNCH_FAILED);
    assert_int_equal(ended.report.stage, LAUNCH_STAGE_EXEC);
}

/* What belongs to Cordon is added to what the caller said. */
static void test_own_paths_are_protected(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};
    AUTO_FREE char *own = path_join(ground.ws, "own");
    AUTO_FREE char *missing = path_join(ground.ws, "later/on");
    AUTO_FREE char *text = NULL;
    const char *const paths[] = {own, missing, NULL};
    struct sandbox_options options = {.access = &map, .own_paths = paths};
    struct err err;

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "test");
    access_map_add(&map, ground.ws, ACCESS_WRITE, ACCESS_DIR, "test");
    assert_int_equal(mkdir(own, 0755), 0);
    sandbox = sandbox_new(&options, &err);
    assert_non_null(sandbox);
    assert_int_equal(access_map_check(sandbox_access(sandbox), own), ACCESS_READ);
    assert_int_equal(access_map_check(sandbox_access(sandbox), ground.ws), ACCESS_WRITE);
    text = output("touch own/x 2>/dev/null || echo refused; "
                  "mkdir -p later/on 2>/dev/null || echo refused; touch fine && echo fine");
    assert_string_equal(text, "refused\nrefused\nfine\n");
}

/* In whatever order they come, and however many there are. */
static void test_all_own_paths_are_protected(void **state)
{
    static const char names[][4] = {"p/a", "p/b", "p/c", "p/d", "p/e", "p/f", "q/a", "p/g", "q/b"};
    enum { LEN = sizeof names / sizeof *names };
    AUTO(access_map_done) struct access_map map = {.restricted = true};
    AUTO_FREE char *first = path_join(ground.ws, "p");
    AUTO_FREE char *second = path_join(ground.ws, "q");
    AUTO(strv_done) struct strv own = {0};
    struct sandbox_options options = {.access = &map};
    struct err err;

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "test");
    access_map_add(&map, first, ACCESS_WRITE, ACCESS_DIR, "test");
    access_map_add(&map, second, ACCESS_WRITE, ACCESS_DIR, "test");
    assert_int_equal(mkdir(first, 0755), 0);
    assert_int_equal(mkdir(second, 0755), 0);
    for (size_t i = 0; i < LEN; i++)
        strv_push_take(&own, path_join(ground.ws, names[i]));
    options.own_paths = (const char *const *)strv_view(&own);
    sandbox = sandbox_new(&options, &err);
    assert_non_null(sandbox);
    for (size_t i = 0; i < LEN; i++)
        assert_int_equal(access_map_check(sandbox_access(sandbox), own.items[i]), ACCESS_READ);
}

/* -- a host without namespaces */

static void test_forbidden_require_refuses(void **state)
{
    struct launch_options options = launch_in("/", ARGV((char *)"true"));
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct launch launch;
    struct err err = {0};

    options.stdio[0] = options.stdio[1] = options.stdio[2] = null;
    sandbox = sandbox_of(SANDBOX_REQUIRE, false, &err);
    if (sandbox) /* found out by the first launch */
        assert_int_equal(sandbox_launch(sandbox, &options, &launch, &err), -1);
    assert_int_equal(err.code, ERR_UNSUPPORTED);
    assert_contains(err.msg, "require");
}

static void test_forbidden_auto_says_so(void **state)
{
    struct err err;

    sandbox = sandbox_of(SANDBOX_AUTO, false, &err);
    assert_non_null(sandbox);
    free(output("true"));
    assert_true(sandbox_is_degraded(sandbox));
    assert_string_not_equal(sandbox_degradation(sandbox), "");
    assert_int_equal(sandbox_defence(sandbox, DEFENCE_MOUNT_NAMESPACE)->state, DEFENCE_ABSENT);
    assert_string_not_equal(sandbox_defence(sandbox, DEFENCE_MOUNT_NAMESPACE)->why, "");
    assert_int_equal(sandbox_defence(sandbox, DEFENCE_SECCOMP)->state, DEFENCE_ENFORCED);
}

static void test_forbidden_landlock_holds(void **state)
{
    AUTO_FREE char *victim = path_join(ground.scratch, "victim");
    AUTO_FREE char *script = alloc_strf(
        "exec 2>/dev/null; echo 1 > inside && echo writes; (echo 2 > %s) || echo refused; "
        "rm %s || echo refused; chmod 777 %s || echo refused; echo 3 > /dev/null && echo null; "
        "mkdir %s.d || echo refused; ls / > /dev/null && echo reads",
        victim, victim, victim, victim);
    AUTO_FREE char *text = NULL;
    struct stat st;
    struct err err;

    support_write(ground.scratch, "victim", "original");
    sandbox = sandbox_of(SANDBOX_AUTO, true, &err);
    assert_non_null(sandbox);
    text = output(script);
    assert_string_equal(text, "writes\nrefused\nrefused\nrefused\nnull\nrefused\nreads\n");
    assert_int_equal(stat(victim, &st), 0);
    assert_int_equal(st.st_size, 8);
    assert_int_equal(st.st_mode & 0777, 0600);
}

/* What Landlock cannot express is refused, with the path and the way out. */
static void test_forbidden_protected_names_are_refused(void **state)
{
    AUTO(access_map_done) struct access_map map;
    struct sandbox_options options = {.access = &map};
    struct launch_options command = launch_in("/", ARGV((char *)"true"));
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct launch launch;
    struct err err = {0};

    ground_map(&ground, &map);
    command.stdio[0] = command.stdio[1] = command.stdio[2] = null;
    sandbox = sandbox_new(&options, &err);
    if (sandbox)
        assert_int_equal(sandbox_launch(sandbox, &command, &launch, &err), -1);
    assert_int_equal(err.code, ERR_UNSUPPORTED);
    assert_contains(err.msg, "/ws/.codex");
    assert_contains(err.msg, "--sandbox disabled");
}

/* Without a pid namespace the init is the reaper of everything that the command starts. */
static void test_forbidden_nothing_is_left(void **state)
{
    AUTO(ended_done) struct ended ended = {0};
    struct command command;
    struct err err;

    sandbox = sandbox_of(SANDBOX_AUTO, false, &err);
    assert_non_null(sandbox);
    ended = run_script(sandbox, "/",
                       "trap '' TERM HUP; sleep 1000 & setsid sleep 1000 & "
                       "(setsid sh -c 'sleep 1000; :' &) & exit 6");
    assert_exited(ended, 6);
    command_start(&command, sandbox,
                  launch_in("/", ARGV((char *)"sh", (char *)"-c",
                                      (char *)"setsid sleep 1000 & echo up; exec sleep 1000")));
    command_expect(&command, "up\n");
    launch_done(&command.launch);
    command_expect_silence(&command);
    close(command.out);
    buf_done(&command.text);
}

static void test_forbidden_signals_the_group(void **state)
{
    struct err err;

    sandbox = sandbox_of(SANDBOX_AUTO, false, &err);
    assert_non_null(sandbox);
    check_group_signal();
}

/* Neither sockets of the host's network nor signals to its processes. */
static void test_forbidden_host_is_out_of_reach(void **state)
{
    AUTO_FREE char *script = alloc_strf("kill -0 %d 2>/dev/null || echo refused", (int)getpid());
    AUTO_FREE char *text = NULL;
    AUTO_FREE char *sockets = NULL;
    struct err err;

    sandbox = sandbox_of(SANDBOX_AUTO, false, &err);
    assert_non_null(sandbox);
    text = output(script);
    assert_string_equal(text, "refused\n");
    if (access("/bin/bash", X_OK))
        skip_because("no /bin/bash");
    sockets = output("bash -c 'echo > /dev/tcp/127.0.0.1/9' 2>&1 || true");
    assert_contains(sockets, "Operation not permitted");
}

/* -- */

static int write_file(const char *path, const char *text)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/* A user namespace of our own in which there can be no further one, and no capability left. */
static int forbid_namespaces(void)
{
    AUTO_FREE char *uid_map = alloc_strf("%u %u 1", geteuid(), geteuid());
    AUTO_FREE char *gid_map = alloc_strf("%u %u 1", getegid(), getegid());
    struct {
        uint32_t version;
        int pid;
    } header = {.version = 0x20080522}; /* linux/capability.h */
    uint32_t none[6] = {0};

    if (unshare(CLONE_NEWUSER)) /* forbidden already */
        return geteuid() == 0 ? -1 : 0;
    if (write_file("/proc/self/setgroups", "deny") || write_file("/proc/self/gid_map", gid_map) ||
        write_file("/proc/self/uid_map", uid_map) ||
        write_file("/proc/sys/user/max_user_namespaces", "0"))
        return -1;
    for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; capability++)
        ;
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return (int)syscall(SYS_capset, &header, none);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest usual[] = {
        TEST(test_require_holds_all),          TEST(test_the_init_has_no_capabilities_either),
        TEST(test_disabled_restricts_nothing), TEST(test_disabled_leaves_nothing_behind),
        TEST(test_disabled_signals_the_group), TEST(test_disabled_passes_failures_on),
        TEST(test_own_paths_are_protected),    TEST(test_all_own_paths_are_protected),
    };
    const struct CMUnitTest forbidden[] = {
        TEST(test_forbidden_require_refuses),      TEST(test_forbidden_auto_says_so),
        TEST(test_forbidden_landlock_holds),       TEST(test_forbidden_protected_names_are_refused),
        TEST(test_forbidden_nothing_is_left),      TEST(test_forbidden_signals_the_group),
        TEST(test_forbidden_host_is_out_of_reach),
    };

    if (argc == 1)
        return cmocka_run_group_tests(usual, NULL, NULL);
    if (forbid_namespaces()) {
        perror("test_modes: cannot forbid namespaces here");
        return 1;
    }
    return cmocka_run_group_tests(forbidden, NULL, NULL);
}
