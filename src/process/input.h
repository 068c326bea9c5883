/* The way in: a bounded queue of bytes in front of a command's stdin, a pipe or a PTY master.
 * The calls are internal to exec; process.h is the interface. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct loop;
struct loop_watch;
struct pty;

#define INPUT_MAX 65536 /* bytes queued */

enum input_event {
    INPUT_ROOM,   /* the queue is empty again after it had refused something */
    INPUT_CLOSED, /* nobody reads any more; what was queued is dropped */
};

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

/* Exactly one of `pipe_fd` (taken over, also on failure) and `pty` (borrowed) is given. Events come
 * from the loop only, never out of a call. */
int input_init(struct input *input, struct loop *loop, int pipe_fd, const struct pty *pty,
               struct err *err);
void input_done(struct input *input); /* no event; safe on a zeroed one with fd -1 */

/* How much was taken; everything once the input is closed or ending. */
size_t input_write(struct input *input, const void *bytes, size_t len);
void input_end(struct input *input);

/* The command is gone: drops the queue and reports INPUT_CLOSED if the input was open. */
void input_drop(struct input *input);
