/* The messages that tell of a process, as text. */
#pragma once

#include "output/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct rpc_peer;
struct rpc_process;
struct timeline;

/* The connection that is told, and its name for the process. */
struct rpc_event_target {
    struct rpc_peer *peer;
    const char *id;
    struct buf *scratch; /* for the text */
};

enum { RPC_CHUNK_MAX = 65536 }; /* bytes: no chunk of a process is larger (process/stdio.c) */

/* Each returns whether there is room for more. */
bool rpc_event_output(const struct rpc_event_target *target, const struct rpc_process *process,
                      const struct output_record *record, const char *bytes);
bool rpc_event_gap(const struct rpc_event_target *target, const struct output_record *record);
bool rpc_event_grown(const struct rpc_event_target *target, uint64_t total);
bool rpc_event_exited(const struct rpc_event_target *target, const struct rpc_process *process);
bool rpc_event_closed(const struct rpc_event_target *target, const struct rpc_process *process);

/* What is new in its timeline behind event `*after`, which moves on. */
bool rpc_event_timeline(const struct rpc_event_target *target, const struct rpc_process *process,
                        uint64_t *after);

/* "events":[...],"dropped":N,"nextSeq":N, of at most `max` events behind `*after`, which moves on. */
void rpc_event_append_timeline(struct buf *text, const struct timeline *timeline, size_t max,
                               uint64_t *after);
