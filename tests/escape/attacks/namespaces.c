/* Attacks by new namespaces: inside one of its own a process has every capability, and with it the
 * whole of the kernel that is closed to ordinary users. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_unshare(int argc, char **argv)
{
    (void)argc;
    return judge(unshare((int)number(argv[0])), "unshare");
}

/* The old clone(2), by number, so that no library falls back to another call. */
static int run_clone(int argc, char **argv)
{
    (void)argc;
    long pid = syscall(SYS_clone, number(argv[0]) | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        _exit(0);
    return judge(pid, "clone");
}

static int run_clone3(int argc, char **argv)
{
    (void)argc;
    struct clone_args args = {.flags = (uint64_t)number(argv[0]), .exit_signal = SIGCHLD};
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        _exit(0);
    return judge(pid, "clone3");
}

/* clone3-cgroup FOLDER: a child that is born in a cgroup of its choice, away from our limits */
static int run_clone3_cgroup(int argc, char **argv)
{
    (void)argc;
    int group = open(argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (group < 0)
        return lost("open %s", argv[0]);
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)group};
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        _exit(0);
    return judge(pid, "clone3 into a cgroup");
}

/* nested SOURCE TARGET NAME: root of a namespace of its own, binds SOURCE, writes TARGET/NAME */
static int run_nested(int argc, char **argv)
{
    (void)argc;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return lost("unshare");
    mount(NULL, argv[1], NULL, MS_REMOUNT | MS_BIND, NULL);
    if (mount(argv[0], argv[1], NULL, MS_BIND | MS_REC, NULL) < 0)
        return lost("bind mount");
    mount(NULL, argv[1], NULL, MS_REMOUNT | MS_BIND, NULL);
    if (chdir(argv[1]) < 0)
        return lost("chdir");
    return overwrite(argv[2]);
}

const struct attack namespace_attacks[] = {
    {"unshare", 1, run_unshare}, {"clone", 1, run_clone},
    {"clone3", 1, run_clone3},   {"clone3-cgroup", 1, run_clone3_cgroup},
    {"nested", 3, run_nested},   {NULL, 0, NULL},
};
