/* How long output is still read after its command has ended. Internal to exec; part of process.h.
 *
 * Off until drain_begin(); the timer that it was given then fires when nothing has come for
 * `quiet_ns`, or `total_ns` have gone by. Calls before that do nothing. */
#pragma once

#include "process/process.h"

#include <stdbool.h>
#include <stdint.h>

struct loop_timer;

struct drain {
    struct process_drain limits;
    struct loop_timer *timer; /* owned */
    uint64_t until_ns;        /* 0: off */
    uint64_t left_ns;         /* while it stands still */
};

/* Takes the timer over; zero limits are the defaults. */
void drain_init(struct drain *drain, const struct process_drain *limits, struct loop_timer *timer);
void drain_done(struct drain *drain); /* off for good */

void drain_begin(struct drain *drain);
bool drain_is_on(const struct drain *drain);
void drain_touch(struct drain *drain);         /* something came */
bool drain_is_over(const struct drain *drain); /* `total_ns` have gone by */

/* The clock stands still while somebody else keeps the output waiting. */
void drain_pause(struct drain *drain);
void drain_resume(struct drain *drain);

/* There is nothing to wait for any more: the timer fires in the next turn of the loop. */
void drain_stop(struct drain *drain);
