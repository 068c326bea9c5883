/* See outlet.h. stdout may share its file description with a shell, and O_NONBLOCK is a property of
 * that: a pipe or terminal is opened once more by its name in /proc, which makes a description of
 * our own; a socket is written to with MSG_DONTWAIT; and a file never keeps anybody waiting. */
#include "client/outlet.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct outlet {
    struct outlet_options options;
    int fd;    /* what is written to */
    int owned; /* `fd`, when it is ours; -1: it is borrowed */
    bool is_socket;
    struct loop_watch *watch; /* NULL: a file */
    struct buf queue;
    int error;
    bool is_full; /* the owner was told */
};

static void outlet_fail(struct outlet *outlet, int error)
{
    outlet->error = error;
    buf_done(&outlet->queue);
}

/* Bytes written; 0 when there is no room, or after a failure. */
static size_t outlet_try(struct outlet *outlet, const void *bytes, size_t len)
{
    ssize_t n;

    do {
        n = outlet->is_socket ? send(outlet->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : write(outlet->fd, bytes, len);
    } while (n < 0 && errno == EINTR);
    if (n >= 0)
        return (size_t)n;
    if (errno != EAGAIN)
        outlet_fail(outlet, errno);
    return 0;
}

static void outlet_on_ready(void *data, int fd, unsigned ready)
{
    struct outlet *outlet = data;

    if (outlet->queue.len)
        buf_consume(&outlet->queue, outlet_try(outlet, outlet->queue.data, outlet->queue.len));
    if (!outlet->queue.len)
        loop_watch_set(outlet->watch, LOOP_NOTHING);
    if (!outlet->error && (!outlet->is_full || outlet->queue.len > OUTLET_LOW))
        return;
    outlet->is_full = false;
    outlet->options.on_change(outlet->options.data);
}

static mode_t type_of(int fd)
{
    struct stat info;

    return fstat(fd, &info) ? 0 : info.st_mode & S_IFMT;
}

/* A description of our own, where that matters and is possible. */
static int outlet_reopen(int fd)
{
    char name[64];

    if (type_of(fd) != S_IFIFO && type_of(fd) != S_IFCHR)
        return -1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static void outlet_auto(struct outlet **slot)
{
    outlet_free(*slot);
}

struct outlet *outlet_new(const struct outlet_options *options, struct err *err)
{
    AUTO(outlet_auto) struct outlet *outlet = alloc_zero(1, sizeof *outlet);
    struct err why;

    *outlet = (struct outlet){.options = *options, .owned = outlet_reopen(options->fd)};
    outlet->fd = outlet->owned >= 0 ? outlet->owned : options->fd;
    outlet->is_socket = type_of(options->fd) == S_IFSOCK;
    buf_init(&outlet->queue, SIZE_MAX / 2);
    outlet->watch =
        loop_watch_new(options->loop, outlet->fd, LOOP_WRITE, outlet_on_ready, outlet, &why);
    if (!outlet->watch && why.code != ERR_UNSUPPORTED) {
        *err = why;
        return NULL;
    }
    if (outlet->watch)
        loop_watch_set(outlet->watch, LOOP_NOTHING);
    return TAKE_PTR(outlet);
}

void outlet_free(struct outlet *outlet)
{
    if (!outlet)
        return;
    loop_watch_free(outlet->watch);
    if (outlet->owned >= 0)
        close(outlet->owned);
    buf_done(&outlet->queue);
    free(outlet);
}

/* Files take everything at once, or fail. */
static void outlet_write_file(struct outlet *outlet, const char *bytes, size_t len)
{
    while (len && !outlet->error) {
        size_t n = outlet_try(outlet, bytes, len);

        bytes += n;
        len -= n;
    }
}

bool outlet_write(struct outlet *outlet, const void *bytes, size_t len)
{
    size_t done = 0;

    if (outlet->error)
        return true;
    if (!outlet->watch) {
        outlet_write_file(outlet, bytes, len);
        return true;
    }
    if (!outlet->queue.len)
        done = outlet_try(outlet, bytes, len);
    if (done < len && !outlet->error)
        buf_append(&outlet->queue, (const char *)bytes + done, len - done);
    if (outlet->queue.len || outlet->error) /* a failure is told from the loop as well */
        loop_watch_set(outlet->watch, LOOP_WRITE);
    outlet->is_full = outlet->is_full || outlet->queue.len >= OUTLET_HIGH;
    return !outlet->is_full;
}

bool outlet_is_full(const struct outlet *outlet)
{
    return outlet->is_full;
}

int outlet_error(const struct outlet *outlet)
{
    return outlet->error;
}

void outlet_finish(struct outlet *outlet)
{
    while (outlet->queue.len && !outlet->error) {
        struct pollfd item = {.fd = outlet->fd, .events = POLLOUT};

        poll(&item, 1, -1);
        buf_consume(&outlet->queue, outlet_try(outlet, outlet->queue.data, outlet->queue.len));
    }
}
