/* What the files of oneshot share. Internal to exec; oneshot.h is the interface. */
#pragma once

#include "job/oneshot.h"
#include "job/oneshot_result.h"
#include "loop/loop.h"
#include "process/output_pump.h"
#include "process/terminal.h"

struct oneshot {
    const struct oneshot_options *options;
    struct loop *loop;
    struct loop *own_loop;
    struct resource_limits_scope limits;
    struct process *process;
    struct process_events events;
    struct stdin_pump *stdin_pump;
    struct output_pump *output_pump; /* NULL without one */
    struct terminal terminal;
    struct loop_timer *timeout;
    struct loop_timer *told;     /* that it is over */
    struct loop_timer *patience; /* with the relay, after a command that had to be stopped */
    struct loop_watch *cancel;
    struct loop_signals *signals;
    enum stop_reason stop;
    int stop_signal;
    struct oneshot_result result; /* as far as known while it runs */
    struct process_end end;
    bool has_ended;
    bool is_over; /* and everything was passed on */
};

/* Starts what may end it early: the clock, signals to us, the descriptor that cancels. */
int oneshot_watch_signals(struct oneshot *oneshot, struct err *err);
int oneshot_watch_cancel(struct oneshot *oneshot, struct err *err);
void oneshot_start_clock(struct oneshot *oneshot);

/* Output is still being passed on. */
bool oneshot_is_relaying(const struct oneshot *oneshot);

/* The command has ended, and who reads its output lets us wait. */
void oneshot_abandon(struct oneshot *oneshot);
