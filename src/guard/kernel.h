/* Kernel interface that musl's headers lack: structs and numbers of Linux 6.12's uapi headers. */
#pragma once

#include <stdint.h>

/* linux/seccomp.h */
struct k_seccomp_data {
    int32_t nr;
    uint32_t arch;
    uint64_t instruction_pointer;
    uint64_t args[6];
};

struct k_seccomp_notif {
    uint64_t id;
    uint32_t pid; /* of the thread, as this process sees it */
    uint32_t flags;
    struct k_seccomp_data data;
};

struct k_seccomp_notif_resp {
    uint64_t id;
    int64_t val;
    int32_t error; /* negative */
    uint32_t flags;
};

struct k_seccomp_notif_addfd {
    uint64_t id;
    uint32_t flags;
    uint32_t srcfd;
    uint32_t newfd;
    uint32_t newfd_flags;
};

#define K_SECCOMP_USER_NOTIF_FLAG_CONTINUE 1u
#define K_SECCOMP_ADDFD_FLAG_SEND 2u
#define K_SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP 1u /* Linux 6.6 */
#define K_SECCOMP_IOCTL_NOTIF_RECV 0xc0502100u
#define K_SECCOMP_IOCTL_NOTIF_SEND 0xc0182101u
#define K_SECCOMP_IOCTL_NOTIF_ID_VALID 0x40082102u
#define K_SECCOMP_IOCTL_NOTIF_ADDFD 0x40182103u
#define K_SECCOMP_IOCTL_NOTIF_SET_FLAGS 0x40082104u

/* linux/fs.h */
#define K_FS_IOC_GETFLAGS 0x80086601u
#define K_FS_CASEFOLD_FL 0x40000000u

/* linux/fs.h, renameat2(2) */
#define K_RENAME_EXCHANGE 2u
#define K_RENAME_WHITEOUT 4u

/* System call numbers that are the same on every architecture. */
#define K_SYS_PIDFD_OPEN 434
#define K_SYS_PIDFD_GETFD 438
