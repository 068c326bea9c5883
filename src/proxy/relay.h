/* What two sockets say to each other, carried to and fro. Bytes that nobody has to look at go through a pipe by splice(2),
 * and never through our memory; others through a filter, until it has seen enough.
 *
 *     relay_init(&relay, client, server, ...)
 *     relay.flows[RELAY_UP].filter = ..., and what was read already into its `in`
 *     relay_start()
 *     on_end() once, or relay_done() before
 *
 * A side that says its end is passed on as such (half-close), one that fails resets the other. Who reads slowly is
 * waited for: nothing is read that could not be written. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct loop;
struct loop_watch;
struct pipe;
struct relay;

enum relay_direction { RELAY_UP, RELAY_DOWN }; /* to the server; to the client */

enum relay_step {
    RELAY_GO_ON,
    RELAY_OPAQUE, /* the filter has done its work */
    RELAY_PAUSE,  /* read nothing until relay_resume() */
    RELAY_END,    /* write what there is, then everything ends well */
    RELAY_STOP,   /* everything ends now, with a reset */
    RELAY_LEAVE,  /* it ends, and leaves both sockets as they are, to be taken in on_end() */
};

/* Takes bytes from the front of `in` and appends what has to go on to `out`; what it leaves comes again with more. When
 * `in` is full and nothing was taken, the filter has to say RELAY_STOP. At the end of the flow (has_ended) it is asked once
 * more about what it has left; what it leaves then goes nowhere. */
typedef enum relay_step relay_filter_fn(void *data, struct buf *in, struct buf *out);

struct relay_flow {
    relay_filter_fn *filter; /* NULL: opaque */
    struct buf in, out;      /* while there is a filter */
    struct pipe *pipe;       /* while something is in it */
    size_t held;             /* bytes in the pipe */
    uint64_t moved;          /* bytes written in all */
    bool is_little;          /* what was read last */
    bool is_paused;
    bool has_ended; /* nothing more to read */
    bool is_over;   /* and all is written */
    bool ends_all;  /* and the other flow ends with it */
    unsigned waits; /* enum loop_interest: to read from its source, or to write to its sink */
};

struct relay {
    struct loop *loop;
    struct {
        int fd; /* owned */
        struct loop_watch *watch;
    } ends[2]; /* the client's, the server's */
    struct relay_flow flows[2];
    bool is_broken; /* one side has failed: the other is to know */
    void *data;     /* of the filters and callbacks, which may not free the relay but in on_end() */
    void (*on_moved)(void *data, enum relay_direction direction);
    void (*on_end)(void *data);
};

/* Takes both sockets. */
void relay_init(struct relay *relay, struct loop *loop, int client, int server);

/* A flow that is looked at: `in` and `out` get room for `size` bytes. */
void relay_set_filter(struct relay *relay, enum relay_direction direction, relay_filter_fn *filter,
                      size_t size);

/* -1: the sockets cannot be watched. May have ended when it returns. */
int relay_start(struct relay *relay, struct err *err);

/* After RELAY_PAUSE, from the filter of the other flow. */
void relay_resume(struct relay *relay, enum relay_direction direction);

/* Closes both sockets, with a reset where something failed. */
void relay_done(struct relay *relay);

/* Closes with a reset in place of an end. Takes the socket. */
void relay_reset(int fd);

/* At the end of the program. */
void relay_close_pipes(void);
