/* See feed.h. One buffer of bytes that wait: it is read into only when empty, so a command that
 * does not read stops us from reading, and whoever writes to us feels it.
 *
 * The descriptor may be the user's stdin: its flags are shared with whoever started us, so it is
 * never made non-blocking; a read that follows readiness does not block. Files are always ready and
 * cannot be watched: they are read in turns of the loop (a timer of 0). */
#include "process/stdin_pump.h"

#include "base/alloc.h"
#include "loop/loop.h"
#include "process/process.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct feed {
    struct process *process;
    int fd; /* -1: nothing more comes than what waits */
    struct loop_watch *watch;
    struct loop_timer *turn; /* for files */
    const char *next;
    size_t left;
    char buffer[INPUT_MAX];
};

static void feed_stop(struct feed *feed)
{
    loop_watch_free(feed->watch);
    loop_timer_free(feed->turn);
    feed->watch = NULL;
    feed->turn = NULL;
    feed->fd = -1;
    feed->left = 0;
}

/* Wants to read again, or not. */
static void feed_set_reading(struct feed *feed, bool on)
{
    if (feed->watch)
        loop_watch_set(feed->watch, on ? LOOP_READ : LOOP_NOTHING);
    else if (feed->turn && on)
        loop_timer_start(feed->turn, 0);
}

static void feed_push(struct feed *feed)
{
    size_t taken = process_write(feed->process, feed->next, feed->left);

    feed->next += taken;
    feed->left -= taken;
    if (!feed->left && feed->fd < 0)
        process_close_input(feed->process);
    else
        feed_set_reading(feed, !feed->left);
}

static void feed_read(struct feed *feed)
{
    ssize_t n = read(feed->fd, feed->buffer, sizeof feed->buffer);

    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        feed_set_reading(feed, true);
        return;
    }
    if (n <= 0) {
        feed_stop(feed);
        process_close_input(feed->process);
        return;
    }
    feed->next = feed->buffer;
    feed->left = (size_t)n;
    feed_push(feed);
}

static void feed_on_readable(void *data, int fd, unsigned ready)
{
    feed_read(data);
}

static void feed_on_turn(void *data)
{
    feed_read(data);
}

struct feed *feed_new_data(struct process *process, const void *data, size_t len)
{
    struct feed *feed = alloc_zero(1, sizeof *feed);

    feed->process = process;
    feed->fd = -1;
    feed->next = data;
    feed->left = len;
    feed_push(feed);
    return feed;
}

struct feed *feed_new_fd(struct loop *loop, struct process *process, int fd, struct err *err)
{
    struct feed *feed = alloc_zero(1, sizeof *feed);
    struct err why;

    feed->process = process;
    feed->fd = fd;
    feed->watch = loop_watch_new(loop, fd, LOOP_READ, feed_on_readable, feed, &why);
    if (feed->watch)
        return feed;
    if (why.code != ERR_UNSUPPORTED) {
        *err = why;
        feed_free(feed);
        return NULL;
    }
    feed->turn = loop_timer_new(loop, feed_on_turn, feed);
    feed_set_reading(feed, true);
    return feed;
}

void feed_free(struct feed *feed)
{
    if (!feed)
        return;
    feed_stop(feed);
    free(feed);
}

void feed_on_room(struct feed *feed)
{
    feed_push(feed);
}

void feed_on_closed(struct feed *feed)
{
    feed_stop(feed);
}
