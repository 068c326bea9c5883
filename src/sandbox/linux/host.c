/* Layers are probed by using them: no error text is parsed, and no version compared but one
 * (counts_pids()). A launch that fails at a step which needs a layer takes that layer away, and the
 * next plan does without.
 *
 *     all namespaces -> (root only) all but the user namespace -> none, Landlock and seccomp alone
 *     with its own /proc -> without, where a container hides parts of /proc
 *     with a filter that asks the guard -> without
 *     with watchpoints (FUSE) -> with masks
 *     with processes counted by their pid namespace -> without (root only)
 *     with connections redirected to the proxy -> led there by the guard
 */
#include "sandbox/linux/host.h"

#include "base/auto.h"
#include "base/str.h"
#include "base/strv.h"
#include "sandbox/launcher/kernel.h"
#include "sandbox/linux/landlock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { PROC_PATHS_MAX = 32, CHILDREN_MAX = 2000 };

#define ALL_NAMESPACES                                                                             \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS |     \
     CLONE_NEWCGROUP)

static const struct {
    enum defence layer;
    uint32_t flag;
    const char *loss;
} namespace_defences[] = {
    {DEFENCE_USER_NAMESPACE, CLONE_NEWUSER, "the command has the user's own id to the kernel"},
    {DEFENCE_MOUNT_NAMESPACE, CLONE_NEWNS,
     "files are guarded by Landlock and seccomp alone, and no /tmp is private; the user's other "
     "terminals can be read"},
    {DEFENCE_PID_NAMESPACE, CLONE_NEWPID, "other processes can be seen; tracing them is refused"},
    {DEFENCE_IPC_NAMESPACE, CLONE_NEWIPC, "no System V IPC and no message queues"},
    {DEFENCE_NET_NAMESPACE, CLONE_NEWNET, "no sockets at all, not even to localhost"},
    {DEFENCE_UTS_NAMESPACE, CLONE_NEWUTS, "the host's name is seen"},
    {DEFENCE_CGROUP_NAMESPACE, CLONE_NEWCGROUP, "the host's control groups are seen"},
};

const char *defence_name(enum defence layer)
{
    static const char *const names[DEFENCE_COUNT] = {
        [DEFENCE_USER_NAMESPACE] = "user-namespace",
        [DEFENCE_MOUNT_NAMESPACE] = "mount-namespace",
        [DEFENCE_PID_NAMESPACE] = "pid-namespace",
        [DEFENCE_IPC_NAMESPACE] = "ipc-namespace",
        [DEFENCE_NET_NAMESPACE] = "net-namespace",
        [DEFENCE_UTS_NAMESPACE] = "uts-namespace",
        [DEFENCE_CGROUP_NAMESPACE] = "cgroup-namespace",
        [DEFENCE_LANDLOCK] = "landlock",
        [DEFENCE_SECCOMP] = "seccomp",
        [DEFENCE_NO_NEW_PRIVS] = "no-new-privs",
        [DEFENCE_CAPABILITIES] = "capabilities",
        [DEFENCE_GUARD] = "guard",
        [DEFENCE_PROXY] = "proxy",
    };

    return names[layer];
}

const char *defence_state_name(enum defence_state state)
{
    static const char *const names[] = {
        [DEFENCE_ENFORCED] = "enforced",
        [DEFENCE_PARTIAL] = "partial",
        [DEFENCE_ABSENT] = "absent",
        [DEFENCE_NOT_NEEDED] = "not-needed",
    };

    return names[state];
}

/* Those of the NULL-terminated `paths` that this kernel has, in `ret` (NULL-terminated, too). */
static const char *const *existing_paths(const char *const *paths, const char **ret)
{
    size_t len = 0;

    for (size_t i = 0; paths[i] && len + 1 < PROC_PATHS_MAX; i++)
        if (access(paths[i], F_OK) == 0)
            ret[len++] = paths[i];
    ret[len] = NULL;
    return ret;
}

/* Of a place that cannot be looked into nothing is known. What is beyond the limit can be written to,
 * but gets no new names; or cannot be read. */
static void list(const char *path, bool dirs, struct strv *ret)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    struct stat st;

    while (dir && ret->len < CHILDREN_MAX && (entry = readdir(dir))) {
        if (str_eq(entry->d_name, ".") || str_eq(entry->d_name, ".."))
            continue;
        if (entry->d_type != DT_UNKNOWN)
            st.st_mode = DTTOIF(entry->d_type);
        else if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
            continue;
        if (!S_ISLNK(st.st_mode) && !S_ISDIR(st.st_mode) == !dirs)
            strv_push(ret, entry->d_name);
    }
    if (dir)
        closedir(dir);
}

static void list_dirs(const char *path, struct strv *ret)
{
    list(path, true, ret);
}

static void list_files(const char *path, struct strv *ret)
{
    list(path, false, ret);
}

/* Since Linux 6.14 a write to pid_max changes that of the writer's pid namespace. Before, the same write changes
 * the host's, so that it cannot be tried out, and the version decides, against the rule here. It errs to the safe
 * side: a lower one is told by what imitates Linux (gVisor) or hides it (setarch --uname-2.6), and who took the
 * change into an older kernel goes without. No kernel since 6.14 can be built without it where it has pid
 * namespaces. */
static bool counts_pids(void)
{
    struct utsname kernel;
    char *end;
    unsigned long major, minor;

    if (uname(&kernel))
        return false;
    major = strtoul(kernel.release, &end, 10);
    minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    return major > 6 || (major == 6 && minor >= 14);
}

void host_init(struct host *host)
{
    long abi = syscall(K_SYS_LANDLOCK_CREATE_RULESET, NULL, 0, K_LANDLOCK_CREATE_RULESET_VERSION);

    *host = (struct host){
        .facts =
            {
                .namespaces = ALL_NAMESPACES,
                .is_root = geteuid() == 0,
                .has_proc = true,
                .landlock = abi < 0 ? 0 : (int)abi,
                .arch = seccomp_native(),
                .has_listener = true,
                .has_redirect = true,
                .has_fuse = true,
                .list_dirs = list_dirs,
                .list_files = list_files,
                .is_held = around_holds,
                .writes_no_more = around_writes_no_more,
            },
        .why = "",
    };
    if (host->facts.is_root) {
        static const char *writable[PROC_PATHS_MAX];
        static const char *secret[PROC_PATHS_MAX];

        host->facts.counts_pids = counts_pids();
        host->facts.proc_read_only = existing_paths(plan_proc_writable, writable);
        host->facts.proc_masked = existing_paths(plan_proc_secret, secret);
    }
}

void host_lose_listener(struct host *host, const char *why)
{
    host->facts.has_listener = false;
    snprintf(host->no_listener, sizeof host->no_listener, "%s", why);
}

/* Yama lets nobody but its ancestors look into a process; who owns its user namespace may all the same. */
static bool is_kept_from_looking(void)
{
    AUTO_CLOSE int fd = open("/proc/sys/kernel/yama/ptrace_scope",
                             O_RDONLY | O_CLOEXEC); /* allow blocking open: procfs */
    char digit = '0';

    return fd >= 0 && read(fd, &digit, 1) == 1 && digit != '0';
}

void host_forgo_namespaces(struct host *host)
{
    host->facts.namespaces = 0;
    host->why = "no namespaces, as --sandbox landlock wants it: files are guarded by Landlock and "
                "the guard alone";
    if (is_kept_from_looking())
        host_lose_listener(host, "kernel.yama.ptrace_scope is not 0, so no guard can see what a "
                                 "command asks for");
}

#define AROUND "a sandbox of Cordon's is around, whose guard keeps names for this one, too"

/* The filter with a listener was refused: this kernel is too old for it, or something around us has
 * one already, and the kernel allows one in a tree of processes. */
static bool step_down_listener(struct host *host, int error)
{
    if (host->facts.has_around && (error == ENOTDIR || error == EFAULT)) {
        host->facts.has_around = false; /* it is none of ours */
        return true;
    }
    if (!host->facts.has_listener || host->has_asked ||
        (error != EBUSY && error != EINVAL && error != ENOSYS))
        return false;
    host->facts.has_around = around_has_guard();
    host_lose_listener(host, host->facts.has_around ? AROUND
                             : error == EBUSY
                                 ? "another program around this one supervises system calls "
                                   "already, and the kernel allows one"
                                 : "the guard needs Linux 5.19");
    return true;
}

/* /dev/fuse was refused, or a file system of it. What is not found or not a directory is a place
 * that has gone, and who does not take the watchpoint is a guard that has died: neither says anything
 * of the host. */
static bool step_down_fuse(struct host *host, enum plan_op op, int error)
{
    bool is_device = op == PLAN_HOLD_FUSE;

    if (!host->facts.has_fuse || host->has_watched ||
        (!is_device && (error == ENOENT || error == ENOTDIR || error == ELOOP || error == EPIPE ||
                        error == ECONNRESET)))
        return false;
    host->facts.has_fuse = false;
    snprintf(host->no_fuse, sizeof host->no_fuse, "%s: %s",
             is_device ? "/dev/fuse cannot be opened" : "FUSE cannot be mounted", strerror(error));
    return true;
}

/* Its settings cannot be written: a /proc that is not there, or read-only, or a kernel without ns_last_pid. */
static bool step_down_pids(struct host *host, int error)
{
    if (!host->facts.counts_pids || host->has_counted ||
        (error != ENOENT && error != EACCES && error != EPERM && error != EROFS && error != EINVAL))
        return false;
    host->facts.counts_pids = false;
    return true;
}

/* There is no nf_tables, or none that redirects; not that something ran out. */
static bool step_down_redirect(struct host *host, const struct err *failure)
{
    const int error = failure->sys;

    if (!host->facts.has_redirect || host->has_redirected ||
        (error != EPROTONOSUPPORT && error != EAFNOSUPPORT && error != EOPNOTSUPP &&
         error != ENOENT && error != EINVAL && error != EPERM && error != EACCES &&
         error != ENOSYS))
        return false;
    host->facts.has_redirect = false;
    snprintf(host->no_redirect, sizeof host->no_redirect,
             "nf_tables and nf_nat cannot be used (modules nft_redir, nf_nat): %s",
             strerror(error));
    return true;
}

bool host_step_down(struct host *host, enum plan_op op, const struct err *failure)
{
    bool is_namespace_step =
        op == PLAN_OP_COUNT || op == PLAN_NAMESPACES || op == PLAN_TREE_PRIVATE;
    const int error = failure->sys;

    if (op == PLAN_SECCOMP)
        return step_down_listener(host, error);
    if (op == PLAN_PIDS)
        return step_down_pids(host, error);
    if (op == PLAN_REDIRECT)
        return step_down_redirect(host, failure);
    if (op == PLAN_MASKS && error == EACCES && !host->facts.has_around && around_has_guard()) {
        host->facts.has_around = true; /* it makes nothing in what is mounted nowhere */
        host_lose_listener(host, AROUND);
        return true;
    }
    if (op == PLAN_HOLD_FUSE || op == PLAN_WATCHPOINT)
        return step_down_fuse(host, op, error);
    if (host->is_proven || !host->facts.namespaces ||
        (error != EPERM && error != EACCES && error != ENOSPC && error != EUSERS &&
         error != EINVAL && error != ENOSYS))
        return false;
    if (op == PLAN_PROC && host->facts.has_proc) {
        host->facts.has_proc = false;
        host->why = "a /proc of its own cannot be mounted here (a container that hides parts of "
                    "/proc)";
    } else if (is_namespace_step && host->facts.is_root &&
               (host->facts.namespaces & CLONE_NEWUSER)) {
        host->facts.namespaces &= ~(uint32_t)CLONE_NEWUSER;
        host->why = "user namespaces cannot be made here";
    } else if (is_namespace_step) {
        host->facts.namespaces = 0;
        host->why = op == PLAN_TREE_PRIVATE && error == EINVAL
                        ? "/ is no mount point here (a chroot), so nothing can be mounted in it"
                        : "namespaces cannot be made here";
        if (around_has_guard()) {
            host->facts.has_around = true;
            host->why = "this is a sandbox already: what it keeps is all that keeps files, "
                        "processes and the network apart";
            host_lose_listener(host, AROUND);
        }
    } else {
        return false;
    }
    host->refusal = *failure;
    return true;
}

bool host_is_proven(const struct host *host, const struct plan *plan, bool counts_pids)
{
    return host->is_proven && (host->has_counted || !counts_pids) &&
           (host->has_asked || !plan->asks_guard) && (host->has_watched || !plan->watchpoints) &&
           (host->has_redirected || !plan->redirects);
}

void host_stood(struct host *host, const struct plan *plan, bool counts_pids)
{
    host->is_proven = true;
    host->has_asked |= plan->asks_guard;
    host->has_watched |= plan->watchpoints > 0;
    host->has_counted |= counts_pids;
    host->has_redirected |= plan->redirects;
}

const char *host_degradation(const struct host *host)
{
    if (*host->why)
        return host->why;
    if (host->facts.landlock == 0)
        return "this kernel has no Landlock, or it is not enabled";
    if (host->facts.landlock < LANDLOCK_SCOPES_ABI)
        return "this kernel's Landlock does not stop signals and abstract sockets";
    return host->no_listener;
}

static void report(struct defence_report *ret, enum defence_state state, const char *why)
{
    ret->state = state;
    snprintf(ret->why, sizeof ret->why, "%s", why);
}

static void report_namespaces(const struct host *host, const struct access_map *map,
                              unsigned wishes, struct defence_report ret[DEFENCE_COUNT])
{
    for (size_t i = 0; i < sizeof namespace_defences / sizeof *namespace_defences; i++) {
        struct defence_report *layer = &ret[namespace_defences[i].layer];

        if (namespace_defences[i].flag == CLONE_NEWNET && network_is_hosts(map->network))
            report(layer, DEFENCE_NOT_NEEDED, "the network is enabled");
        else if (host->facts.namespaces & namespace_defences[i].flag)
            report(layer, DEFENCE_ENFORCED, "");
        else
            report(layer, DEFENCE_ABSENT, namespace_defences[i].loss);
    }
    report(&ret[DEFENCE_PROXY],
           map->network == NETWORK_PROXIED ? DEFENCE_ENFORCED : DEFENCE_NOT_NEEDED,
           map->network == NETWORK_PROXIED ? "" : "the network is not proxied");
    if (plan_is_led(map, &host->facts))
        snprintf(ret[DEFENCE_PROXY].why, sizeof ret[DEFENCE_PROXY].why,
                 "connections are led to it by the guard: %s", host->no_redirect);
    if (wishes & PLAN_ALONE)
        report(&ret[DEFENCE_MOUNT_NAMESPACE], DEFENCE_ABSENT,
               "files are guarded by Landlock, seccomp and the guard alone");
    if ((host->facts.namespaces & CLONE_NEWPID) && !host->facts.has_proc)
        report(&ret[DEFENCE_PID_NAMESPACE], DEFENCE_PARTIAL,
               "a /proc of its own cannot be mounted: the host's processes are listed, read-only");
}

static void report_landlock(const struct host *host, const struct access_map *map, unsigned wishes,
                            struct defence_report *ret)
{
    if (host->facts.landlock == 0)
        report(ret, DEFENCE_ABSENT,
               "this kernel has no Landlock, or it is not enabled (lsm=landlock)");
    else if (host->facts.landlock < LANDLOCK_SCOPES_ABI)
        report(ret, DEFENCE_PARTIAL,
               "signals and abstract sockets need Landlock ABI 6 (Linux 6.12)");
    else if (wishes & PLAN_ALONE)
        report(ret, DEFENCE_PARTIAL,
               "by itself: what is denied can be listed, and all of /proc is seen; new FIFOs, "
               "terminals and /dev/shm cannot be written to");
    else if (wishes & PLAN_NESTED_NAMESPACES)
        report(ret, DEFENCE_PARTIAL,
               "not on files, because it would forbid mounts in namespaces that "
               "the command makes");
    else if (access_map_check(map, "/") == ACCESS_WRITE && map->len > 1)
        report(ret, DEFENCE_PARTIAL, "on new names alone, because / is writable");
    else
        report(ret, DEFENCE_ENFORCED, "");
}

const char *host_no_watchpoint(const struct host *host, const struct plan *plan)
{
    if (!plan->no_watchpoint)
        return "";
    return *plan->no_watchpoint ? plan->no_watchpoint : host->no_fuse;
}

static void report_guard(const struct host *host, const struct plan *plan,
                         const struct access_map *map, unsigned wishes, struct defence_report *ret)
{
    if (plan->asks_guard) {
        report(ret, DEFENCE_ENFORCED, "");
        if (plan->no_watchpoint)
            snprintf(ret->why, sizeof ret->why, "reads: masked; %s",
                     host_no_watchpoint(host, plan));
    } else if (plan->tells_around) {
        report(ret, DEFENCE_PARTIAL,
               "that of the sandbox around keeps names; what is refused is guessed from the "
               "output, and "
               "there are no Unix sockets");
    } else if (!plan_wants_guard(map, host->facts.namespaces, wishes))
        report(ret, DEFENCE_NOT_NEEDED, "nothing is writable, and nobody asks what is refused");
    else {
        report(ret, DEFENCE_ABSENT, "");
        snprintf(ret->why, sizeof ret->why,
                 "%.110s: nothing can be created directly in writable roots, no Unix sockets",
                 host->no_listener);
    }
}

void host_report(const struct host *host, const struct plan *plan, const struct access_map *map,
                 unsigned wishes, struct defence_report ret[DEFENCE_COUNT])
{
    report_namespaces(host, map, wishes, ret);
    report_landlock(host, map, wishes, &ret[DEFENCE_LANDLOCK]);
    report(
        &ret[DEFENCE_SECCOMP], plan->filters_len ? DEFENCE_ENFORCED : DEFENCE_ABSENT,
        map->network == NETWORK_HOST
            ? "with the network of the host, Unix sockets of the host can be reached by their path"
            : "");
    report(&ret[DEFENCE_NO_NEW_PRIVS], DEFENCE_ENFORCED, "");
    report(&ret[DEFENCE_CAPABILITIES], DEFENCE_ENFORCED, "");
    report_guard(host, plan, map, wishes, &ret[DEFENCE_GUARD]);
}
