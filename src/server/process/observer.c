/* See observer.h. An observer is in two lists, its client's and its process's. It is sent what
 * there is room for, and goes on when there is room again; the process never waits for it. */
#include "server/process/observer.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "loop/loop.h"
#include "rpc/rpc.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/process/rpc_event.h"
#include "server/process/rpc_process.h"
#include "server/server.h"

#include <stdlib.h>

#define OBSERVER_PAUSE_NS UINT64_C(200000000) /* between two notes of growth */

/* --- finding --- */

struct observer *observer_find(const struct client *client, const char *alias)
{
    struct observer *observer;

    list_for_each(observer, &client->observers, in_client)
        if (str_eq(observer->alias, alias))
            return observer;
    return NULL;
}

struct rpc_process *client_process(const struct client *client, const char *id)
{
    struct rpc_process *process = process_table_find(&client->session->processes, id);
    struct observer *observer;

    if (process && process->state != RPC_PROCESS_FAILED)
        return process;
    observer = observer_find(client, id);
    return observer ? observer->process : NULL;
}

struct rpc_process *call_process(struct call *call, const char *id)
{
    struct rpc_process *process = client_process(call->client, id);

    if (!process)
        call_fail(call, RPC_INVALID_REQUEST, "unknown process id %s", id);
    return process;
}

bool client_may_write(const struct client *client, const struct rpc_process *process)
{
    return process->writer ? process->writer->client == client : process->owner->client == client;
}

/* --- telling --- */

/* All that there is room for. Returns whether there is room for more. */
static bool send_output(struct observer *observer, const struct rpc_event_target *target)
{
    struct rpc_process *process = observer->process;
    char *piece = observer->client->server->piece;
    struct output_record record = {.kind = OUTPUT_BYTES};
    bool has_room = rpc_peer_has_room(target->peer);

    while (has_room && (record.kind == OUTPUT_BYTES || record.kind == OUTPUT_GAP)) {
        output_read(job_output(process->job), &observer->cursor, OUTPUT_BY_CHUNK, piece,
                    RPC_CHUNK_MAX, &record);
        if (record.kind == OUTPUT_BYTES)
            has_room = rpc_event_output(target, process, &record, piece);
        else if (record.kind == OUTPUT_GAP)
            has_room = rpc_event_gap(target, &record);
    }
    return has_room;
}

/* At once, and then not before the pause is over; what is its end is told without a pause. */
static bool send_growth(struct observer *observer, const struct rpc_event_target *target)
{
    uint64_t total = output_total(job_output(observer->process->job));
    bool has_room = rpc_peer_has_room(target->peer);
    bool is_over = observer->process->state == RPC_PROCESS_CLOSED;

    if (!has_room || total == observer->grown || (!is_over && observer->is_pausing))
        return has_room;
    observer->grown = total;
    observer->is_pausing = true;
    loop_timer_start(observer->pause, OBSERVER_PAUSE_NS);
    return rpc_event_grown(target, total);
}

void observer_send(struct observer *observer)
{
    struct rpc_process *process = observer->process;
    const struct rpc_event_target target = {
        .peer = observer->client->peer,
        .id = observer->alias,
        .scratch = &observer->client->server->scratch,
    };
    bool has_room =
        observer->pause ? send_growth(observer, &target) : send_output(observer, &target);

    if (has_room)
        has_room = rpc_event_timeline(&target, process, &observer->told);
    if (!has_room)
        return;
    if (!observer->has_sent_exit && rpc_process_has_exited(process)) {
        observer->has_sent_exit = true;
        rpc_event_exited(&target, process);
    }
    if (!observer->has_sent_close && process->state == RPC_PROCESS_CLOSED) {
        observer->has_sent_close = true;
        rpc_event_closed(&target, process);
    }
}

void observers_on_news(struct rpc_process *process)
{
    struct observer *observer;

    list_for_each(observer, &process->observers, in_process)
        observer_send(observer);
}

void observers_on_room(struct client *client)
{
    struct observer *observer;

    list_for_each(observer, &client->observers, in_client)
        observer_send(observer);
}

/* --- life --- */

void observer_free(struct observer *observer)
{
    list_remove(&observer->in_client);
    list_remove(&observer->in_process);
    if (observer->process->writer == observer)
        observer->process->writer = NULL;
    loop_timer_free(observer->pause);
    free(observer->alias);
    free(observer);
}

void observers_drop(struct rpc_process *process)
{
    while (!list_is_empty(&process->observers))
        observer_free(list_first(&process->observers, struct observer, in_process));
}

void observers_free(struct client *client)
{
    while (!list_is_empty(&client->observers))
        observer_free(list_first(&client->observers, struct observer, in_client));
}

struct observer *observer_new(struct client *client, struct rpc_process *process)
{
    struct observer *observer = alloc_zero(1, sizeof *observer);

    observer->client = client;
    observer->process = process;
    observer->alias = alloc_strf("%s/%s", process->owner->id, process->id);
    list_add(&client->observers, &observer->in_client);
    list_add(&process->observers, &observer->in_process);
    return observer;
}

static void on_pause_over(void *data)
{
    struct observer *observer = data;

    observer->is_pausing = false;
    observer_send(observer);
}

void observer_set_output(struct observer *observer, bool on)
{
    loop_timer_free(TAKE_PTR(observer->pause));
    observer->is_pausing = false;
    observer->grown = output_total(job_output(observer->process->job));
    if (!on)
        observer->pause = loop_timer_new(observer->client->server->loop, on_pause_over, observer);
}
