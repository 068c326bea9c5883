/* The life of a launcher:
 *
 *     launcher_take() -> its command runs -> launcher_leave() -> reaped by a later launcher_take()
 *         ^                               \-> launcher_kill()    (its network may serve the next)
 *     launcher_prepare()
 *
 * A spare launcher is in its namespaces, but has neither seen a plan nor anything of a command, and
 * every step from the plan on is taken when it is used: there is nothing in it that could be stale
 * but the table of mounts, which follows the host's where that is shared.
 */
#include "sandbox/linux/launcher_pool.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "base/sys.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NETWORKS_MAX = 64 };

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
    launcher->status = launcher->pidfd = -1;
}

/* The network namespace of a sandbox whose last process is gone may serve the next command. */
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

    *ret = NULL;
    if (!pool->cache_idle || (flags & both) != both)
        return 0;
    *ret = list_first(&pool->networks, struct netns, in_pool);
    if (*ret) {
        list_remove(&(*ret)->in_pool);
        pool->networks_len--;
        return 0;
    }
    *ret = netns_new(err);
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
    struct spawn_request request = {.launcher = pool->launcher, .namespaces = flags};
    int pair[2] = {-1, -1};
    int status;

    launcher->status = launcher->pidfd = -1;
    if (sys_fault() || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        err_sys(err, "making the status socket");
        free(launcher);
        return NULL;
    }
    launcher->status = pair[0];
    request.status = pair[1];
    status = pool_take_network(pool, flags, &launcher->netns, err);
    request.netns = launcher->netns;
    if (status == 0)
        status = spawn_launcher(&request, &launcher->pid, &launcher->pidfd, err);
    close(pair[1]);
    if (status == 0)
        return launcher;
    launcher_close(launcher);
    pool_give_network(pool, launcher->netns);
    free(launcher);
    return NULL;
}

static bool launcher_is_alive(const struct launcher *launcher)
{
    struct pollfd fd = {.fd = launcher->pidfd, .events = POLLIN};

    return poll(&fd, 1, 0) == 0;
}

struct launcher *launcher_take(struct launcher_pool *pool, uint32_t flags)
{
    struct launcher *spare = TAKE_PTR(pool->spare);

    pool_reap(pool, WNOHANG);
    if (spare && pool->spare_flags == flags && launcher_is_alive(spare))
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
}

void launcher_leave(struct launcher_pool *pool, struct launcher *launcher)
{
    launcher_close(launcher);
    list_add(&pool->endings, &launcher->in_endings);
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
