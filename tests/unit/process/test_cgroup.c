/* cgroup and limits: which directory, which files, which mechanism; against directories of our own,
 * and against the kernel where it lets us. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "process/cgroup.h"
#include "process/process.h"
#include "process/resource_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A scratch directory that looks like a cgroup v2 mount, with "user/shell" for our own cgroup. */
struct host {
    char *root;
    char *user;
    char *shell;
    char *self;
    char *mountinfo;
    struct cgroup_paths paths;
};

static char *make_dir(const char *parent, const char *name)
{
    char *path = path_join(parent, name);

    assert_int_equal(mkdir(path, 0755), 0);
    support_write(path, "cgroup.procs", "");
    support_write(path, "cgroup.subtree_control", "");
    return path;
}

static void host_init(struct host *host, const char *own)
{
    char line[512];

    host->root = support_scratch_new();
    host->user = make_dir(host->root, "user");
    host->shell = make_dir(host->user, "shell");
    host->self = path_join(host->root, "self");
    host->mountinfo = path_join(host->root, "mountinfo");
    host->paths = (struct cgroup_paths){.self = host->self, .mountinfo = host->mountinfo};
    snprintf(line, sizeof line, "4:memory:/elsewhere\n0::%s\n", own);
    support_write(host->root, "self", line);
    snprintf(line, sizeof line,
             "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
             "30 22 0:26 / /other rw,nosuid shared:9 - cgroup cgroup rw,memory\n"
             "31 22 0:27 / %s rw,nosuid shared:10 - cgroup2 cgroup2 rw\n",
             host->root);
    support_write(host->root, "mountinfo", line);
}

static void host_done(struct host *host)
{
    support_scratch_remove(host->root);
    free(host->user);
    free(host->shell);
    free(host->self);
    free(host->mountinfo);
}

static void check_base(const struct host *host, const char *expected)
{
    struct err err = ERR_UNTOUCHED;
    AUTO(cgroup_base_done) struct cgroup_base base = {0};
    int status = cgroup_base_find(&host->paths, &base, &err);

    if (!expected) {
        assert_int_equal(status, -1);
        assert_int_equal(err.code, ERR_UNSUPPORTED);
        return;
    }
    assert_int_equal(status, 0);
    assert_false(base.is_v1);
    assert_string_equal(base.dir[CGROUP_MEMORY], expected);
    assert_string_equal(base.dir[CGROUP_PIDS], expected);
    assert_untouched(err);
}

static void test_find_own(void **state)
{
    struct host host;

    host_init(&host, "/user/shell");
    support_write(host.shell, "cgroup.subtree_control", "cpu io memory pids\n");
    support_write(host.user, "cgroup.subtree_control", "memory pids\n");
    check_base(&host, host.shell);
    host_done(&host);
}

static void test_find_above(void **state)
{
    struct host host;

    host_init(&host, "/user/shell");
    support_write(host.user, "cgroup.subtree_control", "memory pids\n");
    check_base(&host, host.user);
    host_done(&host);
}

static void test_find_none(void **state)
{
    static const char *const not_enough[] = {"", "memory\n", "pids\n", "memory_x xmemory pids\n"};

    for (size_t i = 0; i < 4; i++) {
        struct host host;

        host_init(&host, "/user/shell");
        support_write(host.shell, "cgroup.subtree_control", not_enough[i]);
        support_write(host.user, "cgroup.subtree_control", not_enough[i]);
        check_base(&host, NULL);
        host_done(&host);
    }
}

static void test_find_in_odd_places(void **state)
{
    struct host host;

    host_init(&host, "/../outside"); /* of our cgroup namespace */
    check_base(&host, NULL);
    host_done(&host);

    host_init(&host, "/"); /* nothing above the root is ours */
    check_base(&host, NULL);
    support_write(host.root, "cgroup.procs", "");
    support_write(host.root, "cgroup.subtree_control", "pids memory\n");
    check_base(&host, host.root);
    host_done(&host);

    host_init(&host, "/user/shell");
    support_write(host.root, "self", "4:memory:/x\n"); /* no cgroup v2 at all */
    check_base(&host, NULL);
    host_done(&host);
}

/* A mount that shows only a part of the hierarchy. */
static void test_find_below_mount_root(void **state)
{
    char line[512];
    struct host host;

    host_init(&host, "/docker/abc/user/shell");
    support_write(host.shell, "cgroup.subtree_control", "memory pids\n");
    check_base(&host, NULL);
    snprintf(line, sizeof line, "31 22 0:27 /docker/abc %s rw - cgroup2 cgroup2 rw\n", host.root);
    support_write(host.root, "mountinfo", line);
    check_base(&host, host.shell);
    host_done(&host);
}

/* What v1 has: a hierarchy for each controller. */
static void check_v1(const char *self, const char *memory, const char *pids)
{
    const char *expected[CGROUP_CONTROLLERS] = {memory, pids};
    struct host host;
    char line[1024];

    host_init(&host, "/nowhere");
    support_write(host.root, "self", self);
    snprintf(line, sizeof line,
             "30 22 0:26 / %s rw,nosuid - cgroup cgroup rw,memory\n"
             "31 22 0:27 / %s rw - cgroup cgroup rw,cpu,pids\n"
             "32 22 0:28 / %s rw - cgroup cgroup rw,name=memory\n",
             host.root, host.user, host.shell);
    support_write(host.root, "mountinfo", line);
    if (!memory && !pids) {
        check_base(&host, NULL);
    } else {
        AUTO(cgroup_base_done) struct cgroup_base base = {0};
        struct err err = ERR_UNTOUCHED;

        assert_int_equal(cgroup_base_find(&host.paths, &base, &err), 0);
        assert_true(base.is_v1);
        for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
            AUTO_FREE char *path = expected[i] ? path_join(host.root, expected[i]) : NULL;

            assert_true(!path == !base.dir[i]);
            if (path)
                assert_string_equal(base.dir[i], path);
        }
    }
    host_done(&host);
}

static void test_find_v1(void **state)
{
    check_v1("8:cpu,pids:/shell\n4:memory:/user\n0::/\n", "user", "user/shell");
    check_v1("8:pids:/shell\n4:memory:/elsewhere\n", NULL, "user/shell");
    check_v1("4:memory:/user\n1:name=pids:/shell\n", "user", NULL);
    check_v1("8:pids:/elsewhere\n0::/\n", NULL, NULL);
    check_v1("8:pids:/../shell\n", NULL, NULL); /* outside of our cgroup namespace */
    check_v1("8:pidsx:/shell\n7:xpids,memory_x:/shell\n", NULL, NULL);
}

static const struct cgroup_limits some = {.of = {[CGROUP_MEMORY] = 536870912, [CGROUP_PIDS] = 64}};

static struct cgroup *open_cgroup(const char *base)
{
    struct err err;
    const struct cgroup_base place = {.dir = {(char *)base, (char *)base}};
    struct cgroup *cgroup = cgroup_open(&place, &some, &err);

    assert_non_null(cgroup);
    return cgroup;
}

/* The directory of one that keeps nothing yet. */
static char *path_of(const char *base, unsigned number)
{
    return alloc_strf("%s/cordon-%d-%u", base, (int)getpid(), number);
}

static void assert_file(const char *dir, const char *name, const char *expected)
{
    char *path = path_join(dir, name);
    struct buf text;
    struct err err;

    assert_int_equal(fd_read_file(path, 4096, &text, &err), 0);
    assert_string_equal(text.data, expected);
    buf_done(&text);
    free(path);
}

static void test_names_and_removal(void **state)
{
    char *base = support_scratch_new();
    struct cgroup *first = open_cgroup(base);
    struct cgroup *second = open_cgroup(base);

    for (unsigned i = 0; i < 2; i++) {
        AUTO_FREE char *path = path_of(base, i);

        assert_int_equal(access(path, F_OK), 0);
    }
    cgroup_close(first);
    cgroup_close(second);
    cgroup_close(NULL);
    assert_int_equal(rmdir(base), 0); /* nothing is left in it */
    free(base);
}

static void test_no_dir(void **state)
{
    struct err err = ERR_UNTOUCHED;

    const struct cgroup_base nowhere = {.dir = {(char *)"/does/not/exist", NULL}};

    assert_null(cgroup_open(&nowhere, &some, &err));
    assert_int_equal(err.sys, ENOENT);
    assert_contains(err.msg, "/does/not/exist");
}

/* A pid that was there a moment ago. */
static pid_t dead_pid(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    return pid;
}

static bool exists(const char *base, const char *name)
{
    char *path = path_join(base, name);
    bool found = access(path, F_OK) == 0;

    free(path);
    return found;
}

static void test_leftovers_of_the_dead(void **state)
{
    char *base = support_scratch_new();
    char dead[64];
    char held[64];
    char alive[64];
    char *path;
    int lock;

    snprintf(dead, sizeof dead, "cordon-%d-7", (int)dead_pid());
    snprintf(held, sizeof held, "cordon-%d-8", (int)dead_pid()); /* in another pid namespace */
    snprintf(alive, sizeof alive, "cordon-%d-9", (int)getppid());
    for (size_t i = 0; i < 5; i++) {
        const char *const names[] = {dead, held, alive, "cordon-x-1", "other"};

        path = path_join(base, names[i]);
        assert_int_equal(mkdir(path, 0755), 0);
        free(path);
    }
    path = path_join(base, held);
    lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(lock, LOCK_SH), 0);
    free(path);
    cgroup_close(open_cgroup(base));
    assert_false(exists(base, dead));
    assert_true(exists(base, held));
    assert_true(exists(base, alive));
    assert_true(exists(base, "cordon-x-1"));
    assert_true(exists(base, "other"));
    close(lock);
    cgroup_close(open_cgroup(base));
    assert_false(exists(base, held));
    support_scratch_remove(base);
}

static void test_limits_and_counters(void **state)
{
    char *base = support_scratch_new();
    AUTO_FREE char *path = path_of(base, 0);
    struct cgroup *cgroup = open_cgroup(base);
    struct err err = ERR_UNTOUCHED;
    struct cgroup_stat stat;

    cgroup_stat(cgroup, &stat);
    assert_int_equal(stat.memory_peak + stat.oom_kills + stat.pids_peak + stat.pids_refused, 0);
    assert_int_equal(cgroup_limit(cgroup, &some, &err), -1); /* it has no such files */
    assert_contains(err.msg, "pids.max");
    support_write(path, "pids.max", "");
    assert_int_equal(cgroup_limit(cgroup, &some, &err), 0);
    assert_false(cgroup_keeps(cgroup, CGROUP_MEMORY));
    assert_true(cgroup_keeps(cgroup, CGROUP_PIDS));
    support_write(path, "memory.max", "");
    support_write(path, "memory.swap.max", "");
    assert_int_equal(cgroup_limit(cgroup, &some, &err), 0);
    assert_true(cgroup_keeps(cgroup, CGROUP_MEMORY));
    assert_string_equal(cgroup_path(cgroup, CGROUP_MEMORY), path);
    assert_file(path, "memory.max", "536870912");
    assert_file(path, "memory.swap.max", "0");
    assert_file(path, "pids.max", "64");
    support_write(path, "memory.peak", "123456\n");
    support_write(path, "memory.events",
                  "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n");
    support_write(path, "pids.peak", "17\n");
    support_write(path, "pids.events", "max 8\n");
    cgroup_stat(cgroup, &stat);
    assert_int_equal(stat.memory_peak, 123456);
    assert_int_equal(stat.oom_kills, 5);
    assert_int_equal(stat.pids_peak, 17);
    assert_int_equal(stat.pids_refused, 8);
    cgroup_close(cgroup);
    support_scratch_remove(base);
}

/* A hierarchy for each controller, and older names. */
static void test_v1(void **state)
{
    char *bases[] = {support_scratch_new(), support_scratch_new()};
    AUTO_FREE char *memory = path_of(bases[0], 0);
    AUTO_FREE char *pids = path_of(bases[1], 0);
    const struct cgroup_base base = {.dir = {bases[0], bases[1]}, .is_v1 = true};
    struct cgroup_stat stat;
    struct cgroup *cgroup;
    struct err err;

    cgroup = cgroup_open(&base, &some, &err);
    assert_non_null(cgroup);
    support_write(memory, "memory.limit_in_bytes", "");
    support_write(memory, "memory.memsw.limit_in_bytes", "");
    support_write(memory, "cgroup.procs", "");
    support_write(pids, "pids.max", "");
    support_write(pids, "cgroup.procs", "");
    assert_int_equal(cgroup_limit(cgroup, &some, &err), 0);
    assert_int_equal(cgroup_enter(cgroup, 4711, &err), 0);
    assert_file(memory, "memory.limit_in_bytes", "536870912");
    assert_file(memory, "memory.memsw.limit_in_bytes", "536870912");
    assert_file(memory, "cgroup.procs", "4711");
    assert_file(pids, "cgroup.procs", "4711");
    support_write(memory, "memory.max_usage_in_bytes", "99\n");
    support_write(memory, "memory.oom_control", "oom_kill_disable 0\nunder_oom 1\noom_kill 2\n");
    support_write(pids, "pids.events", "max 3\n");
    cgroup_stat(cgroup, &stat);
    assert_int_equal(stat.memory_peak, 99);
    assert_int_equal(stat.oom_kills, 2);
    assert_int_equal(stat.pids_refused, 3);
    support_write(memory, "cgroup.procs", ""); /* nobody is killed for being in a file */
    support_write(pids, "cgroup.procs", "");
    cgroup_close(cgroup);
    for (int i = 0; i < 2; i++)
        support_scratch_remove(bases[i]);
}

static struct process_end exited(int code)
{
    return (struct process_end){.how = PROCESS_EXITED, .code = code, .usage_known = true};
}

static void test_which_cgroup_limit_was_hit(void **state)
{
    char *base = support_scratch_new();
    struct resource_limits_scope scope = {
        .by = {[LIMIT_MEMORY] = LIMIT_BY_CGROUP, [LIMIT_PIDS] = LIMIT_BY_CGROUP},
        .cgroup = open_cgroup(base),
    };
    AUTO_FREE char *path = path_of(base, 0);
    struct err err;
    struct process_end end = exited(137);
    struct resource_limits_report report;

    support_write(path, "memory.max", "");
    support_write(path, "pids.max", "");
    assert_int_equal(cgroup_limit(scope.cgroup, &some, &err), 0);
    support_write(path, "memory.peak", "1048576\n");
    support_write(path, "memory.events", "oom_kill 1\n");
    support_write(path, "pids.events", "max 0\n");
    resource_limits_report(&scope, &end, &report);
    assert_int_equal(report.hit[LIMIT_MEMORY], LIMIT_HIT);
    assert_int_equal(report.hit[LIMIT_PIDS], LIMIT_NOT_HIT);
    assert_int_equal(report.memory_peak, 1048576);
    assert_int_equal(report.by[LIMIT_MEMORY], LIMIT_BY_CGROUP);
    support_write(path, "pids.events", "max 2\n");
    resource_limits_report(&scope, &end, &report);
    assert_int_equal(report.hit[LIMIT_PIDS], LIMIT_HIT);
    resource_limits_close(&scope);
    support_scratch_remove(base);
}

/* Of this host, for processes alone, which v1 has in a hierarchy of its own. */
static bool find_kernel(struct cgroup_base *ret)
{
    struct err ignored;

    if (cgroup_base_find(NULL, ret, &ignored) == 0 && ret->dir[CGROUP_PIDS])
        return true;
    cgroup_base_done(ret);
    return false;
}

/* The kernel's own: what is left in it dies, and the directory goes. */
static void test_kernel_kills_and_forgets(void **state)
{
    const struct cgroup_limits pids = {.of = {[CGROUP_PIDS] = 5}};
    AUTO(cgroup_base_done) struct cgroup_base base = {0};
    AUTO_FREE char *path = NULL;
    struct cgroup *cgroup;
    struct err err;
    int status;
    pid_t children[2];

    if (!find_kernel(&base))
        fail_msg("no cgroup directory that can be written to");
    cgroup = cgroup_open(&base, &pids, &err);
    assert_non_null(cgroup);
    assert_int_equal(cgroup_limit(cgroup, &pids, &err), 0);
    path = alloc_str(cgroup_path(cgroup, CGROUP_PIDS));
    assert_file(path, "pids.max", "5\n");
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            pause();
            _exit(0);
        }
        assert_int_equal(cgroup_enter(cgroup, children[i], &err), 0);
    }
    cgroup_close(cgroup);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find_own),
        cmocka_unit_test(test_find_above),
        cmocka_unit_test(test_find_none),
        cmocka_unit_test(test_find_in_odd_places),
        cmocka_unit_test(test_find_below_mount_root),
        cmocka_unit_test(test_find_v1),
        cmocka_unit_test(test_names_and_removal),
        cmocka_unit_test(test_no_dir),
        cmocka_unit_test(test_leftovers_of_the_dead),
        cmocka_unit_test(test_limits_and_counters),
        cmocka_unit_test(test_v1),
        cmocka_unit_test(test_which_cgroup_limit_was_hit),
        cmocka_unit_test(test_kernel_kills_and_forgets),
    };
    AUTO(cgroup_base_done) struct cgroup_base base = {0};
    size_t count = sizeof tests / sizeof *tests;

    /* An ordinary user has a cgroup directory only where one was delegated. Root has one in CI. */
    if (!find_kernel(&base) && !(getenv("CORDON_MUST_WORK") && geteuid() == 0))
        count--;
    return _cmocka_run_group_tests("cgroup", tests, count, NULL, NULL);
}
