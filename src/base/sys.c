/* See sys.h. */
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

#ifdef CORDON_FAULTS
static unsigned fault_nth;
static unsigned fault_count;
static int fault_errno;

void sys_fault_at(unsigned nth, int error)
{
    fault_nth = nth;
    fault_count = 0;
    fault_errno = error;
}

unsigned sys_fault_count(void)
{
    return fault_count;
}

bool sys_fault(void)
{
    fault_count++;
    if (!fault_nth || fault_count != fault_nth)
        return false;
    if (fault_errno == SYS_FAULT_KILL)
        raise(SIGKILL);
    if (fault_errno == SYS_FAULT_USER1) {
        raise(SIGUSR1);
        return false;
    }
    errno = fault_errno;
    return true;
}
#endif

/* What openat2(2) does for a path through no symlink and without "..", where a filter says that there is no such call: in
 * a sandbox of our own, or an old container. Each component is opened by itself, and pinned. */
static int open_stepwise(int dir, const char *path, uint64_t flags)
{
    int at = openat(dir, *path == '/' ? "/" : *path ? "." : "", O_PATH | O_CLOEXEC);
    bool is_last = false;

    while (at >= 0 && !is_last) {
        const size_t len = strcspn(path += strspn(path, "/"), "/");
        char name[256] = "."; /* of "/" */
        struct stat st;
        int next = -1;

        is_last = !path[len + strspn(path + len, "/")];
        if (len >= sizeof name || (len == 2 && memcmp(path, "..", 2) == 0)) {
            errno = len == 2 ? EXDEV : ENAMETOOLONG;
        } else {
            if (len)
                memcpy(name, path, len);
            name[len ? len : 1] = '\0';
            next = openat(at, name,
                          (!is_last    ? O_PATH
                           : path[len] ? (int)flags | O_DIRECTORY
                                       : (int)flags) |
                              O_NOFOLLOW | O_CLOEXEC);
        }
        if (next >= 0 && fstat(next, &st) == 0 && S_ISLNK(st.st_mode)) {
            close(next);
            next = -1;
            errno = ELOOP;
        }
        close(at);
        at = next;
        path += len;
    }
    return at;
}

int sys_openat2(int dir, const char *path, const struct sys_open_how *how)
{
    int fd;

    if (sys_fault())
        return -1;
    fd = (int)syscall(SYS_openat2, dir, path, how, sizeof *how);
    if (fd >= 0 || errno != ENOSYS || !(how->resolve & SYS_RESOLVE_NO_SYMLINKS) ||
        (how->flags & O_CREAT) ||
        (*path == '/' && (how->resolve & (SYS_RESOLVE_BENEATH | SYS_RESOLVE_IN_ROOT))))
        return fd;
    return open_stepwise(dir, path, how->flags);
}

int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
    if (sys_fault())
        return -1;
    return (int)syscall(SYS_close_range, first, last, flags);
}

int sys_pidfd_send_signal(int pidfd, int signal)
{
    if (sys_fault())
        return -1;
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}
