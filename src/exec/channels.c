/* See channels.h. Reading takes what is there and goes back to the loop, so that a command that
 * writes without end holds up nobody else, and the two streams come in about the order in which
 * they were written. */
#include "exec/channels.h"

#include "base/fd.h"
#include "exec/process.h"
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define READ_SIZE 65536 /* what a pipe holds */

void channels_init(struct channels *channels)
{
    *channels = (struct channels){.pty = {.master = -1, .slave = -1}, .input = {.fd = -1}};
    for (int i = 0; i < STREAM_COUNT; i++)
        channels->readers[i] =
            (struct reader){.channels = channels, .stream = (enum stream)i, .fd = -1};
}

static int channels_open_null(struct channels_child *child, struct err *err)
{
    child->fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return child->fds[0] < 0 ? err_sys(err, "opening /dev/null") : 0;
}

static int channels_open_input(struct channels *channels, struct loop *loop,
                               struct channels_child *child, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return err_sys(err, "making a pipe");
    child->fds[0] = ends[0];
    return input_init(&channels->input, loop, ends[1], NULL, err);
}

static int channels_open_output(struct channels *channels, enum stream stream,
                                struct channels_child *child, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return err_sys(err, "making a pipe");
    channels->readers[stream].fd = ends[0];
    child->fds[stream == STREAM_STDOUT ? 1 : 2] = ends[1];
    return fd_set_nonblocking(ends[0], true, err);
}

static int channels_open_pipes(struct channels *channels, const struct process_options *options,
                               struct channels_child *child, struct err *err)
{
    child->is_owned = true;
    if (options->input == PROCESS_STDIN_NULL
            ? channels_open_null(child, err)
            : channels_open_input(channels, options->loop, child, err))
        return -1;
    if (channels_open_output(channels, STREAM_STDOUT, child, err))
        return -1;
    return channels_open_output(channels, STREAM_STDERR, child, err);
}

static int channels_open_tty(struct channels *channels, const struct process_options *options,
                             struct channels_child *child, struct err *err)
{
    if (pty_open(options->size, options->tty_like, &channels->pty, err))
        return -1;
    for (int i = 0; i < 3; i++)
        child->fds[i] = channels->pty.slave;
    channels->readers[STREAM_STDOUT].fd = channels->pty.master;
    return input_init(&channels->input, options->loop, -1, &channels->pty, err);
}

int channels_open(struct channels *channels, const struct process_options *options,
                  struct channels_child *ret_child, struct err *err)
{
    *ret_child = (struct channels_child){.fds = {-1, -1, -1}};
    switch (options->stdio) {
    case PROCESS_PIPES:
        return channels_open_pipes(channels, options, ret_child, err);
    case PROCESS_TTY:
        return channels_open_tty(channels, options, ret_child, err);
    case PROCESS_FDS:
        memcpy(ret_child->fds, options->fds, sizeof ret_child->fds);
        return 0;
    }
    return err_set(err, ERR_BUG, "unknown kind of stdio %d", (int)options->stdio);
}

void channels_child_done(struct channels_child *child)
{
    for (int i = 0; child->is_owned && i < 3; i++)
        if (child->fds[i] >= 0)
            close(child->fds[i]);
}

static bool reader_is_tty(const struct reader *reader)
{
    return reader->fd == reader->channels->pty.master;
}

static void reader_close(struct reader *reader)
{
    loop_watch_free(reader->watch);
    reader->watch = NULL;
    if (reader->fd >= 0 && !reader_is_tty(reader))
        close(reader->fd);
    reader->fd = -1;
}

/* Fills `chunk` with what is there. A pipe gives all it has in one read; a terminal at most 4 KiB,
 * so it is asked again. Returns the number of bytes, `*ret_end` when there will be no more: the end
 * of the file for a pipe, EIO for a terminal. */
static size_t reader_fill(const struct reader *reader, char *chunk, bool *ret_end)
{
    size_t len = 0;
    ssize_t n;

    do {
        n = read(reader->fd, chunk + len, READ_SIZE - len);
        if (n > 0)
            len += (size_t)n;
    } while ((n > 0 && len < READ_SIZE && reader_is_tty(reader)) || (n < 0 && errno == EINTR));
    *ret_end = n == 0 || (n < 0 && errno != EAGAIN);
    return len;
}

static void reader_on_ready(void *data, int fd, unsigned ready)
{
    struct reader *reader = data;
    struct channels *channels = reader->channels;
    char chunk[READ_SIZE];
    bool at_end = false;
    size_t len = reader_fill(reader, chunk, &at_end);

    if (len)
        channels->on_bytes(channels->data, reader->stream, chunk, len);
    if (!at_end)
        return;
    reader_close(reader);
    if (channels_are_read_out(channels))
        channels->on_read_out(channels->data);
}

int channels_watch(struct channels *channels, struct loop *loop, struct err *err)
{
    for (int i = 0; i < STREAM_COUNT; i++) {
        struct reader *reader = &channels->readers[i];

        if (reader->fd < 0)
            continue;
        reader->watch = loop_watch_new(loop, reader->fd, LOOP_READ, reader_on_ready, reader, err);
        if (!reader->watch)
            return -1;
    }
    return 0;
}

void channels_hold(struct channels *channels, enum stream stream, bool on)
{
    struct reader *reader = &channels->readers[stream];

    reader->is_held = on;
    if (reader->watch)
        loop_watch_set(reader->watch, on ? LOOP_NOTHING : LOOP_READ);
}

bool channels_are_held(const struct channels *channels)
{
    for (int i = 0; i < STREAM_COUNT; i++)
        if (channels->readers[i].fd >= 0 && channels->readers[i].is_held)
            return true;
    return false;
}

void channels_close_stream(struct channels *channels, enum stream stream)
{
    struct reader *reader = &channels->readers[stream];

    if (reader->fd >= 0 && !reader_is_tty(reader))
        reader_close(reader);
}

bool channels_are_read_out(const struct channels *channels)
{
    return channels->readers[STREAM_STDOUT].fd < 0 && channels->readers[STREAM_STDERR].fd < 0;
}

void channels_close(struct channels *channels)
{
    input_done(&channels->input);
    for (int i = 0; i < STREAM_COUNT; i++)
        reader_close(&channels->readers[i]);
    pty_close(&channels->pty);
}
