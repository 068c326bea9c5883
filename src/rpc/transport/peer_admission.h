/* Where connections wait until it is known who has them. Internal to rpc.
 *
 *     door_init(&door, hub)
 *     door_ask(&door, peer)      it is let in or refused at once, or waits: peer->door
 *     door_done(&door)
 */
#pragma once

struct loop_timer;
struct lookout;
struct rpc_hub;
struct rpc_peer;

enum door_state {
    DOOR_UNASKED,
    DOOR_WAITS,  /* for the next look */
    DOOR_LOOKED, /* for the end of the one that goes on */
    DOOR_OPEN,
    DOOR_SHUT,
};

struct door {
    struct rpc_hub *hub;
    struct loop_timer *timer; /* for the next step */
    struct lookout *lookout;  /* NULL: nobody waits */
};

void door_init(struct door *door, struct rpc_hub *hub);
void door_done(struct door *door);

/* Asks for a peer that has sent its head, once. When the answer is DOOR_WAITS nothing more is read
 * from it; when the real answer is there it is the hub's turn, as if the peer could be read. */
void door_ask(struct door *door, struct rpc_peer *peer);
