/* flock(2), and open(2) of a file with a lease, wait for ever or not at all, and neither can be polled for. A
 * signal that ends the wait would have to be taken away from the program that we are part of. So a small
 * clone waits: it shares our descriptors, and a lock belongs to the open file, so that what the clone gets
 * is ours. What it opens is not (nobody would know the number, were it killed then): the file is opened
 * once more, when it can be. We watch the clone, which can be polled for, and kill it when time is up.
 *
 * The clone shares our memory, too, so that its cost does not grow with ours; it runs on a stack of
 * its own, makes three system calls, and touches nothing. (Its errno is ours as well: who calls
 * looks at errno behind the last call here, when the clone is gone.)
 */
#include "base/lock.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_BYTES = 16 * 1024 };

struct waiter {
    const char *path; /* to be opened with the flags `operation`; NULL: `fd` is to be locked */
    int fd;
    int operation;
};

/* AddressSanitizer does not know its stack as one. */
__attribute__((no_sanitize_address)) static int waiter_main(void *argument)
{
    const struct waiter *waiter = argument;

    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (waiter->path)
        /* allow blocking open: it is who waits */
        (void)!open(waiter->path, waiter->operation | O_CLOEXEC);
    else
        flock(waiter->fd, waiter->operation);
    _exit(0);
}

/* A pidfd; -1 with errno. No signal comes of its end: wait with __WALL. */
static int waiter_start(struct waiter *waiter, char *stack, pid_t *ret_pid)
{
    const int flags = CLONE_VM | CLONE_PIDFD | (waiter->path ? 0 : CLONE_FILES);
    int pidfd = -1;
    sigset_t all;
    sigset_t old;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old); /* no handler of ours runs in it */
    *ret_pid = clone(waiter_main, stack + STACK_BYTES, flags, waiter, &pidfd);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return *ret_pid < 0 ? -1 : pidfd;
}

/* Until it has ended, or until then. */
static void waiter_watch(int pidfd, uint64_t deadline_ns)
{
    struct pollfd watched = {.fd = pidfd, .events = POLLIN};
    uint64_t now;

    while ((now = clock_now_ns()) < deadline_ns) {
        uint64_t left_ms = (deadline_ns - now + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;

        if (poll(&watched, 1, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX) > 0)
            return;
    }
}

/* Until the call has come back, or until time is up; -1 when there is no clone. */
static int waiter_run(struct waiter *waiter, uint64_t wait_ns)
{
    uint64_t deadline = clock_after(clock_now_ns(), wait_ns);
    AUTO_FREE char *stack = alloc_zero(1, STACK_BYTES);
    pid_t pid;
    AUTO_CLOSE int pidfd = waiter_start(waiter, stack, &pid);

    if (pidfd < 0)
        return -1;
    waiter_watch(pidfd, deadline);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        continue;
    return 0;
}

int lock_take(int fd, int operation, uint64_t wait_ns)
{
    struct waiter waiter = {.fd = fd, .operation = operation};

    if (flock(fd, operation | LOCK_NB) == 0)
        return 0;
    if (errno != EWOULDBLOCK || waiter_run(&waiter, wait_ns))
        return -1;
    return flock(fd, operation | LOCK_NB);
}

int lock_open(const char *path, int flags, uint64_t wait_ns)
{
    struct waiter waiter = {.path = path, .operation = flags};
    int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC);

    if (fd >= 0 || errno != EWOULDBLOCK || waiter_run(&waiter, wait_ns))
        return fd;
    return open(path, flags | O_NONBLOCK | O_CLOEXEC);
}

int lock_file_take(const char *path, uint64_t wait_ns)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0200);

    return fd < 0 || lock_take(fd, LOCK_EX, wait_ns) ? -1 : TAKE_FD(fd);
}
