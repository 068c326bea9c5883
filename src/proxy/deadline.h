/* When waits end: for each length of wait there is one list, in the order in which they end, and one timer, so that
 * thousands of connections that move bytes set no timer: they go to the end of their list. */
#pragma once

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct deadline;
struct loop;
struct loop_timer;

typedef void deadline_fn(struct deadline *deadline);

/* All that wait for the same time. */
struct deadline_queue {
    uint64_t wait_ns;
    struct loop_timer *timer;
    struct list waiting;
    bool is_running; /* the timer */
    deadline_fn *on_time;
};

struct deadline {
    struct deadline_queue *queue; /* NULL: none */
    struct list in_queue;
    uint64_t due_ns;
};

void deadline_queue_init(struct deadline_queue *queue, struct loop *loop, uint64_t wait_ns,
                         deadline_fn *on_time);
void deadline_queue_done(struct deadline_queue *queue); /* nothing waits in it any more */

/* From now on; in place of what was set before. */
void deadline_set(struct deadline *deadline, struct deadline_queue *queue);
void deadline_touch(struct deadline *deadline); /* anew, where one is set */
void deadline_clear(struct deadline *deadline);
