/* See calls.h. sandbox/linux/seccomp.c has the same calls with the verdict "ask the guard"; a test
 * compares the two (tests/unit/guard). */
#include "guard/calls.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>

#define NO CALL_NONE

/* In order of their frequency. What came later than the *at calls has the same number everywhere. */
static const struct call calls[] = {
    {SYS_openat, CALL_OPEN, 0, 1, NO, NO, 2, 3, 0},
#ifdef SYS_open
    {SYS_open, CALL_OPEN, NO, 0, NO, NO, 1, 2, 0},
#endif
    {SYS_mkdirat, CALL_MKDIR, 0, 1, NO, NO, NO, 2, 0},
    {SYS_unlinkat, CALL_CHANGE, 0, 1, NO, NO, 2, NO, AT_SYMLINK_NOFOLLOW},
    {SYS_renameat2, CALL_RENAME, 0, 1, 2, 3, 4, NO, 0},
    {SYS_linkat, CALL_LINK, 0, 1, 2, 3, 4, NO, 0},
    {SYS_symlinkat, CALL_SYMLINK, NO, 0, 1, 2, NO, NO, 0},
    {SYS_mknodat, CALL_MKNOD, 0, 1, NO, NO, NO, 2, 0},
    {SYS_fchmodat, CALL_CHANGE, 0, 1, NO, NO, NO, 2, 0},
    {SYS_fchmod, CALL_CHANGE, 0, NO, NO, NO, NO, 1, 0},
    {SYS_fchownat, CALL_CHANGE, 0, 1, NO, NO, 4, NO, 0},
    {SYS_fchown, CALL_CHANGE, 0, NO, NO, NO, NO, NO, 0},
    {SYS_utimensat, CALL_CHANGE, 0, 1, NO, NO, 3, NO, 0},
    {SYS_truncate, CALL_CHANGE, NO, 0, NO, NO, NO, NO, 0},
    {SYS_setxattr, CALL_CHANGE, NO, 0, NO, NO, NO, NO, 0},
    {SYS_lsetxattr, CALL_CHANGE, NO, 0, NO, NO, NO, NO, AT_SYMLINK_NOFOLLOW},
    {SYS_fsetxattr, CALL_CHANGE, 0, NO, NO, NO, NO, NO, 0},
    {SYS_fremovexattr, CALL_CHANGE, 0, NO, NO, NO, NO, NO, 0},
    {SYS_removexattr, CALL_CHANGE, NO, 0, NO, NO, NO, NO, 0},
    {SYS_lremovexattr, CALL_CHANGE, NO, 0, NO, NO, NO, NO, AT_SYMLINK_NOFOLLOW},
    {SYS_faccessat, CALL_ACCESS, 0, 1, NO, NO, NO, 2, 0},
    {439, CALL_ACCESS, 0, 1, NO, NO, 3, 2, 0}, /* faccessat2 */
    {452, CALL_CHANGE, 0, 1, NO, NO, 3, 2, 0}, /* fchmodat2 */
    {SYS_umask, CALL_UMASK, NO, NO, NO, NO, NO, 0, 0},
    {SYS_chdir, CALL_CHDIR, NO, NO, NO, NO, NO, NO, 0},
    {SYS_fchdir, CALL_CHDIR, NO, NO, NO, NO, NO, NO, 0},
    {SYS_sched_setaffinity, CALL_AFFINITY, NO, NO, NO, NO, NO, NO, 0},
    {SYS_socket, CALL_SOCKET, NO, NO, NO, NO, NO, NO, 0},
    {SYS_connect, CALL_CONNECT, 0, 1, NO, NO, NO, NO, 0},
    {SYS_bind, CALL_BIND, 0, 1, NO, NO, NO, NO, 0},
    {SYS_sendto, CALL_SEND, 0, 4, NO, NO, NO, NO, 0},
    {SYS_kill, CALL_SIGNAL, NO, NO, NO, NO, NO, NO, 0},
    {SYS_tkill, CALL_SIGNAL, NO, NO, NO, NO, NO, NO, 0},
    {SYS_tgkill, CALL_SIGNAL, NO, NO, NO, NO, NO, NO, 0},
    {SYS_rt_sigqueueinfo, CALL_SIGNAL, NO, NO, NO, NO, NO, NO, 0},
    {SYS_rt_tgsigqueueinfo, CALL_SIGNAL, NO, NO, NO, NO, NO, NO, 0},
    {424, CALL_SIGNAL, NO, NO, NO, NO, NO, NO, 0}, /* pidfd_send_signal */
#ifdef SYS_creat                                   /* what newer architectures lack */
    {SYS_creat, CALL_OPEN, NO, 0, NO, NO, NO, 1, O_CREAT | O_WRONLY | O_TRUNC},
    {SYS_mkdir, CALL_MKDIR, NO, 0, NO, NO, NO, 1, 0},
    {SYS_rmdir, CALL_CHANGE, NO, 0, NO, NO, NO, NO, AT_SYMLINK_NOFOLLOW},
    {SYS_unlink, CALL_CHANGE, NO, 0, NO, NO, NO, NO, AT_SYMLINK_NOFOLLOW},
    {SYS_rename, CALL_RENAME, NO, 0, NO, 1, NO, NO, 0},
    {SYS_link, CALL_LINK, NO, 0, NO, 1, NO, NO, 0},
    {SYS_symlink, CALL_SYMLINK, NO, 0, NO, 1, NO, NO, 0},
    {SYS_mknod, CALL_MKNOD, NO, 0, NO, NO, NO, 1, 0},
    {SYS_chmod, CALL_CHANGE, NO, 0, NO, NO, NO, 1, 0},
    {SYS_chown, CALL_CHANGE, NO, 0, NO, NO, NO, NO, 0},
    {SYS_lchown, CALL_CHANGE, NO, 0, NO, NO, NO, NO, AT_SYMLINK_NOFOLLOW},
    {SYS_utime, CALL_CHANGE, NO, 0, NO, NO, NO, NO, 0},
    {SYS_utimes, CALL_CHANGE, NO, 0, NO, NO, NO, NO, 0},
    {SYS_futimesat, CALL_CHANGE, 0, 1, NO, NO, NO, NO, 0},
    {SYS_access, CALL_ACCESS, NO, 0, NO, NO, NO, 1, 0},
#endif
    {SYS_execve, CALL_EXEC, NO, 0, NO, NO, NO, NO, 0},
    {SYS_execveat, CALL_EXEC, 0, 1, NO, NO, 4, NO, 0},
#ifdef SYS_renameat
    {SYS_renameat, CALL_RENAME, 0, 1, 2, 3, NO, NO, 0},
#endif
};

const struct call *call_find(int nr)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].nr == nr)
            return &calls[i];
    return NULL;
}
