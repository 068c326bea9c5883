/* See confine.h. What takes such a program over, by a mistake in a parser, has the commands' connections, which is bad enough; it
 * shall not have the user's files, other processes, or Unix sockets too.
 *
 * Landlock: files below some folders can be read; no other, nor abstract sockets and processes (ABI 6). seccomp: a list of calls, all others fail with EPERM, so that a C library that tries a newer one
 * first goes on with the older. Not under sanitizers, which need more. */
#include "base/confine.h"

#include "base/auto.h"

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

static int confine_files(const char *const *folders, struct err *err)
{
    static const unsigned rights[] = {0, 13, 14, 15, 15, 16, 16}; /* how many each ABI knows */
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION_FLAG);
    struct landlock_ruleset attributes = {0};
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
        return err_sys(err, "making Landlock rules");
    for (; *folders; folders++)
        allow_below(ruleset, *folders);
    if (syscall(SYS_landlock_restrict_self, ruleset, 0))
        return err_sys(err, "applying Landlock rules");
    return 0;
}

/* --- seccomp --- */

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#endif

static int confine_calls(const struct confine_options *options, struct err *err)
{
#ifdef ARCH
    struct sock_filter filter[CONFINE_CALLS_MAX + 10];
    const unsigned len = (unsigned)options->calls_len;
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
    for (unsigned i = 0; i < len; i++) /* over the rest, the four of socket() and the refusal */
        filter[at++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)options->calls[i],
                                         (unsigned char)(len - i + 4), 0);
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket,
                                                options->has_network ? 0 : 3, 3);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                offsetof(struct seccomp_data, args[0]));
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0);
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0);
    filter[at++] = refuse;
    filter[at++] = allow;
    program.len = at;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) && errno != EINVAL)
        return err_sys(err, "applying a filter of system calls");
#endif
    return 0;
}

int confine(const struct confine_options *options, struct err *err)
{
    if (IS_SANITIZED)
        return 0;
    return confine_files(options->folders, err) || confine_calls(options, err) ? -1 : 0;
}
