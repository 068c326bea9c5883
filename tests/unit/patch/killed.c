/* See killed.h. Only the system calls between the two stops that the process gives itself are
 * counted: what the C library does before and after is not of interest. */
#include "killed.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The low half of the fifth argument: the flags. */
#define FLAGS_AT (offsetof(struct seccomp_data, args) + 4 * sizeof(uint64_t))

static void forbid_flags(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FLAGS_AT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(99);
}

static void child_run(int (*act)(const char *dir), const char *dir, enum renames renames)
{
    int status;

    if (renames == RENAMES_PLAIN)
        forbid_flags();
    if (ptrace(PTRACE_TRACEME, 0, 0, 0))
        _exit(98);
    raise(SIGSTOP);
    status = act(dir);
    raise(SIGSTOP);
    _exit(status ? 1 : 0);
}

/* The next stop of the process; false when it has ended. */
static bool wait_stop(pid_t pid, int *ret_status)
{
    if (waitpid(pid, ret_status, 0) != pid)
        fail_msg("the process is lost");
    return WIFSTOPPED(*ret_status);
}

static bool is_call_stop(int status)
{
    return WSTOPSIG(status) == (SIGTRAP | 0x80);
}

static void end(pid_t pid)
{
    int status;

    kill(pid, SIGKILL);
    while (wait_stop(pid, &status))
        ;
}

/* Lets it go on to the end of what it does, or kills it. */
static bool step(pid_t pid, unsigned nth)
{
    unsigned stops = 0;
    int status;

    for (;;) {
        if (ptrace(PTRACE_SYSCALL, pid, 0, 0) || !wait_stop(pid, &status))
            fail_msg("it ended on its own");
        if (!is_call_stop(status))
            return true; /* its own second stop */
        stops++;
        if (nth && stops == 2 * nth - 1) {
            end(pid); /* the call is entered, and not done */
            return false;
        }
    }
}

bool killed_run(int (*act)(const char *dir), const char *dir, enum renames renames, unsigned nth)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        child_run(act, dir, renames);
    if (pid < 0 || !wait_stop(pid, &status))
        fail_msg("it cannot be traced: status %x", status);
    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    if (!step(pid, nth))
        return false;
    ptrace(PTRACE_CONT, pid, 0, 0);
    if (wait_stop(pid, &status) || status != 0)
        fail_msg("it failed");
    return true;
}
