/* See sys.h. */
#include "base/sys.h"

#include <errno.h>
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
    errno = fault_errno;
    return true;
}
#endif

int sys_openat2(int dir, const char *path, const struct sys_open_how *how)
{
    if (sys_fault())
        return -1;
    return (int)syscall(SYS_openat2, dir, path, how, sizeof *how);
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
