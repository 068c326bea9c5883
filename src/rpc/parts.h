/* What hub.c, listener.c and the peer's files share. Internal to rpc. */
#pragma once

#include "base/buf.h"
#include "rpc/calls.h"
#include "rpc/outbox.h"
#include "rpc/rpc.h"
#include "rpc/transport/bind.h"
#include "rpc/transport/http_head.h"
#include "rpc/transport/lines.h"
#include "rpc/transport/peer_admission.h"
#include "rpc/transport/stream.h"
#include "rpc/transport/ws.h"

enum {
    PING_S = 30,         /* between pings, as the original */
    SILENCE_S = 90,      /* a WebSocket peer that sends and takes nothing for so long is dropped */
    HEAD_S = 10,         /* for all of an HTTP head */
    FLUSH_S = 5,         /* a peer that is being closed may take nothing for so long */
    LINGER_S = 2,        /* for the other end to close, when all is written */
    NAME_SIZE = 80,      /* "[IPv6]:65535", "unix:uid=...,pid=..." */
    WHY_SIZE = 160,      /* */
    READ_SIZE = 65536,   /* bytes of one read(2) */
    ROUND_BYTES = 65536, /* read from one peer before the others get their turn */
    ROUND_HEADS = 1,     /* HTTP heads that are answered before those who are in get their turn */
};

struct rpc_listener {
    struct rpc_hub *hub;
    struct rpc_listener *next;
    struct loop_watch *watch;
    int fd; /* -1: stdio */
    struct rpc_address address;
    struct socket_file file;
    char url[RPC_ADDRESS_TEXT_SIZE];
    uint64_t resume_ns; /* accepts nothing before; 0: accepts */
};

struct rpc_hub {
    struct loop *loop;
    struct rpc_hub_options options;
    struct rpc_listener *listeners;
    struct rpc_peer *first; /* oldest */
    struct rpc_peer *last;
    struct loop_timer *timer; /* for the earliest of all deadlines */
    uint64_t due_ns;          /* when it fires */
    struct loop_timer *soon;  /* for what must not happen inside a call of the owner */
    struct door door;
    struct rpc_stats stats;
    unsigned heads; /* that may still be answered in this round */
    bool is_shut;
    bool is_idle; /* on_idle was called */
};

/*     HEAD ---> WS or LINES ---> FLUSH ---> LINGER ---> DEAD
 *        \________ a reply _______^    any of them ------^ when broken or too late */
enum peer_stage {
    PEER_HEAD,  /* collects an HTTP head; of a Unix socket, the first byte says whether it is one */
    PEER_WS,    /* open */
    PEER_LINES, /* open */
    PEER_FLUSH, /* writes what is queued; reads nothing */
    PEER_LINGER, /* drops what still comes, so that a reset does not overtake what was written */
    PEER_DEAD,   /* freed in the next round */
};

struct rpc_peer {
    struct rpc_hub *hub;
    struct rpc_peer *next;
    struct rpc_peer *previous;
    struct channel *channel;
    enum rpc_transport transport;
    enum peer_stage stage;
    char name[NAME_SIZE];
    char why[WHY_SIZE]; /* it left the open stages */
    struct buf early;   /* an HTTP head so far; then bytes that were read and not yet used */
    struct ws *ws;
    struct rpc_lines lines;
    struct outbox outbox;
    struct calls calls;
    void *data;
    size_t budget;        /* bytes that may still be read in this round, for the others' sake */
    uint64_t deadline_ns; /* of HEAD, FLUSH and LINGER */
    uint64_t alive_ns;    /* last sign of life */
    uint64_t ping_ns;     /* next ping */
    struct {
        enum door_state state;
        uint32_t inode; /* of the other end, while it waits */
        unsigned looks; /* that were made for it */
    } door;
    struct {
        bool is_announced : 1; /* on_open was called */
        bool is_departed : 1;  /* on_closed was called */
        bool is_paused : 1;    /* by the owner */
        bool is_full : 1;      /* the owner was told that there is no room */
        bool is_at_end : 1;    /* the other end writes no more */
        bool has_leftover : 1; /* reading stopped although more may be in our buffers */
        bool is_server : 1;    /* we connected to it (connect.c) */
        bool is_waiting : 1;   /* with its head, for a round in which there is time for it */
    } is;
};

/* hub.c */
void hub_soon(struct rpc_hub *hub);
void hub_due_by(struct rpc_hub *hub, uint64_t due_ns);
bool hub_is_full(const struct rpc_hub *hub);
void hub_make_place(struct rpc_hub *hub); /* for one more connection */

/* listener.c */
void listener_free(struct rpc_listener *listener);
void listener_tick(struct rpc_listener *listener, uint64_t now_ns);

/* peer.c: the life of a peer */
struct rpc_peer *peer_new(struct rpc_hub *hub, struct channel *channel,
                          enum rpc_transport transport);
void peer_free(struct rpc_peer *peer);
bool peer_is_open(const struct rpc_peer *peer);
void peer_start_ws(struct rpc_peer *peer);
void peer_start_lines(struct rpc_peer *peer);
void peer_set_deadline(struct rpc_peer *peer, uint64_t seconds);
void peer_announce(struct rpc_peer *peer);               /* on_open */
void peer_leave(struct rpc_peer *peer, const char *why); /* to FLUSH */
void peer_break(struct rpc_peer *peer, const char *why); /* to DEAD */
void peer_settle(struct rpc_peer *peer); /* after anything that may change what it waits for */
void peer_tick(struct rpc_peer *peer, uint64_t now_ns);
uint64_t peer_due_ns(const struct rpc_peer *peer);

/* peer_read.c: bytes in */
bool peer_may_read(const struct rpc_peer *peer);
void peer_read(struct rpc_peer *peer);
void peer_read_leftover(struct rpc_peer *peer);
void peer_take_lines(struct rpc_peer *peer, const char *bytes, size_t len);
extern const struct ws_events peer_ws_events;

/* peer_head.c: the HTTP part of a life */
void peer_expect_head(struct rpc_peer *peer); /* its deadline runs from here */
void peer_read_head(struct rpc_peer *peer);
void peer_answer_late(struct rpc_peer *peer);

/* peer_write.c: bytes out */
void peer_put(struct rpc_peer *peer, const void *bytes, size_t len);
void peer_send_request(struct rpc_peer *peer, int64_t id, const struct rpc_call *call);
void peer_write(struct rpc_peer *peer);
