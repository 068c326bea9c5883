/* Numbers from the kernel's syscall tables (arch/x86/entry/syscalls/syscall_64.tbl, and
 * scripts/syscall.tbl for aarch64). */
#include "sandbox/linux/seccomp_calls.h"

const struct seccomp_call seccomp_calls[] = {
    {{16, 29}, CHECK_IOCTL, ALWAYS},
    {{41, 198}, CHECK_SOCKET, ALWAYS},
    {{53, 199}, CHECK_SOCKETPAIR, ALWAYS},
    {{56, 220}, CHECK_CLONE, NO_NESTING},
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
    {{435, 435}, MISSING, NO_NESTING},    /* clone3 */
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
    {{259, 33}, CHECK_MODE_2, ALWAYS},           /* mknodat */
    {{437, 437}, MISSING, ALWAYS},               /* openat2: its mode is behind a pointer */
    {{29, 194}, DENY, NO_IPC_NAMESPACE},         /* shmget */
    {{30, 196}, DENY, NO_IPC_NAMESPACE},         /* shmat */
    {{31, 195}, DENY, NO_IPC_NAMESPACE},         /* shmctl */
    {{64, 190}, DENY, NO_IPC_NAMESPACE},         /* semget */
    {{65, 193}, DENY, NO_IPC_NAMESPACE},         /* semop */
    {{66, 191}, DENY, NO_IPC_NAMESPACE},         /* semctl */
    {{68, 186}, DENY, NO_IPC_NAMESPACE},         /* msgget */
    {{69, 189}, DENY, NO_IPC_NAMESPACE},         /* msgsnd */
    {{70, 188}, DENY, NO_IPC_NAMESPACE},         /* msgrcv */
    {{71, 187}, DENY, NO_IPC_NAMESPACE},         /* msgctl */
    {{220, 192}, DENY, NO_IPC_NAMESPACE},        /* semtimedop */
    {{240, 180}, DENY, NO_IPC_NAMESPACE},        /* mq_open */
    {{241, 181}, DENY, NO_IPC_NAMESPACE},        /* mq_unlink */
    {{90, -1}, DENY, NO_MOUNT_NAMESPACE},        /* chmod */
    {{90, -1}, CHECK_MODE_1, MOUNT_NAMESPACE},   /* chmod */
    {{91, 52}, DENY, NO_MOUNT_NAMESPACE},        /* fchmod */
    {{91, 52}, CHECK_MODE_1, MOUNT_NAMESPACE},   /* fchmod */
    {{92, -1}, DENY, NO_MOUNT_NAMESPACE},        /* chown */
    {{93, 55}, DENY, NO_MOUNT_NAMESPACE},        /* fchown */
    {{94, -1}, DENY, NO_MOUNT_NAMESPACE},        /* lchown */
    {{132, -1}, DENY, NO_MOUNT_NAMESPACE},       /* utime */
    {{188, 5}, DENY, NO_MOUNT_NAMESPACE},        /* setxattr */
    {{189, 6}, DENY, NO_MOUNT_NAMESPACE},        /* lsetxattr */
    {{190, 7}, DENY, NO_MOUNT_NAMESPACE},        /* fsetxattr */
    {{197, 14}, DENY, NO_MOUNT_NAMESPACE},       /* removexattr */
    {{198, 15}, DENY, NO_MOUNT_NAMESPACE},       /* lremovexattr */
    {{199, 16}, DENY, NO_MOUNT_NAMESPACE},       /* fremovexattr */
    {{235, -1}, DENY, NO_MOUNT_NAMESPACE},       /* utimes */
    {{260, 54}, DENY, NO_MOUNT_NAMESPACE},       /* fchownat */
    {{261, -1}, DENY, NO_MOUNT_NAMESPACE},       /* futimesat */
    {{268, 53}, DENY, NO_MOUNT_NAMESPACE},       /* fchmodat */
    {{268, 53}, CHECK_MODE_2, MOUNT_NAMESPACE},  /* fchmodat */
    {{280, 88}, DENY, NO_MOUNT_NAMESPACE},       /* utimensat */
    {{452, 452}, DENY, NO_MOUNT_NAMESPACE},      /* fchmodat2 */
    {{452, 452}, CHECK_MODE_2, MOUNT_NAMESPACE}, /* fchmodat2 */
    {{463, 463}, DENY, NO_MOUNT_NAMESPACE},      /* setxattrat */
    {{466, 466}, DENY, NO_MOUNT_NAMESPACE},      /* removexattrat */
    {{469, 469}, DENY, NO_MOUNT_NAMESPACE},      /* file_setattr */
    {{442, 442}, DENY, NO_NESTING},              /* mount_setattr */
    {{443, 443}, DENY, ALWAYS},                  /* quotactl_fd */
    {{467, 467}, DENY, NO_NESTING},              /* open_tree_attr */
};

const size_t seccomp_calls_len = sizeof seccomp_calls / sizeof *seccomp_calls;
_Static_assert(sizeof seccomp_calls / sizeof *seccomp_calls <= SECCOMP_CALLS_MAX, "make room");
