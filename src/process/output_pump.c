/* See output_pump.h. At most one chunk waits for each stream, because the next is not read before.
 *
 * The descriptors are shared with the process that started us, so they are never made non-blocking.
 * A file is just written to. A socket has MSG_DONTWAIT. For a pipe or terminal, poll(2) says
 * whether PIPE_BUF bytes fit (pipe(7)); so many are written at a time.
 *
 * When a write fails, our end of the command's pipe is closed: then the command learns of it, by
 * SIGPIPE, as it would have without us. */
#include "process/output_pump.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "loop/loop.h"
#include "process/process.h"
#include "process/quiet.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum lane_kind {
    LANE_CLOSED, /* bytes are dropped */
    LANE_DIRECT, /* always ready: a file, /dev/null */
    LANE_POLLED,
    LANE_SOCKET,
};

/* The way of one stream. */
struct lane {
    struct output_pump *pump;
    enum stream stream;
    enum lane_kind kind;
    int fd;
    int error;
    struct loop_watch *watch; /* POLLED, SOCKET */
    struct buf waiting;
};

struct output_pump {
    struct output_pump_options options;
    bool is_paused;
    struct lane lanes[STREAM_COUNT];
};

static void lane_close(struct lane *lane)
{
    loop_watch_free(lane->watch);
    lane->watch = NULL;
    lane->kind = LANE_CLOSED;
    buf_clear(&lane->waiting);
}

/* How much of the bytes was taken, at least 0; -1 with errno. */
static ssize_t lane_write_some(const struct lane *lane, const char *bytes, size_t len)
{
    struct pollfd poll_fd = {.fd = lane->fd, .events = POLLOUT};
    ssize_t n = 0;

    do {
        if (lane->kind == LANE_SOCKET)
            n = send(lane->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        else if (lane->kind == LANE_DIRECT)
            n = write(lane->fd, bytes, len);
        else if (poll(&poll_fd, 1, 0) > 0)
            n = write(lane->fd, bytes, len < PIPE_BUF ? len : PIPE_BUF);
    } while (n < 0 && errno == EINTR);
    return n < 0 && errno == EAGAIN ? 0 : n;
}

/* Writes what is taken at once and returns how much that was. The lane is closed when it fails. */
static size_t lane_write(struct lane *lane, const char *bytes, size_t len)
{
    struct quiet quiet;
    size_t done = 0;
    ssize_t n = 1;

    quiet_begin(&quiet);
    while (done < len && n > 0) {
        n = lane_write_some(lane, bytes + done, len - done);
        done += n > 0 ? (size_t)n : 0;
    }
    quiet_end(&quiet);
    if (n >= 0)
        return done;
    lane->error = errno;
    lane_close(lane);
    if (lane->pump->options.process)
        process_close_output(lane->pump->options.process, lane->stream);
    return len;
}

/* Waits until more is taken, or goes on reading. */
static void lane_set_waiting(const struct lane *lane, bool on)
{
    if (lane->watch)
        loop_watch_set(lane->watch, on && !lane->pump->is_paused ? LOOP_WRITE : LOOP_NOTHING);
    if (lane->pump->options.process)
        process_hold_output(lane->pump->options.process, lane->stream, on);
}

static void lane_on_ready(void *data, int fd, unsigned ready)
{
    struct lane *lane = data;
    struct output_pump *pump = lane->pump;

    buf_consume(&lane->waiting, lane_write(lane, lane->waiting.data, lane->waiting.len));
    if (lane->waiting.len)
        return;
    lane_set_waiting(lane, false);
    if (pump->options.on_empty && output_pump_is_empty(pump))
        pump->options.on_empty(pump->options.data);
}

/* A file is never waited for, so it has to be written to now. */
static void lane_pause(struct lane *lane, bool on)
{
    if (lane->kind == LANE_CLOSED)
        return;
    if (!on && lane->waiting.len)
        buf_consume(&lane->waiting, lane_write(lane, lane->waiting.data, lane->waiting.len));
    lane_set_waiting(lane, on || lane->waiting.len);
}

static int lane_open(struct lane *lane, int fd, struct err *err)
{
    struct err why;
    struct stat st;

    lane->fd = fd;
    lane->kind = LANE_DIRECT;
    if (fstat(fd, &st))
        return err_sys(err, "looking at descriptor %d", fd);
    lane->watch =
        loop_watch_new(lane->pump->options.loop, fd, LOOP_NOTHING, lane_on_ready, lane, &why);
    if (lane->watch)
        lane->kind = S_ISSOCK(st.st_mode) ? LANE_SOCKET : LANE_POLLED;
    return 0;
}

struct output_pump *output_pump_new(const struct output_pump_options *options, struct err *err)
{
    struct output_pump *pump = alloc_zero(1, sizeof *pump);

    pump->options = *options;
    for (int i = 0; i < STREAM_COUNT; i++) {
        struct lane *lane = &pump->lanes[i];

        lane->pump = pump;
        lane->stream = (enum stream)i;
        buf_init(&lane->waiting, SIZE_MAX / 2);
        if (options->fds[i] >= 0 && lane_open(lane, options->fds[i], err)) {
            output_pump_free(pump);
            return NULL;
        }
    }
    return pump;
}

void output_pump_free(struct output_pump *pump)
{
    if (!pump)
        return;
    for (int i = 0; i < STREAM_COUNT; i++) {
        lane_close(&pump->lanes[i]);
        buf_done(&pump->lanes[i].waiting);
    }
    free(pump);
}

void output_pump_write(struct output_pump *pump, enum stream stream, const char *bytes, size_t len)
{
    struct lane *lane = &pump->lanes[stream];
    size_t done = 0;

    if (lane->kind == LANE_CLOSED)
        return;
    if (!lane->waiting.len && !pump->is_paused)
        done = lane_write(lane, bytes, len);
    if (done == len)
        return;
    buf_append(&lane->waiting, bytes + done, len - done);
    lane_set_waiting(lane, true);
}

void output_pump_pause(struct output_pump *pump, bool on)
{
    bool was_empty = output_pump_is_empty(pump);

    pump->is_paused = on;
    for (int i = 0; i < STREAM_COUNT; i++)
        lane_pause(&pump->lanes[i], on);
    if (!was_empty && pump->options.on_empty && output_pump_is_empty(pump))
        pump->options.on_empty(pump->options.data);
}

void output_pump_end(struct output_pump *pump)
{
    pump->options.process = NULL;
}

bool output_pump_is_empty(const struct output_pump *pump)
{
    for (int i = 0; i < STREAM_COUNT; i++)
        if (pump->lanes[i].waiting.len)
            return false;
    return true;
}

void output_pump_abandon(struct output_pump *pump)
{
    bool was_empty = output_pump_is_empty(pump);

    for (int i = 0; i < STREAM_COUNT; i++) {
        struct lane *lane = &pump->lanes[i];

        if (lane->waiting.len)
            lane_set_waiting(lane, false);
        lane_close(lane);
    }
    if (!was_empty && pump->options.on_empty)
        pump->options.on_empty(pump->options.data);
}

int output_pump_error(const struct output_pump *pump, enum stream stream)
{
    return pump->lanes[stream].error;
}
