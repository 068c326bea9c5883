/* vfork-style clones: the child runs in our memory, on a stack of its own, while we wait, until it
 * executes the launcher. So it costs the same from a caller of 5 or 500 MiB, and a failure in the
 * child is simply written to the caller's `struct err`. The child uses system calls only, touches
 * nothing but its argument, and all signals are blocked around it.
 *
 *     fresh:     clone(NEWUSER | NEWPID)                         -> child -> launcher -> unshare()
 *     recycled:  clone() -> setns(user), setns(net) -> clone(PARENT | NEWPID) -> launcher -> ...
 *
 * The namespaces that need no clone(2) are left to the launcher: to make them takes 0.1 to 0.4 ms,
 * in which the caller gets on.
 *
 * A user namespace maps the caller's own user and group and nothing else. The launcher needs some
 * capabilities in it across execve(2), which an ordinary user keeps by the ambient set.
 */
#include "sandbox/linux/spawn.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "sandbox/launcher/kernel.h"
#include "sandbox/launcher/plan_format.h"
#include "sandbox/launcher/restrict.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define CORDON_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORDON_ASAN
#endif
#endif
#ifdef CORDON_ASAN
#include <sanitizer/asan_interface.h>
#endif

/* What runs on a stack that AddressSanitizer does not know as one. */
#define ON_OWN_STACK __attribute__((no_sanitize_address))

enum { STACK_BYTES = 32 * 1024, CLONED_NAMESPACES = CLONE_NEWUSER | CLONE_NEWPID };

/* linux/capability.h */
enum { K_CAP_DAC_OVERRIDE = 1, K_CAP_NET_ADMIN = 12, K_CAP_SYS_ADMIN = 21 };

static const int launcher_caps[] = {
    K_CAP_DAC_OVERRIDE,
    K_CAP_SETPCAP,
    K_CAP_NET_ADMIN,
    K_CAP_SYS_ADMIN,
};

struct identity {
    char uid_map[40];
    char gid_map[40];
    bool is_root;
};

struct spawn {
    const struct spawn_request *request;
    struct identity identity;
    char unshared[16]; /* the launcher's argument */
    sigset_t old_mask;
    pid_t pid;
    int pidfd;
    bool has_failed;
    struct err *err;
};

static void identity_init(struct identity *identity)
{
    snprintf(identity->uid_map, sizeof identity->uid_map, "%u %u 1\n", geteuid(), geteuid());
    snprintf(identity->gid_map, sizeof identity->gid_map, "%u %u 1\n", getegid(), getegid());
    identity->is_root = geteuid() == 0;
}

/* The child never returned from its frames on our stack, which AddressSanitizer still guards. */
static void stack_unpoison(char *stack, size_t size)
{
#ifdef CORDON_ASAN
    ASAN_UNPOISON_MEMORY_REGION(stack, size);
#endif
}

/* Runs `child` in a vfork-style clone; -1 with errno. */
static pid_t clone_child(int (*child)(void *), void *argument, unsigned flags, int *ret_pidfd)
{
    _Alignas(16) char stack[STACK_BYTES];
    pid_t pid = clone(child, stack + sizeof stack, (int)(flags | CLONE_VM | CLONE_VFORK), argument,
                      ret_pidfd);

    stack_unpoison(stack, sizeof stack);
    return pid;
}

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t len = (ssize_t)strlen(text);
    bool ok = fd >= 0 && write(fd, text, (size_t)len) == len;
    int error = errno;

    if (fd >= 0)
        close(fd);
    errno = error;
    return ok ? 0 : -1;
}

/* In the child, for itself. */
static int write_maps(const struct identity *identity, struct err *err)
{
    if (write_file("/proc/self/setgroups", "deny") && errno != ENOENT)
        return err_sys(err, "giving up setgroups in the user namespace");
    if (write_file("/proc/self/uid_map", identity->uid_map))
        return err_sys(err, "mapping the user into the user namespace");
    if (write_file("/proc/self/gid_map", identity->gid_map))
        return err_sys(err, "mapping the group into the user namespace");
    return 0;
}

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

/* Where the launcher expects it; everything else is closed on execution. */
static int place_status(int status, struct err *err)
{
    int done = status == PLAN_STATUS_FD
                   ? fcntl(status, F_SETFD, 0)
                   : dup2(status, PLAN_STATUS_FD); /* allow dup2: the launcher inherits it */

    return done < 0 ? err_sys(err, "passing the status socket on") : 0;
}

ON_OWN_STACK static int launcher_child(void *argument)
{
    struct spawn *spawn = argument;
    const struct spawn_request *request = spawn->request;
    char *const argv[] = {(char *)PLAN_LAUNCHER_NAME, spawn->unshared, NULL};
    char *const env[] = {NULL};
    bool has_user_namespace = request->namespaces & CLONE_NEWUSER;
    bool ok = true;

    if (has_user_namespace && !request->netns)
        ok = write_maps(&spawn->identity, spawn->err) == 0;
    if (ok && has_user_namespace && !spawn->identity.is_root)
        ok = keep_caps(spawn->err) == 0;
    if (ok)
        ok = place_status(request->status, spawn->err) == 0;
    if (ok) {
        execve(request->launcher, argv, env);
        err_sys(spawn->err, "executing %s", request->launcher);
    }
    spawn->has_failed = true;
    _exit(1);
}

/* Joins the namespaces that were made ahead, then makes the launcher a child of our caller. */
ON_OWN_STACK static int joining_child(void *argument)
{
    struct spawn *spawn = argument;
    const struct netns *netns = spawn->request->netns;
    unsigned flags = spawn->request->namespaces & CLONE_NEWPID;

    if (setns(netns->user, CLONE_NEWUSER) || setns(netns->net, CLONE_NEWNET))
        err_sys(spawn->err, "joining a network namespace");
    else
        spawn->pid =
            clone_child(launcher_child, spawn, flags | CLONE_PIDFD | CLONE_PARENT, &spawn->pidfd);
    if (spawn->pid < 0)
        err_sys(spawn->err, "making namespaces");
    _exit(0);
}

static void spawn_recycled(struct spawn *spawn)
{
    pid_t pid;

    spawn->pid = 0;
    pid = clone_child(joining_child, spawn, CLONE_FILES, NULL);
    if (pid < 0)
        err_sys(spawn->err, "starting a process");
    else
        waitpid(pid, NULL, __WALL);
}

static void spawn_fresh(struct spawn *spawn)
{
    unsigned flags = spawn->request->namespaces & CLONED_NAMESPACES;

    spawn->pid = clone_child(launcher_child, spawn, flags | CLONE_PIDFD, &spawn->pidfd);
    if (spawn->pid < 0)
        err_sys(spawn->err, "making namespaces");
}

int spawn_launcher(const struct spawn_request *request, pid_t *ret_pid, int *ret_pidfd,
                   struct err *err)
{
    struct spawn spawn = {.request = request, .pid = -1, .pidfd = -1, .err = err};
    unsigned unshared = request->namespaces & ~(unsigned)CLONED_NAMESPACES;
    sigset_t all;

    if (request->netns)
        unshared &= ~(unsigned)CLONE_NEWNET;
    snprintf(spawn.unshared, sizeof spawn.unshared, "%x", unshared);
    identity_init(&spawn.identity);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &spawn.old_mask);
    if (request->netns)
        spawn_recycled(&spawn);
    else
        spawn_fresh(&spawn);
    pthread_sigmask(SIG_SETMASK, &spawn.old_mask, NULL);
    if (spawn.pid <= 0)
        return -1;
    if (spawn.has_failed) {
        waitpid(spawn.pid, NULL, __WALL);
        close(spawn.pidfd);
        return -1;
    }
    *ret_pid = spawn.pid;
    *ret_pidfd = spawn.pidfd;
    return 0;
}

struct netns_making {
    struct identity identity;
    struct netns *netns;
    bool has_failed;
    struct err *err;
};

/* Shares our descriptor table: what it opens stays open when it is gone. */
ON_OWN_STACK static int netns_child(void *argument)
{
    struct netns_making *making = argument;
    struct netns *netns = making->netns;

    making->has_failed =
        write_maps(&making->identity, making->err) || restrict_loopback(making->err);
    if (!making->has_failed) {
        netns->user = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
        netns->net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        making->has_failed = netns->user < 0 || netns->net < 0;
        if (making->has_failed)
            err_sys(making->err, "opening the new namespaces");
    }
    _exit(0);
}

struct netns *netns_new(struct err *err)
{
    struct netns *netns = alloc_zero(1, sizeof *netns);
    struct netns_making making = {.netns = netns, .err = err};
    sigset_t all;
    sigset_t old;
    pid_t pid;

    netns->user = netns->net = -1;
    identity_init(&making.identity);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
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

void netns_free(struct netns *netns)
{
    if (!netns)
        return;
    if (netns->user >= 0)
        close(netns->user);
    if (netns->net >= 0)
        close(netns->net);
    free(netns);
}
