/* See process_table.h. A tree for finding, a list for order. A thousand starts a second would
 * otherwise be 80,000 closed processes to keep. */
#include "server/process/process_table.h"

#include "loop/loop.h"
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

void retained_remove(struct retained *retained, struct rpc_process *process)
{
    struct rpc_process *next = process->retained_next;
    struct rpc_process *previous = process->retained_previous;

    if (!previous && retained->oldest != process)
        return;
    if (next)
        next->retained_previous = previous;
    else
        retained->newest = previous;
    if (previous)
        previous->retained_next = next;
    else
        retained->oldest = next;
    process->retained_next = process->retained_previous = NULL;
    retained->len--;
    retained->bytes -= process->retained_bytes;
}

static bool is_too_much(const struct retained *retained)
{
    return retained->len > RETAINED_MAX || retained->bytes > RETAINED_BYTES_MAX;
}

void retained_add(struct retained *retained, struct rpc_process *process)
{
    process->retained_previous = retained->newest;
    if (retained->newest)
        retained->newest->retained_next = process;
    else
        retained->oldest = process;
    retained->newest = process;
    retained->len++;
    process->retained_bytes = output_memory(job_output(process->job));
    retained->bytes += process->retained_bytes;

    while (is_too_much(retained) && retained->oldest != process) {
        struct rpc_process *oldest = retained->oldest;

        retained_remove(retained, oldest);
        loop_timer_start(oldest->last, 0);
    }
}
