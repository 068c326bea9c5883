/* See seccomp_reference.h. */
#include "seccomp_reference.h"
#include "call_numbers.h"

#include "base/str.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

const uint32_t reference_audit_arch[SECCOMP_ARCH_COUNT] = {
    [SECCOMP_X86_64] = AUDIT_ARCH_X86_64,
    [SECCOMP_AARCH64] = AUDIT_ARCH_AARCH64,
};

const char *const reference_arch_names[SECCOMP_ARCH_COUNT] = {
    [SECCOMP_X86_64] = "x86_64", [SECCOMP_AARCH64] = "aarch64"};

/* What no command may ask for. */
static const char *const never[] = {
    "acct",
    "add_key",
    "bpf",
    "delete_module",
    "finit_module",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "keyctl",
    "kexec_file_load",
    "kexec_load",
    "perf_event_open",
    "open_by_handle_at",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "request_key",
    "swapoff",
    "swapon",
    "userfaultfd",
    NULL,
};

/* What namespaces of the command's own are made of. */
static const char *const nesting[] = {
    "fsconfig",   "fsmount",        "fsopen",    "fspick",     "mount", "mount_setattr",
    "move_mount", "open_tree_attr", "open_tree", "pivot_root", "setns", "umount2",
    NULL,
};

/* What reaches into other processes, which are the host's when there is no pid namespace. */
static const char *const reaching[] = {
    "ioprio_set",        "kcmp",
    "migrate_pages",     "move_pages",
    "pidfd_getfd",       "process_madvise",
    "process_mrelease",  "process_vm_readv",
    "process_vm_writev", "ptrace",
    "sched_setaffinity", "sched_setattr",
    "sched_setparam",    "sched_setscheduler",
    "setpriority",       NULL,
};

/* IPC by numbers and names that are the host's when there is no ipc namespace. */
static const char *const ipc[] = {
    "mq_open", "mq_unlink", "msgctl",     "msgget", "msgrcv", "msgsnd", "semctl",
    "semget",  "semop",     "semtimedop", "shmat",  "shmctl", "shmget", NULL,
};

/* What Landlock has no right for, so that only a read-only mount refuses it. */
static const char *const attributes[] = {
    "chmod",         "chown",    "fchmod",       "fchmodat",     "fchmodat2",
    "fchown",        "fchownat", "file_setattr", "fremovexattr", "fsetxattr",
    "futimesat",     "lchown",   "lremovexattr", "lsetxattr",    "removexattr",
    "removexattrat", "setxattr", "setxattrat",   "utime",        "utimensat",
    "utimes",        NULL,
};

/* What can make a file, or change its mode: argument numbers; flags -1 when it always does. */
static const struct set_id {
    const char *name;
    int flags;
    int mode;
} set_ids[] = {
    {"chmod", -1, 1},     {"fchmod", -1, 1},  {"creat", -1, 1},
    {"mknod", -1, 1},     {"mknodat", -1, 2}, {"fchmodat", -1, 2},
    {"fchmodat2", -1, 2}, {"open", 1, 2},     {"openat", 2, 3},
};

/* What the guard is asked about when names are held or facts are wanted. */
static const char *const creating[] = {
    "creat",  "link",     "linkat",    "mkdir",   "mkdirat",   "mknod", "mknodat",
    "rename", "renameat", "renameat2", "symlink", "symlinkat", NULL,
};

/* What it is asked about for facts alone. */
static const char *const changing[] = {
    "chmod",  "chown",     "fchmodat",     "fchmodat2", "fchownat",    "lchown",
    "rmdir",  "lsetxattr", "lremovexattr", "setxattr",  "removexattr", "truncate",
    "unlink", "unlinkat",  "utime",        "utimes",    NULL,
};

/* What it is asked about where changes by descriptor count, too. */
static const char *const by_descriptor[] = {
    "fchmod", "fchown", "fremovexattr", "fsetxattr", "futimesat", "utimensat", NULL,
};

/* What sends a signal, which to a process outside is refused later. */
static const char *const signalling[] = {
    "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal", NULL,
};

/* What is known of one number; filled in when it is asked for first. */
struct call {
    const char *name;
    bool is_never, is_nesting, is_reaching, is_ipc, is_attribute, is_creating, is_changing,
        is_by_descriptor, is_signal;
    const struct set_id *set_id;
};

static const struct call_number *numbers_of(enum seccomp_arch arch)
{
    return arch == SECCOMP_X86_64 ? call_numbers_x86_64 : call_numbers_aarch64;
}

static bool is_among(const char *name, const char *const *names)
{
    while (*names && !str_eq(*names, name))
        names++;
    return *names;
}

static const struct set_id *find_set_id(const char *name)
{
    for (size_t i = 0; i < sizeof set_ids / sizeof *set_ids; i++)
        if (str_eq(set_ids[i].name, name))
            return &set_ids[i];
    return NULL;
}

static const struct call *call_of(enum seccomp_arch arch, int nr)
{
    static struct call calls[SECCOMP_ARCH_COUNT][REFERENCE_LAST + 1];
    static const struct call other = {.name = ""};
    struct call *call = &calls[arch][nr >= 0 && nr <= REFERENCE_LAST ? nr : 0];
    const struct call_number *number = numbers_of(arch);

    if (nr < 0 || nr > REFERENCE_LAST)
        return &other;
    if (call->name)
        return call;
    while (number->name && number->nr != nr)
        number++;
    call->name = number->name ? number->name : "";
    call->is_never = is_among(call->name, never);
    call->is_nesting = is_among(call->name, nesting);
    call->is_reaching = is_among(call->name, reaching);
    call->is_ipc = is_among(call->name, ipc);
    call->is_attribute = is_among(call->name, attributes);
    call->is_creating = is_among(call->name, creating);
    call->is_changing = is_among(call->name, changing);
    call->is_by_descriptor = is_among(call->name, by_descriptor);
    call->is_signal = is_among(call->name, signalling);
    call->set_id = find_set_id(call->name);
    return call;
}

bool reference_has(enum seccomp_arch arch)
{
    return numbers_of(arch)->name;
}

int reference_number(enum seccomp_arch arch, const char *name)
{
    for (const struct call_number *number = numbers_of(arch); number->name; number++)
        if (str_eq(number->name, name))
            return number->nr;
    return -1;
}

const char *reference_name(enum seccomp_arch arch, int nr)
{
    return call_of(arch, nr)->name;
}

static uint32_t refuse_if(bool condition)
{
    return condition ? REFUSED : ALLOWED;
}

static bool has_namespace_flag(uint32_t flags, bool has_exit_signal)
{
    const uint32_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

    return flags & (has_exit_signal ? namespaces : namespaces | CLONE_NEWTIME);
}

static bool is_refused_ioctl(const struct seccomp_spec *spec, uint32_t request)
{
    static const uint32_t by_read_only[] = {0x40086602, 0x40046602, 0x401c5820, 0x40087602,
                                            0x40086604, 0x6609,     0x40806685, 0x800c6613,
                                            0x4008941a, 0x40047211};

    switch (request) {
    case TIOCSTI:
    case TIOCLINUX:
    case 0x50009401: /* btrfs */
    case 0x5000940e:
    case 0x5000940f:
    case 0x50009417:
    case 0x50009418:
    case 0x5000943f:
    case 0x4020bc10: /* bcachefs */
    case 0x4020bc11:
    case 0x40186f04: /* ocfs2 */
        return true;
    default:
        break;
    }
    for (size_t i = 0; i < sizeof by_read_only / sizeof *by_read_only; i++)
        if (request == by_read_only[i])
            return !spec->has_mount_namespace;
    return false;
}

/* Opens that make a file, or could change one. */
static bool is_asked_open(const struct seccomp_spec *spec, uint32_t flags)
{
    if (flags & O_CREAT)
        return spec->asks_names || spec->asks_facts;
    return spec->asks_reads ||
           (spec->asks_facts &&
            ((flags & O_ACCMODE) || (flags & (O_TRUNC | 020000000 /* __O_TMPFILE */))));
}

/* What would be allowed, but the guard is asked. */
static bool is_asked(const struct seccomp_spec *spec, const struct call *call, const __u64 *args)
{
    const char *name = call->name;

    if (call->is_creating)
        return spec->asks_names || spec->asks_facts;
    if (call->is_changing)
        return spec->asks_facts;
    if (call->is_by_descriptor && spec->asks_descriptors)
        return true;
    if (str_eq(name, "open") || str_eq(name, "openat"))
        return is_asked_open(spec, (uint32_t)args[str_eq(name, "open") ? 1 : 2]);
    if (str_eq(name, "execve") || str_eq(name, "execveat"))
        return spec->asks_exec;
    if (call->is_signal)
        return spec->asks_signals;
    if (str_eq(name, "umask") || str_eq(name, "chdir") || str_eq(name, "fchdir"))
        return spec->asks_names;
    if (str_eq(name, "sched_setaffinity"))
        return spec->asks_names || spec->asks_facts || spec->asks_sockets || spec->asks_exec;
    if (str_eq(name, "access"))
        return spec->asks_facts && (args[1] & 2);
    if (str_eq(name, "faccessat") || str_eq(name, "faccessat2"))
        return spec->asks_facts && (args[2] & 2);
    if (str_eq(name, "utimensat") || str_eq(name, "futimesat"))
        return spec->asks_facts && args[1];
    if (str_eq(name, "sendto"))
        return spec->asks_datagrams && args[4];
    if (str_eq(name, "connect"))
        return spec->asks_sockets;
    if (str_eq(name, "bind"))
        return spec->asks_sockets || (spec->asks_names && spec->sockets == SECCOMP_SOCKETS_UNIX);
    return false;
}

static bool is_allowed_socket(const struct seccomp_spec *spec, uint32_t family, uint32_t protocol)
{
    if (spec->sockets == SECCOMP_SOCKETS_NONE)
        return false;
    if (family == AF_UNIX)
        return spec->sockets == SECCOMP_SOCKETS_UNIX;
    return family == AF_INET || family == AF_INET6 ||
           (family == AF_NETLINK &&
            (protocol == NETLINK_ROUTE ||
             (protocol == NETLINK_SOCK_DIAG && spec->sockets == SECCOMP_SOCKETS_INTERNET)));
}

/* Every end of a pair but those of streams can be pointed at a socket that has a path; SOCK_RAW is
 * another word for SOCK_DGRAM there (unix_create() of net/unix/af_unix.c). */
static bool is_allowed_pair(const struct seccomp_spec *spec, uint32_t family, uint32_t type)
{
    type &= 0xf;
    if (family != AF_UNIX)
        return false;
    return spec->sockets == SECCOMP_SOCKETS_UNIX || type == SOCK_STREAM || type == SOCK_SEQPACKET;
}

/* What is there gets the bit: it may be a directory, which a filter cannot tell. */
static bool is_asked_set_group_id(const struct seccomp_spec *spec, const struct call *call,
                                  const uint32_t *args)
{
    return spec->is_root && (spec->asks_names || spec->asks_facts) && call->is_attribute &&
           call->set_id && (args[call->set_id->mode] & 06000) == 02000;
}

/* A set-user-id file; for root a set-group-id one, too. */
static bool makes_set_id(const struct seccomp_spec *spec, const struct set_id *call,
                         const uint32_t *args)
{
    if (!call || !(args[call->mode] & (spec->is_root ? 06000 : 04000)))
        return false;
    return call->flags < 0 || (args[call->flags] & (O_CREAT | 020000000 /* __O_TMPFILE */));
}

/* Calls that depend on their arguments, and those that are not there. */
static uint32_t verdict_by_name(const struct seccomp_spec *spec, const char *name,
                                const uint32_t *args)
{
    if (str_eq(name, "openat2") || str_eq(name, "clone3"))
        return UNKNOWN; /* a mode, or flags, are behind a pointer */
    if (str_eq(name, "clone") || str_eq(name, "unshare"))
        return refuse_if(!spec->allow_nested_namespaces &&
                         has_namespace_flag(args[0], str_eq(name, "clone")));
    if (str_eq(name, "prlimit64"))
        return refuse_if(!spec->has_pid_namespace && args[0] != 0);
    if (str_eq(name, "fcntl"))
        return refuse_if(args[1] == F_SETLEASE || args[1] == 1040 /* F_SETDELEG */);
    if (str_eq(name, "ioctl"))
        return refuse_if(is_refused_ioctl(spec, args[1]));
    if (str_eq(name, "socket") && spec->asks_sockets && args[0] == AF_UNIX &&
        spec->sockets != SECCOMP_SOCKETS_UNIX)
        return (args[1] & 0xf) == SOCK_STREAM || (args[1] & 0xf) == SOCK_SEQPACKET ? ALLOWED
                                                                                   : ASKED;
    if (str_eq(name, "socket"))
        return refuse_if(!is_allowed_socket(spec, args[0], args[2]));
    if (str_eq(name, "socketpair"))
        return refuse_if(!is_allowed_pair(spec, args[0], args[1]));
    return ALLOWED;
}

/* Modes, owners, times: where neither mounts nor the guard see to it, and what the guard does not know. */
static bool is_refused_attribute(const struct seccomp_spec *spec, const struct call *call)
{
    static const char *const unknown[] = {"setxattrat", "removexattrat", "file_setattr", NULL};

    return call->is_attribute && !spec->has_mount_namespace &&
           (!spec->performs || is_among(call->name, unknown));
}

uint32_t reference_verdict(const struct seccomp_spec *spec, const struct seccomp_data *data)
{
    const struct call *call = call_of(spec->arch, data->nr);
    uint32_t args[4] = {(uint32_t)data->args[0], (uint32_t)data->args[1], (uint32_t)data->args[2],
                        (uint32_t)data->args[3]};

    if (data->arch != reference_audit_arch[spec->arch])
        return KILLED;
    if (spec->arch == SECCOMP_X86_64 && (uint32_t)data->nr >= REFERENCE_X32_BIT && data->nr != -1)
        return KILLED; /* -1 is what a tracer writes to have a call skipped */
    if (is_asked_set_group_id(spec, call, args) && !is_refused_attribute(spec, call))
        return ASKED;
    if (call->is_never || makes_set_id(spec, call->set_id, args))
        return REFUSED;
    if ((call->is_nesting && !spec->allow_nested_namespaces) ||
        (call->is_reaching && !spec->has_pid_namespace) ||
        (call->is_ipc && !spec->has_ipc_namespace) || is_refused_attribute(spec, call))
        return REFUSED;
    if (is_asked(spec, call, data->args))
        return ASKED;
    return *call->name ? verdict_by_name(spec, call->name, args) : ALLOWED;
}
