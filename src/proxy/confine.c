/* See confine.h. What takes the proxy over, by a mistake in a parser, has the commands' connections, which is bad enough; it
 * shall not have the user's files, other processes, or Unix sockets too.
 *
 * Landlock: files below /etc, and where resolv.conf really lies, can be read; no other, nor abstract sockets and processes
 * (ABI 6). seccomp: a list of calls, all others fail with EPERM, so that a C library that tries a newer one
 * first goes on with the older. Not under sanitizers, which need more. */
#include "proxy/confine.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

/* --- Landlock --- */

/* linux/landlock.h of Linux 6.12 */
struct landlock_ruleset {
    uint64_t files;
    uint64_t net;
    uint64_t scoped;
};

struct landlock_path_beneath {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

enum {
    LANDLOCK_VERSION_FLAG = 1,
    LANDLOCK_PATH_BENEATH = 1,
    LANDLOCK_READ_FILE = 1 << 2,
    LANDLOCK_READ_DIR = 1 << 3,
    LANDLOCK_BIND_TCP = 1 << 0,
    LANDLOCK_SCOPE_ALL = 3, /* abstract Unix sockets, signals */
};

static void allow_below(int ruleset, const char *path)
{
    AUTO_CLOSE int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const struct landlock_path_beneath rule = {.allowed = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR,
                                               .parent = dir};

    if (dir >= 0)
        syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_PATH_BENEATH, &rule, 0);
}

static int confine_files(struct err *err)
{
    static const unsigned rights[] = {0, 13, 14, 15, 15, 16, 16}; /* how many each ABI knows */
    /* where resolv.conf may come to lie when the machine changes networks */
    static const char *const folders[] = {"/etc", "/run/systemd/resolve", "/run/NetworkManager",
                                          "/run/resolvconf", "/run/connman"};
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION_FLAG);
    struct landlock_ruleset attributes = {0};
    AUTO_FREE char *resolv_conf = realpath("/etc/resolv.conf", NULL);
    AUTO_FREE char *its_folder = resolv_conf ? path_parent(resolv_conf) : NULL;
    AUTO_CLOSE int ruleset = -1;

    if (abi < 1)
        return 0;
    attributes.files = (UINT64_C(1) << rights[abi < 6 ? abi : 6]) - 1;
    attributes.net = abi >= 4 ? LANDLOCK_BIND_TCP : 0;
    attributes.scoped = abi >= 6 ? LANDLOCK_SCOPE_ALL : 0;
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes,
                           abi >= 6   ? sizeof attributes
                           : abi >= 4 ? offsetof(struct landlock_ruleset, scoped)
                                      : offsetof(struct landlock_ruleset, net),
                           0);
    if (ruleset < 0)
        return err_sys(err, "making the proxy's Landlock rules");
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        allow_below(ruleset, folders[i]);
    if (its_folder)
        allow_below(ruleset, its_folder);
    if (syscall(SYS_landlock_restrict_self, ruleset, 0))
        return err_sys(err, "applying the proxy's Landlock rules");
    return 0;
}

/* --- seccomp --- */

static const long calls[] = {
    SYS_read,         SYS_write,        SYS_readv,           SYS_writev,       SYS_close,
    SYS_lseek,        SYS_splice,       SYS_pipe2,           SYS_socketpair,   SYS_sendto,
    SYS_recvfrom,     SYS_sendmsg,      SYS_recvmsg,         SYS_accept4,      SYS_connect,
    SYS_bind,         SYS_shutdown,     SYS_getsockname,     SYS_getpeername,  SYS_setsockopt,
    SYS_getsockopt,   SYS_fcntl,        SYS_ioctl,           SYS_openat,       SYS_fstat,
    SYS_newfstatat,   SYS_statx,        SYS_readlinkat,      SYS_epoll_ctl,    SYS_epoll_pwait,
    SYS_ppoll,        SYS_mmap,         SYS_munmap,          SYS_mremap,       SYS_mprotect,
    SYS_madvise,      SYS_brk,          SYS_futex,           SYS_getrandom,    SYS_clock_gettime,
    SYS_gettimeofday, SYS_nanosleep,    SYS_clock_nanosleep, SYS_getpid,       SYS_gettid,
    SYS_tgkill,       SYS_rt_sigaction, SYS_rt_sigprocmask,  SYS_rt_sigreturn, SYS_restart_syscall,
    SYS_exit,         SYS_exit_group,
#ifdef SYS_epoll_wait /* older ones, of x86 alone */
    SYS_epoll_wait,   SYS_stat,         SYS_lstat,           SYS_open,         SYS_readlink,
    SYS_poll,         SYS_time,
#endif
};

enum { CALLS = sizeof calls / sizeof *calls };

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#endif

static int confine_calls(struct err *err)
{
#ifdef ARCH
    struct sock_filter filter[CALLS + 10];
    struct sock_fprog program = {.filter = filter};
    unsigned short at = 0;
    const struct sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

    filter[at++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    filter[at++] = refuse;
    filter[at++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < CALLS; i++) /* over the rest, the four of socket() and the refusal */
        filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i],
                                                    (unsigned char)(CALLS - i + 4), 0);
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                offsetof(struct seccomp_data, args[0]));
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0);
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0);
    filter[at++] = refuse;
    filter[at++] = allow;
    program.len = at;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) && errno != EINVAL)
        return err_sys(err, "applying the proxy's filter of system calls");
#endif
    return 0;
}

int confine(struct err *err)
{
    if (IS_SANITIZED)
        return 0;
    return confine_files(err) || confine_calls(err) ? -1 : 0;
}
