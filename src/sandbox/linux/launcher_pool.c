/* The life of an init:
 *
 *     init_take() -> its command runs -> init_leave() -> reaped by a later init_take()
 *         ^                           \-> init_kill()        (its network may serve the next)
 *     init_prepare()
 *
 * A spare init is in its namespaces, but has neither seen a plan nor anything of a command, and
 * every step from the plan on is taken when it is used: there is nothing in it that could be stale
 * but the table of mounts, which follows the host's where that is shared.
 */
#include "sandbox/linux/launcher_pool.h"

#include "base/alloc.h"
#include "base/auto.h"
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

static void init_close(struct init *init)
{
    if (init->status >= 0)
        close(init->status);
    if (init->pidfd >= 0)
        close(init->pidfd);
    init->status = init->pidfd = -1;
}

/* The network namespace of a sandbox whose last process is gone may serve the next command. */
static void pool_give_network(struct init_pool *pool, struct netns *netns)
{
    if (!netns || pool->networks_len >= NETWORKS_MAX) {
        netns_free(netns);
        return;
    }
    netns->next = pool->networks;
    pool->networks = netns;
    pool->networks_len++;
}

static int pool_take_network(struct init_pool *pool, uint32_t flags, struct netns **ret,
                             struct err *err)
{
    const uint32_t both = CLONE_NEWUSER | CLONE_NEWNET;

    *ret = NULL;
    if (!pool->keep_warm || (flags & both) != both)
        return 0;
    if (!pool->networks) {
        *ret = netns_new(err);
        return *ret ? 0 : -1;
    }
    *ret = pool->networks;
    pool->networks = (*ret)->next;
    pool->networks_len--;
    return 0;
}

static void pool_reap(struct init_pool *pool, int flags)
{
    struct init **at = &pool->endings;

    while (*at) {
        struct init *init = *at;
        pid_t pid = waitpid(init->pid, NULL, __WALL | flags);

        if (pid < 0 && errno == EINTR)
            continue;
        if (pid == 0) {
            at = &init->next;
            continue;
        }
        *at = init->next;
        pool_give_network(pool, init->netns);
        free(init);
    }
}

static struct init *init_new(struct init_pool *pool, uint32_t flags, struct err *err)
{
    struct init *init = alloc_zero(1, sizeof *init);
    struct spawn_request request = {.launcher = pool->launcher, .namespaces = flags};
    int pair[2] = {-1, -1};
    int status;

    init->status = init->pidfd = -1;
    if (sys_fault() || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        err_sys(err, "making the status socket");
        free(init);
        return NULL;
    }
    init->status = pair[0];
    request.status = pair[1];
    status = pool_take_network(pool, flags, &init->netns, err);
    request.netns = init->netns;
    if (status == 0)
        status = spawn_launcher(&request, &init->pid, &init->pidfd, err);
    close(pair[1]);
    if (status == 0)
        return init;
    init_close(init);
    pool_give_network(pool, init->netns);
    free(init);
    return NULL;
}

static bool init_is_alive(const struct init *init)
{
    struct pollfd fd = {.fd = init->pidfd, .events = POLLIN};

    return poll(&fd, 1, 0) == 0;
}

struct init *init_take(struct init_pool *pool, uint32_t flags, struct err *err)
{
    struct init *spare = TAKE_PTR(pool->spare);

    pool_reap(pool, WNOHANG);
    if (!spare)
        return init_new(pool, flags, err);
    if (pool->spare_flags == flags && init_is_alive(spare))
        return spare;
    init_leave(pool, spare);
    return init_new(pool, flags, err);
}

void init_prepare(struct init_pool *pool, uint32_t flags)
{
    struct err ignored;

    if (!pool->keep_warm || pool->spare)
        return;
    pool->spare = init_new(pool, flags, &ignored);
    pool->spare_flags = flags;
}

void init_leave(struct init_pool *pool, struct init *init)
{
    init_close(init);
    init->next = pool->endings;
    pool->endings = init;
}

/* The init of a pid namespace takes everything along when it is killed. Any other one does so when
 * it finds the status socket closed. */
void init_kill(struct init_pool *pool, struct init *init, bool has_pid_namespace)
{
    if (has_pid_namespace)
        sys_pidfd_send_signal(init->pidfd, SIGKILL);
    init_close(init);
    while (waitpid(init->pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    pool_give_network(pool, init->netns);
    free(init);
}

void init_pool_done(struct init_pool *pool)
{
    if (pool->spare)
        init_leave(pool, TAKE_PTR(pool->spare));
    pool_reap(pool, 0);
    while (pool->networks) {
        struct netns *next = pool->networks->next;

        netns_free(pool->networks);
        pool->networks = next;
    }
    pool->networks_len = 0;
}
