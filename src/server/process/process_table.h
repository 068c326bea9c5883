/* The processes of a client's session, by the ids that the client chose. */
#pragma once

#include <stddef.h>

struct rpc_process;

struct process_table {
    void *tree;                /* tsearch(3), by id */
    struct rpc_process *first; /* in the order of their starts */
    struct rpc_process *last;
    size_t len;
};

/* NULL when there is none. */
struct rpc_process *process_table_find(const struct process_table *table, const char *id);

/* No two of the same id. */
void process_table_add(struct process_table *table, struct rpc_process *process);
void process_table_remove(struct process_table *table, struct rpc_process *process);
