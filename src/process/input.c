/* See input.h. The writing end is non-blocking; a write is tried at once when nothing waits, the
 * rest waits for the loop. A command that stops reading makes the queue full and the caller wait,
 * and never us. */
#include "process/input.h"

#include "base/fd.h"
#include "loop/loop.h"
#include "process/pty.h"
#include "process/quiet.h"

#include <errno.h>
#include <unistd.h>

/* A terminal that nobody reads any more raises no SIGPIPE. */
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

/* -1 when nobody reads any more. */
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

/* The line discipline reads its end-of-file byte as "end of input" only at the start of a line;
 * behind a begun line it takes two. */
static void input_queue_eof(struct input *input)
{
    char eof = pty_eof_byte(input->pty);

    if (input->last && input->last != '\n')
        buf_append(&input->queue, &eof, 1);
    buf_append(&input->queue, &eof, 1);
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
        input->on_event(input->data, INPUT_ROOM);
    }
}

int input_init(struct input *input, struct loop *loop, int pipe_fd, const struct pty *pty,
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

void input_done(struct input *input)
{
    input_close(input);
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
    if (input->pty)
        input_queue_eof(input);
    loop_watch_set(input->watch, LOOP_WRITE);
}

void input_drop(struct input *input)
{
    bool was_open = input->fd >= 0 && !input->is_ending;

    input_close(input);
    if (was_open && input->on_event)
        input->on_event(input->data, INPUT_CLOSED);
}
