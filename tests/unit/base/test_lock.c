/* Waiting for a lock that another process has. */
#include "support.h"

#include "base/clock.h"
#include "base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[] = "/tmp/test_lock-XXXXXX";

#define PATIENCE_NS (60 * CLOCK_NS_PER_S) /* for what has to happen */

struct holder {
    pid_t pid;
    int gate; /* it lets go when this is closed */
};

static int setup(void **state)
{
    int fd;

    strcpy(path + strlen(path) - 6, "XXXXXX");
    fd = mkostemp(path, O_CLOEXEC);
    close(fd);
    return fd < 0;
}

static int teardown(void **state)
{
    return unlink(path);
}

static int open_it(void)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static struct holder holder_start(int operation)
{
    struct holder holder;
    int ready[2];
    int gate[2];
    char byte;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    holder.pid = fork();
    assert_true(holder.pid >= 0);
    if (holder.pid == 0) {
        close(gate[1]);
        if (flock(open(path, O_RDONLY | O_CLOEXEC), operation) || write(ready[1], "x", 1) != 1)
            _exit(1);
        _exit(read(gate[0], &byte, 1) != 0);
    }
    close(ready[1]);
    close(gate[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    holder.gate = gate[1];
    return holder;
}

static void holder_end(const struct holder *holder)
{
    close(holder->gate);
    assert_int_equal(waitpid(holder->pid, NULL, 0), holder->pid);
}

static void test_a_free_lock_is_taken(void **state)
{
    int fd = open_it();
    int other = open_it();

    assert_int_equal(lock_take(fd, LOCK_SH, 0), 0);
    assert_int_equal(lock_take(other, LOCK_SH, 0), 0);
    close(other);
    close(fd);
}

/* Whichever comes first: the wait or the end of the holder. */
static void test_given_up_while_waiting(void **state)
{
    for (int i = 0; i < 20; i++) {
        struct holder holder = holder_start(LOCK_EX);
        int fd = open_it();
        int other = open_it();

        kill(holder.pid, i % 2 ? SIGKILL : 0);
        close(holder.gate);
        assert_int_equal(lock_take(fd, LOCK_EX, PATIENCE_NS), 0);
        assert_int_equal(flock(other, LOCK_SH | LOCK_NB), -1);
        assert_int_equal(errno, EWOULDBLOCK);
        close(fd);
        assert_int_equal(flock(other, LOCK_SH | LOCK_NB), 0); /* no other file has ours */
        close(other);
        assert_int_equal(waitpid(holder.pid, NULL, 0), holder.pid);
    }
}

/* Whoever has it is told by SIGIO, and here lets it go then, or does not. */
static pid_t lease_start(bool gives_up)
{
    int ready[2];
    char byte;
    sigset_t told;
    pid_t pid;

    sigemptyset(&told);
    sigaddset(&told, SIGIO);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int signal;
        int fd = open(path, O_RDWR | O_CLOEXEC);

        sigprocmask(SIG_BLOCK, &told, NULL);
        if (fcntl(fd, F_SETLEASE, F_WRLCK) || write(ready[1], "x", 1) != 1)
            _exit(1);
        sigwait(&told, &signal);
        if (gives_up)
            _exit(fcntl(fd, F_SETLEASE, F_UNLCK) != 0);
        pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void test_a_lease_is_given_up(void **state)
{
    pid_t pid = lease_start(true);
    int status = 1;
    int fd = lock_open(path, O_RDONLY, PATIENCE_NS);

    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_a_lease_is_kept(void **state)
{
    unsigned before = support_open_fds();
    pid_t pid = lease_start(false);

    assert_int_equal(lock_open(path, O_RDONLY, 20 * CLOCK_NS_PER_MS), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    assert_int_equal(support_open_fds(), before);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_not_given_up(void **state)
{
    struct holder holder = holder_start(LOCK_SH);
    unsigned before = support_open_fds();
    int fd = open_it();

    assert_int_equal(lock_take(fd, LOCK_EX, 20 * CLOCK_NS_PER_MS), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    assert_int_equal(lock_take(fd, LOCK_SH, 0), 0);
    close(fd);
    assert_int_equal(support_open_fds(), before);
    holder_end(&holder);
    assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1); /* nor a process */
}

static void test_no_file(void **state)
{
    assert_int_equal(lock_take(-1, LOCK_EX, PATIENCE_NS), -1);
    assert_int_equal(errno, EBADF);
}

#define with_file(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_file(test_a_free_lock_is_taken), with_file(test_given_up_while_waiting),
        with_file(test_not_given_up),         with_file(test_a_lease_is_given_up),
        with_file(test_a_lease_is_kept),      cmocka_unit_test(test_no_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
