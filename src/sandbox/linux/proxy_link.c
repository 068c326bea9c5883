/* See proxy_link.h. Until somebody connects, the proxy's end of the channel and the listeners are here, and are looked
 * at. That keeps the start of the proxy (half a millisecond of a processor) away from the start of the command.
 *
 * A proxy that has died takes the connections of its commands along, and nothing more of theirs
 * leaves: that is no harm to them but the one, so that they go on. The next command gets a new one.
 *
 * What comes is kept until it is asked for, since the end of a command has to take in all of it. */
#include "sandbox/linux/proxy_link.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/pass.h"
#include "base/sys.h"
#include "guard/guard_format.h"
#include "sandbox/linux/tls_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { COUNTS_MS = 1000 };

_Static_assert((int)GUARD_PROXY_PORT == (int)PROXY_PORT && (int)GUARD_LED == (int)PROXY_LED &&
                   (int)GUARD_LED_BYTES == (int)PROXY_LED_BYTES,
               "guard and proxy mean the same");
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
    json_t *json = network_policy_to_proxy(policy);
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

static int hand_over(const struct proxy_start *start, int channel, struct err *err)
{
    const int fds[PROXY_FDS] = {[PROXY_FD_CHANNEL] = channel,
                                [PROXY_FD_POLICY] = start->policy,
                                [PROXY_FD_TLS] = start->ends_tls ? tls_link_control() : -1};
    const struct proxy_hello hello = {
        .magic = PROXY_MAGIC, .version = PROXY_VERSION, .flags = start->flags};
    const struct companion_packet packet = {&hello, sizeof hello, fds,
                                            start->ends_tls ? PROXY_FDS : PROXY_FD_TLS};

    return companion_hand(&the_proxy, &start->start, &packet, err);
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
    struct proxy_start start;
    int fd;
    int poller; /* of what is looked at */
    int proxys; /* its end, until it has been handed over */
    int listeners[PROXY_LISTENERS];
    size_t listeners_len;
    struct list queue;
    unsigned count;
    bool has_more, has_ended;
    bool is_over; /* the command */
};

static int look_at(const struct proxy_channel *channel, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(channel->poller, EPOLL_CTL_ADD, fd, &event);
}

static void leave_alone(const struct proxy_channel *channel, int fd)
{
    epoll_ctl(channel->poller, EPOLL_CTL_DEL, fd, NULL);
}

struct proxy_channel *proxy_channel_new(const struct proxy_start *start, struct err *err)
{
    struct proxy_channel *channel = alloc_zero(1, sizeof *channel);
    int pair[2] = {-1, -1};

    channel->start = *start;
    list_init(&channel->queue);
    if (sys_fault() || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        err_sys(err, "making the proxy's channel");
    channel->fd = pair[0];
    channel->proxys = pair[1];
    channel->poller = pair[0] < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
    if (channel->poller >= 0 && look_at(channel, channel->proxys) == 0)
        return channel;
    if (pair[0] >= 0)
        err_sys(err, "watching the proxy's channel");
    proxy_channel_free(channel);
    return NULL;
}

static void listeners_close(struct proxy_channel *channel)
{
    for (size_t i = 0; i < channel->listeners_len; i++)
        leave_alone(channel, channel->listeners[i]);
    pass_close(channel->listeners, channel->listeners_len);
    channel->listeners_len = 0;
    auto_close(&channel->proxys);
    channel->proxys = -1;
}

void proxy_channel_free(struct proxy_channel *channel)
{
    struct told *told, *following;

    if (!channel)
        return;
    list_for_each_safe(told, following, &channel->queue, in_queue)
        free(told);
    listeners_close(channel);
    auto_close(&channel->fd);
    auto_close(&channel->poller);
    free(channel);
}

struct proxy_channel *proxy_channel_open(const struct proxy_start *start, struct err *err)
{
    struct proxy_channel *channel = proxy_channel_new(start, err);

    if (channel && hand_over(start, channel->proxys, err)) {
        proxy_channel_free(channel);
        return NULL;
    }
    if (channel) {
        leave_alone(channel, channel->proxys);
        listeners_close(channel);
        look_at(channel, channel->fd);
    }
    return channel;
}

int proxy_channel_end(const struct proxy_channel *channel)
{
    return channel->fd;
}

int proxy_channel_fd(const struct proxy_channel *channel)
{
    return channel->poller;
}

static void add(struct proxy_channel *channel, const struct proxy_fact *fact)
{
    struct told *told = alloc_zero(1, sizeof *told);

    told->fact = *fact;
    list_append(&channel->queue, &told->in_queue);
}

/* What keeps the command from all hosts. */
static void add_failure(struct proxy_channel *channel, const char *reason)
{
    struct proxy_fact fact = {.kind = PROXY_FACT_DENIED};

    snprintf(fact.reason, sizeof fact.reason, "%s", reason);
    add(channel, &fact);
    channel->has_ended = true;
}

/* Before there is a proxy: the launcher's word is ours. */
static void take_listeners(struct proxy_channel *channel)
{
    struct proxy_order order = {0};
    int fds[PASS_MAX];
    size_t count;
    const ssize_t len =
        pass_receive(channel->proxys, &order, sizeof order, MSG_DONTWAIT, fds, &count);

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    leave_alone(channel, channel->proxys);
    if (len != (ssize_t)sizeof order || order.magic != PROXY_MAGIC ||
        order.kind != PROXY_ORDER_LISTENERS || count > PROXY_LISTENERS) {
        pass_close(fds, count);
        return;
    }
    memcpy(channel->listeners, fds, count * sizeof *fds);
    channel->listeners_len = count;
    for (size_t i = 0; i < count; i++)
        look_at(channel, fds[i]);
}

static int attach(struct proxy_channel *channel, struct err *err)
{
    const struct proxy_order order = {.magic = PROXY_MAGIC, .kind = PROXY_ORDER_LISTENERS};

    if (hand_over(&channel->start, channel->proxys, err))
        return -1;
    if (pass_send(channel->fd, &order, sizeof order, channel->listeners, channel->listeners_len))
        return err_sys(err, "handing the command's network to the proxy");
    return 0;
}

/* Somebody connects, or asks for a name. */
static void begin(struct proxy_channel *channel)
{
    struct err err;

    if (attach(channel, &err))
        add_failure(channel, err.msg);
    listeners_close(channel);
    look_at(channel, channel->fd);
}

static bool is_connected_to(const struct proxy_channel *channel)
{
    struct pollfd ready[PROXY_LISTENERS];

    for (size_t i = 0; i < channel->listeners_len; i++)
        ready[i] = (struct pollfd){.fd = channel->listeners[i], .events = POLLIN};
    return channel->listeners_len && poll(ready, channel->listeners_len, 0) > 0;
}

/* Takes one packet; false when there is none. A proxy that has let go of a command while an answer of ours was
 * under way resets the socket, which is told before what it had to say. What is none of its own packets ends the
 * channel. */
static bool receive(struct proxy_channel *channel)
{
    struct proxy_fact packet;
    ssize_t len;

    do
        len = recv(channel->fd, &packet, sizeof packet, MSG_DONTWAIT | MSG_TRUNC);
    while (len < 0 && (errno == EINTR || errno == ECONNRESET));
    if (len < 0 && errno == EAGAIN)
        return false;
    if (len != (ssize_t)sizeof packet || packet.kind < PROXY_FACT_DENIED ||
        packet.kind > PROXY_FACT_FAILED) {
        leave_alone(channel, channel->fd);
        channel->has_ended = true;
        if (!channel->is_over)
            add_failure(channel, "the program that leads to the network has died");
        return false;
    }
    packet.host[PROXY_HOST_MAX - 1] = packet.reason[PROXY_REASON_MAX - 1] =
        packet.rule[PROXY_RULE_MAX - 1] = '\0';
    channel->count++;
    channel->has_more |= packet.kind == PROXY_FACT_MORE || packet.kind == PROXY_FACT_ASKED;
    add(channel, &packet);
    return true;
}

bool proxy_channel_next(struct proxy_channel *channel, struct proxy_fact *ret)
{
    struct told *told;

    if (channel->proxys >= 0 && !channel->listeners_len)
        take_listeners(channel);
    if (is_connected_to(channel))
        begin(channel);
    if (!list_first(&channel->queue, struct told, in_queue) && channel->proxys < 0 &&
        !channel->has_ended)
        receive(channel);
    told = list_first(&channel->queue, struct told, in_queue);
    if (!told)
        return false;
    list_remove(&told->in_queue);
    *ret = told->fact;
    free(told);
    return true;
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

    channel->is_over = true;
    if (channel->proxys >= 0) {
        listeners_close(channel);
        channel->has_ended = true;
    }
    shutdown(channel->fd, SHUT_WR);
    while (!channel->has_ended && receive(channel))
        continue;
    if (channel->has_ended || (!channel->has_more && channel->count < PROXY_FACTS_MAX))
        return;
    poll(&end, 1, COUNTS_MS);
    while (!channel->has_ended && receive(channel))
        continue;
}
