/* See write_turn.h. A session has its lane by its number, and few lanes have more than one session
 * in them, so nobody walks past the others' turns. A turn is in its lane from its arrival to its
 * end. Who comes next is looked for in the next round of the loop, so that the calls of a
 * connection that closes are gone by then and none of them writes any more. */
#include "server/model/write_queue.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "loop/loop.h"
#include "server/call.h"
#include "server/client.h"
#include "server/server.h"
#include "server/stopping.h"

#include <stdbool.h>
#include <stdlib.h>

enum { LANES = 1024 };

struct write_turn {
    struct write_turn *next; /* in its lane, the one that came first before the others */
    struct write_turns *turns;
    int session_id;
    struct call *call;
    write_turn_fn *begin;
    bool has_begun;
};

struct write_turns {
    struct server *server;
    struct write_turn *lanes[LANES];
    struct loop_timer *timer;
    int *ended; /* the sessions in which a turn has ended since the last round */
    size_t ended_len;
    size_t ended_cap;
};

/* --- whose turn it is --- */

static struct write_turn **lane_of(struct write_turns *turns, int session_id)
{
    return &turns->lanes[(unsigned)session_id % LANES];
}

static struct write_turn *first_of(struct write_turns *turns, int session_id)
{
    struct write_turn *turn = *lane_of(turns, session_id);

    while (turn && turn->session_id != session_id)
        turn = turn->next;
    return turn;
}

/* It counted as a call while it waited; from here on whoever answers it counts it. */
static void turn_begin(struct write_turn *turn)
{
    turn->has_begun = true;
    turn->turns->server->model_calls--;
    call_on_gone(turn->call, NULL, NULL);
    turn->begin(turn->call, turn);
}

static void on_time(void *data)
{
    struct write_turns *turns = data;
    AUTO_FREE int *ended = TAKE_PTR(turns->ended); /* a turn that begins may end at once */
    size_t len = turns->ended_len;

    turns->ended_len = turns->ended_cap = 0;
    for (size_t i = 0; i < len; i++) {
        struct write_turn *turn = first_of(turns, ended[i]);

        if (turn && !turn->has_begun)
            turn_begin(turn);
    }
}

/* --- coming and going --- */

void write_turn_end(struct write_turn *turn)
{
    struct write_turns *turns;
    struct write_turn **at;

    if (!turn)
        return;
    turns = turn->turns;
    at = lane_of(turns, turn->session_id);
    while (*at != turn)
        at = &(*at)->next;
    *at = turn->next;
    turns->ended =
        alloc_grow(turns->ended, turns->ended_len, &turns->ended_cap, sizeof *turns->ended);
    turns->ended[turns->ended_len++] = turn->session_id;
    loop_timer_start(turns->timer, 0);
    free(turn);
}

static void on_gone(void *data)
{
    struct write_turn *turn = data;
    struct server *server = turn->turns->server;

    server->model_calls--;
    write_turn_end(turn);
    stopping_look(server);
}

static struct write_turns *turns_of(struct server *server)
{
    struct write_turns *turns = server->write_turns;

    if (turns)
        return turns;
    turns = alloc_zero(1, sizeof *turns);
    turns->server = server;
    turns->timer = loop_timer_new(server->loop, on_time, turns);
    server->write_turns = turns;
    return turns;
}

void write_turn_take(struct call *call, int session_id, write_turn_fn *begin)
{
    struct write_turns *turns = turns_of(call->client->server);
    struct write_turn **at = lane_of(turns, session_id);
    struct write_turn *turn = alloc_zero(1, sizeof *turn);

    *turn =
        (struct write_turn){.turns = turns, .session_id = session_id, .call = call, .begin = begin};
    while (*at)
        at = &(*at)->next;
    *at = turn;
    turns->server->model_calls++; /* so that a server that stops waits for its answer, too */
    call_on_gone(call, on_gone, turn);
    if (first_of(turns, session_id) == turn)
        turn_begin(turn);
}

void write_turns_free(struct server *server)
{
    struct write_turns *turns = TAKE_PTR(server->write_turns);

    if (!turns)
        return;
    loop_timer_free(turns->timer);
    free(turns->ended);
    free(turns);
}
