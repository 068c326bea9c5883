/* See remote.h. */
#include "guard/remote.h"

#include "base/auto.h"
#include "guard/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PART = 256 }; /* of a page */

static ssize_t copy(pid_t thread, uint64_t address, void *ret, size_t len)
{
    struct iovec ours = {.iov_base = ret, .iov_len = len};
    struct iovec theirs = {.iov_base = (void *)(uintptr_t)address, .iov_len = len}; /* NOLINT */

    return process_vm_readv(thread, &ours, 1, &theirs, 1, 0);
}

int remote_bytes(pid_t thread, uint64_t address, void *ret, size_t len)
{
    ssize_t got = copy(thread, address, ret, len);

    if (got < 0)
        return -errno;
    return (size_t)got == len ? 0 : -EFAULT;
}

/* Never beyond the end of a page: what follows a text may not be there. Most are short. */
int remote_text(pid_t thread, uint64_t address, char *ret, size_t size)
{
    size_t len = 0;

    while (len < size) {
        size_t part = PART - (size_t)((address + len) % PART);
        ssize_t got;
        const char *end;

        if (part > size - len)
            part = size - len;
        got = copy(thread, address + len, ret + len, part);
        if (got <= 0)
            return got < 0 ? -errno : -EFAULT;
        end = memchr(ret + len, '\0', (size_t)got);
        if (end)
            return (int)(end - ret);
        len += (size_t)got;
    }
    return -ENAMETOOLONG;
}

enum {
    STATUS_MAX = 65536
}; /* its list of groups has room for 65536 numbers: mostly there are few */

static bool read_status(pid_t thread, char ret[STATUS_MAX])
{
    char path[64];
    ssize_t len;
    AUTO_CLOSE int fd = -1;

    snprintf(path, sizeof path, "/proc/%d/status", (int)thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    len = fd < 0 ? -1 : read(fd, ret, STATUS_MAX - 1);
    ret[len > 0 ? len : 0] = '\0';
    return len > 0;
}

static long find_number(const char *text, const char *key, int base)
{
    const char *found = strstr(text, key);

    return found ? strtol(found + strlen(key), NULL, base) : -1;
}

long remote_status(pid_t thread, const char *key, int base)
{
    char text[STATUS_MAX];

    return read_status(thread, text) ? find_number(text, key, base) : -1;
}

static uint64_t find_signals(const char *text, const char *key)
{
    const char *found = strstr(text, key);

    return found ? strtoull(found + strlen(key), NULL, 16) : 0;
}

bool remote_has_signal(pid_t thread)
{
    char text[STATUS_MAX];

    return read_status(thread, text) &&
           ((find_signals(text, "\nSigPnd:") | find_signals(text, "\nShdPnd:")) &
            ~find_signals(text, "\nSigBlk:") & find_signals(text, "\nSigCgt:")) != 0;
}

bool remote_process(pid_t thread, pid_t *ret_process, pid_t *ret_parent)
{
    char text[STATUS_MAX];

    if (!read_status(thread, text))
        return false;
    *ret_process = (pid_t)find_number(text, "\nTgid:", 10);
    *ret_parent = (pid_t)find_number(text, "\nPPid:", 10);
    return *ret_process > 0;
}

void remote_name(pid_t thread, char ret[GUARD_COMM])
{
    char path[64];
    ssize_t len;
    AUTO_CLOSE int fd = -1;

    snprintf(path, sizeof path, "/proc/%d/comm", (int)thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    len = fd < 0 ? 0 : read(fd, ret, GUARD_COMM - 1);
    len -= len > 0 && ret[len - 1] == '\n';
    ret[len > 0 ? len : 0] = '\0';
}

int remote_pidfd(pid_t thread)
{
    int pidfd = (int)syscall(K_SYS_PIDFD_OPEN, thread, K_PIDFD_THREAD);

    if (pidfd < 0 && errno == EINVAL)
        pidfd = (int)syscall(K_SYS_PIDFD_OPEN, remote_status(thread, "\nTgid:", 10), 0);
    return pidfd < 0 ? -errno : pidfd;
}

void remote_terminate(int pidfd)
{
    syscall(K_SYS_PIDFD_SEND_SIGNAL, pidfd, SIGTERM, NULL, 0);
}

/* Before Linux 6.9 there are descriptors of whole processes alone. A thread that has a table of its
 * own (CLONE_FILES taken back) would be answered from its leader's then: a socket of the same
 * sandbox, but another one. */
int remote_fd(pid_t thread, int fd)
{
    AUTO_CLOSE int pidfd = remote_pidfd(thread);
    int copy = pidfd < 0 ? pidfd : (int)syscall(K_SYS_PIDFD_GETFD, pidfd, fd, 0);

    return pidfd >= 0 && copy < 0 ? -errno : copy;
}
