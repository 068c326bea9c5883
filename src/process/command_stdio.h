/* Our ends of a command's stdin, stdout and stderr: pipes, a PTY, or none. Internal to exec;
 * process.h is the interface. */
#pragma once

#include "base/err.h"
#include "output/stream.h"
#include "process/input.h"
#include "process/pty.h"

#include <stdbool.h>
#include <stddef.h>

struct channels;
struct loop;
struct loop_watch;
struct process_options;

/* One stream on its way in. */
struct channel {
    struct channels *channels;
    enum stream stream;
    int fd; /* of a pipe: owned; of a PTY: its master, borrowed; -1: read to its end */
    bool is_held;
    struct loop_watch *watch;
};

struct channels {
    struct pty pty; /* master -1 without one */
    struct channel out[STREAM_COUNT];
    struct input input;
    void (*on_bytes)(void *data, enum stream stream, const char *bytes, size_t len);
    /* Everything is read to its end; the last thing that is done before going back to the loop. */
    void (*on_read_out)(void *data);
    void *data;
};

/* What the command gets; closed by channels_child_done() once it has it. */
struct channels_child {
    int fds[3];
    bool is_owned;
};

void channels_init(struct channels *channels);
int channels_open(struct channels *channels, const struct process_options *options,
                  struct channels_child *ret_child, struct err *err);
void channels_child_done(struct channels_child *child);

/* Begins to read. */
int channels_watch(struct channels *channels, struct loop *loop, struct err *err);

/* Reads what is there now of the streams that are not held, without waiting for the loop. No
 * on_read_out follows. */
void channels_take(struct channels *channels);

/* Stops reading a stream, or goes on. */
void channels_hold(struct channels *channels, enum stream stream, bool on);
bool channels_are_held(const struct channels *channels);

/* Closes our end of a stream's pipe; a PTY goes on being read. No on_read_out follows. */
void channels_close_stream(struct channels *channels, enum stream stream);

bool channels_are_read_out(const struct channels *channels);
void channels_close(struct channels *channels);
