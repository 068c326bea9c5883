/* Without a token to tell them by, those are let in who could do by themselves what we do for them:
 * this user and root, and no command of Cordon's, which could leave its sandbox by starting another
 * one. What cannot be told is refused. (Of root's processes others cannot see what is open.)
 *
 * Whom the socket belongs to is asked in a call; in which processes it is open takes a look at all
 * of them (lookout.h), which is made in small steps, one in a round of the loop, so that those who
 * are in go on meanwhile. However many wait, one look serves them all: those who were there when it
 * began. The others wait for the next one. Who could not be found is looked for once more, since a
 * process may hand its connection on to another, as servers and their workers do.
 *
 * A peer may leave while it waits: too late, thrown out for another one, shut down. The look goes
 * by inodes and knows nothing of peers; who is still there is seen when it ends. */
#include "rpc/transport/peer_admission.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "loop/loop.h"
#include "rpc/parts.h"
#include "rpc/transport/socket_holders.h"
#include "rpc/transport/tcp_peer_lookup.h"

#include <stdlib.h>
#include <unistd.h>

enum { LOOKS_MAX = 2 };

static bool is_at(const struct rpc_peer *peer, enum door_state state)
{
    return peer->stage == PEER_HEAD && peer->door.state == state;
}

static void door_decide(struct rpc_peer *peer, enum lookout_verdict verdict)
{
    peer->door.looks++;
    if (verdict == LOOKOUT_NOBODY && peer->door.looks < LOOKS_MAX) {
        peer->door.state = DOOR_WAITS;
        return;
    }
    peer->door.state = verdict == LOOKOUT_WELCOME ? DOOR_OPEN : DOOR_SHUT;
    peer->is.is_waiting = true;
    hub_soon(peer->hub);
}

static void door_end(struct door *door)
{
    for (struct rpc_peer *peer = door->hub->first; peer; peer = peer->next)
        if (is_at(peer, DOOR_LOOKED))
            door_decide(peer, lookout_verdict(door->lookout, peer->door.inode));
    lookout_free(door->lookout);
    door->lookout = NULL;
}

/* A look for all who wait; none when nobody does. */
static void door_begin(struct door *door)
{
    AUTO_FREE uint32_t *inodes = NULL;
    size_t cap = 0;
    size_t len = 0;

    for (struct rpc_peer *peer = door->hub->first; peer; peer = peer->next) {
        if (!is_at(peer, DOOR_WAITS))
            continue;
        inodes = alloc_grow(inodes, len, &cap, sizeof *inodes);
        inodes[len++] = peer->door.inode;
        peer->door.state = DOOR_LOOKED;
    }
    if (len)
        door->lookout = lookout_new(inodes, len);
}

static void door_on_timer(void *data)
{
    struct door *door = data;

    if (door->lookout && lookout_step(door->lookout))
        door_end(door);
    if (!door->lookout)
        door_begin(door);
    if (door->lookout)
        loop_timer_start(door->timer, 0);
}

void door_init(struct door *door, struct rpc_hub *hub)
{
    *door = (struct door){.hub = hub, .timer = loop_timer_new(hub->loop, door_on_timer, door)};
}

void door_done(struct door *door)
{
    lookout_free(door->lookout);
    loop_timer_free(door->timer);
    *door = (struct door){0};
}

void door_ask(struct door *door, struct rpc_peer *peer)
{
    struct tcp_owner owner;

    peer->door.state = DOOR_SHUT;
    if (!tcp_owner_find(channel_fd(peer->channel), &owner))
        return;
    if (owner.uid == 0 && geteuid() != 0) {
        peer->door.state = DOOR_OPEN;
    } else if (owner.uid == geteuid()) {
        peer->door.state = DOOR_WAITS;
        peer->door.inode = owner.inode;
        if (!door->lookout)
            loop_timer_start(door->timer, 0);
    }
}
