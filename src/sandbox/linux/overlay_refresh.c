/* Overlays that stand, reconfigured: the kernel drops what it has cached of them then, and they may become read-only. Only who is in
 * their namespaces can, so a child joins these. */
#include "base/auto.h"
#include "base/sys.h"
#include "sandbox/launcher/kernel.h"
#include "sandbox/linux/clone_child.h"
#include "sandbox/linux/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Given to the child, and what it says. */
struct refreshing {
    const struct overlay_namespace *space;
    const char *const *roots;
    bool freezes;
    bool is_apart;     /* in a memory and with descriptors of its own */
    int root, context; /* open in the child; -1 */
    int status;
    struct err *err;
};

static void close_open(struct refreshing *refreshing)
{
    if (refreshing->root >= 0)
        close(TAKE_FD(refreshing->root));
    if (refreshing->context >= 0)
        close(TAKE_FD(refreshing->context));
}

static int config(int context, unsigned command, const char *key)
{
    return sys_fault() ? -1 : (int)syscall(K_SYS_FSCONFIG, context, command, key, NULL, 0);
}

/* No link may be on the way. */
ON_OWN_STACK static int refresh_one(struct refreshing *refreshing, const char *root)
{
    const struct sys_open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve = SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS,
    };

    refreshing->root = sys_openat2(AT_FDCWD, root, &how);
    if (refreshing->root < 0)
        return -1;
    refreshing->context = sys_fault() ? -1
                                      : (int)syscall(K_SYS_FSPICK, refreshing->root, "",
                                                     K_FSPICK_CLOEXEC | K_FSPICK_EMPTY_PATH);
    if (refreshing->context < 0 ||
        (refreshing->freezes && config(refreshing->context, K_FSCONFIG_SET_FLAG, "ro")))
        return -1;
    return config(refreshing->context, K_FSCONFIG_CMD_RECONFIGURE, NULL);
}

ON_OWN_STACK static int child(void *argument)
{
    struct refreshing *refreshing = argument;
    const struct overlay_namespace *space = refreshing->space;
    int status = 0;

    if (sys_fault() || setns(space->users, CLONE_NEWUSER) || setns(space->mounts, CLONE_NEWNS))
        status = err_sys(refreshing->err, "joining the layer");
    if (refreshing->is_apart)
        sys_close_range(0, ~0U, 0);
    for (const char *const *root = refreshing->roots; !status && *root; root++) {
        if (refresh_one(refreshing, *root))
            status = err_sys(refreshing->err, "refreshing the layer over %s", *root);
        close_open(refreshing);
    }
    refreshing->status = status;
    _exit(status ? 1 : 0);
}

int overlay_refresh(const struct overlay_namespace *space, const char *const *roots, bool freezes,
                    struct err *err)
{
    struct refreshing refreshing = {
        .space = space, .roots = roots, .freezes = freezes, .root = -1, .context = -1, .err = err};
    sigset_t all, old;
    pid_t pid;

    refreshing.status = err_set(err, ERR_SYSTEM, "the process that reaches a layer was killed");
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    pid = sys_fault() ? -1 : clone_child(child, &refreshing, CLONE_FILES, NULL);
    if (pid < 0)
        refreshing.status = err_sys(err, "starting a process");
    while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    close_open(&refreshing);
    return refreshing.status;
}

int overlay_refresh_apart(const struct overlay_namespace *space, const char *const *roots,
                          bool freezes, struct overlay_apart *ret, struct err *err)
{
    struct err unread;
    struct refreshing refreshing = {.space = space,
                                    .roots = roots,
                                    .freezes = freezes,
                                    .is_apart = true,
                                    .root = -1,
                                    .context = -1,
                                    .err = &unread};

    /* as fork(2), but nobody's SIGCHLD handling sees its end */
    ret->pid =
        sys_fault() ? -1 : (pid_t)syscall(SYS_clone, CLONE_PIDFD, NULL, &ret->pidfd, NULL, 0);
    if (ret->pid == 0)
        child(&refreshing);
    if (ret->pid > 0)
        return 0;
    *ret = (struct overlay_apart){0};
    return err_sys(err, "starting a process");
}

bool overlay_apart_end(struct overlay_apart *apart)
{
    int status = -1;

    while (waitpid(apart->pid, &status, __WALL) < 0 && errno == EINTR)
        ;
    close(apart->pidfd);
    *apart = (struct overlay_apart){0};
    return status == 0;
}
