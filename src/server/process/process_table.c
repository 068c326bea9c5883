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
    list_append(&table->list, &process->in_table);
    table->len++;
}

void process_table_remove(struct process_table *table, struct rpc_process *process)
{
    tdelete(process, &table->tree, compare_ids);
    list_remove(&process->in_table);
    table->len--;
}

void retained_remove(struct retained *retained, struct rpc_process *process)
{
    if (!list_is_linked(&process->in_retained))
        return;
    list_remove(&process->in_retained);
    retained->len--;
    retained->bytes -= process->retained_bytes;
}

static bool is_too_much(const struct retained *retained)
{
    return retained->len > RETAINED_MAX || retained->bytes > RETAINED_BYTES_MAX;
}

void retained_add(struct retained *retained, struct rpc_process *process, size_t bytes)
{
    struct rpc_process *oldest;

    list_append(&retained->list, &process->in_retained);
    retained->len++;
    process->retained_bytes = bytes;
    retained->bytes += process->retained_bytes;
    while (is_too_much(retained)) {
        oldest = list_first(&retained->list, struct rpc_process, in_retained);
        if (!oldest || oldest == process)
            return;
        retained_remove(retained, oldest);
        loop_timer_start(oldest->last, 0);
    }
}
