/* Which processes there are: those of one client's session, by the ids that the client chose; and
 * of all sessions those that are closed and can still be read, of which the oldest go when there
 * are too many, or when they hold too much. */
#pragma once

#include "base/list.h"

#include <stddef.h>

struct rpc_process;

struct process_table {
    void *tree;       /* tsearch(3), by id */
    struct list list; /* in the order of their starts */
    size_t len;
};

/* NULL when there is none. */
struct rpc_process *process_table_find(const struct process_table *table, const char *id);

/* No two of the same id. */
void process_table_add(struct process_table *table, struct rpc_process *process);
void process_table_remove(struct process_table *table, struct rpc_process *process);

enum {
    RETAINED_MAX = 4096,          /* processes */
    RETAINED_BYTES_MAX = 32 << 20 /* of their output and timelines in memory */
};

/* Zeroed it is empty. */
struct retained {
    struct list list; /* the oldest first */
    size_t len;
    size_t bytes;
};

/* `bytes` of it are in memory. May end the retention of others; they go in the next round
 * of the loop. */
void retained_add(struct retained *retained, struct rpc_process *process, size_t bytes);
void retained_remove(struct retained *retained, struct rpc_process *process); /* if it is in it */
