/* See guard_link.h. Of a guard that has died the commands lose their channel without the last word
 * (guard_channel_is_broken()), and whatever they ask the kernel answers with ENOSYS. */
#include "sandbox/linux/guard_link.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/list.h"
#include "base/pass.h"
#include "base/sys.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { COUNTS_MS = 1000 };

static struct companion the_guard = {
    .name = GUARD_PROGRAM, .word = "the guard", .is_busy = ATOMIC_FLAG_INIT};

char *guard_link_program(const char *launcher)
{
    return companion_program(&the_guard, launcher, "guard");
}

void guard_link_join(void)
{
    companion_join(&the_guard);
}

void guard_link_leave(void)
{
    companion_leave(&the_guard);
}

void guard_link_reap(void)
{
    companion_reap(&the_guard);
}

/* --- a channel --- */

enum { STDIO = 3 };

struct told {
    struct list in_queue;
    const char **argv;
    int stdio[STDIO];
    struct guard_fact fact; /* up to the end of its strings */
};

/* The arguments lie behind two paths. */
static const char **split_argv(const struct guard_fact *fact, const char *end)
{
    const char *at = fact->strings + strlen(fact->strings) + 1;
    const char **argv;
    uint32_t argc = 0;

    if (!fact->argc || fact->argc > GUARD_ARGV_MAX)
        return alloc_zero(1, sizeof *argv);
    argv = alloc_zero(fact->argc + 1, sizeof *argv);
    for (at += strlen(at) + 1; at < end && argc < fact->argc; at += strlen(at) + 1)
        argv[argc++] = at;
    return argv;
}

/* Four strings have to end within the packet, or right behind it. */
static struct told *told_new(const struct guard_fact *packet, size_t len, const int *fds,
                             size_t count)
{
    struct told *told = alloc_zero(1, offsetof(struct told, fact) + len + 4);
    size_t used = 0;

    memcpy(&told->fact, packet, len);
    told->argv = split_argv(&told->fact, (const char *)&told->fact + len);
    for (int i = 0; i < STDIO; i++)
        told->stdio[i] = (packet->flags & GUARD_FLAG_STDIO << i) && used < count ? fds[used++] : -1;
    pass_close(fds + used, count - used);
    return told;
}

static void told_free(struct told *told)
{
    for (int i = 0; told && i < STDIO; i++)
        auto_close(&told->stdio[i]);
    if (told)
        free(told->argv);
    free(told);
}

struct guard_channel {
    int fd;
    int guards; /* the guard's end, until it has been handed over */
    struct list queue;
    struct told *last; /* that was given out */
    unsigned count;
    bool has_more, has_ended, is_broken;
};

struct guard_channel *guard_channel_new(struct err *err)
{
    struct guard_channel *channel;
    int pair[2];

    if (sys_fault() || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        err_sys(err, "making the guard's channel");
        return NULL;
    }
    channel = alloc_zero(1, sizeof *channel);
    channel->fd = pair[0];
    channel->guards = pair[1];
    list_init(&channel->queue);
    return channel;
}

void guard_channel_free(struct guard_channel *channel)
{
    struct told *told, *following;

    if (!channel)
        return;
    list_for_each_safe(told, following, &channel->queue, in_queue)
        told_free(told);
    told_free(channel->last);
    close(channel->fd);
    if (channel->guards >= 0)
        close(channel->guards);
    free(channel);
}

int guard_channel_fd(const struct guard_channel *channel)
{
    return channel->fd;
}

int guard_channel_attach(struct guard_channel *channel, const struct guard_start *how,
                         struct err *err)
{
    const int fds[GUARD_FDS] = {[GUARD_FD_CHANNEL] = channel->guards,
                                [GUARD_FD_MAP] = how->map,
                                [GUARD_FD_OUTSIDE] = how->outside};
    const struct guard_hello hello = {.magic = GUARD_MAGIC,
                                      .version = GUARD_VERSION,
                                      .flags = how->flags |
                                               (how->outside < 0 ? 0u : GUARD_HELLO_OUTSIDE)};
    const struct companion_packet packet = {&hello, sizeof hello, fds,
                                            how->outside < 0 ? GUARD_FD_OUTSIDE : GUARD_FDS};
    const int status = companion_hand(&the_guard, &how->start, &packet, err);

    close(channel->guards);
    channel->guards = -1;
    return status;
}

void guard_channel_send(const struct guard_channel *channel, const struct guard_order *order)
{
    while (send(channel->fd, order, sizeof *order, MSG_NOSIGNAL) < 0 && errno == EINTR)
        continue;
}

/* Takes one packet; false when there is none. A guard that has let go of a command while an order of ours was
 * under way resets the socket, which is told before what it had to say. */
static bool receive(struct guard_channel *channel)
{
    struct guard_fact packet;
    int fds[PASS_MAX];
    size_t count;
    ssize_t len;

    do
        len = pass_receive(channel->fd, &packet, sizeof packet, MSG_DONTWAIT, fds, &count);
    while (len < 0 && (errno == EINTR || errno == ECONNRESET));
    if (len < 0 && errno == EAGAIN)
        return false;
    if (len < (ssize_t)offsetof(struct guard_fact, strings)) { /* its end, or nothing of ours */
        pass_close(fds, count);
        channel->has_ended = channel->is_broken = true;
        return false;
    }
    if (packet.kind == GUARD_FACT_END) {
        channel->has_ended = true;
        return false;
    }
    channel->count += packet.kind != GUARD_FACT_CALLER;
    channel->has_more |= packet.kind == GUARD_FACT_MORE || packet.kind == GUARD_FACT_LOST ||
                         packet.kind == GUARD_FACT_EXEC || packet.kind == GUARD_FACT_ASKED;
    list_append(&channel->queue, &told_new(&packet, (size_t)len, fds, count)->in_queue);
    return true;
}

const struct guard_fact *guard_channel_next(struct guard_channel *channel)
{
    if (!list_first(&channel->queue, struct told, in_queue) && !channel->has_ended)
        receive(channel);
    told_free(channel->last);
    channel->last = list_first(&channel->queue, struct told, in_queue);
    if (!channel->last)
        return NULL;
    list_remove(&channel->last->in_queue);
    return &channel->last->fact;
}

const char *const *guard_channel_argv(const struct guard_channel *channel)
{
    return channel->last->argv;
}

void guard_channel_take_stdio(struct guard_channel *channel, int ret_fds[STDIO])
{
    for (int i = 0; channel->last && i < STDIO; i++) {
        ret_fds[i] = channel->last->stdio[i];
        channel->last->stdio[i] = -1;
    }
}

void guard_channel_finish(struct guard_channel *channel, bool lingers)
{
    struct pollfd end = {.fd = channel->fd, .events = 0}; /* POLLHUP comes unasked */

    while (!channel->has_ended && receive(channel))
        continue;
    if (channel->has_ended || lingers || (!channel->has_more && channel->count < GUARD_FACTS_MAX))
        return;
    poll(&end, 1, COUNTS_MS);
    while (!channel->has_ended && receive(channel))
        continue;
}

bool guard_channel_has_ended(const struct guard_channel *channel)
{
    return channel->has_ended;
}

bool guard_channel_is_broken(const struct guard_channel *channel)
{
    return channel->is_broken;
}
