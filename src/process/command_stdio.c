/* See command_stdio.h. Reading takes what is there and goes back to the loop, so that a command
 * that writes without end holds up no other, and the two streams come in about the order in which
 * they were written.
 *
 * The writing end of the input is non-blocking; a write is tried at once when nothing waits, the
 * rest waits for the loop. A command that stops reading makes the queue full and the caller wait,
 * and never us. */
#include "process/command_stdio.h"

#include "base/fd.h"
#include "loop/loop.h"
#include "process/process.h"
#include "process/pty.h"
#include "process/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define READ_SIZE 65536 /* what a pipe holds */
#define READ_LITTLE 512 /* of a terminal: what a person types at most */

/* --- input --- */

/* A terminal without a reader raises no SIGPIPE. */
static ssize_t input_put(const struct input *input)
{
    struct quiet quiet;
    ssize_t n;

    if (input->pty)
        return write(input->fd, input->queue.data, input->queue.len);
    quiet_begin(&quiet);
    n = write(input->fd, input->queue.data, input->queue.len);
    quiet_end(&quiet);
    return n;
}

static void input_close(struct input *input)
{
    loop_watch_free(input->watch);
    input->watch = NULL;
    if (!input->pty && input->fd >= 0)
        close(input->fd);
    input->fd = -1;
    buf_done(&input->queue);
}

void input_drop(struct input *input)
{
    bool was_open = input->fd >= 0 && !input->is_ending;

    input_close(input);
    if (was_open && input->on_event)
        input->on_event(input->data, INPUT_CLOSED);
}
/* -1 when there is no reader any more. */
static int input_flush(struct input *input)
{
    while (input->queue.len) {
        ssize_t n = input_put(input);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        buf_consume(&input->queue, (size_t)n);
    }
    return 0;
}

static void input_on_writable(void *data, int fd, unsigned ready)
{
    struct input *input = data;

    if (input_flush(input)) {
        input_drop(input);
        return;
    }
    if (input->queue.len)
        return;
    loop_watch_set(input->watch, LOOP_NOTHING);
    if (input->is_ending) {
        input_close(input);
    } else if (input->has_refused) {
        input->has_refused = false;
        if (input->on_event)
            input->on_event(input->data, INPUT_ROOM);
    }
}

/* Exactly one of `pipe_fd` (taken over, also on failure) and `pty` (borrowed) is given. */
static int input_init(struct input *input, struct loop *loop, int pipe_fd, const struct pty *pty,
                      struct err *err)
{
    input->fd = pty ? pty->master : pipe_fd;
    input->pty = pty;
    buf_init(&input->queue, INPUT_MAX + 2); /* two bytes more, for the terminal's end of file */
    if (!pty && fd_set_nonblocking(pipe_fd, true, err))
        return -1;
    input->watch = loop_watch_new(loop, input->fd, LOOP_NOTHING, input_on_writable, input, err);
    return input->watch ? 0 : -1;
}

size_t input_write(struct input *input, const void *bytes, size_t len)
{
    size_t room = INPUT_MAX - input->queue.len;
    bool was_empty = input->queue.len == 0;

    if (input->fd < 0 || input->is_ending || !len)
        return len;
    if (len > room) {
        input->has_refused = true;
        len = room;
    }
    if (!len)
        return 0;
    buf_append(&input->queue, bytes, len);
    input->last = ((const char *)bytes)[len - 1];
    if (!was_empty)
        return len;
    /* A failure shows again when the loop comes back to it; events come from there only. */
    if (input_flush(input) || input->queue.len || input->has_refused)
        loop_watch_set(input->watch, LOOP_WRITE);
    return len;
}

void input_end(struct input *input)
{
    if (input->fd < 0 || input->is_ending)
        return;
    input->is_ending = true;
    /* The line discipline reads its end-of-file byte as "end of input" only at the start of a line;
     * behind a begun line it takes two. */
    if (input->pty) {
        char eof[2];

        memset(eof, pty_eof_byte(input->pty), sizeof eof);
        buf_append(&input->queue, eof, input->last && input->last != '\n' ? 2 : 1);
    }
    loop_watch_set(input->watch, LOOP_WRITE);
}

/* --- all three --- */

void command_stdio_init(struct command_stdio *stdio)
{
    *stdio = (struct command_stdio){.pty = {.master = -1, .slave = -1}, .input = {.fd = -1}};
    for (int i = 0; i < STREAM_COUNT; i++)
        stdio->out[i] = (struct command_stream){.stdio = stdio, .stream = (enum stream)i, .fd = -1};
}

static int stdio_open_input(struct command_stdio *stdio, struct loop *loop,
                            struct command_stdio_child *child, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return err_sys(err, "making a pipe");
    child->fds[0] = ends[0];
    return input_init(&stdio->input, loop, ends[1], NULL, err);
}

static int stdio_open_output(struct command_stdio *stdio, enum stream stream,
                             struct command_stdio_child *child, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return err_sys(err, "making a pipe");
    stdio->out[stream].fd = ends[0];
    child->fds[stream == STREAM_STDOUT ? 1 : 2] = ends[1];
    return fd_set_nonblocking(ends[0], true, err);
}

static int stdio_open_pipes(struct command_stdio *stdio, const struct process_options *options,
                            struct command_stdio_child *child, struct err *err)
{
    child->is_owned = true;
    if (options->input == PROCESS_STDIN_NULL) {
        child->fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (child->fds[0] < 0)
            return err_sys(err, "opening /dev/null");
    } else if (stdio_open_input(stdio, options->loop, child, err)) {
        return -1;
    }
    return stdio_open_output(stdio, STREAM_STDOUT, child, err) ||
                   stdio_open_output(stdio, STREAM_STDERR, child, err)
               ? -1
               : 0;
}

int command_stdio_open(struct command_stdio *stdio, const struct process_options *options,
                       struct command_stdio_child *ret_child, struct err *err)
{
    *ret_child = (struct command_stdio_child){.fds = {-1, -1, -1}};
    switch (options->stdio) {
    case PROCESS_PIPES:
        return stdio_open_pipes(stdio, options, ret_child, err);
    case PROCESS_TTY:
        if (pty_open(options->size, options->tty_like, &stdio->pty, err))
            return -1;
        for (int i = 0; i < 3; i++)
            ret_child->fds[i] = stdio->pty.slave;
        stdio->out[STREAM_STDOUT].fd = stdio->pty.master;
        return input_init(&stdio->input, options->loop, -1, &stdio->pty, err);
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
    input_close(&stdio->input);
    for (int i = 0; i < STREAM_COUNT; i++)
        channel_close(&stdio->out[i]);
    pty_close(&stdio->pty);
}
