/* See process_table.h. A tree for finding, a list for order. */
#include "server/process/process_table.h"

#include "server/process/rpc_process.h"

#include <search.h>
#include <string.h>

static int compare_ids(const void *a, const void *b)
{
    return strcmp(((const struct rpc_process *)a)->id, ((const struct rpc_process *)b)->id);
}

struct rpc_process *process_table_find(const struct process_table *table, const char *id)
{
    const struct rpc_process key = {.id = (char *)id};
    struct rpc_process *const *found = tfind(&key, (void *const *)&table->tree, compare_ids);

    return found ? *found : NULL;
}

void process_table_add(struct process_table *table, struct rpc_process *process)
{
    tsearch(process, &table->tree, compare_ids);
    process->previous = table->last;
    if (table->last)
        table->last->next = process;
    else
        table->first = process;
    table->last = process;
    table->len++;
}

void process_table_remove(struct process_table *table, struct rpc_process *process)
{
    tdelete(process, &table->tree, compare_ids);
    if (process->next)
        process->next->previous = process->previous;
    else
        table->last = process->previous;
    if (process->previous)
        process->previous->next = process->next;
    else
        table->first = process->next;
    table->len--;
}
