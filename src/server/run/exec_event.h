/* What a client hears of a run before its answer: exec/event and exec/output, in order, with one
 * count for both. */
#pragma once

#include "output/stream.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct exec_run;
struct execution_event;
struct execution_result;

struct exec_output {
    enum stream stream;
    const char *bytes;
    size_t len;
    uint64_t offset; /* of the first byte in its stream */
};

void exec_event_begin(struct exec_run *run);
void exec_event_output(struct exec_run *run, const struct exec_output *output);
void exec_event_step(struct exec_run *run, const struct execution_event *event);
void exec_event_end(struct exec_run *run, const struct execution_result *result);
