/* Numbers of system calls by name, as the kernel's own headers have them: what test_seccomp.c
 * holds the filters against, so that a slip in the table of seccomp.c cannot hide in the test. */
#pragma once

struct call_number {
    const char *name;
    int nr;
};

/* Both end with a NULL name. That of x86_64 is empty on a machine whose headers do not have it. */
extern const struct call_number call_numbers_x86_64[];
extern const struct call_number call_numbers_aarch64[];

/* On both architectures. */
#define CALLS_COMMON(X)                                                                            \
    X(bind)                                                                                        \
    X(connect)                                                                                     \
    X(faccessat)                                                                                   \
    X(faccessat2)                                                                                  \
    X(linkat)                                                                                      \
    X(mkdirat)                                                                                     \
    X(renameat)                                                                                    \
    X(renameat2)                                                                                   \
    X(symlinkat)                                                                                   \
    X(truncate)                                                                                    \
    X(umask)                                                                                       \
    X(chdir)                                                                                       \
    X(fchdir)                                                                                      \
    X(execve)                                                                                      \
    X(execveat)                                                                                    \
    X(kill)                                                                                        \
    X(pidfd_send_signal)                                                                           \
    X(rt_sigqueueinfo)                                                                             \
    X(rt_tgsigqueueinfo)                                                                           \
    X(tgkill)                                                                                      \
    X(tkill)                                                                                       \
    X(unlinkat)                                                                                    \
    X(acct)                                                                                        \
    X(add_key)                                                                                     \
    X(bpf)                                                                                         \
    X(clone)                                                                                       \
    X(clone3)                                                                                      \
    X(delete_module)                                                                               \
    X(fchmod)                                                                                      \
    X(fcntl)                                                                                       \
    X(fchmodat)                                                                                    \
    X(fchmodat2)                                                                                   \
    X(fchown)                                                                                      \
    X(fchownat)                                                                                    \
    X(file_setattr)                                                                                \
    X(finit_module)                                                                                \
    X(fremovexattr)                                                                                \
    X(fsconfig)                                                                                    \
    X(fsetxattr)                                                                                   \
    X(fsmount)                                                                                     \
    X(fsopen)                                                                                      \
    X(fspick)                                                                                      \
    X(init_module)                                                                                 \
    X(io_uring_enter)                                                                              \
    X(io_uring_register)                                                                           \
    X(io_uring_setup)                                                                              \
    X(ioctl)                                                                                       \
    X(ioprio_set)                                                                                  \
    X(kcmp)                                                                                        \
    X(kexec_file_load)                                                                             \
    X(kexec_load)                                                                                  \
    X(keyctl)                                                                                      \
    X(lremovexattr)                                                                                \
    X(lsetxattr)                                                                                   \
    X(migrate_pages)                                                                               \
    X(mknodat)                                                                                     \
    X(mount)                                                                                       \
    X(mount_setattr)                                                                               \
    X(move_mount)                                                                                  \
    X(move_pages)                                                                                  \
    X(mq_open)                                                                                     \
    X(mq_unlink)                                                                                   \
    X(msgctl)                                                                                      \
    X(msgget)                                                                                      \
    X(msgrcv)                                                                                      \
    X(msgsnd)                                                                                      \
    X(openat)                                                                                      \
    X(openat2)                                                                                     \
    X(open_by_handle_at)                                                                           \
    X(open_tree)                                                                                   \
    X(open_tree_attr)                                                                              \
    X(perf_event_open)                                                                             \
    X(pidfd_getfd)                                                                                 \
    X(pivot_root)                                                                                  \
    X(prlimit64)                                                                                   \
    X(process_madvise)                                                                             \
    X(process_mrelease)                                                                            \
    X(process_vm_readv)                                                                            \
    X(process_vm_writev)                                                                           \
    X(ptrace)                                                                                      \
    X(quotactl)                                                                                    \
    X(quotactl_fd)                                                                                 \
    X(reboot)                                                                                      \
    X(removexattr)                                                                                 \
    X(removexattrat)                                                                               \
    X(request_key)                                                                                 \
    X(sched_setaffinity)                                                                           \
    X(sched_setattr)                                                                               \
    X(sched_setparam)                                                                              \
    X(sched_setscheduler)                                                                          \
    X(semctl)                                                                                      \
    X(semget)                                                                                      \
    X(semop)                                                                                       \
    X(semtimedop)                                                                                  \
    X(setns)                                                                                       \
    X(setpriority)                                                                                 \
    X(setxattr)                                                                                    \
    X(setxattrat)                                                                                  \
    X(shmat)                                                                                       \
    X(shmctl)                                                                                      \
    X(shmget)                                                                                      \
    X(socket)                                                                                      \
    X(socketpair)                                                                                  \
    X(swapoff)                                                                                     \
    X(swapon)                                                                                      \
    X(umount2)                                                                                     \
    X(unshare)                                                                                     \
    X(userfaultfd)                                                                                 \
    X(utimensat)

/* Only on x86_64; aarch64 never had them. */
#define CALLS_X86_64(X)                                                                            \
    X(access)                                                                                      \
    X(link)                                                                                        \
    X(mkdir)                                                                                       \
    X(rename)                                                                                      \
    X(rmdir)                                                                                       \
    X(symlink)                                                                                     \
    X(unlink)                                                                                      \
    X(creat)                                                                                       \
    X(mknod)                                                                                       \
    X(open)                                                                                        \
    X(chmod)                                                                                       \
    X(chown)                                                                                       \
    X(futimesat)                                                                                   \
    X(lchown)                                                                                      \
    X(utime)                                                                                       \
    X(utimes)
