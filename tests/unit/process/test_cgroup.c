/* cgroup and limits: which directory, which files, which mechanism; against directories of our own,
 * and against the kernel where it lets us. */
#include "../base/support.h"

#include "base/buf.h"
#include "base/clock.h"
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
    char *base = cgroup_find_base(&host->paths, &err);

    if (!expected) {
        assert_null(base);
        assert_int_equal(err.code, ERR_UNSUPPORTED);
        return;
    }
    assert_non_null(base);
    assert_string_equal(base, expected);
    assert_untouched(err);
    free(base);
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

static struct cgroup *open_cgroup(const char *base)
{
    struct err err = ERR_UNTOUCHED;
    struct cgroup *cgroup = cgroup_open(base, &err);

    assert_non_null(cgroup);
    assert_untouched(err);
    return cgroup;
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
    char name[64];

    snprintf(name, sizeof name, "cordon-%d-0", (int)getpid());
    assert_string_equal(path_name(cgroup_path(first)), name);
    snprintf(name, sizeof name, "cordon-%d-1", (int)getpid());
    assert_string_equal(path_name(cgroup_path(second)), name);
    assert_true(fcntl(cgroup_fd(first), F_GETFD) & FD_CLOEXEC);
    cgroup_close(first);
    cgroup_close(second);
    cgroup_close(NULL);
    assert_int_equal(rmdir(base), 0); /* nothing is left in it */
    free(base);
}

static void test_no_dir(void **state)
{
    struct err err = ERR_UNTOUCHED;

    assert_null(cgroup_open("/does/not/exist", &err));
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
    struct cgroup *cgroup = open_cgroup(base);
    const char *path = cgroup_path(cgroup);
    struct err err = ERR_UNTOUCHED;
    struct cgroup_stat stat;

    cgroup_stat(cgroup, &stat);
    assert_int_equal(stat.memory_peak + stat.oom_kills + stat.pids_peak + stat.pids_refused, 0);
    assert_int_equal(cgroup_set_memory(cgroup, 4096, &err), -1);
    assert_contains(err.msg, "memory.max");
    support_write(path, "memory.max", "");
    support_write(path, "memory.swap.max", "");
    support_write(path, "pids.max", "");
    assert_int_equal(cgroup_set_memory(cgroup, 536870912, &err), 0);
    assert_int_equal(cgroup_set_pids(cgroup, 64, &err), 0);
    assert_file(path, "memory.max", "536870912");
    assert_file(path, "memory.swap.max", "0");
    assert_file(path, "pids.max", "64");
    support_write(path, "memory.peak", "123456\n");
    support_write(path, "memory.events",
                  "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n");
    support_write(path, "pids.peak", "17\n");
    support_write(path, "pids.events", "max 8\n");
    support_write(
        path, "io.stat",
        "8:0 rbytes=1 wbytes=100 rios=1 wios=1 dbytes=0 dios=0\n8:16 rbytes=5 wbytes=11\n");
    cgroup_stat(cgroup, &stat);
    assert_int_equal(stat.memory_peak, 123456);
    assert_int_equal(stat.oom_kills, 5);
    assert_int_equal(stat.pids_peak, 17);
    assert_int_equal(stat.pids_refused, 8);
    assert_int_equal(stat.bytes_written, 111);
    cgroup_close(cgroup);
    support_scratch_remove(base);
}

/* Whose writes into a cgroup fail falls back to rlimits: a plain directory has no memory.max. */
static void test_rlimits_instead(void **state)
{
    const struct resource_limits limits = {
        .memory = 1 << 30,
        .cpu_time_ns = 1500000000,
        .pids = 50,
        .file_size = 4096,
    };
    char *base = support_scratch_new();
    const char *const bases[] = {"", base};

    for (size_t i = 0; i < 2; i++) {
        struct resource_limits_scope scope;

        resource_limits_open(&limits, bases[i], &scope);
        for (int k = 0; k < LIMIT_COUNT; k++)
            assert_int_equal(scope.by[k], LIMIT_BY_RLIMIT);
        assert_int_equal(scope.rlimits.memory, 1 << 30);
        assert_int_equal(scope.rlimits.cpu_time, 2); /* rounded up */
        assert_int_equal(scope.rlimits.processes, 50);
        assert_int_equal(scope.rlimits.file_size, 4096);
        assert_null(scope.cgroup);
        resource_limits_close(&scope);
        resource_limits_close(&scope);
    }
    support_scratch_remove(base);
}

static void test_nothing_asked(void **state)
{
    char *base = support_scratch_new();
    struct resource_limits_scope scope;

    resource_limits_open(&(struct resource_limits){.file_size = 1}, base, &scope);
    assert_null(scope.cgroup); /* not made for what rlimits do */
    assert_int_equal(resource_limits_cgroup_fd(&scope), -1);
    assert_int_equal(scope.by[LIMIT_MEMORY], LIMIT_UNSET);
    assert_int_equal(scope.rlimits.memory, 0);
    resource_limits_close(&scope);
    assert_int_equal(rmdir(base), 0);
    free(base);
}

static struct process_end exited(int code)
{
    return (struct process_end){.how = PROCESS_EXITED, .code = code, .usage_known = true};
}

static struct process_end signaled(int signal, time_t cpu_seconds)
{
    struct process_end end = {.how = PROCESS_SIGNALED, .signal = signal, .usage_known = true};

    end.usage.ru_utime.tv_sec = cpu_seconds;
    return end;
}

static bool is_hit(const struct resource_limits *limits, struct process_end end,
                   enum resource_limit limit)
{
    struct resource_limits_scope scope;
    struct resource_limits_report report;

    resource_limits_open(limits, "", &scope);
    resource_limits_report(&scope, &end, &report);
    resource_limits_close(&scope);
    return report.hit[limit];
}

static void test_which_rlimit_was_hit(void **state)
{
    const struct resource_limits cpu = {.cpu_time_ns = 3 * CLOCK_NS_PER_S};
    const struct resource_limits size = {.file_size = 100};
    const struct resource_limits none = {0};

    assert_true(is_hit(&cpu, signaled(SIGXCPU, 3), LIMIT_CPU_TIME));
    assert_true(is_hit(&cpu, exited(128 + SIGXCPU), LIMIT_CPU_TIME));
    assert_true(is_hit(&cpu, signaled(SIGKILL, 4), LIMIT_CPU_TIME));
    assert_false(is_hit(&cpu, signaled(SIGKILL, 2), LIMIT_CPU_TIME));
    assert_false(is_hit(&none, signaled(SIGXCPU, 3), LIMIT_CPU_TIME));
    assert_true(is_hit(&size, signaled(SIGXFSZ, 0), LIMIT_FILE_SIZE));
    assert_true(is_hit(&size, exited(128 + SIGXFSZ), LIMIT_FILE_SIZE));
    assert_false(is_hit(&size, exited(1), LIMIT_FILE_SIZE));
    assert_false(is_hit(&none, signaled(SIGXFSZ, 0), LIMIT_FILE_SIZE));
}

static void test_which_cgroup_limit_was_hit(void **state)
{
    char *base = support_scratch_new();
    struct resource_limits_scope scope = {
        .by = {[LIMIT_MEMORY] = LIMIT_BY_CGROUP, [LIMIT_PIDS] = LIMIT_BY_CGROUP},
        .cgroup = open_cgroup(base),
    };
    struct process_end end = exited(137);
    struct resource_limits_report report;

    support_write(cgroup_path(scope.cgroup), "memory.peak", "1048576\n");
    support_write(cgroup_path(scope.cgroup), "memory.events", "oom_kill 1\n");
    support_write(cgroup_path(scope.cgroup), "pids.events", "max 0\n");
    resource_limits_report(&scope, &end, &report);
    assert_true(report.hit[LIMIT_MEMORY]);
    assert_false(report.hit[LIMIT_PIDS]);
    assert_int_equal(report.memory_peak, 1048576);
    assert_int_equal(report.by[LIMIT_MEMORY], LIMIT_BY_CGROUP);
    support_write(cgroup_path(scope.cgroup), "pids.events", "max 2\n");
    resource_limits_report(&scope, &end, &report);
    assert_true(report.hit[LIMIT_PIDS]);
    resource_limits_close(&scope);
    support_scratch_remove(base);
}

static const char *kernel_base(void)
{
    static const char *const bases[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

    for (size_t i = 0; i < 2; i++) {
        char procs[64];

        snprintf(procs, sizeof procs, "%s/cgroup.procs", bases[i]);
        if (access(procs, W_OK) == 0 && access(bases[i], W_OK) == 0)
            return bases[i];
    }
    return NULL;
}

/* The kernel's own: what is left in it dies, and the directory goes. */
static void test_kernel_kills_and_forgets(void **state)
{
    const char *base = kernel_base();
    char *path = NULL;
    struct cgroup *cgroup;
    char pid[32];
    int status;
    pid_t child;

    if (!base)
        fail_msg("no cgroup v2 directory that can be written to");
    cgroup = open_cgroup(base);
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    snprintf(pid, sizeof pid, "%d", (int)child);
    support_write(cgroup_path(cgroup), "cgroup.procs", pid);
    path = strdup(cgroup_path(cgroup));
    cgroup_close(cgroup);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(access(path, F_OK), -1);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find_own),
        cmocka_unit_test(test_find_above),
        cmocka_unit_test(test_find_none),
        cmocka_unit_test(test_find_in_odd_places),
        cmocka_unit_test(test_find_below_mount_root),
        cmocka_unit_test(test_names_and_removal),
        cmocka_unit_test(test_no_dir),
        cmocka_unit_test(test_leftovers_of_the_dead),
        cmocka_unit_test(test_limits_and_counters),
        cmocka_unit_test(test_rlimits_instead),
        cmocka_unit_test(test_nothing_asked),
        cmocka_unit_test(test_which_rlimit_was_hit),
        cmocka_unit_test(test_which_cgroup_limit_was_hit),
        cmocka_unit_test(test_kernel_kills_and_forgets),
    };
    size_t count = sizeof tests / sizeof *tests;

    /* An ordinary user has a cgroup directory only where one was delegated. Root has one in CI. */
    if (!kernel_base() && !(getenv("CORDON_MUST_WORK") && geteuid() == 0))
        count--;
    return _cmocka_run_group_tests("cgroup", tests, count, NULL, NULL);
}
