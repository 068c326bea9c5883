/* What process.c and process_control.c share: the inside of a process. */
#pragma once

#include "process/command_stdio.h"
#include "process/drain.h"
#include "process/process.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

struct loop_timer;
struct loop_watch;

struct process {
    struct loop *loop;
    const struct process_events *events;
    void *data;
    struct command_stdio stdio;
    struct launch launch;
    struct loop_watch *status_watch;
    struct loop_watch *pidfd_watch;
    struct loop_timer *kill_timer;
    struct drain drain;
    uint64_t kill_at_ns; /* 0: not terminating */
    bool is_launched;    /* `launch` has to be done */
    bool has_started;
    bool is_killed;  /* by us, with everything */
    bool is_swept;   /* the init says that it is the last one, or that nothing has run */
    bool has_report; /* `end` says how; nothing is left to signal, unless it lingers */
    bool lingers;
    bool has_exited; /* on_exit was called */
    bool is_gone;    /* so is the init */
    struct process_end end;
};

/* Output waits for its reader, and there is no hurry. */
bool process_is_waiting(const struct process *process);

/* With everything that it started; its end comes from the loop. */
void process_kill(struct process *process);
