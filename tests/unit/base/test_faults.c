/* "Fail the n-th system call": every function of fd is run again and again, each time with another
 * one of its system calls failing. Whatever fails, the contract of err.h holds: -1, the error is
 * written with the errno, outputs are untouched, and no descriptor stays open. (In a sanitizer
 * build, no memory either.)
 *
 * The sources of base are compiled into this program once more, with CORDON_FAULTS. */
#include "support.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#ifndef CORDON_FAULTS
#error "has to be compiled with -DCORDON_FAULTS, like the sources of base that it links"
#endif

/* Each runs one function on valid input, checks and releases what a success gives, and checks that
 * a failure has not touched the output. */

static int run_kind(struct err *err)
{
    enum fd_kind kind = FD_OTHER;
    int result = fd_kind_at(AT_FDCWD, "/", &kind, err);

    assert_int_equal(kind, result ? FD_OTHER : FD_DIR);
    return result;
}

static int check_fd(int fd)
{
    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

static int run_path_strict(struct err *err)
{
    return check_fd(fd_open_path_strict("/", err));
}

static int run_read_file(struct err *err)
{
    struct buf buf = {.data = (char *)1, .len = 2, .cap = 3, .max = 4};

    if (fd_read_file("/proc/self/status", 1 << 20, &buf, err)) {
        assert_ptr_equal(buf.data, (char *)1);
        assert_int_equal(buf.max, 4);
        return -1;
    }
    assert_contains(buf.data, "\nPid:\t");
    buf_done(&buf);
    return 0;
}

static int run_write_all(struct err *err)
{
    AUTO_CLOSE int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

    return fd_write_all(fd, "abc", 3, err);
}

static int run_sealed_memory(struct err *err)
{
    return check_fd(fd_sealed_memory("test", "abc", 3, err));
}

static int run_nonblocking(struct err *err)
{
    AUTO_CLOSE int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

    return fd_set_nonblocking(fd, true, err);
}

/* What was there stays whole, and nothing is left beside it. */
static int run_replace_file(struct err *err)
{
    char dir[] = "/tmp/cordon-faults-XXXXXX";
    char path[sizeof dir + 16], beside[sizeof dir + 16], now[4] = "";
    struct buf text = {.data = (char *)"new", .len = 3};
    int fd, result;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/file", dir);
    snprintf(beside, sizeof beside, "%s/file.new", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
    assert_int_equal(write(fd, "old", 3), 3);
    close(fd);
    result = fd_replace_file(path, &text, 0600, err);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, now, 3), 3);
    close(fd);
    assert_string_equal(now, result ? "old" : "new");
    assert_int_equal(access(beside, F_OK), -1);
    unlink(path);
    rmdir(dir);
    return result;
}

static const struct {
    const char *name;
    int (*run)(struct err *err);
    unsigned calls; /* that can fail, at least */
} functions[] = {
    {"fd_kind_at", run_kind, 1},
    {"fd_open_path_strict", run_path_strict, 1},
    {"fd_read_file", run_read_file, 3},
    {"fd_write_all", run_write_all, 1},
    {"fd_sealed_memory", run_sealed_memory, 3},
    {"fd_set_nonblocking", run_nonblocking, 2},
    {"fd_replace_file", run_replace_file, 5},
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

static unsigned count_calls(size_t i)
{
    struct err err = ERR_UNTOUCHED;

    sys_fault_at(0, 0);
    if (functions[i].run(&err))
        fail_msg("%s: %s", functions[i].name, err.msg);
    assert_untouched(err);
    return sys_fault_count();
}

static void every_call_is_counted(void **state)
{
    for (size_t i = 0; i < FUNCTIONS; i++)
        if (count_calls(i) < functions[i].calls)
            fail_msg("%s: %u calls", functions[i].name, count_calls(i));
}

static void every_failure_is_reported_and_leaves_nothing_open(void **state)
{
    for (size_t i = 0; i < FUNCTIONS; i++) {
        unsigned calls = count_calls(i);

        for (unsigned nth = 1; nth <= calls; nth++) {
            unsigned fds = support_open_fds();
            struct err err = ERR_UNTOUCHED;

            sys_fault_at(nth, EIO);
            if (functions[i].run(&err) != -1)
                fail_msg("%s hides the failure of call %u", functions[i].name, nth);
            assert_int_equal(err.code, ERR_SYSTEM);
            assert_int_equal(err.sys, EIO);
            assert_contains(err.msg, "Input/output error");
            if (support_open_fds() != fds)
                fail_msg("%s leaves a descriptor open at call %u", functions[i].name, nth);
        }
    }
}

static void interrupted_reads_and_writes_go_on(void **state)
{
    struct err err = ERR_UNTOUCHED;

    sys_fault_at(1, EINTR);
    assert_int_equal(run_write_all(&err), 0);
    sys_fault_at(4, EINTR); /* the first three open */
    assert_int_equal(run_read_file(&err), 0);
    assert_untouched(err);
}

static void absence_is_not_a_failure(void **state)
{
    static const int absent[] = {ENOENT, ENOTDIR};

    for (size_t i = 0; i < 2; i++) {
        struct err err = ERR_UNTOUCHED;
        enum fd_kind kind = FD_OTHER;

        sys_fault_at(1, absent[i]);
        assert_int_equal(fd_kind_at(AT_FDCWD, "/", &kind, &err), 0);
        assert_int_equal(kind, FD_MISSING);
        assert_untouched(err);
    }
}

static void raw_calls_fail_as_told_and_only_once(void **state)
{
    sys_fault_at(2, ENOSYS);
    assert_int_equal(sys_close_range(1000000, 1000000, 0), 0);
    assert_int_equal(sys_close_range(1000000, 1000000, 0), -1);
    assert_int_equal(errno, ENOSYS);
    assert_int_equal(sys_close_range(1000000, 1000000, 0), 0);
    assert_int_equal(sys_fault_count(), 3);

    sys_fault_at(1, EPERM);
    assert_int_equal(sys_pidfd_send_signal(-1, SIGCONT), -1);
    assert_int_equal(errno, EPERM);
}

static void raw_calls_reach_the_kernel(void **state)
{
    AUTO_CLOSE int pidfd = -1;

    sys_fault_at(0, 0);
    pidfd = pidfd_open(getpid(), 0);
    assert_true(pidfd >= 0);
    assert_int_equal(sys_pidfd_send_signal(pidfd, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_is_counted),
        cmocka_unit_test(every_failure_is_reported_and_leaves_nothing_open),
        cmocka_unit_test(interrupted_reads_and_writes_go_on),
        cmocka_unit_test(absence_is_not_a_failure),
        cmocka_unit_test(raw_calls_fail_as_told_and_only_once),
        cmocka_unit_test(raw_calls_reach_the_kernel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
