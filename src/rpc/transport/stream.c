/* See channel.h. The one idea: a descriptor that came from outside (stdin, stdout) may share its
 * file description with a shell, and O_NONBLOCK is a property of that. So sockets are used with
 * MSG_DONTWAIT; a pipe or terminal to write to is opened once more by its name in /proc, which
 * makes a description of our own; and what is read from without MSG_DONTWAIT is read once each time
 * that it is readable. Files, which epoll does not take, are ready in every round of the loop. */
#include "rpc/transport/stream.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct channel {
    int in;
    int out;                      /* -1 when ended; equal to `in` for a socket */
    bool is_socket;               /* `in` and `out` are one */
    bool is_tcp;                  /* */
    struct loop_watch *watch;     /* of `in`, and of `out` if that is the same; NULL for a file */
    struct loop_watch *out_watch; /* NULL for a file and for a socket */
    struct loop_timer *timer;     /* for an `in` that is always ready */
    unsigned wanted;
    channel_fn *on_ready;
    void *data;
};

static void channel_auto(struct channel **channel)
{
    channel_free(*channel);
}

static void channel_ready(void *data, int fd, unsigned ready)
{
    struct channel *channel = data;

    channel->on_ready(channel->data, ready);
}

static void channel_time(void *data)
{
    struct channel *channel = data;

    loop_timer_start(channel->timer, 0);
    channel->on_ready(channel->data, LOOP_READ);
}

/* A watch, or NULL without an error for what is always ready. */
static int channel_watch(struct channel *channel, struct loop *loop, int fd,
                         struct loop_watch **ret, struct err *err)
{
    struct err failure;
    struct loop_watch *watch =
        loop_watch_new(loop, fd, LOOP_READ, channel_ready, channel, &failure);

    if (!watch && failure.code != ERR_UNSUPPORTED) {
        *err = failure;
        return -1;
    }
    if (watch)
        loop_watch_set(watch, LOOP_NOTHING);
    *ret = watch;
    return 0;
}

static bool fd_is(int fd, mode_t type)
{
    struct stat info;

    return fstat(fd, &info) == 0 && (info.st_mode & S_IFMT) == type;
}

static bool fd_is_tcp(int fd)
{
    int domain = 0;
    socklen_t len = sizeof domain;

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
           (domain == AF_INET || domain == AF_INET6);
}

/* A description of our own that does not block, where that is possible and matters. */
static int channel_unshare_out(struct channel *channel, struct err *err)
{
    char name[64];
    int fd;

    if (!fd_is(channel->out, S_IFIFO) && !fd_is(channel->out, S_IFCHR))
        return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", channel->out);
    fd = open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return fd_set_nonblocking(channel->out, true, err);
    close(channel->out);
    channel->out = fd;
    return 0;
}

static int channel_start(struct channel *channel, struct loop *loop, struct err *err)
{
    if (channel_watch(channel, loop, channel->in, &channel->watch, err))
        return -1;
    if (!channel->watch)
        channel->timer = loop_timer_new(loop, channel_time, channel);
    if (channel->is_socket)
        return 0;
    if (channel_unshare_out(channel, err))
        return -1;
    return channel_watch(channel, loop, channel->out, &channel->out_watch, err);
}

struct channel *channel_new(struct loop *loop, int in, int out, struct err *err)
{
    AUTO(channel_auto) struct channel *channel = alloc_zero(1, sizeof *channel);

    *channel = (struct channel){
        .in = in,
        .out = out,
        .is_socket = in == out && fd_is(in, S_IFSOCK),
        .is_tcp = fd_is_tcp(in),
    };
    if (in == out && !channel->is_socket) {
        err_set(err, ERR_UNSUPPORTED, "descriptor %d is no socket, so it can not be both ends", in);
        return NULL;
    }
    if (channel_start(channel, loop, err))
        return NULL;
    return TAKE_PTR(channel);
}

void channel_free(struct channel *channel)
{
    if (!channel)
        return;
    loop_watch_free(channel->watch);
    loop_watch_free(channel->out_watch);
    loop_timer_free(channel->timer);
    if (channel->out >= 0 && channel->out != channel->in)
        close(channel->out);
    close(channel->in);
    free(channel);
}

int channel_fd(const struct channel *channel)
{
    return channel->in;
}

void channel_set_callback(struct channel *channel, channel_fn *on_ready, void *data)
{
    channel->on_ready = on_ready;
    channel->data = data;
}

void channel_want(struct channel *channel, unsigned interest)
{
    unsigned changed = channel->wanted ^ interest;

    channel->wanted = interest;
    if (!changed)
        return;
    if (channel->is_socket) {
        loop_watch_set(channel->watch, interest);
        return;
    }
    if (channel->watch)
        loop_watch_set(channel->watch, interest & LOOP_READ);
    else if (interest & LOOP_READ)
        loop_timer_start(channel->timer, 0);
    else
        loop_timer_stop(channel->timer);
    if (channel->out_watch)
        loop_watch_set(channel->out_watch, interest & LOOP_WRITE);
}

static ssize_t channel_result(ssize_t n)
{
    if (n >= 0)
        return n;
    return errno == EAGAIN ? CHANNEL_AGAIN : CHANNEL_BROKEN;
}

/* A peer that leaves Nagle's algorithm on sends its second small message only when the first is
 * acknowledged, which Linux delays by 40 ms unless told otherwise, and it forgets (tcp(7)). */
static void channel_ack(const struct channel *channel)
{
    const int on = 1;

    if (channel->is_tcp)
        setsockopt(channel->in, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

ssize_t channel_read(struct channel *channel, void *ret_data, size_t len)
{
    ssize_t n;

    do {
        n = channel->is_socket ? recv(channel->in, ret_data, len, MSG_DONTWAIT)
                               : read(channel->in, ret_data, len);
    } while (n < 0 && errno == EINTR);
    if (n > 0)
        channel_ack(channel);
    return channel_result(n);
}

ssize_t channel_write(struct channel *channel, const struct iovec *parts, size_t count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = count};
    ssize_t n;

    if (channel->out < 0) {
        errno = EPIPE;
        return CHANNEL_BROKEN;
    }
    do {
        n = channel->is_socket ? sendmsg(channel->out, &message, MSG_DONTWAIT | MSG_NOSIGNAL)
                               : writev(channel->out, parts, (int)count);
    } while (n < 0 && errno == EINTR);
    return channel_result(n);
}

void channel_end_writing(struct channel *channel)
{
    if (channel->is_socket) {
        shutdown(channel->out, SHUT_WR);
        return;
    }
    loop_watch_free(channel->out_watch);
    channel->out_watch = NULL;
    if (channel->out >= 0)
        close(channel->out);
    channel->out = -1;
}
