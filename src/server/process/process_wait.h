/* Calls that wait for something of a process: process/read for output, process/wait for an end,
 * session/events for what it does; and whatever came before it was known whether the process starts. */
#pragma once

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct call;
struct rpc_process;

enum process_wait_kind { WAIT_READ, WAIT_EXITED, WAIT_CLOSED, WAIT_EVENTS, WAIT_START };

struct process_wait {
    enum process_wait_kind kind;
    struct call *call;
    struct rpc_process *process;
    struct list in_process;
    struct loop_timer *timer; /* NULL: without end */
    uint64_t after_seq;       /* WAIT_READ, and of the timeline WAIT_EVENTS */
    uint64_t offset;          /* WAIT_READ; UINT64_MAX: after_seq says where */
    uint64_t max_bytes;       /* WAIT_READ; UINT64_MAX: not given */
    size_t max_events;        /* WAIT_EVENTS */
};

/* Answers at once when what is asked for is there or `wait_ns` is 0, otherwise then; UINT64_MAX: no
 * limit. Takes a copy of `wait`, whose call it answers. */
void process_wait_start(const struct process_wait *wait, uint64_t wait_ns);

/* A client need not wait for the answer to its process/start before it writes to the process, reads or
 * closes its input. false: the start is decided, and nothing that came earlier waits for it. Otherwise
 * the call is handled once it is. */
bool process_wait_for_start(struct rpc_process *process, struct call *call);

/* Answers all whose time has come. */
void process_waits_answer(struct rpc_process *process);

/* The process is to be freed: the calls fail. */
void process_waits_drop(struct rpc_process *process);
