/* The life of a launcher:
 *
 *     launcher_take() -> its command runs -> launcher_leave() -> reaped by a later launcher_take()
 *         ^                               \-> launcher_kill()    (its network may serve the next)
 *     launcher_prepare()
 *
 * A spare launcher is in its namespaces, but has neither seen a plan nor anything of a command, and
 * every step from the plan on is taken when it is used: there is nothing in it that could be stale
 * but the table of mounts, which follows the host's where that is shared.
 *
 * It is started by a vfork-style clone (clone_child.h):
 *
 *     fresh:     clone(NEWUSER | NEWPID)                         -> child -> launcher -> unshare()
 *     recycled:  clone() -> setns(user), setns(net) -> clone(PARENT | NEWPID) -> launcher -> ...
 *     a view:    clone() -> setns(view's user), setns(view's mnt) -> one of these two, with PARENT
 *
 * What a launch makes in a view (sandbox.h) is made below the view's user namespace: it has one of its own there, as
 * everywhere, and a copy of the view's mounts, which are locked together in it. The launcher's program is opened before:
 * in the view there may be another under its name.
 *
 * The namespaces that need no clone(2) are left to the launcher: to make them takes 0.1 to 0.4 ms,
 * in which the caller gets on.
 *
 * A user namespace maps the caller's own user and group and nothing else. The launcher needs some
 * capabilities in it across execve(2), which an ordinary user keeps by the ambient set.
 */
#include "sandbox/linux/launcher_pool.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "base/sys.h"
#include "sandbox/launcher/kernel.h"
#include "sandbox/launcher/plan_format.h"
#include "sandbox/launcher/restrict.h"
#include "sandbox/linux/clone_child.h"
#include "sandbox/linux/identity.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLONED_NAMESPACES = CLONE_NEWUSER | CLONE_NEWPID };

/* linux/capability.h */
enum {
    K_CAP_DAC_OVERRIDE = 1,
    K_CAP_NET_BIND_SERVICE = 10,
    K_CAP_NET_ADMIN = 12,
    K_CAP_SYS_ADMIN = 21
};

/* A user namespace and a network namespace of it, with the loopback device up: made ahead, used by
 * one sandbox at a time, used again when every process of that sandbox is gone. */
struct netns {
    int user;
    int net;
    struct seen_view view; /* that they are below */
    struct list in_pool;
};

static const int launcher_caps[] = {
    K_CAP_DAC_OVERRIDE,     K_CAP_SETPCAP,
    K_CAP_NET_BIND_SERVICE, /* the listeners of a network that leads to the proxy */
    K_CAP_NET_ADMIN,        K_CAP_SYS_ADMIN,
};

struct spawn {
    const char *program;             /* the launcher's */
    int status;                      /* its end of the status socket */
    uint32_t namespaces;             /* CLONE_NEW* flags */
    const char *ports;               /* of the pool */
    const struct sandbox_view *view; /* joined first; or NULL */
    int outside;                     /* the root there, when it has been */
    int opened;                      /* the program, before a view is joined */
    const struct netns *netns;       /* instead of CLONE_NEWUSER and CLONE_NEWNET; or NULL */
    struct netns *made;              /* by netns_child() */
    struct identity identity;
    char unshared[16]; /* the launcher's argument */
    pid_t pid;
    int pidfd;
    bool has_failed;
    struct err *err;
};

static int keep_caps(struct err *err)
{
    struct k_cap_header header = {.version = K_CAPABILITY_VERSION_3};
    struct k_cap_data data[2] = {0};

    for (size_t i = 0; i < sizeof launcher_caps / sizeof *launcher_caps; i++)
        data[0].inheritable |= 1u << launcher_caps[i];
    data[0].permitted = data[0].effective = data[0].inheritable;
    if (syscall(SYS_capset, &header, data))
        return err_sys(err, "keeping capabilities in the user namespace");
    for (size_t i = 0; i < sizeof launcher_caps / sizeof *launcher_caps; i++)
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, launcher_caps[i], 0, 0))
            return err_sys(err, "keeping capability %d in the user namespace", launcher_caps[i]);
    return 0;
}

ON_OWN_STACK static int launcher_child(void *argument)
{
    struct spawn *spawn = argument;
    char *const argv[] = {(char *)PLAN_LAUNCHER_NAME, spawn->unshared, (char *)spawn->ports, NULL};
    char *const env[] = {NULL};
    bool has_user_namespace = spawn->namespaces & CLONE_NEWUSER;
    bool ok = true;

    if (has_user_namespace && !spawn->netns)
        ok = identity_map(&spawn->identity, spawn->err) == 0;
    if (ok && has_user_namespace && !spawn->identity.is_root)
        ok = keep_caps(spawn->err) == 0;
    /* The socket goes where the launcher expects it; everything else is closed on execution. */
    if (ok && (spawn->status == PLAN_STATUS_FD
                   ? fcntl(spawn->status, F_SETFD, 0)
                   : dup2(spawn->status, PLAN_STATUS_FD)) < 0) { /* allow dup2: it is inherited */
        ok = false;
        err_sys(spawn->err, "passing the status socket on");
    }
    if (ok) {
        if (spawn->opened >= 0)
            syscall(SYS_execveat, spawn->opened, "", argv, env, K_AT_EMPTY_PATH);
        else
            execve(spawn->program, argv, env);
        err_sys(spawn->err, "executing %s", spawn->program);
    }
    spawn->has_failed = true;
    _exit(1);
}

static int join_view(const struct sandbox_view *view, struct err *err)
{
    if (view &&
        (sys_fault() || setns(view->users, CLONE_NEWUSER) || setns(view->mounts, CLONE_NEWNS)))
        return err_sys(err, "joining the mounts of a layer");
    return 0;
}

/* Stays open, as ours. */
static int open_outside(struct spawn *spawn)
{
    spawn->outside = sys_fault() ? -1 : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return spawn->outside < 0 ? err_sys(spawn->err, "opening / in the layer") : 0;
}

/* Joins the namespaces that were made ahead, then makes the launcher a child of our caller. */
ON_OWN_STACK static int joining_child(void *argument)
{
    struct spawn *spawn = argument;
    const struct netns *netns = spawn->netns;
    unsigned flags = spawn->namespaces & (netns ? CLONE_NEWPID : CLONED_NAMESPACES);

    if (join_view(spawn->view, spawn->err) || (spawn->view && open_outside(spawn)))
        spawn->pid = -1;
    else if (netns && (setns(netns->user, CLONE_NEWUSER) || setns(netns->net, CLONE_NEWNET)))
        spawn->pid = err_sys(spawn->err, "joining a network namespace");
    else if ((spawn->pid = clone_grandchild(launcher_child, spawn,
                                            flags | CLONE_PIDFD | CLONE_PARENT, &spawn->pidfd)) < 0)
        err_sys(spawn->err, "making namespaces");
    _exit(0);
}

/* The process is a child of the caller with no exit signal, so that a host's SIGCHLD handling never
 * sees it: wait with __WALL. Its cost does not grow with the caller's memory. ERR_SYSTEM with the
 * kernel's errno when a namespace cannot be had. */
static int spawn_launcher(struct spawn *spawn)
{
    unsigned unshared = spawn->namespaces & ~(unsigned)CLONED_NAMESPACES;
    AUTO_CLOSE int program = -1;
    sigset_t all, old;
    pid_t joining = 0;

    if (spawn->view) {
        program = sys_fault() ? -1 : open(spawn->program, O_PATH | O_CLOEXEC);
        if (program < 0)
            return err_sys(spawn->err, "opening %s", spawn->program);
    }
    spawn->opened = program;
    if (spawn->netns)
        unshared &= ~(unsigned)CLONE_NEWNET;
    snprintf(spawn->unshared, sizeof spawn->unshared, "%x", unshared);
    identity_init(&spawn->identity);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    spawn->pid = 0;
    if (spawn->netns || spawn->view)
        joining = clone_child(joining_child, spawn, CLONE_FILES, NULL);
    else
        spawn->pid =
            clone_child(launcher_child, spawn,
                        (spawn->namespaces & CLONED_NAMESPACES) | CLONE_PIDFD, &spawn->pidfd);
    if (joining < 0)
        err_sys(spawn->err, "starting a process");
    else if (joining)
        waitpid(joining, NULL, __WALL);
    else if (spawn->pid < 0)
        err_sys(spawn->err, "making namespaces");
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (spawn->pid <= 0)
        return -1;
    if (spawn->has_failed) {
        waitpid(spawn->pid, NULL, __WALL);
        close(spawn->pidfd);
        return -1;
    }
    return 0;
}

/* Opens the namespaces that it is in as `spawn->made`. Shares our descriptor table: what it opens
 * stays open when it is gone. */
ON_OWN_STACK static int netns_child(void *argument)
{
    struct spawn *spawn = argument;
    struct netns *netns = spawn->made;

    spawn->has_failed = identity_map(&spawn->identity, spawn->err) || restrict_loopback(spawn->err);
    if (!spawn->has_failed) {
        netns->user = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
        netns->net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        spawn->has_failed = netns->user < 0 || netns->net < 0;
        if (spawn->has_failed)
            err_sys(spawn->err, "opening the new namespaces");
    }
    _exit(0);
}

static void netns_free(struct netns *netns)
{
    if (!netns)
        return;
    if (netns->user >= 0)
        close(netns->user);
    if (netns->net >= 0)
        close(netns->net);
    free(netns);
}

/* The same below a view. */
ON_OWN_STACK static int netns_joining_child(void *argument)
{
    struct spawn *spawn = argument;
    pid_t pid;

    if (join_view(spawn->view, spawn->err)) {
        spawn->has_failed = true;
    } else {
        pid =
            clone_grandchild(netns_child, spawn, CLONE_FILES | CLONE_NEWUSER | CLONE_NEWNET, NULL);
        if (pid < 0)
            spawn->has_failed = err_sys(spawn->err, "making a network namespace");
        else
            waitpid(pid, NULL, __WALL);
    }
    _exit(0);
}

static struct netns *netns_new(const struct sandbox_view *view, struct err *err)
{
    struct netns *netns = alloc_zero(1, sizeof *netns);
    struct spawn making = {.made = netns, .view = view, .err = err};
    sigset_t all, old;
    pid_t pid;

    netns->user = netns->net = -1;
    identity_init(&making.identity);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    if (view)
        pid = clone_child(netns_joining_child, &making, CLONE_FILES, NULL);
    else
        pid = clone_child(netns_child, &making, CLONE_FILES | CLONE_NEWUSER | CLONE_NEWNET, NULL);
    if (pid < 0)
        err_sys(err, "making a network namespace");
    else
        waitpid(pid, NULL, __WALL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (pid < 0 || making.has_failed) {
        netns_free(netns);
        return NULL;
    }
    return netns;
}

/* --- the pool --- */

enum { NETWORKS_MAX = 64 };

/* The numbers of a view's namespaces, which no other has as long as anything of ours is in them, or below. */
static struct seen_view view_seen(const struct sandbox_view *view)
{
    struct stat users, mounts;

    if (!view || fstat(view->users, &users) || fstat(view->mounts, &mounts))
        return (struct seen_view){0};
    return (struct seen_view){.users = users.st_ino, .mounts = mounts.st_ino};
}

char *launcher_path(struct err *err)
{
    const char *named = getenv("CORDON_LINUX_SANDBOX_EXE");
    AUTO_FREE char *self = NULL;
    struct err missing;
    char *found;

    if (named && *named) {
        if (path_is_clean(named) && access(named, X_OK) == 0)
            return alloc_str(named);
        err_set(err, ERR_NOT_FOUND,
                "CORDON_LINUX_SANDBOX_EXE names %s, which is not an absolute path of a program",
                named);
        return NULL;
    }
    found = program_find("cordon-linux-sandbox", &missing);
    if (found)
        return found;
    self = program_self();
    if (str_eq(path_name(self), "cordon"))
        return TAKE_PTR(self);
    *err = missing;
    err_wrap(err, "set CORDON_LINUX_SANDBOX_EXE to the path of the launcher");
    return NULL;
}

static void launcher_close(struct launcher *launcher)
{
    if (launcher->status >= 0)
        close(launcher->status);
    if (launcher->pidfd >= 0)
        close(launcher->pidfd);
    if (launcher->outside >= 0)
        close(launcher->outside);
    launcher->status = launcher->pidfd = launcher->outside = -1;
}

/* The network namespace of a sandbox whose last process is gone may serve the next command. One that leads to
 * the proxy never does: what the proxy has open in it for the one command would be met by the next. */
static void pool_give_network(struct launcher_pool *pool, struct netns *netns)
{
    if (!netns || pool->networks_len >= NETWORKS_MAX) {
        netns_free(netns);
        return;
    }
    list_add(&pool->networks, &netns->in_pool);
    pool->networks_len++;
}

static int pool_take_network(struct launcher_pool *pool, uint32_t flags, struct netns **ret,
                             struct err *err)
{
    const uint32_t both = CLONE_NEWUSER | CLONE_NEWNET;
    const struct seen_view now = view_seen(pool->view);

    *ret = NULL;
    if (!pool->cache_idle || pool->ports || (flags & both) != both)
        return 0;
    while ((*ret = list_first(&pool->networks, struct netns, in_pool))) {
        list_remove(&(*ret)->in_pool);
        pool->networks_len--;
        if ((*ret)->view.users == now.users)
            return 0;
        netns_free(*ret); /* of a view that is gone */
    }
    *ret = netns_new(pool->view, err);
    if (*ret)
        (*ret)->view = now;
    return *ret ? 0 : -1;
}

static void pool_reap(struct launcher_pool *pool, int flags)
{
    struct launcher *launcher, *following;

    list_for_each_safe(launcher, following, &pool->endings, in_endings) {
        pid_t pid;

        do
            pid = waitpid(launcher->pid, NULL, __WALL | flags);
        while (pid < 0 && errno == EINTR);
        if (pid == 0)
            continue;
        list_remove(&launcher->in_endings);
        pool_give_network(pool, launcher->netns);
        free(launcher);
    }
}

struct launcher *launcher_new(struct launcher_pool *pool, uint32_t flags, struct err *err)
{
    struct launcher *launcher = alloc_zero(1, sizeof *launcher);
    struct spawn spawn = {.program = pool->launcher,
                          .namespaces = flags,
                          .ports = pool->ports,
                          .view = pool->view,
                          .outside = -1,
                          .pidfd = -1,
                          .err = err};
    int pair[2] = {-1, -1};
    int status;

    launcher->status = launcher->pidfd = launcher->outside = -1;
    if (sys_fault() || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        err_sys(err, "making the status socket");
        free(launcher);
        return NULL;
    }
    launcher->status = pair[0];
    spawn.status = pair[1];
    status = pool_take_network(pool, flags, &launcher->netns, err);
    spawn.netns = launcher->netns;
    if (status == 0)
        status = spawn_launcher(&spawn);
    close(pair[1]);
    launcher->outside = spawn.outside;
    if (status == 0) {
        launcher->pid = spawn.pid;
        launcher->pidfd = spawn.pidfd;
        launcher->view = pool->view;
        return launcher;
    }
    launcher_close(launcher);
    pool_give_network(pool, launcher->netns);
    free(launcher);
    return NULL;
}

struct launcher *launcher_take(struct launcher_pool *pool, uint32_t flags)
{
    struct launcher *spare = TAKE_PTR(pool->spare);
    struct pollfd end = {.fd = spare ? spare->pidfd : -1, .events = POLLIN};
    const struct seen_view now = view_seen(pool->view);

    pool_reap(pool, WNOHANG);
    if (spare && pool->spare_flags == flags && pool->spare_view.users == now.users &&
        pool->spare_view.mounts == now.mounts && poll(&end, 1, 0) == 0)
        return spare;
    if (spare)
        launcher_leave(pool, spare);
    return NULL;
}

void launcher_prepare(struct launcher_pool *pool, uint32_t flags)
{
    struct err ignored;

    if (!pool->cache_idle || pool->spare)
        return;
    pool->spare = launcher_new(pool, flags, &ignored);
    pool->spare_flags = flags;
    pool->spare_view = view_seen(pool->view);
}

void sandbox_view_settle(struct sandbox_view *view)
{
    while (view->endings_len) {
        struct pollfd end = {.fd = view->endings[--view->endings_len], .events = POLLIN};

        while (poll(&end, 1, -1) < 0 && errno == EINTR)
            ;
        close(end.fd);
    }
}

static void note_ending(struct launcher *launcher)
{
    struct sandbox_view *view = launcher->view;

    if (!view)
        return;
    if (view->endings_len == VIEW_ENDINGS_MAX)
        sandbox_view_settle(view);
    view->endings[view->endings_len++] = TAKE_FD(launcher->pidfd);
}

void launcher_leave(struct launcher_pool *pool, struct launcher *launcher)
{
    pool_reap(pool, WNOHANG); /* those before, so that none waits for the next command */
    note_ending(launcher);
    launcher_close(launcher);
    list_add(&pool->endings, &launcher->in_endings);
}

bool launcher_rest(struct launcher_pool *pool)
{
    if (pool->spare)
        launcher_leave(pool, TAKE_PTR(pool->spare));
    pool_reap(pool, WNOHANG);
    return list_is_empty(&pool->endings);
}

/* The init of a pid namespace takes everything along when it is killed. Any other one does so when
 * it finds the status socket closed. */
void launcher_kill(struct launcher_pool *pool, struct launcher *launcher, bool has_pid_namespace)
{
    if (has_pid_namespace)
        sys_pidfd_send_signal(launcher->pidfd, SIGKILL);
    launcher_close(launcher);
    while (waitpid(launcher->pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    pool_give_network(pool, launcher->netns);
    free(launcher);
}

void launcher_pool_done(struct launcher_pool *pool)
{
    struct netns *netns, *following;

    if (pool->spare)
        launcher_leave(pool, TAKE_PTR(pool->spare));
    pool_reap(pool, 0);
    list_for_each_safe(netns, following, &pool->networks, in_pool)
        netns_free(netns);
    list_init(&pool->networks);
    pool->networks_len = 0;
}
