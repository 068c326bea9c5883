/* Passes the output of a process on to descriptors of the caller, as it comes and as fast as these
 * take it: while one takes nothing, its stream is not read, so that the command waits as it would
 * for a slow reader without us. */
#pragma once

#include "base/err.h"
#include "output/stream.h"

#include <stdbool.h>
#include <stddef.h>

struct loop;
struct process;
struct output_pump;

struct output_pump_options {
    struct loop *loop;
    struct process *process;
    int fds[STREAM_COUNT]; /* borrowed; their flags are left alone; -1: nothing is passed on */
    void (*on_empty)(
        void *data); /* everything was passed on, after output_pump_is_empty() had denied it;
                                     from the loop only */
    void *data;
};

/* NULL on failure. */
struct output_pump *output_pump_new(const struct output_pump_options *options, struct err *err);
void output_pump_free(struct output_pump *pump); /* safe on NULL */

/* Bytes that came by on_output of the process. */
void output_pump_write(struct output_pump *pump, enum stream stream, const char *bytes, size_t len);

/* The process has ended and goes; what waits is still passed on. */
void output_pump_end(struct output_pump *pump);

/* Passes nothing on, so that the command waits as for a slow reader; or goes on. */
void output_pump_pause(struct output_pump *pump, bool on);

/* Nothing waits to be passed on. */
bool output_pump_is_empty(const struct output_pump *pump);

/* Drops what waits and what comes: it takes too long. */
void output_pump_abandon(struct output_pump *pump);

/* errno value for which a stream was given up, 0 while it was not. EPIPE: its reader has gone. */
int output_pump_error(const struct output_pump *pump, enum stream stream);
