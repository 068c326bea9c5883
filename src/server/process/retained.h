/* Processes that are closed and can still be read, of all sessions: the oldest go when there are
 * too many, or when they hold too much. */
#pragma once

#include <stddef.h>

struct rpc_process;

enum {
    RETAINED_MAX = 4096,          /* processes */
    RETAINED_BYTES_MAX = 32 << 20 /* of their output in memory */
};

/* Zeroed it is empty. */
struct retained {
    struct rpc_process *oldest;
    struct rpc_process *newest;
    size_t len;
    size_t bytes;
};

/* May end the retention of others; they go in the next round of the loop. */
void retained_add(struct retained *retained, struct rpc_process *process);
void retained_remove(struct retained *retained, struct rpc_process *process); /* if it is in it */
