/* See process_wait.h. An answer is made when the loop has come round (rpc_process.c wakes), so
 * that it holds all that has come meanwhile, and a handler is never called out of another one. */
#include "server/process/process_wait.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "job/result_json.h"
#include "loop/loop.h"
#include "server/call.h"
#include "server/client_session.h"
#include "server/process/rpc_process.h"
#include "server/server.h"

#include <stdlib.h>

static void wait_free(struct process_wait *wait)
{
    if (wait->next)
        wait->next->previous = wait->previous;
    if (wait->previous)
        wait->previous->next = wait->next;
    else
        wait->process->waits = wait->next;
    loop_timer_free(wait->timer);
    free(wait);
}

/* --- answers --- */

static void answer_read(struct rpc_process *process, struct call *call,
                        const struct process_wait *wait)
{
    process_read_append(process, wait, call_result_begin(call));
    call_result_end(call);
}

static void answer_end(const struct rpc_process *process, struct call *call)
{
    json_t *result = json_object();

    rpc_process_state_to_json(process, result);
    json_object_set_new(result, "signal", signal_to_json(process->end.signal));
    json_object_set_new(result, "sandboxDenied", json_boolean(process->end.is_denied));
    json_object_set_new(result, "denials", denials_to_json(&process->end.denials));
    json_object_set_new(result, "nextSeq", json_integer((json_int_t)rpc_process_next_seq(process)));
    json_object_set_new(result, "nextOffset",
                        json_integer((json_int_t)output_total(job_output(process->job))));
    call_reply(call, result);
}

static void wait_answer(struct process_wait *wait)
{
    struct process_wait copy = *wait;

    wait_free(wait);
    call_on_gone(copy.call, NULL, NULL);
    if (copy.kind == WAIT_READ)
        answer_read(copy.process, copy.call, &copy);
    else
        answer_end(copy.process, copy.call);
}

/* --- is it there --- */

static bool has_output(const struct rpc_process *process, const struct process_wait *wait)
{
    struct output_info info;

    output_info(job_output(process->job), &info);
    if (wait->offset != UINT64_MAX)
        return info.total > wait->offset;
    return info.last_seq > rpc_process_chunk_of(process, wait->after_seq);
}

static bool has_come(const struct rpc_process *process, const struct process_wait *wait)
{
    if (process->state == RPC_PROCESS_CLOSED)
        return true;
    if (wait->kind == WAIT_CLOSED)
        return false;
    if (wait->kind == WAIT_EXITED)
        return process->state == RPC_PROCESS_EXITED;
    return has_output(process, wait) ||
           (process->state == RPC_PROCESS_EXITED && wait->after_seq <= process->end.chunks);
}

void process_waits_answer(struct rpc_process *process)
{
    struct process_wait *next;

    for (struct process_wait *wait = process->waits; wait; wait = next) {
        next = wait->next;
        if (has_come(process, wait))
            wait_answer(wait);
    }
}

/* --- life --- */

static void on_time(void *data)
{
    wait_answer(data);
}

static void on_gone(void *data)
{
    wait_free(data);
}

void process_wait_start(const struct process_wait *from, uint64_t wait_ns)
{
    struct rpc_process *process = from->process;
    struct process_wait *wait = alloc_zero(1, sizeof *wait);

    *wait = *from;
    wait->previous = NULL;
    wait->next = process->waits;
    if (wait->next)
        wait->next->previous = wait;
    process->waits = wait;
    call_on_gone(wait->call, on_gone, wait);
    if (wait_ns == 0 || has_come(process, wait)) {
        wait_answer(wait);
        return;
    }
    if (wait_ns == UINT64_MAX)
        return;
    wait->timer = loop_timer_new(process->owner->server->loop, on_time, wait);
    loop_timer_start(wait->timer, wait_ns);
}

void process_waits_drop(struct rpc_process *process)
{
    while (process->waits) {
        struct call *call = process->waits->call;

        wait_free(process->waits);
        call_on_gone(call, NULL, NULL);
        call_fail(call, RPC_INVALID_REQUEST, "unknown process id %s", process->id);
    }
}
