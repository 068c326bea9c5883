/* The life of one connection: stages, deadlines, the way out.
 *
 * Nothing here calls the owner from inside a call of the owner. What has to be told later (a peer
 * left, a peer that was attached is there) is done by the hub's `soon` timer, which finds it by the
 * stage and the flags. Nothing but that timer frees a peer either, so whoever holds one in a
 * callback still has it after. */
#include "rpc/parts.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "loop/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Connections may come by the hundred, and those who are in go first. */
static void peer_wait(struct rpc_peer *peer)
{
    peer->is.is_waiting = true;
    hub_soon(peer->hub);
}

static void peer_ready(void *data, unsigned ready)
{
    struct rpc_peer *peer = data;

    if (ready & LOOP_WRITE)
        peer_write(peer);
    if (ready & LOOP_READ && peer->stage == PEER_HEAD)
        peer_wait(peer);
    else if (ready & LOOP_READ)
        peer_read(peer);
    peer_settle(peer);
}

struct rpc_peer *peer_new(struct rpc_hub *hub, struct channel *channel,
                          enum rpc_transport transport)
{
    struct rpc_peer *peer = alloc_zero(1, sizeof *peer);

    *peer = (struct rpc_peer){
        .hub = hub,
        .previous = hub->last,
        .channel = channel,
        .transport = transport,
        .deadline_ns = UINT64_MAX,
    };
    buf_init(&peer->early, HTTP_HEAD_MAX);
    if (hub->last)
        hub->last->next = peer;
    else
        hub->first = peer;
    hub->last = peer;
    channel_set_callback(channel, peer_ready, peer);
    return peer;
}

void peer_free(struct rpc_peer *peer)
{
    struct rpc_hub *hub = peer->hub;

    if (peer->previous)
        peer->previous->next = peer->next;
    else
        hub->first = peer->next;
    if (peer->next)
        peer->next->previous = peer->previous;
    else
        hub->last = peer->previous;
    channel_free(peer->channel);
    ws_free(peer->ws);
    rpc_lines_done(&peer->lines);
    buf_done(&peer->early);
    outbox_done(&peer->outbox);
    calls_done(&peer->calls);
    free(peer);
}

bool peer_is_open(const struct rpc_peer *peer)
{
    return peer->stage == PEER_WS || peer->stage == PEER_LINES;
}

void peer_start_ws(struct rpc_peer *peer)
{
    uint64_t now = clock_now_ns();

    peer->ws = (peer->is.is_server ? ws_new_client : ws_new)(&peer_ws_events, peer,
                                                             peer->hub->options.message_max);
    peer->stage = PEER_WS;
    peer->alive_ns = now;
    peer->ping_ns = clock_after(now, PING_S * CLOCK_NS_PER_S);
    hub_due_by(peer->hub, peer->ping_ns);
}

void peer_start_lines(struct rpc_peer *peer)
{
    rpc_lines_init(&peer->lines, peer->hub->options.message_max);
    peer->stage = PEER_LINES;
}

void peer_announce(struct rpc_peer *peer)
{
    const struct rpc_hub_options *options = &peer->hub->options;

    peer->is.is_announced = true;
    peer->hub->stats.peers_open++;
    peer->hub->stats.peers_opened++;
    if (options->handlers->on_open)
        options->handlers->on_open(options->data, peer);
}

void peer_set_deadline(struct rpc_peer *peer, uint64_t seconds)
{
    peer->deadline_ns = clock_after(clock_now_ns(), seconds * CLOCK_NS_PER_S);
    hub_due_by(peer->hub, peer->deadline_ns);
}

void peer_leave(struct rpc_peer *peer, const char *why)
{
    if (peer->stage >= PEER_FLUSH)
        return;
    snprintf(peer->why, sizeof peer->why, "%s", why);
    peer->stage = PEER_FLUSH;
    peer_set_deadline(peer, FLUSH_S);
    peer_settle(peer);
    hub_soon(peer->hub);
}

void peer_break(struct rpc_peer *peer, const char *why)
{
    if (peer->stage < PEER_FLUSH)
        snprintf(peer->why, sizeof peer->why, "%s", why);
    peer->stage = PEER_DEAD;
    channel_want(peer->channel, LOOP_NOTHING);
    hub_soon(peer->hub);
}

static bool peer_awaits_head(const struct rpc_peer *peer)
{
    return peer->stage == PEER_HEAD && !peer->is.is_waiting && peer->door.state == DOOR_UNASKED;
}

static unsigned peer_interest(const struct rpc_peer *peer)
{
    unsigned interest = LOOP_NOTHING;

    if (peer->stage == PEER_DEAD)
        return LOOP_NOTHING;
    if (peer->outbox.len)
        interest |= LOOP_WRITE;
    if (peer_awaits_head(peer) || peer->stage == PEER_LINGER || peer_may_read(peer))
        interest |= LOOP_READ;
    return interest;
}

void peer_settle(struct rpc_peer *peer)
{
    if (peer->stage == PEER_FLUSH && !peer->outbox.len) {
        channel_end_writing(peer->channel);
        peer->stage = PEER_LINGER;
        peer_set_deadline(peer, LINGER_S);
    }
    channel_want(peer->channel, peer_interest(peer));
}

/* A ping that waits behind other bytes would say nothing: those have to be taken first. */
static void peer_ping(struct rpc_peer *peer, uint64_t now_ns)
{
    peer->ping_ns = clock_after(now_ns, PING_S * CLOCK_NS_PER_S);
    if (!peer->outbox.len)
        ws_ping(peer->ws);
}

/* From a peer that is not read nothing can be heard. */
static uint64_t peer_silence_ns(const struct rpc_peer *peer)
{
    if (peer->is.is_paused)
        return UINT64_MAX;
    return clock_after(peer->alive_ns, SILENCE_S * CLOCK_NS_PER_S);
}

void peer_tick(struct rpc_peer *peer, uint64_t now_ns)
{
    if (!peer_is_open(peer)) {
        if (peer->deadline_ns > now_ns || peer->stage == PEER_DEAD)
            return;
        if (peer->stage == PEER_HEAD)
            peer_answer_late(peer);
        else
            peer_break(peer, "too slow");
        return;
    }
    calls_expire(&peer->calls, now_ns);
    if (peer->stage != PEER_WS)
        return;
    if (peer_silence_ns(peer) <= now_ns)
        peer_break(peer, "silent for too long");
    else if (peer->ping_ns <= now_ns)
        peer_ping(peer, now_ns);
}

uint64_t peer_due_ns(const struct rpc_peer *peer)
{
    uint64_t due = calls_due_ns(&peer->calls);

    if (peer->stage == PEER_DEAD)
        return UINT64_MAX;
    if (!peer_is_open(peer))
        return peer->deadline_ns;
    if (peer->stage == PEER_WS && peer->ping_ns < due)
        due = peer->ping_ns;
    if (peer->stage == PEER_WS && peer_silence_ns(peer) < due)
        due = peer_silence_ns(peer);
    return due;
}

/* --- what the owner sees --- */

void rpc_peer_set_data(struct rpc_peer *peer, void *data)
{
    peer->data = data;
}

void *rpc_peer_data(const struct rpc_peer *peer)
{
    return peer->data;
}

const char *rpc_peer_name(const struct rpc_peer *peer)
{
    return peer->name;
}

enum rpc_transport rpc_peer_transport(const struct rpc_peer *peer)
{
    return peer->transport;
}

void rpc_peer_pause(struct rpc_peer *peer)
{
    peer->is.is_paused = true;
    peer_settle(peer);
}

void rpc_peer_resume(struct rpc_peer *peer)
{
    peer->is.is_paused = false;
    peer->alive_ns = clock_now_ns();
    peer_settle(peer);
    if (peer->is.has_leftover)
        hub_soon(peer->hub);
}

void rpc_peer_close(struct rpc_peer *peer, enum rpc_close_code code, const char *reason)
{
    if (!peer_is_open(peer))
        return;
    if (peer->stage == PEER_WS)
        ws_close(peer->ws, (uint16_t)code, reason);
    peer_leave(peer, reason ? reason : "closed by us");
}

int64_t rpc_peer_call(struct rpc_peer *peer, const struct rpc_call *call)
{
    uint64_t due = call->timeout_ns ? clock_after(clock_now_ns(), call->timeout_ns) : UINT64_MAX;
    int64_t id = calls_add(&peer->calls, call, due);

    peer_send_request(peer, id, call);
    if (due != UINT64_MAX)
        hub_due_by(peer->hub, due);
    return id;
}

void rpc_peer_call_cancel(struct rpc_peer *peer, int64_t id)
{
    calls_cancel(&peer->calls, id);
}
