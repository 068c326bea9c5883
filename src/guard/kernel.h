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
#define K_RENAME_NOREPLACE 1u
#define K_RENAME_NOREPLACE 1u
#define K_RENAME_EXCHANGE 2u
#define K_RENAME_WHITEOUT 4u

/* linux/stat.h */
#define K_STATX_BASIC_STATS 0x7ffu
#define K_STATX_BTIME 0x800u
#define K_STATX_MNT_ID 0x1000u /* Linux 5.8 */

struct k_statx {
    uint32_t mask;
    uint32_t blksize;
    uint64_t attributes;
    uint32_t nlink;
    uint32_t uid;
    uint32_t gid;
    uint16_t mode;
    uint16_t unused;
    uint64_t inode;
    uint64_t size;
    uint64_t blocks;
    uint64_t attributes_mask;
    struct {
        int64_t seconds;
        uint32_t nanoseconds;
        int32_t unused;
    } atime, btime, ctime, mtime;
    uint32_t rdev_major;
    uint32_t rdev_minor;
    uint32_t dev_major;
    uint32_t dev_minor;
    uint64_t mount;
    uint64_t rest[13];
};

_Static_assert(sizeof(struct k_statx) == 256, "statx(2)");

/* System call numbers that are the same on every architecture. */
#define K_SYS_FCHMODAT2 452
#define K_SYS_PIDFD_SEND_SIGNAL 424
#define K_SYS_PIDFD_OPEN 434
#define K_SYS_PIDFD_GETFD 438
#define K_SYS_LANDLOCK_CREATE_RULESET 444
#define K_SYS_LANDLOCK_ADD_RULE 445
#define K_SYS_LANDLOCK_RESTRICT_SELF 446

/* linux/pidfd.h: O_EXCL, Linux 6.9 */
#define K_PIDFD_THREAD 0200u

/* linux/pidfd.h, Linux 6.15: how a process ended, once nobody can wait for it any more */
#define K_PIDFD_INFO_EXIT 8u
#define K_PIDFD_GET_INFO 0xc040ff0bu

struct k_pidfd_info {
    uint64_t mask;
    uint64_t cgroup;
    uint32_t ids[11];
    int32_t exit_code; /* as from waitpid(2) */
};

_Static_assert(sizeof(struct k_pidfd_info) == 64, "PIDFD_INFO_SIZE_VER0");

/* linux/un.h: the file that a Unix socket is bound to, as an O_PATH descriptor. For those who have
 * CAP_NET_ADMIN over the socket's network, as the owner of its user namespace has. */
#define K_SIOCUNIXFILE 0x89e0u

/* linux/netlink.h */
struct k_sockaddr_nl {
    uint16_t family;
    uint16_t padding;
    uint32_t port;
    uint32_t groups;
};

/* linux/landlock.h */
#define K_LANDLOCK_RULE_PATH_BENEATH 1
#define K_LANDLOCK_MAKE_SOCK (1u << 9)

struct k_landlock_ruleset {
    uint64_t handled_files;
};

struct k_landlock_path_beneath {
    uint64_t allowed;
    int32_t dir;
} __attribute__((packed));

/* linux/nsfs.h, Linux 6.11: the thread of that pid namespace, as we see it */
#define K_NS_GET_PID_FROM_PIDNS 0x8004b706u

/* linux/fuse.h */
#define K_FUSE_LOOKUP 1
#define K_FUSE_FORGET 2
#define K_FUSE_GETATTR 3
#define K_FUSE_READLINK 5
#define K_FUSE_OPEN 14
#define K_FUSE_STATFS 17
#define K_FUSE_GETXATTR 22
#define K_FUSE_LISTXATTR 23
#define K_FUSE_INIT 26
#define K_FUSE_OPENDIR 27
#define K_FUSE_ACCESS 34
#define K_FUSE_INTERRUPT 36
#define K_FUSE_NOTIFY_REPLY 41
#define K_FUSE_BATCH_FORGET 42
#define K_FUSE_STATX 52

struct k_fuse_in_header {
    uint32_t len;
    uint32_t opcode;
    uint64_t unique;
    uint64_t node;
    uint32_t uid;
    uint32_t gid;
    uint32_t pid;
    uint32_t padding;
};

struct k_fuse_out_header {
    uint32_t len;
    int32_t error; /* negative */
    uint64_t unique;
};

struct k_fuse_init_out {
    uint32_t major;
    uint32_t minor;
    uint32_t max_readahead;
    uint32_t flags;
    uint16_t max_background;
    uint16_t congestion_threshold;
    uint32_t max_write;
    uint32_t time_gran;
    uint32_t rest[9];
};

struct k_fuse_attr_out {
    uint64_t valid;
    uint32_t valid_nsec;
    uint32_t padding;
    uint64_t inode;
    uint64_t size;
    uint64_t blocks;
    uint64_t times[3];
    uint32_t times_nsec[3];
    uint32_t mode;
    uint32_t nlink;
    uint32_t uid;
    uint32_t gid;
    uint32_t rdev;
    uint32_t blksize;
    uint32_t flags;
};

struct k_fuse_statfs_out {
    uint64_t counts[5];
    uint32_t bsize;
    uint32_t namelen;
    uint32_t frsize;
    uint32_t rest[7];
};

_Static_assert(sizeof(struct k_fuse_in_header) == 40 && sizeof(struct k_fuse_out_header) == 16 &&
                   sizeof(struct k_fuse_init_out) == 64 && sizeof(struct k_fuse_attr_out) == 104 &&
                   sizeof(struct k_fuse_statfs_out) == 80,
               "linux/fuse.h");
