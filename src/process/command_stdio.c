/* See stdio.h. Reading takes what is there and goes back to the loop, so that a command that
 * writes without end holds up nobody else, and the two streams come in about the order in which
 * they were written. */
#include "process/command_stdio.h"

#include "base/fd.h"
#include "loop/loop.h"
#include "process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define READ_SIZE 65536 /* what a pipe holds */
#define READ_LITTLE 512 /* of a terminal: as if somebody typed */

void command_stdio_init(struct command_stdio *stdio)
{
    *stdio = (struct command_stdio){.pty = {.master = -1, .slave = -1}, .input = {.fd = -1}};
    for (int i = 0; i < STREAM_COUNT; i++)
        stdio->out[i] = (struct command_stream){.stdio = stdio, .stream = (enum stream)i, .fd = -1};
}

static int channels_open_null(struct command_stdio_child *child, struct err *err)
{
    child->fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return child->fds[0] < 0 ? err_sys(err, "opening /dev/null") : 0;
}

static int channels_open_input(struct command_stdio *stdio, struct loop *loop,
                               struct command_stdio_child *child, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return err_sys(err, "making a pipe");
    child->fds[0] = ends[0];
    return input_init(&stdio->input, loop, ends[1], NULL, err);
}

static int channels_open_output(struct command_stdio *stdio, enum stream stream,
                                struct command_stdio_child *child, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return err_sys(err, "making a pipe");
    stdio->out[stream].fd = ends[0];
    child->fds[stream == STREAM_STDOUT ? 1 : 2] = ends[1];
    return fd_set_nonblocking(ends[0], true, err);
}

static int channels_open_pipes(struct command_stdio *stdio, const struct process_options *options,
                               struct command_stdio_child *child, struct err *err)
{
    child->is_owned = true;
    if (options->input == PROCESS_STDIN_NULL
            ? channels_open_null(child, err)
            : channels_open_input(stdio, options->loop, child, err))
        return -1;
    if (channels_open_output(stdio, STREAM_STDOUT, child, err))
        return -1;
    return channels_open_output(stdio, STREAM_STDERR, child, err);
}

static int channels_open_tty(struct command_stdio *stdio, const struct process_options *options,
                             struct command_stdio_child *child, struct err *err)
{
    if (pty_open(options->size, options->tty_like, &stdio->pty, err))
        return -1;
    for (int i = 0; i < 3; i++)
        child->fds[i] = stdio->pty.slave;
    stdio->out[STREAM_STDOUT].fd = stdio->pty.master;
    return input_init(&stdio->input, options->loop, -1, &stdio->pty, err);
}

int command_stdio_open(struct command_stdio *stdio, const struct process_options *options,
                       struct command_stdio_child *ret_child, struct err *err)
{
    *ret_child = (struct command_stdio_child){.fds = {-1, -1, -1}};
    switch (options->stdio) {
    case PROCESS_PIPES:
        return channels_open_pipes(stdio, options, ret_child, err);
    case PROCESS_TTY:
        return channels_open_tty(stdio, options, ret_child, err);
    case PROCESS_FDS:
        memcpy(ret_child->fds, options->fds, sizeof ret_child->fds);
        return 0;
    }
    return err_set(err, ERR_BUG, "unknown kind of stdio %d", (int)options->stdio);
}

void command_stdio_child_done(struct command_stdio_child *child)
{
    for (int i = 0; child->is_owned && i < 3; i++)
        if (child->fds[i] >= 0)
            close(child->fds[i]);
}

static bool channel_is_tty(const struct command_stream *channel)
{
    return channel->fd == channel->stdio->pty.master;
}

static void channel_close(struct command_stream *channel)
{
    loop_watch_free(channel->watch);
    channel->watch = NULL;
    if (channel->fd >= 0 && !channel_is_tty(channel))
        close(channel->fd);
    channel->fd = -1;
}

/* Fills `chunk` with what is there. A pipe gives all it has in one read; a terminal at most 4 KiB,
 * so it is asked again, unless that was little: the loop comes back for what may follow. Returns
 * the number of bytes, `*ret_end` when there will be no more: the end of the file for a pipe, EIO
 * for a terminal. */
static size_t channel_fill(const struct command_stream *channel, char *chunk, bool *ret_end)
{
    size_t len = 0;
    ssize_t n;

    do {
        n = read(channel->fd, chunk + len, READ_SIZE - len);
        if (n > 0)
            len += (size_t)n;
    } while ((n > READ_LITTLE && len < READ_SIZE && channel_is_tty(channel)) ||
             (n < 0 && errno == EINTR));
    *ret_end = n == 0 || (n < 0 && errno != EAGAIN);
    return len;
}

/* Reads once; true when that was the end. */
static bool channel_take(struct command_stream *channel)
{
    struct command_stdio *stdio = channel->stdio;
    char chunk[READ_SIZE];
    bool at_end = false;
    size_t len = channel_fill(channel, chunk, &at_end);

    if (len)
        stdio->on_bytes(stdio->data, channel->stream, chunk, len);
    if (at_end)
        channel_close(channel);
    return at_end;
}

static void channel_on_ready(void *data, int fd, unsigned ready)
{
    struct command_stream *channel = data;
    struct command_stdio *stdio = channel->stdio;

    if (channel_take(channel) && command_stdio_is_read_out(stdio))
        stdio->on_read_out(stdio->data);
}

int command_stdio_watch(struct command_stdio *stdio, struct loop *loop, struct err *err)
{
    for (int i = 0; i < STREAM_COUNT; i++) {
        struct command_stream *channel = &stdio->out[i];

        if (channel->fd < 0)
            continue;
        channel->watch =
            loop_watch_new(loop, channel->fd, LOOP_READ, channel_on_ready, channel, err);
        if (!channel->watch)
            return -1;
    }
    return 0;
}

void command_stdio_take(struct command_stdio *stdio)
{
    for (int i = 0; i < STREAM_COUNT; i++)
        if (stdio->out[i].fd >= 0 && !stdio->out[i].is_held)
            channel_take(&stdio->out[i]);
}

void command_stdio_hold(struct command_stdio *stdio, enum stream stream, bool on)
{
    struct command_stream *channel = &stdio->out[stream];

    channel->is_held = on;
    if (channel->watch)
        loop_watch_set(channel->watch, on ? LOOP_NOTHING : LOOP_READ);
}

bool command_stdio_is_held(const struct command_stdio *stdio)
{
    for (int i = 0; i < STREAM_COUNT; i++)
        if (stdio->out[i].fd >= 0 && stdio->out[i].is_held)
            return true;
    return false;
}

void command_stdio_close_stream(struct command_stdio *stdio, enum stream stream)
{
    struct command_stream *channel = &stdio->out[stream];

    if (channel->fd >= 0 && !channel_is_tty(channel))
        channel_close(channel);
}

bool command_stdio_is_read_out(const struct command_stdio *stdio)
{
    return stdio->out[STREAM_STDOUT].fd < 0 && stdio->out[STREAM_STDERR].fd < 0;
}

void command_stdio_close(struct command_stdio *stdio)
{
    input_done(&stdio->input);
    for (int i = 0; i < STREAM_COUNT; i++)
        channel_close(&stdio->out[i]);
    pty_close(&stdio->pty);
}
