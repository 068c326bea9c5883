/* The one idea: a descriptor that came from outside (stdin, stdout) may share its
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
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct stream {
    int in;
    int out;                      /* -1 when ended; equal to `in` for a socket */
    bool is_socket;               /* `in` and `out` are one */
    bool is_tcp;                  /* */
    struct loop_watch *watch;     /* of `in`, and of `out` if that is the same; NULL for a file */
    struct loop_watch *out_watch; /* NULL for a file and for a socket */
    struct loop_timer *timer;     /* for an `in` that is always ready */
    unsigned wanted;
    stream_fn *on_ready;
    void *data;
};

int stream_take_stdio(int *ret_in, int *ret_out, struct err *err)
{
    AUTO_CLOSE int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    AUTO_CLOSE int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (in < 0 || out < 0)
        return err_sys(err, "stdio: descriptors 0 and 1 have to be open");
    /* allow dup2: descriptors 0 and 1 are meant to reach children, who get nothing here */
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
        return err_sys(err, "stdio: /dev/null");
    *ret_in = TAKE_FD(in);
    *ret_out = TAKE_FD(out);
    return 0;
}

static void stream_auto(struct stream **stream)
{
    stream_free(*stream);
}

static void stream_on_ready(void *data, int fd, unsigned ready)
{
    struct stream *stream = data;

    stream->on_ready(stream->data, ready);
}

static void stream_on_timer(void *data)
{
    struct stream *stream = data;

    loop_timer_start(stream->timer, 0);
    stream->on_ready(stream->data, LOOP_READ);
}

/* A watch, or NULL without an error for what is always ready. */
static int stream_watch(struct stream *stream, struct loop *loop, int fd, struct loop_watch **ret,
                        struct err *err)
{
    struct err failure;
    struct loop_watch *watch =
        loop_watch_new(loop, fd, LOOP_READ, stream_on_ready, stream, &failure);

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

struct stream *stream_new(struct loop *loop, int in, int out, struct err *err)
{
    AUTO(stream_auto) struct stream *stream = alloc_zero(1, sizeof *stream);
    bool is_socket = in == out && fd_is(in, S_IFSOCK);
    int domain = AF_UNSPEC;
    socklen_t len = sizeof domain;

    getsockopt(in, SOL_SOCKET, SO_DOMAIN, &domain, &len);
    *stream = (struct stream){.in = in,
                              .out = out,
                              .is_socket = is_socket,
                              .is_tcp = domain == AF_INET || domain == AF_INET6};
    if (in == out && !stream->is_socket) {
        err_set(err, ERR_UNSUPPORTED, "descriptor %d is no socket, so it can not be both ends", in);
        return NULL;
    }
    if (stream_watch(stream, loop, in, &stream->watch, err))
        return NULL;
    if (!stream->watch)
        stream->timer = loop_timer_new(loop, stream_on_timer, stream);
    if (!is_socket && (fd_is(out, S_IFIFO) || fd_is(out, S_IFCHR))) {
        int own = fd_reopen_for_writing(out); /* where that is possible and matters */

        if (own < 0 && fd_set_nonblocking(out, true, err))
            return NULL;
        if (own >= 0) {
            close(out);
            stream->out = own;
        }
    }
    if (!is_socket && stream_watch(stream, loop, stream->out, &stream->out_watch, err))
        return NULL;
    return TAKE_PTR(stream);
}

void stream_free(struct stream *stream)
{
    if (!stream)
        return;
    loop_watch_free(stream->watch);
    loop_watch_free(stream->out_watch);
    loop_timer_free(stream->timer);
    if (stream->out >= 0 && stream->out != stream->in)
        close(stream->out);
    close(stream->in);
    free(stream);
}

int stream_fd(const struct stream *stream)
{
    return stream->in;
}

void stream_set_callback(struct stream *stream, stream_fn *on_ready, void *data)
{
    stream->on_ready = on_ready;
    stream->data = data;
}

void stream_want(struct stream *stream, unsigned interest)
{
    unsigned changed = stream->wanted ^ interest;

    stream->wanted = interest;
    if (!changed)
        return;
    if (stream->is_socket) {
        loop_watch_set(stream->watch, interest);
        return;
    }
    if (stream->watch)
        loop_watch_set(stream->watch, interest & LOOP_READ);
    else if (interest & LOOP_READ)
        loop_timer_start(stream->timer, 0);
    else
        loop_timer_stop(stream->timer);
    if (stream->out_watch)
        loop_watch_set(stream->out_watch, interest & LOOP_WRITE);
}

static ssize_t stream_result(ssize_t n)
{
    if (n >= 0)
        return n;
    return errno == EAGAIN ? STREAM_AGAIN : STREAM_BROKEN;
}

/* A peer that leaves Nagle's algorithm on sends its second small message only when the first is
 * acknowledged, which Linux delays by 40 ms unless told otherwise, and it forgets (tcp(7)). */
ssize_t stream_read(struct stream *stream, void *ret_data, size_t len)
{
    const int on = 1;
    ssize_t n;

    do {
        n = stream->is_socket ? recv(stream->in, ret_data, len, MSG_DONTWAIT)
                              : read(stream->in, ret_data, len);
    } while (n < 0 && errno == EINTR);
    if (n > 0 && stream->is_tcp)
        setsockopt(stream->in, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
    return stream_result(n);
}

ssize_t stream_write(struct stream *stream, const struct iovec *parts, size_t count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = count};
    ssize_t n;

    if (stream->out < 0) {
        errno = EPIPE;
        return STREAM_BROKEN;
    }
    do {
        n = stream->is_socket ? sendmsg(stream->out, &message, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : writev(stream->out, parts, (int)count);
    } while (n < 0 && errno == EINTR);
    return stream_result(n);
}

void stream_end_writing(struct stream *stream)
{
    if (stream->is_socket) {
        shutdown(stream->out, SHUT_WR);
        return;
    }
    loop_watch_free(stream->out_watch);
    stream->out_watch = NULL;
    if (stream->out >= 0)
        close(stream->out);
    stream->out = -1;
}
