/* See proxy_link.h. A proxy that has died takes the connections of its commands along, and nothing more of theirs
 * leaves: that is no harm to them but the one, so that they go on. The next command gets a new one.
 *
 * What comes is kept until it is asked for, since the end of a command has to take in all of it. */
#include "sandbox/linux/proxy_link.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/sys.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { COUNTS_MS = 1000 };

_Static_assert(PROXY_PORT == 1008, "policy/environment.c names the port, too");

static struct companion the_proxy = {.name = PROXY_PROGRAM,
                                     .word = "the proxy",
                                     .is_nobody = true,
                                     .gets_proxies = true,
                                     .is_busy = ATOMIC_FLAG_INIT};

char *proxy_link_program(const char *launcher)
{
    return companion_program(&the_proxy, launcher, "proxy");
}

int proxy_link_policy(const struct network_policy *policy, struct err *err)
{
    json_t *json = network_policy_to_json(policy);
    AUTO_FREE char *text = json_dumps(json, JSON_COMPACT);

    json_decref(json);
    if (!text || strlen(text) > PROXY_MAX_BYTES)
        return err_set(err, ERR_LIMIT, "the rules for the network are too many for the proxy");
    return fd_sealed_memory("cordon-policy", text, strlen(text), err);
}

char *proxy_link_ports(const struct network_policy *policy)
{
    AUTO(buf_done) struct buf ports = {0};

    buf_init(&ports, NETWORK_HOST_PORTS_MAX * sizeof "65535,");
    for (size_t i = 0; i < policy->host_ports_len; i++)
        buf_appendf(&ports, i ? ",%u" : "%u", policy->host_ports[i]);
    return alloc_strn(ports.len ? ports.data : "", ports.len);
}

void proxy_link_join(void)
{
    companion_join(&the_proxy);
}

void proxy_link_leave(void)
{
    companion_leave(&the_proxy);
}

void proxy_link_reap(void)
{
    companion_reap(&the_proxy);
}

struct told {
    struct list in_queue;
    struct proxy_fact fact;
};

struct proxy_channel {
    int fd;
    int proxys; /* its end, until it has been handed over */
    struct list queue;
    unsigned count;
    bool has_more, has_ended;
};

struct proxy_channel *proxy_channel_new(struct err *err)
{
    struct proxy_channel *channel;
    int pair[2];

    if (sys_fault() || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        err_sys(err, "making the proxy's channel");
        return NULL;
    }
    channel = alloc_zero(1, sizeof *channel);
    channel->fd = pair[0];
    channel->proxys = pair[1];
    list_init(&channel->queue);
    return channel;
}

void proxy_channel_free(struct proxy_channel *channel)
{
    struct told *told, *following;

    if (!channel)
        return;
    list_for_each_safe(told, following, &channel->queue, in_queue)
        free(told);
    close(channel->fd);
    if (channel->proxys >= 0)
        close(channel->proxys);
    free(channel);
}

int proxy_channel_fd(const struct proxy_channel *channel)
{
    return channel->fd;
}

int proxy_channel_attach(struct proxy_channel *channel, const struct proxy_start *how,
                         struct err *err)
{
    const int fds[PROXY_FDS] = {
        [PROXY_FD_CHANNEL] = channel->proxys, [PROXY_FD_POLICY] = how->policy};
    const struct proxy_hello hello = {
        .magic = PROXY_MAGIC, .version = PROXY_VERSION, .flags = how->flags};
    const struct companion_packet packet = {&hello, sizeof hello, fds, PROXY_FDS};
    const int status = companion_hand(&the_proxy, &how->start, &packet, err);

    close(channel->proxys);
    channel->proxys = -1;
    return status;
}

/* Takes one packet; false when there is none. A proxy that has let go of a command while an answer of ours was
 * under way resets the socket, which is told before what it had to say. What is none of its own packets ends the
 * channel. */
static bool receive(struct proxy_channel *channel)
{
    struct proxy_fact packet;
    struct told *told;
    ssize_t len;

    do
        len = recv(channel->fd, &packet, sizeof packet, MSG_DONTWAIT | MSG_TRUNC);
    while (len < 0 && (errno == EINTR || errno == ECONNRESET));
    if (len < 0 && errno == EAGAIN)
        return false;
    if (len != (ssize_t)sizeof packet || packet.kind < PROXY_FACT_DENIED ||
        packet.kind > PROXY_FACT_MORE) {
        channel->has_ended = true;
        return false;
    }
    packet.host[PROXY_HOST_MAX - 1] = packet.reason[PROXY_REASON_MAX - 1] =
        packet.rule[PROXY_RULE_MAX - 1] = '\0';
    channel->count++;
    channel->has_more |= packet.kind == PROXY_FACT_MORE || packet.kind == PROXY_FACT_ASKED;
    told = alloc_zero(1, sizeof *told);
    told->fact = packet;
    list_append(&channel->queue, &told->in_queue);
    return true;
}

bool proxy_channel_next(struct proxy_channel *channel, struct proxy_fact *ret)
{
    struct told *told;

    if (!list_first(&channel->queue, struct told, in_queue) && !channel->has_ended)
        receive(channel);
    told = list_first(&channel->queue, struct told, in_queue);
    if (!told)
        return false;
    list_remove(&told->in_queue);
    *ret = told->fact;
    free(told);
    return true;
}

bool proxy_channel_has_ended(const struct proxy_channel *channel)
{
    return channel->has_ended;
}

void proxy_channel_answer(const struct proxy_channel *channel, uint64_t id, bool is_yes)
{
    const struct proxy_order order = {
        .magic = PROXY_MAGIC, .kind = PROXY_ORDER_ANSWER, .id = id, .number = is_yes};

    while (send(channel->fd, &order, sizeof order, MSG_NOSIGNAL) < 0 && errno == EINTR)
        continue;
}

void proxy_channel_finish(struct proxy_channel *channel)
{
    struct pollfd end = {.fd = channel->fd, .events = 0}; /* POLLHUP comes unasked */

    shutdown(channel->fd, SHUT_WR);
    while (!channel->has_ended && receive(channel))
        continue;
    if (channel->has_ended || (!channel->has_more && channel->count < PROXY_FACTS_MAX))
        return;
    poll(&end, 1, COUNTS_MS);
    while (!channel->has_ended && receive(channel))
        continue;
}
