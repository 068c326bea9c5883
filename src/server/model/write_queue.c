/* See write_queue.h. A session has its bucket by its number, and few buckets have more than one
 * session in them, so a look-up is short. A write is in its bucket from its arrival to its end. The
 * next one is looked for in the next round of the loop, so that the calls of a connection that
 * closes are gone by then and none of them writes any more. */
#include "server/model/write_queue.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "loop/loop.h"
#include "server/call.h"
#include "server/client.h"
#include "server/server.h"

#include <stdbool.h>
#include <stdlib.h>

enum { BUCKETS = 1024 };

struct queued_write {
    struct queued_write *next; /* in its bucket, the one that came first before the others */
    struct write_queue *queue;
    int session_id;
    struct call *call;
    queued_write_fn *begin;
    bool has_begun;
};

struct write_queue {
    struct server *server;
    struct queued_write *buckets[BUCKETS];
    struct loop_timer *timer;
    int *ended; /* the sessions in which a write has ended since the last round */
    size_t ended_len;
    size_t ended_cap;
};

/* --- which is next --- */

static struct queued_write **bucket_of(struct write_queue *queue, int session_id)
{
    return &queue->buckets[(unsigned)session_id % BUCKETS];
}

static struct queued_write *first_of(struct write_queue *queue, int session_id)
{
    struct queued_write *write = *bucket_of(queue, session_id);

    while (write && write->session_id != session_id)
        write = write->next;
    return write;
}

/* It counted as a call while it waited; from here on the request that answers it counts. */
static void write_begin_now(struct queued_write *write)
{
    write->has_begun = true;
    write->queue->server->model_requests--;
    call_on_gone(write->call, NULL, NULL);
    write->begin(write->call, write);
}

static void on_time(void *data)
{
    struct write_queue *queue = data;
    AUTO_FREE int *ended = TAKE_PTR(queue->ended); /* a write that begins may end at once */
    size_t len = queue->ended_len;

    queue->ended_len = queue->ended_cap = 0;
    for (size_t i = 0; i < len; i++) {
        struct queued_write *write = first_of(queue, ended[i]);

        if (write && !write->has_begun)
            write_begin_now(write);
    }
}

/* --- coming and going --- */

void queued_write_end(struct queued_write *write)
{
    struct write_queue *queue;
    struct queued_write **at;

    if (!write)
        return;
    queue = write->queue;
    at = bucket_of(queue, write->session_id);
    while (*at != write)
        at = &(*at)->next;
    *at = write->next;
    queue->ended =
        alloc_grow(queue->ended, queue->ended_len, &queue->ended_cap, sizeof *queue->ended);
    queue->ended[queue->ended_len++] = write->session_id;
    loop_timer_start(queue->timer, 0);
    free(write);
}

static void on_gone(void *data)
{
    struct queued_write *write = data;
    struct server *server = write->queue->server;

    server->model_requests--;
    queued_write_end(write);
    stopping_check(server);
}

static struct write_queue *queue_of(struct server *server)
{
    struct write_queue *queue = server->write_queue;

    if (queue)
        return queue;
    queue = alloc_zero(1, sizeof *queue);
    queue->server = server;
    queue->timer = loop_timer_new(server->loop, on_time, queue);
    server->write_queue = queue;
    return queue;
}

void write_queue_add(struct call *call, int session_id, queued_write_fn *begin)
{
    struct write_queue *queue = queue_of(call->client->server);
    struct queued_write **at = bucket_of(queue, session_id);
    struct queued_write *write = alloc_zero(1, sizeof *write);

    *write = (struct queued_write){
        .queue = queue, .session_id = session_id, .call = call, .begin = begin};
    while (*at)
        at = &(*at)->next;
    *at = write;
    queue->server->model_requests++; /* so that a server that stops waits for its answer, too */
    call_on_gone(call, on_gone, write);
    if (first_of(queue, session_id) == write)
        write_begin_now(write);
}

void write_queue_free(struct server *server)
{
    struct write_queue *queue = TAKE_PTR(server->write_queue);

    if (!queue)
        return;
    loop_timer_free(queue->timer);
    free(queue->ended);
    free(queue);
}
