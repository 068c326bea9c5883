/* The system calls that a command may not make, or not with every argument. */
#pragma once

#include "sandbox/linux/seccomp.h"

enum seccomp_verdict {
    ALLOW,
    DENY,
    MISSING,
    KILL,
    CHECK_CLONE,
    CHECK_UNSHARE,
    CHECK_IOCTL,
    CHECK_SOCKET,
    CHECK_SOCKETPAIR,
    CHECK_PRLIMIT,
    CHECK_MODE_1, /* the mode is argument 1 */
    CHECK_MODE_2,
    CHECK_OPEN,   /* flags 1, mode 2 */
    CHECK_OPENAT, /* flags 2, mode 3 */
};

enum seccomp_condition {
    ALWAYS,
    NO_NESTING,
    NO_PID_NAMESPACE,
    NO_MOUNT_NAMESPACE,
    NO_IPC_NAMESPACE,
    MOUNT_NAMESPACE
};

struct seccomp_call {
    int nr[SECCOMP_ARCH_COUNT]; /* -1: not on this architecture */
    enum seccomp_verdict verdict;
    enum seccomp_condition condition;
};

/* In no order; a number stands more than once only under conditions that exclude each other. */
enum { SECCOMP_CALLS_MAX = 128 };
extern const struct seccomp_call seccomp_calls[];
extern const size_t seccomp_calls_len;
