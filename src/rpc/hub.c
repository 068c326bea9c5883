/* All connections of a server. Two timers: one for the earliest deadline of anything, set anew by
 * looking at everything (there are hundreds of peers, not millions), and one that fires in the next
 * round, for what must not happen inside a call of the owner: telling it about peers that came or
 * left, reading on after a pause, freeing. */
#include "rpc/parts.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "loop/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct rpc_hub_options defaults = {
    .max_peers = 256,
    .message_max = 64 * 1024 * 1024,
    .queue_high = 1024 * 1024,
    .queue_low = 256 * 1024,
    .queue_stop = 4 * 1024 * 1024,
};

static void hub_on_timer(void *data)
{
    rpc_hub_tick(data);
}

/* Lets a peer that waits have its head read, if this round has time for it. */
static void hub_admit(struct rpc_hub *hub, struct rpc_peer *peer)
{
    if (!peer->is.is_waiting)
        return;
    if (!hub->heads) {
        hub_soon(hub);
        return;
    }
    peer->is.is_waiting = false;
    hub->heads--;
    peer_read(peer);
    peer_settle(peer);
}

/* Tells the owner what it has to know of this peer. */
static void hub_tell(struct rpc_hub *hub, struct rpc_peer *peer)
{
    hub_admit(hub, peer);
    if (peer_is_open(peer) && !peer->is.is_announced) {
        peer_announce(peer);
        peer_settle(peer);
    }
    if (peer->is.has_leftover && peer_may_read(peer))
        peer_read_leftover(peer);
    if (!peer_is_open(peer) && peer->is.is_announced && !peer->is.is_departed) {
        peer->is.is_departed = true;
        hub->stats.peers_open--;
        calls_fail(&peer->calls);
        hub->options.handlers->on_closed(hub->options.data, peer, peer->why);
    }
}

static void hub_tell_idle(struct rpc_hub *hub)
{
    if (!hub->is_shut || hub->is_idle || hub->first)
        return;
    hub->is_idle = true;
    if (hub->options.handlers->on_idle)
        hub->options.handlers->on_idle(hub->options.data);
}

static void hub_on_soon(void *data)
{
    struct rpc_hub *hub = data;
    struct rpc_peer *peer = hub->first;

    hub->heads = ROUND_HEADS;
    while (peer) { /* callbacks may add peers, behind the last */
        struct rpc_peer *next;

        hub_tell(hub, peer);
        next = peer->next;
        if (peer->stage == PEER_DEAD && peer->is.is_announced == peer->is.is_departed)
            peer_free(peer);
        peer = next;
    }
    hub_tell_idle(hub);
}

static struct rpc_hub_options options_complete(const struct rpc_hub_options *given)
{
    struct rpc_hub_options options = *given;

    if (!options.max_peers)
        options.max_peers = defaults.max_peers;
    if (!options.message_max)
        options.message_max = defaults.message_max;
    if (!options.queue_high)
        options.queue_high = defaults.queue_high;
    if (!options.queue_low)
        options.queue_low = defaults.queue_low;
    if (!options.queue_stop)
        options.queue_stop = defaults.queue_stop;
    return options;
}

struct rpc_hub *rpc_hub_new(struct loop *loop, const struct rpc_hub_options *options)
{
    struct rpc_hub *hub = alloc_zero(1, sizeof *hub);

    *hub =
        (struct rpc_hub){.loop = loop, .options = options_complete(options), .due_ns = UINT64_MAX};
    hub->timer = loop_timer_new(loop, hub_on_timer, hub);
    hub->soon = loop_timer_new(loop, hub_on_soon, hub);
    door_init(&hub->door, hub);
    return hub;
}

static void hub_stop_listening(struct rpc_hub *hub)
{
    while (hub->listeners) {
        struct rpc_listener *listener = hub->listeners;

        hub->listeners = listener->next;
        listener_free(listener);
    }
}

void rpc_hub_free(struct rpc_hub *hub)
{
    if (!hub)
        return;
    hub_stop_listening(hub);
    while (hub->first)
        peer_free(hub->first);
    door_done(&hub->door);
    loop_timer_free(hub->timer);
    loop_timer_free(hub->soon);
    free(hub);
}

void rpc_hub_shutdown(struct rpc_hub *hub, enum rpc_close_code code, const char *reason)
{
    hub->is_shut = true;
    hub_stop_listening(hub);
    for (struct rpc_peer *peer = hub->first; peer; peer = peer->next) {
        rpc_peer_close(peer, code, reason);
        if (peer->stage == PEER_HEAD)
            peer_break(peer, "shutting down");
    }
    hub_soon(hub);
}

void hub_soon(struct rpc_hub *hub)
{
    loop_timer_start(hub->soon, 0);
}

void hub_due_by(struct rpc_hub *hub, uint64_t due_ns)
{
    uint64_t now = clock_now_ns();

    if (due_ns >= hub->due_ns)
        return;
    hub->due_ns = due_ns;
    loop_timer_start(hub->timer, due_ns > now ? due_ns - now : 0);
}

void rpc_hub_tick(struct rpc_hub *hub)
{
    uint64_t now = clock_now_ns();

    hub->due_ns = UINT64_MAX;
    loop_timer_stop(hub->timer);
    for (struct rpc_listener *listener = hub->listeners; listener; listener = listener->next)
        listener_tick(listener, now);
    for (struct rpc_peer *peer = hub->first; peer; peer = peer->next) {
        peer_tick(peer, now);
        hub_due_by(hub, peer_due_ns(peer));
    }
}

bool hub_is_full(const struct rpc_hub *hub)
{
    return hub->stats.peers_open >= hub->options.max_peers;
}

static bool is_at_door(const struct rpc_peer *peer)
{
    return peer->stage == PEER_HEAD && peer->door.state != DOOR_UNASKED;
}

/* Connections that are not open (in the handshake, or being closed) may be as many as open ones.
 * Beyond that the one that is at it for the longest has to go, and first of all one that does not
 * wait for us: whoever comes with a request ready is through in a few rounds of the loop. */
void hub_make_place(struct rpc_hub *hub)
{
    struct rpc_peer *oldest = NULL;
    unsigned count = 0;

    for (struct rpc_peer *peer = hub->first; peer; peer = peer->next) {
        if (peer_is_open(peer) || peer->stage == PEER_DEAD)
            continue;
        if (!oldest || (is_at_door(oldest) && !is_at_door(peer)))
            oldest = peer;
        count++;
    }
    if (count >= hub->options.max_peers)
        peer_break(oldest, "too many connections");
}

struct rpc_peer *rpc_hub_attach(struct rpc_hub *hub, int in, int out, struct err *err)
{
    struct channel *channel = channel_new(hub->loop, in, out, err);
    struct rpc_peer *peer;

    if (!channel)
        return NULL;
    peer = peer_new(hub, channel, RPC_STDIO);
    snprintf(peer->name, sizeof peer->name, "stdio");
    peer_start_lines(peer);
    hub_soon(hub);
    return peer;
}

void rpc_hub_stats(const struct rpc_hub *hub, struct rpc_stats *ret)
{
    *ret = hub->stats;
    for (const struct rpc_peer *peer = hub->first; peer; peer = peer->next)
        ret->bytes_queued += peer->outbox.len;
}
