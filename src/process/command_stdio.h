/* Our ends of a command's stdin, stdout and stderr: pipes, a PTY, or none.
 * A part of process.h, which is the interface. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "process/process.h"
#include "process/pty.h"

#include <stdbool.h>
#include <stddef.h>

struct command_stdio;
struct loop;
struct loop_watch;

/* The way in: a bounded queue of bytes in front of a command's stdin, a pipe or a PTY master. */
typedef void input_event_fn(void *data, enum input_event event);

struct input {
    int fd;                /* of a pipe: owned; of a PTY: borrowed; -1: closed */
    const struct pty *pty; /* borrowed; NULL for a pipe */
    struct loop_watch *watch;
    struct buf queue;
    bool has_refused;
    bool is_ending; /* close behind what is queued */
    char last;      /* byte taken last */
    input_event_fn *on_event;
    void *data;
};

/* One stream of output. */
struct command_stream {
    struct command_stdio *stdio;
    enum stream stream;
    int fd; /* of a pipe: owned; of a PTY: its master, borrowed; -1: read to its end */
    bool is_held;
    struct loop_watch *watch;
};

struct command_stdio {
    struct pty pty; /* master -1 without one */
    struct command_stream out[STREAM_COUNT];
    struct input input;
    void (*on_bytes)(void *data, enum stream stream, const char *bytes, size_t len);
    /* Everything is read to its end; the last thing that is done before going back to the loop. */
    void (*on_read_out)(void *data);
    void *data;
};

/* What the command gets; closed by command_stdio_child_done() once it has it. */
struct command_stdio_child {
    int fds[3];
    bool is_owned;
};

void command_stdio_init(struct command_stdio *stdio);
int command_stdio_open(struct command_stdio *stdio, const struct process_options *options,
                       struct command_stdio_child *ret_child, struct err *err);
void command_stdio_child_done(struct command_stdio_child *child);

/* Begins to read. */
int command_stdio_watch(struct command_stdio *stdio, struct loop *loop, struct err *err);

/* Reads what is there now of the streams that are not held, without waiting for the loop. No
 * on_read_out follows. */
void command_stdio_take(struct command_stdio *stdio);

/* Stops reading a stream, or goes on. */
void command_stdio_hold(struct command_stdio *stdio, enum stream stream, bool on);
bool command_stdio_is_held(const struct command_stdio *stdio);

/* Closes our end of a stream's pipe; a PTY goes on being read. No on_read_out follows. */
void command_stdio_close_stream(struct command_stdio *stdio, enum stream stream);

bool command_stdio_is_read_out(const struct command_stdio *stdio);
void command_stdio_close(struct command_stdio *stdio);

/* How much was taken; everything once the input is closed or ending. Events come from the loop
 * only, never out of a call. */
size_t input_write(struct input *input, const void *bytes, size_t len);
void input_end(struct input *input);

/* The command is gone: drops the queue and reports INPUT_CLOSED if the input was open. */
void input_drop(struct input *input);
