/* The messages that tell of a process, as text. */
#pragma once

#include "output/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct rpc_peer;
struct wire_process;

/* To whom, and what he calls the process. */
struct wire_target {
    struct rpc_peer *peer;
    const char *id;
    struct buf *scratch; /* for the text */
};

enum { WIRE_CHUNK_MAX = 65536 }; /* bytes: no chunk of a process is larger (process/stdio.c) */

/* Each returns whether there is room for more. */
bool wire_event_output(const struct wire_target *target, const struct wire_process *process,
                       const struct output_record *record, const char *bytes);
bool wire_event_gap(const struct wire_target *target, const struct output_record *record);
bool wire_event_exited(const struct wire_target *target, const struct wire_process *process);
bool wire_event_closed(const struct wire_target *target, const struct wire_process *process);
