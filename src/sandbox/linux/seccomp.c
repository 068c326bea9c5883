/* What the command may not ask of the kernel.
 *
 * The program: check the architecture (another one, or x32, kills the process: their numbers mean
 * other calls), then a binary search over the call number, whose leaves are verdicts; calls that
 * depend on an argument have a short block each behind the tree. Arguments that the kernel reads as
 * 32 bits are compared as 32 bits (CVE-2019-10063: the upper half must not matter).
 *     arch -> number -> tree -> [allow] [EPERM] [ENOSYS] [kill] [one check per call with arguments]
 *
 * Calls that the guard is asked about (src/guard/calls.c has the same ones) are those that the filter
 * would let through: a refusal comes first, and none is ever asked that a process needs to go on
 * (sendmsg, close, dup, wait, fork), or that hands the listener over. A signal before the guard has
 * taken a call shows as EINTR, which those never say.
 *
 * clone3(2) passes its flags in memory, where a filter cannot look, and one of them leads into another cgroup: it does not
 * exist here, and every C library then uses clone(2). */
#include "sandbox/linux/seccomp.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
    CHECK_FCNTL,
    CHECK_MODE_1, /* the mode of a new file is argument 1 */
    CHECK_MODE_2,
    CHECK_CHMOD_1, /* the mode of what is there */
    CHECK_CHMOD_2,
    CHECK_OPEN,   /* flags 1, mode 2 */
    CHECK_OPENAT, /* flags 2, mode 3 */
    ASK,
    CHECK_MODE_1_ASK, /* and ask when it passes */
    CHECK_MODE_2_ASK,
    CHECK_CHMOD_1_ASK,
    CHECK_CHMOD_2_ASK,
    CHECK_WISH_1, /* access: ask when the mode, argument 1, has W_OK */
    CHECK_WISH_2,
    CHECK_TIMES,       /* ask when there is a path in argument 1 */
    CHECK_DESTINATION, /* ask when there is an address in argument 4 */
};

enum seccomp_condition {
    ALWAYS,
    NO_NESTING,
    NO_PID_NAMESPACE,
    NO_MOUNT_NAMESPACE,
    NO_IPC_NAMESPACE,
    CHANGES, /* of modes, owners and times end where they should: by mounts, or the guard */
    NO_CHANGES
};

struct seccomp_call {
    int nr[SECCOMP_ARCH_COUNT]; /* -1: not on this architecture */
    enum seccomp_verdict verdict;
    enum seccomp_condition condition;
};

/* The system calls that a command may not make, or not with every argument, by the kernel's tables
 * (syscall_64.tbl, scripts/syscall.tbl). Of one number the conditions exclude each other. */
static const struct seccomp_call seccomp_calls[] = {
    {{16, 29}, CHECK_IOCTL, ALWAYS},
    {{41, 198}, CHECK_SOCKET, ALWAYS},
    {{53, 199}, CHECK_SOCKETPAIR, ALWAYS},
    {{56, 220}, CHECK_CLONE, NO_NESTING},
    {{72, 25}, CHECK_FCNTL, ALWAYS},
    {{101, 117}, DENY, NO_PID_NAMESPACE}, /* ptrace */
    {{155, 41}, DENY, NO_NESTING},        /* pivot_root */
    {{163, 89}, DENY, ALWAYS},            /* acct */
    {{165, 40}, DENY, NO_NESTING},        /* mount */
    {{166, 39}, DENY, NO_NESTING},        /* umount2 */
    {{167, 224}, DENY, ALWAYS},           /* swapon */
    {{168, 225}, DENY, ALWAYS},           /* swapoff */
    {{169, 142}, DENY, ALWAYS},           /* reboot */
    {{175, 105}, DENY, ALWAYS},           /* init_module */
    {{176, 106}, DENY, ALWAYS},           /* delete_module */
    {{179, 60}, DENY, ALWAYS},            /* quotactl */
    {{246, 104}, DENY, ALWAYS},           /* kexec_load */
    {{248, 217}, DENY, ALWAYS},           /* add_key */
    {{249, 218}, DENY, ALWAYS},           /* request_key */
    {{250, 219}, DENY, ALWAYS},           /* keyctl */
    {{272, 97}, CHECK_UNSHARE, NO_NESTING},
    {{298, 241}, DENY, ALWAYS},           /* perf_event_open */
    {{304, 265}, DENY, ALWAYS},           /* open_by_handle_at */
    {{308, 268}, DENY, NO_NESTING},       /* setns */
    {{310, 270}, DENY, NO_PID_NAMESPACE}, /* process_vm_readv */
    {{311, 271}, DENY, NO_PID_NAMESPACE}, /* process_vm_writev */
    {{312, 272}, DENY, NO_PID_NAMESPACE}, /* kcmp */
    {{313, 273}, DENY, ALWAYS},           /* finit_module */
    {{320, 294}, DENY, ALWAYS},           /* kexec_file_load */
    {{321, 280}, DENY, ALWAYS},           /* bpf */
    {{323, 282}, DENY, ALWAYS},           /* userfaultfd */
    {{425, 425}, DENY, ALWAYS},           /* io_uring_setup */
    {{426, 426}, DENY, ALWAYS},           /* io_uring_enter */
    {{427, 427}, DENY, ALWAYS},           /* io_uring_register */
    {{428, 428}, DENY, NO_NESTING},       /* open_tree */
    {{429, 429}, DENY, NO_NESTING},       /* move_mount */
    {{430, 430}, DENY, NO_NESTING},       /* fsopen */
    {{431, 431}, DENY, NO_NESTING},       /* fsconfig */
    {{432, 432}, DENY, NO_NESTING},       /* fsmount */
    {{433, 433}, DENY, NO_NESTING},       /* fspick */
    {{435, 435}, MISSING, ALWAYS},        /* clone3 */
    {{438, 438}, DENY, NO_PID_NAMESPACE}, /* pidfd_getfd */
    {{302, 261}, CHECK_PRLIMIT, NO_PID_NAMESPACE},
    {{141, 140}, DENY, NO_PID_NAMESPACE}, /* setpriority */
    {{142, 118}, DENY, NO_PID_NAMESPACE}, /* sched_setparam */
    {{144, 119}, DENY, NO_PID_NAMESPACE}, /* sched_setscheduler */
    {{203, 122}, DENY, NO_PID_NAMESPACE}, /* sched_setaffinity */
    {{251, 30}, DENY, NO_PID_NAMESPACE},  /* ioprio_set */
    {{256, 238}, DENY, NO_PID_NAMESPACE}, /* migrate_pages */
    {{279, 239}, DENY, NO_PID_NAMESPACE}, /* move_pages */
    {{314, 274}, DENY, NO_PID_NAMESPACE}, /* sched_setattr */
    {{440, 440}, DENY, NO_PID_NAMESPACE}, /* process_madvise */
    {{448, 448}, DENY, NO_PID_NAMESPACE}, /* process_mrelease */
    {{2, -1}, CHECK_OPEN, ALWAYS},
    {{85, -1}, CHECK_MODE_1, ALWAYS},  /* creat */
    {{133, -1}, CHECK_MODE_1, ALWAYS}, /* mknod */
    {{257, 56}, CHECK_OPENAT, ALWAYS},
    {{259, 33}, CHECK_MODE_2, ALWAYS},      /* mknodat */
    {{437, 437}, MISSING, ALWAYS},          /* openat2: its mode is behind a pointer */
    {{29, 194}, DENY, NO_IPC_NAMESPACE},    /* shmget */
    {{30, 196}, DENY, NO_IPC_NAMESPACE},    /* shmat */
    {{31, 195}, DENY, NO_IPC_NAMESPACE},    /* shmctl */
    {{64, 190}, DENY, NO_IPC_NAMESPACE},    /* semget */
    {{65, 193}, DENY, NO_IPC_NAMESPACE},    /* semop */
    {{66, 191}, DENY, NO_IPC_NAMESPACE},    /* semctl */
    {{68, 186}, DENY, NO_IPC_NAMESPACE},    /* msgget */
    {{69, 189}, DENY, NO_IPC_NAMESPACE},    /* msgsnd */
    {{70, 188}, DENY, NO_IPC_NAMESPACE},    /* msgrcv */
    {{71, 187}, DENY, NO_IPC_NAMESPACE},    /* msgctl */
    {{220, 192}, DENY, NO_IPC_NAMESPACE},   /* semtimedop */
    {{240, 180}, DENY, NO_IPC_NAMESPACE},   /* mq_open */
    {{241, 181}, DENY, NO_IPC_NAMESPACE},   /* mq_unlink */
    {{90, -1}, DENY, NO_CHANGES},           /* chmod */
    {{90, -1}, CHECK_CHMOD_1, CHANGES},     /* chmod */
    {{91, 52}, DENY, NO_CHANGES},           /* fchmod */
    {{91, 52}, CHECK_CHMOD_1, CHANGES},     /* fchmod */
    {{92, -1}, DENY, NO_CHANGES},           /* chown */
    {{93, 55}, DENY, NO_CHANGES},           /* fchown */
    {{94, -1}, DENY, NO_CHANGES},           /* lchown */
    {{132, -1}, DENY, NO_CHANGES},          /* utime */
    {{188, 5}, DENY, NO_CHANGES},           /* setxattr */
    {{189, 6}, DENY, NO_CHANGES},           /* lsetxattr */
    {{190, 7}, DENY, NO_CHANGES},           /* fsetxattr */
    {{197, 14}, DENY, NO_CHANGES},          /* removexattr */
    {{198, 15}, DENY, NO_CHANGES},          /* lremovexattr */
    {{199, 16}, DENY, NO_CHANGES},          /* fremovexattr */
    {{235, -1}, DENY, NO_CHANGES},          /* utimes */
    {{260, 54}, DENY, NO_CHANGES},          /* fchownat */
    {{261, -1}, DENY, NO_CHANGES},          /* futimesat */
    {{268, 53}, DENY, NO_CHANGES},          /* fchmodat */
    {{268, 53}, CHECK_CHMOD_2, CHANGES},    /* fchmodat */
    {{280, 88}, DENY, NO_CHANGES},          /* utimensat */
    {{452, 452}, DENY, NO_CHANGES},         /* fchmodat2 */
    {{452, 452}, CHECK_CHMOD_2, CHANGES},   /* fchmodat2 */
    {{463, 463}, DENY, NO_MOUNT_NAMESPACE}, /* setxattrat */
    {{466, 466}, DENY, NO_MOUNT_NAMESPACE}, /* removexattrat */
    {{469, 469}, DENY, NO_MOUNT_NAMESPACE}, /* file_setattr */
    {{442, 442}, DENY, NO_NESTING},         /* mount_setattr */
    {{443, 443}, DENY, ALWAYS},             /* quotactl_fd */
    {{467, 467}, DENY, NO_NESTING},         /* open_tree_attr */
};

enum { SECCOMP_CALLS = sizeof seccomp_calls / sizeof *seccomp_calls };

enum seccomp_reason {
    WHEN_ANY,             /* whatever else is asked about */
    WHEN_NAMES,           /* some may not come to be */
    WHEN_NAMES_OR_FACTS,  /* names are made */
    WHEN_FACTS,           /* what is there is changed */
    WHEN_DESCRIPTORS,     /* by a descriptor */
    WHEN_SIGNALS,         /* those to processes outside can be told */
    WHEN_EXEC,            /* programs are told, judged, or hidden */
    WHEN_SOCKETS,         /* Unix sockets are the guard's business */
    WHEN_DATAGRAMS,       /* those that nobody is there for are told */
    WHEN_SOCKETS_OR_PATHS /* or can be made anywhere, which makes a name */
};

/* The calls that the guard is asked about: with what verdict, unless the table above has another.
 * Opens and socket(2) are there, too. Of two the later one holds. */
static const struct seccomp_asked {
    int nr[SECCOMP_ARCH_COUNT];
    enum seccomp_verdict verdict;
    enum seccomp_reason reason;
} seccomp_asked[] = {
    {{82, -1}, ASK, WHEN_NAMES_OR_FACTS},               /* rename */
    {{83, -1}, ASK, WHEN_NAMES_OR_FACTS},               /* mkdir */
    {{85, -1}, CHECK_MODE_1_ASK, WHEN_NAMES_OR_FACTS},  /* creat */
    {{86, -1}, ASK, WHEN_NAMES_OR_FACTS},               /* link */
    {{88, -1}, ASK, WHEN_NAMES_OR_FACTS},               /* symlink */
    {{133, -1}, CHECK_MODE_1_ASK, WHEN_NAMES_OR_FACTS}, /* mknod */
    {{258, 34}, ASK, WHEN_NAMES_OR_FACTS},              /* mkdirat */
    {{259, 33}, CHECK_MODE_2_ASK, WHEN_NAMES_OR_FACTS}, /* mknodat */
    {{264, 38}, ASK, WHEN_NAMES_OR_FACTS},              /* renameat */
    {{265, 37}, ASK, WHEN_NAMES_OR_FACTS},              /* linkat */
    {{266, 36}, ASK, WHEN_NAMES_OR_FACTS},              /* symlinkat */
    {{316, 276}, ASK, WHEN_NAMES_OR_FACTS},             /* renameat2 */
    {{95, 166}, ASK, WHEN_NAMES},                       /* umask */
    {{80, 49}, ASK, WHEN_NAMES},                        /* chdir */
    {{81, 50}, ASK, WHEN_NAMES},                        /* fchdir */
    {{203, 122}, ASK, WHEN_ANY},                        /* sched_setaffinity */
    {{21, -1}, CHECK_WISH_1, WHEN_FACTS},               /* access */
    {{269, 48}, CHECK_WISH_2, WHEN_FACTS},              /* faccessat */
    {{439, 439}, CHECK_WISH_2, WHEN_FACTS},             /* faccessat2 */
    {{76, 45}, ASK, WHEN_FACTS},                        /* truncate */
    {{84, -1}, ASK, WHEN_FACTS},                        /* rmdir */
    {{87, -1}, ASK, WHEN_FACTS},                        /* unlink */
    {{263, 35}, ASK, WHEN_FACTS},                       /* unlinkat */
    {{90, -1}, CHECK_CHMOD_1_ASK, WHEN_FACTS},          /* chmod */
    {{92, -1}, ASK, WHEN_FACTS},                        /* chown */
    {{94, -1}, ASK, WHEN_FACTS},                        /* lchown */
    {{132, -1}, ASK, WHEN_FACTS},                       /* utime */
    {{188, 5}, ASK, WHEN_FACTS},                        /* setxattr */
    {{189, 6}, ASK, WHEN_FACTS},                        /* lsetxattr */
    {{197, 14}, ASK, WHEN_FACTS},                       /* removexattr */
    {{198, 15}, ASK, WHEN_FACTS},                       /* lremovexattr */
    {{235, -1}, ASK, WHEN_FACTS},                       /* utimes */
    {{260, 54}, ASK, WHEN_FACTS},                       /* fchownat */
    {{261, -1}, CHECK_TIMES, WHEN_FACTS},               /* futimesat */
    {{268, 53}, CHECK_CHMOD_2_ASK, WHEN_FACTS},         /* fchmodat */
    {{280, 88}, CHECK_TIMES, WHEN_FACTS},               /* utimensat */
    {{452, 452}, CHECK_CHMOD_2_ASK, WHEN_FACTS},        /* fchmodat2 */
    {{91, 52}, CHECK_CHMOD_1_ASK, WHEN_DESCRIPTORS},    /* fchmod */
    {{93, 55}, ASK, WHEN_DESCRIPTORS},                  /* fchown */
    {{190, 7}, ASK, WHEN_DESCRIPTORS},                  /* fsetxattr */
    {{199, 16}, ASK, WHEN_DESCRIPTORS},                 /* fremovexattr */
    {{261, -1}, ASK, WHEN_DESCRIPTORS},                 /* futimesat */
    {{280, 88}, ASK, WHEN_DESCRIPTORS},                 /* utimensat */
    {{62, 129}, ASK, WHEN_SIGNALS},                     /* kill */
    {{129, 138}, ASK, WHEN_SIGNALS},                    /* rt_sigqueueinfo */
    {{200, 130}, ASK, WHEN_SIGNALS},                    /* tkill */
    {{234, 131}, ASK, WHEN_SIGNALS},                    /* tgkill */
    {{297, 240}, ASK, WHEN_SIGNALS},                    /* rt_tgsigqueueinfo */
    {{424, 424}, ASK, WHEN_SIGNALS},                    /* pidfd_send_signal */
    {{59, 221}, ASK, WHEN_EXEC},                        /* execve */
    {{322, 281}, ASK, WHEN_EXEC},                       /* execveat */
    {{42, 203}, ASK, WHEN_SOCKETS},                     /* connect */
    {{44, 206}, CHECK_DESTINATION, WHEN_DATAGRAMS},     /* sendto */
    {{49, 200}, ASK, WHEN_SOCKETS_OR_PATHS},            /* bind */
};

enum { SECCOMP_ASKED = sizeof seccomp_asked / sizeof *seccomp_asked };

/* linux/bpf_common.h */
enum {
    BPF_LOAD = 0x20, /* LD | W | ABS */
    BPF_JEQ = 0x15,  /* JMP | JEQ | K */
    BPF_JGE = 0x35,
    BPF_JSET = 0x45,
    BPF_AND = 0x54, /* ALU | AND | K */
    BPF_RET = 0x06,
};

/* linux/seccomp.h */
#define RET_ALLOW 0x7fff0000u
#define RET_ERRNO 0x00050000u
#define RET_USER_NOTIF 0x7fc00000u
#define RET_KILL_PROCESS 0x80000000u

/* Offsets in struct seccomp_data; low halves of the arguments (both architectures are little
 * endian). */
enum {
    DATA_NR = 0,
    DATA_ARCH = 4,
    DATA_ARG0 = 16,
    DATA_ARG1 = 24,
    DATA_ARG2 = 32,
    DATA_ARG4 = 48,
    ARGUMENT_SIZE = 8
};

#define X32_BIT 0x40000000u

/* linux/stat.h, asm-generic/fcntl.h */
#define S_ISUID_BIT 04000u
#define S_ISGID_BIT 02000u
#define CREATE_FLAG 0100u
#define CREATING_FLAGS (CREATE_FLAG | 020000000u) /* and __O_TMPFILE */
#define WRITING_FLAGS (03u | 01000u | 020000000u) /* O_ACCMODE, O_TRUNC, __O_TMPFILE */

/* unistd.h */
#define WRITE_WISH 2u /* W_OK */

/* CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. In clone(2), what would be
 * CLONE_NEWTIME is part of the exit signal. */
#define NAMESPACE_FLAGS 0x7e020000u
#define NEWTIME_FLAG 0x80u

/* linux/fcntl.h: F_SETLEASE, F_SETDELEG */
#define SET_LEASE 1024u
#define SET_DELEGATION 1040u

/* TIOCSTI, TIOCLINUX; then what makes and removes names by a descriptor of a directory, of which Landlock is told nothing:
 * btrfs' SNAP_CREATE, SUBVOL_CREATE, SNAP_DESTROY, and their _V2, bcachefs' SUBVOLUME_CREATE and _DESTROY, ocfs2's REFLINK.
 * Then, where no mount keeps it so, what changes a file that is open for reading only: FS_IOC_SETFLAGS, its 32-bit twin,
 * FSSETXATTR, SETVERSION, ext4's SETVERSION and MIGRATE, ENABLE_VERITY, SET_ENCRYPTION_POLICY, btrfs' SUBVOL_SETFLAGS,
 * FAT's SET_ATTRIBUTES. */
static const uint32_t ioctls[] = {
    0x5412u,     0x541cu,     0x50009401u, 0x5000940eu, 0x5000940fu, 0x50009417u, 0x50009418u,
    0x5000943fu, 0x4020bc10u, 0x4020bc11u, 0x40186f04u, 0x40086602u, 0x40046602u, 0x401c5820u,
    0x40087602u, 0x40086604u, 0x6609u,     0x40806685u, 0x800c6613u, 0x4008941au, 0x40047211u,
};

enum { IOCTLS_EVER = 11, IOCTLS = sizeof ioctls / sizeof *ioctls };

enum { FAMILY_UNIX = 1, FAMILY_INET = 2, FAMILY_INET6 = 10, FAMILY_NETLINK = 16 };

static const uint32_t audit_arch[] = {0xc000003eu, 0xc00000b7u}; /* linux/audit.h */

/* From `start` on, up to the start of the next span, every call has the same verdict. */
struct span {
    uint32_t start;
    enum seccomp_verdict verdict;
};

struct program {
    struct plan_filter *code;
    size_t len;
    /* jumps to a verdict, to be filled in when the block of the verdict has its place */
    struct fix {
        size_t at;
        bool if_true;
        enum seccomp_verdict verdict;
    } fixes[2 * SECCOMP_MAX];
    size_t fixes_len;
};

enum seccomp_arch seccomp_native(void)
{
#if defined(__aarch64__)
    return SECCOMP_AARCH64;
#else
    return SECCOMP_X86_64;
#endif
}

static size_t emit(struct program *program, uint16_t code, uint32_t k)
{
    program->code[program->len] = (struct plan_filter){.code = code, .k = k};
    return program->len++;
}

static void jump_to(struct program *program, size_t at, bool if_true, enum seccomp_verdict verdict)
{
    program->fixes[program->fixes_len++] = (struct fix){at, if_true, verdict};
}

/* Jumps to `verdict` when the accumulator compares true with `k`; goes on otherwise. */
static void emit_branch(struct program *program, uint16_t code, uint32_t k,
                        enum seccomp_verdict verdict)
{
    jump_to(program, emit(program, code, k), true, verdict);
}

/* The search over spans [low, high]; there are at least two. */
static void emit_tree(struct program *program, const struct span *spans, size_t low, size_t high)
{
    size_t middle = (low + high + 1) / 2;
    size_t node = emit(program, BPF_JGE, spans[middle].start);

    if (low + 1 == middle)
        jump_to(program, node, false, spans[low].verdict);
    else
        emit_tree(program, spans, low, middle - 1);
    program->code[node].jt = (uint8_t)(program->len - node - 1);
    if (middle == high)
        jump_to(program, node, true, spans[high].verdict);
    else
        emit_tree(program, spans, middle, high);
}

static void place(struct program *program, enum seccomp_verdict verdict)
{
    for (size_t i = 0; i < program->fixes_len; i++) {
        size_t at = program->fixes[i].at;
        uint8_t distance = (uint8_t)(program->len - at - 1);

        if (program->fixes[i].verdict != verdict)
            continue;
        if (program->fixes[i].if_true)
            program->code[at].jt = distance;
        else
            program->code[at].jf = distance;
    }
}

static bool is_used(const struct program *program, enum seccomp_verdict verdict)
{
    for (size_t i = 0; i < program->fixes_len; i++)
        if (program->fixes[i].verdict == verdict)
            return true;
    return false;
}

struct bits {
    uint32_t offset; /* of the argument */
    uint32_t bits;
    enum seccomp_verdict if_set, if_clear;
};

/* The block of `verdict`, if anything leads there: a look whether any of the bits is set. */
static void emit_bits_check(struct program *program, enum seccomp_verdict verdict, struct bits bits)
{
    size_t test;

    if (!is_used(program, verdict))
        return;
    place(program, verdict);
    emit(program, BPF_LOAD, bits.offset);
    test = emit(program, BPF_JSET, bits.bits);
    jump_to(program, test, true, bits.if_set);
    jump_to(program, test, false, bits.if_clear);
}

/* A set-id file that others can reach gives this user's rights to those who run it outside. Set-group-id
 * directories are of use, so only root's files are refused, and the guard tells which these are. */
static void emit_chmod_check(struct program *program, enum seccomp_verdict verdict, uint32_t mode,
                             const struct seccomp_spec *spec)
{
    const bool asks = spec->asks_names || spec->asks_facts;

    if (!is_used(program, verdict))
        return;
    place(program, verdict);
    emit(program, BPF_LOAD, mode);
    emit_branch(program, BPF_JSET, S_ISUID_BIT, DENY);
    if (spec->is_root)
        emit_branch(program, BPF_JSET, S_ISGID_BIT, asks ? ASK : DENY);
    emit(program, BPF_RET,
         verdict == CHECK_CHMOD_1_ASK || verdict == CHECK_CHMOD_2_ASK ? RET_USER_NOTIF : RET_ALLOW);
}

/* The mode comes behind the flags, and counts only when a file is made. */
static void emit_open_check(struct program *program, enum seccomp_verdict verdict, uint32_t flags,
                            const struct seccomp_spec *spec, uint32_t set_id)
{
    const bool asks = spec->asks_names || spec->asks_facts;
    const enum seccomp_verdict other = spec->asks_reads ? ASK : ALLOW;
    size_t creating, test;

    if (!is_used(program, verdict))
        return;
    place(program, verdict);
    emit(program, BPF_LOAD, flags);
    creating = emit(program, BPF_JSET, CREATING_FLAGS);
    emit(program, BPF_LOAD, flags + ARGUMENT_SIZE);
    test = emit(program, BPF_JSET, set_id);
    jump_to(program, test, true, DENY);
    if (!asks || spec->asks_reads) {
        jump_to(program, test, false, other);
        jump_to(program, creating, false, other);
        return;
    }
    emit(program, BPF_LOAD, flags);
    if (!spec->asks_facts)
        jump_to(program, creating, false, ALLOW);
    else
        program->code[creating].jf = (uint8_t)(program->len - creating - 1);
    /* What has no name is the kernel's business alone. */
    test = emit(program, BPF_JSET, spec->asks_facts ? CREATE_FLAG | WRITING_FLAGS : CREATE_FLAG);
    jump_to(program, test, true, ASK);
    jump_to(program, test, false, ALLOW);
}

/* A path that is NULL stands for the descriptor, which is open already; an address, for where it is connected to. Both
 * halves of the pointer count. */
static void emit_pointer_check(struct program *program, enum seccomp_verdict verdict,
                               uint32_t argument)
{
    if (!is_used(program, verdict))
        return;
    place(program, verdict);
    emit(program, BPF_LOAD, argument);
    jump_to(program, emit(program, BPF_JEQ, 0), false, ASK);
    emit(program, BPF_LOAD, argument + ARGUMENT_SIZE / 2);
    jump_to(program, emit(program, BPF_JEQ, 0), false, ASK);
    emit(program, BPF_RET, RET_ALLOW);
}

/* Who has a lease on a file, for which reading is enough, makes all wait who open it, 45 s each time. */
static void emit_fcntl_check(struct program *program)
{
    place(program, CHECK_FCNTL);
    emit(program, BPF_LOAD, DATA_ARG1);
    emit_branch(program, BPF_JEQ, SET_LEASE, DENY);
    emit_branch(program, BPF_JEQ, SET_DELEGATION, DENY);
    emit(program, BPF_RET, RET_ALLOW);
}

static void emit_ioctl_check(struct program *program, const struct seccomp_spec *spec)
{
    place(program, CHECK_IOCTL);
    emit(program, BPF_LOAD, DATA_ARG1);
    for (size_t i = 0; i < (spec->has_mount_namespace ? IOCTLS_EVER : IOCTLS); i++)
        emit_branch(program, BPF_JEQ, ioctls[i], DENY);
    emit(program, BPF_RET, RET_ALLOW);
}

/* One end of a datagram pair can be connected to, or send to, any socket that has a path; and
 * SOCK_RAW is another name for datagrams here (net/unix/af_unix.c). */
static void emit_pair_check(struct program *program, const struct seccomp_spec *spec)
{
    place(program, CHECK_SOCKETPAIR);
    emit(program, BPF_LOAD, DATA_ARG0);
    jump_to(program, emit(program, BPF_JEQ, FAMILY_UNIX), false, DENY);
    if (spec->sockets != SECCOMP_SOCKETS_UNIX) {
        emit(program, BPF_LOAD, DATA_ARG1);
        emit(program, BPF_AND, 0xf); /* SOCK_TYPE_MASK of linux/net.h */
        emit_branch(program, BPF_JEQ, 1 /* SOCK_STREAM */, ALLOW);
        jump_to(program, emit(program, BPF_JEQ, 5 /* SOCK_SEQPACKET */), false, DENY);
    }
    emit(program, BPF_RET, RET_ALLOW);
}

static void emit_socket_check(struct program *program, const struct seccomp_spec *spec)
{
    size_t pair;

    place(program, CHECK_SOCKET);
    emit(program, BPF_LOAD, DATA_ARG0);
    if (spec->sockets == SECCOMP_SOCKETS_UNIX) {
        emit_branch(program, BPF_JEQ, FAMILY_UNIX, ALLOW);
    } else if (spec->asks_sockets) {
        /* Datagrams carry their address with them, where nobody can look. */
        emit(program, BPF_JEQ, FAMILY_UNIX);
        program->code[program->len - 1].jf = 4;
        emit(program, BPF_LOAD, DATA_ARG1);
        emit(program, BPF_AND, 0xf); /* SOCK_TYPE_MASK of linux/net.h */
        emit_branch(program, BPF_JEQ, 1 /* SOCK_STREAM */, ALLOW);
        pair = emit(program, BPF_JEQ, 5 /* SOCK_SEQPACKET */);
        jump_to(program, pair, true, ALLOW);
        jump_to(program, pair, false, ASK);
    }
    if (spec->sockets >= SECCOMP_SOCKETS_INTERNET) {
        emit_branch(program, BPF_JEQ, FAMILY_INET, ALLOW);
        emit_branch(program, BPF_JEQ, FAMILY_INET6, ALLOW);
        jump_to(program, emit(program, BPF_JEQ, FAMILY_NETLINK), false, DENY);
        emit(program, BPF_LOAD, DATA_ARG2);
        emit_branch(program, BPF_JEQ, 0 /* NETLINK_ROUTE */, ALLOW);
        if (spec->sockets == SECCOMP_SOCKETS_INTERNET) /* the network is the command's own */
            emit_branch(program, BPF_JEQ, 4 /* NETLINK_SOCK_DIAG */, ALLOW);
    }
    emit(program, BPF_RET, RET_ERRNO | EPERM);
}

static bool applies(const struct seccomp_call *call, const struct seccomp_spec *spec)
{
    const bool holds[] = {
        [ALWAYS] = true,
        [NO_NESTING] = !spec->allow_nested_namespaces,
        [NO_PID_NAMESPACE] = !spec->has_pid_namespace,
        [NO_MOUNT_NAMESPACE] = !spec->has_mount_namespace,
        [NO_IPC_NAMESPACE] = !spec->has_ipc_namespace,
        [CHANGES] = spec->has_mount_namespace || spec->performs,
        [NO_CHANGES] = !spec->has_mount_namespace && !spec->performs,
    };

    return call->nr[spec->arch] >= 0 && holds[call->condition];
}

static bool is_asked(const struct seccomp_asked *call, const struct seccomp_spec *spec)
{
    const bool holds[] = {
        [WHEN_ANY] = spec->asks_names || spec->asks_facts || spec->asks_sockets || spec->asks_exec,
        [WHEN_NAMES] = spec->asks_names,
        [WHEN_NAMES_OR_FACTS] = spec->asks_names || spec->asks_facts,
        [WHEN_FACTS] = spec->asks_facts,
        [WHEN_DESCRIPTORS] = spec->asks_descriptors,
        [WHEN_SIGNALS] = spec->asks_signals,
        [WHEN_EXEC] = spec->asks_exec,
        [WHEN_SOCKETS] = spec->asks_sockets,
        [WHEN_DATAGRAMS] = spec->asks_datagrams,
        [WHEN_SOCKETS_OR_PATHS] =
            spec->asks_sockets || (spec->asks_names && spec->sockets == SECCOMP_SOCKETS_UNIX),
    };

    return call->nr[spec->arch] >= 0 && holds[call->reason];
}

static int span_compare(const void *a, const void *b)
{
    const struct span *left = a, *right = b;

    return left->start < right->start ? -1 : left->start > right->start;
}

static void spans_add(struct span *spans, size_t *len, uint32_t start, enum seccomp_verdict verdict)
{
    if (*len && spans[*len - 1].start == start)
        --*len;
    if (*len && spans[*len - 1].verdict == verdict)
        return;
    spans[(*len)++] = (struct span){start, verdict};
}

/* What is refused anyway is not asked about. */
static void add_asked(struct span *spans, size_t *count, uint32_t nr, enum seccomp_verdict verdict)
{
    size_t at = 0;

    while (at < *count && spans[at].start != nr)
        at++;
    if (at < *count && spans[at].verdict == DENY)
        return;
    spans[at] = (struct span){nr, verdict};
    *count += at == *count;
}

/* Turns the tables into spans that cover every number; returns how many. */
static size_t spans_make(const struct seccomp_spec *spec, struct span *ret)
{
    struct span single[SECCOMP_CALLS + SECCOMP_ASKED];
    size_t count = 0;
    size_t len = 0;

    for (size_t i = 0; i < SECCOMP_CALLS; i++)
        if (applies(&seccomp_calls[i], spec))
            single[count++] =
                (struct span){(uint32_t)seccomp_calls[i].nr[spec->arch], seccomp_calls[i].verdict};
    for (size_t i = 0; i < SECCOMP_ASKED; i++)
        if (is_asked(&seccomp_asked[i], spec))
            add_asked(single, &count, (uint32_t)seccomp_asked[i].nr[spec->arch],
                      seccomp_asked[i].verdict);
    qsort(single, count, sizeof *single, span_compare);
    spans_add(ret, &len, 0, ALLOW);
    for (size_t i = 0; i < count; i++) {
        spans_add(ret, &len, single[i].start, single[i].verdict);
        spans_add(ret, &len, single[i].start + 1, ALLOW);
    }
    if (spec->arch == SECCOMP_X86_64) {
        spans_add(ret, &len, X32_BIT, KILL);
        spans_add(ret, &len, UINT32_MAX, ALLOW); /* -1: a tracer has the call skipped */
    }
    return len;
}

size_t seccomp_compile(const struct seccomp_spec *spec, struct plan_filter ret[SECCOMP_MAX])
{
    static const struct {
        enum seccomp_verdict verdict;
        uint32_t answer;
    } ends[] = {{DENY, RET_ERRNO | EPERM},
                {ALLOW, RET_ALLOW},
                {MISSING, RET_ERRNO | ENOSYS},
                {KILL, RET_KILL_PROCESS},
                {ASK, RET_USER_NOTIF}};
    const uint32_t set_id = spec->is_root ? S_ISUID_BIT | S_ISGID_BIT : S_ISUID_BIT;
    const struct {
        enum seccomp_verdict verdict;
        struct bits bits;
    } checks[] = {
        {CHECK_MODE_1, {DATA_ARG1, set_id, DENY, ALLOW}},
        {CHECK_MODE_2, {DATA_ARG2, set_id, DENY, ALLOW}},
        {CHECK_MODE_1_ASK, {DATA_ARG1, set_id, DENY, ASK}},
        {CHECK_MODE_2_ASK, {DATA_ARG2, set_id, DENY, ASK}},
        {CHECK_WISH_1, {DATA_ARG1, WRITE_WISH, ASK, ALLOW}},
        {CHECK_WISH_2, {DATA_ARG2, WRITE_WISH, ASK, ALLOW}},
        {CHECK_CLONE, {DATA_ARG0, NAMESPACE_FLAGS, DENY, ALLOW}},
        {CHECK_UNSHARE, {DATA_ARG0, NAMESPACE_FLAGS | NEWTIME_FLAG, DENY, ALLOW}},
        {CHECK_PRLIMIT, {DATA_ARG0, UINT32_MAX, DENY, ALLOW}}, /* 0 is the caller */
    };
    struct span spans[2 * (SECCOMP_CALLS + SECCOMP_ASKED) + 3];
    struct program program = {.code = ret};
    size_t count = spans_make(spec, spans);

    emit(&program, BPF_LOAD, DATA_ARCH);
    jump_to(&program, emit(&program, BPF_JEQ, audit_arch[spec->arch]), false, KILL);
    emit(&program, BPF_LOAD, DATA_NR);
    emit_tree(&program, spans, 0, count - 1);
    emit_open_check(&program, CHECK_OPEN, DATA_ARG1, spec, set_id);
    emit_open_check(&program, CHECK_OPENAT, DATA_ARG2, spec, set_id);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        emit_bits_check(&program, checks[i].verdict, checks[i].bits);
    emit_chmod_check(&program, CHECK_CHMOD_1, DATA_ARG1, spec);
    emit_chmod_check(&program, CHECK_CHMOD_2, DATA_ARG2, spec);
    emit_chmod_check(&program, CHECK_CHMOD_1_ASK, DATA_ARG1, spec);
    emit_chmod_check(&program, CHECK_CHMOD_2_ASK, DATA_ARG2, spec);
    emit_pointer_check(&program, CHECK_TIMES, DATA_ARG1);
    emit_pointer_check(&program, CHECK_DESTINATION, DATA_ARG4);
    emit_fcntl_check(&program);
    emit_ioctl_check(&program, spec);
    emit_pair_check(&program, spec);
    emit_socket_check(&program, spec);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (!is_used(&program, ends[i].verdict))
            continue;
        place(&program, ends[i].verdict);
        emit(&program, BPF_RET, ends[i].answer);
    }
    return program.len;
}
