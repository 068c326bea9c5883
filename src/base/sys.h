/* System calls that the C library of Debian 12 or musl 1.2 does not wrap, and the numbers newer
 * than their headers. One place, so that a missing number or a test that makes the n-th call fail
 * has to be dealt with once.
 *
 * With CORDON_FAULTS (test builds only) every call asks sys_fault() first, which makes the n-th
 * one fail with a chosen errno; in the product that costs nothing. */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* openat2(2); values from linux/openat2.h (5.6) */
struct sys_open_how {
    uint64_t flags;
    uint64_t mode;
    uint64_t resolve;
};

#define SYS_RESOLVE_NO_XDEV 0x01
#define SYS_RESOLVE_NO_MAGICLINKS 0x02
#define SYS_RESOLVE_NO_SYMLINKS 0x04
#define SYS_RESOLVE_BENEATH 0x08
#define SYS_RESOLVE_IN_ROOT 0x10

int sys_openat2(int dir, const char *path, const struct sys_open_how *how);
int sys_close_range(unsigned first, unsigned last, unsigned flags);
int sys_pidfd_send_signal(int pidfd, int signal);

#ifdef CORDON_FAULTS
/* Makes the `nth` call from now (1 is the next) fail with `error`; 0 turns it off. */
void sys_fault_at(unsigned nth, int error);
#define SYS_FAULT_KILL (-1) /* as `error`: the process is killed before it */
#define SYS_FAULT_USER1                                                                            \
    (-2) /* it gets SIGUSR1 before it, whose handler is somebody else meanwhile, and goes on */
/* Calls counted since the last sys_fault_at(). */
unsigned sys_fault_count(void);
bool sys_fault(void);
#else
static inline bool sys_fault(void)
{
    return false;
}
#endif
