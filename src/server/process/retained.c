/* See retained.h. A thousand starts a second would otherwise be 80,000 processes to keep. */
#include "server/process/retained.h"

#include "loop/loop.h"
#include "server/process/rpc_process.h"

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
