/* Kernel interface that the headers of Debian 12 (or musl's, which come without linux/) lack:
 * numbers and structs from Linux 6.12's uapi headers. The system call numbers from 424 on are the
 * same on every architecture. */
#pragma once

#include <stdint.h>
#include <sys/syscall.h>

#define K_SYS_OPEN_TREE 428
#define K_SYS_MOVE_MOUNT 429
#define K_SYS_FSOPEN 430
#define K_SYS_FSCONFIG 431
#define K_SYS_FSMOUNT 432
#define K_SYS_FSPICK 433
#define K_SYS_MOUNT_SETATTR 442
#define K_SYS_LANDLOCK_CREATE_RULESET 444
#define K_SYS_LANDLOCK_ADD_RULE 445
#define K_SYS_LANDLOCK_RESTRICT_SELF 446

/* linux/mount.h */
#define K_OPEN_TREE_CLONE 1
#define K_OPEN_TREE_CLOEXEC 02000000
#define K_AT_RECURSIVE 0x8000
#define K_AT_EMPTY_PATH 0x1000
#define K_MOVE_MOUNT_F_EMPTY_PATH 0x04
#define K_MOVE_MOUNT_T_EMPTY_PATH 0x40
#define K_FSCONFIG_SET_FLAG 0
#define K_FSCONFIG_SET_STRING 1
#define K_FSCONFIG_SET_FD 5
#define K_FSCONFIG_CMD_CREATE 6
#define K_FSCONFIG_CMD_RECONFIGURE 7
#define K_FSOPEN_CLOEXEC 1
#define K_FSMOUNT_CLOEXEC 1
#define K_FSPICK_CLOEXEC 1
#define K_FSPICK_EMPTY_PATH 8
#define K_MOUNT_ATTR_RDONLY 0x01
#define K_MOUNT_ATTR_NOSUID 0x02
#define K_MOUNT_ATTR_NODEV 0x04
#define K_MOUNT_ATTR_NOEXEC 0x08
#define K_MS_PRIVATE (1u << 18)

struct k_mount_attr {
    uint64_t attr_set;
    uint64_t attr_clr;
    uint64_t propagation;
    uint64_t userns_fd;
};

/* linux/landlock.h, ABI 1 to 7 */
#define K_LANDLOCK_EXECUTE (1ull << 0)
#define K_LANDLOCK_WRITE_FILE (1ull << 1)
#define K_LANDLOCK_READ_FILE (1ull << 2)
#define K_LANDLOCK_READ_DIR (1ull << 3)
#define K_LANDLOCK_REMOVE_DIR (1ull << 4)
#define K_LANDLOCK_REMOVE_FILE (1ull << 5)
#define K_LANDLOCK_MAKE_CHAR (1ull << 6)
#define K_LANDLOCK_MAKE_DIR (1ull << 7)
#define K_LANDLOCK_MAKE_REG (1ull << 8)
#define K_LANDLOCK_MAKE_SOCK (1ull << 9)
#define K_LANDLOCK_MAKE_FIFO (1ull << 10)
#define K_LANDLOCK_MAKE_BLOCK (1ull << 11)
#define K_LANDLOCK_MAKE_SYM (1ull << 12)
#define K_LANDLOCK_REFER (1ull << 13)     /* ABI 2 */
#define K_LANDLOCK_TRUNCATE (1ull << 14)  /* ABI 3 */
#define K_LANDLOCK_IOCTL_DEV (1ull << 15) /* ABI 5 */
#define K_LANDLOCK_BIND_TCP (1ull << 0)   /* ABI 4 */
#define K_LANDLOCK_CONNECT_TCP (1ull << 1)
#define K_LANDLOCK_SCOPE_ABSTRACT_UNIX (1ull << 0) /* ABI 6 */
#define K_LANDLOCK_SCOPE_SIGNAL (1ull << 1)
#define K_LANDLOCK_CREATE_RULESET_VERSION 1
#define K_LANDLOCK_RULE_PATH_BENEATH 1

struct k_landlock_ruleset_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

struct k_landlock_path_beneath {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

/* linux/seccomp.h */
#define K_SECCOMP_SET_MODE_FILTER 1
#define K_SECCOMP_FILTER_NEW_LISTENER (1u << 3)       /* Linux 5.0 */
#define K_SECCOMP_FILTER_WAIT_KILLABLE_RECV (1u << 5) /* Linux 5.19 */

/* linux/keyctl.h */
#define K_KEYCTL_JOIN_SESSION_KEYRING 1

/* linux/capability.h, version 3 */
#define K_CAPABILITY_VERSION_3 0x20080522
#define K_CAP_LAST 63
#define K_CAP_SETPCAP 8

struct k_cap_header {
    uint32_t version;
    int pid;
};

struct k_cap_data {
    uint32_t effective;
    uint32_t permitted;
    uint32_t inheritable;
};

/* asm/signal.h: x86_64 and aarch64 */
#define K_SIGNALS 64
#define K_SIGSET_BYTES 8
