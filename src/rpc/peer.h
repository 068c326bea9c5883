/* What the files of connections share: hub.c on top, peer_input.c below it, peer.c below both.
 * Internal to rpc. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "loop/loop.h"
#include "rpc/rpc.h"
#include "rpc/transport/peer_admission.h"

#include <sys/uio.h>

enum {
    PEER_NAME_SIZE = 80, /* "[IPv6]:65535", "unix:uid=...,pid=..." */
    PEER_WHY_SIZE = 160,
};

struct stream;
struct ws;

struct rpc_hub {
    struct loop *loop;
    struct rpc_hub_options options;
    struct rpc_listener **listeners; /* `listener_count` of them */
    size_t listener_count;
    size_t listener_cap;
    struct list peers;           /* oldest first */
    struct loop_timer *timer;    /* for the earliest of all deadlines */
    uint64_t due_ns;             /* when it fires */
    struct loop_timer *deferred; /* for what must not happen inside a call of the owner */
    struct admission admission;
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

struct outbox {
    struct outbox_piece *pieces; /* a ring of `cap`, `count` of them in use from `first` on */
    size_t cap;
    size_t first;
    size_t count;
    size_t len; /* bytes */
};

struct rpc_lines {
    struct buf buf;
    size_t at;      /* where the next line begins */
    size_t scanned; /* there is no line feed between `at` and here */
    size_t max;     /* bytes of one line */
};

struct rpc_peer {
    struct rpc_hub *hub;
    struct list in_hub;
    struct stream *stream;
    enum rpc_transport transport;
    enum peer_stage stage;
    char name[PEER_NAME_SIZE];
    char why[PEER_WHY_SIZE]; /* it left the open stages */
    struct buf early;        /* an HTTP head so far; then bytes that were read and not yet used */
    struct ws *ws;
    struct rpc_lines lines;
    struct outbox outbox;
    struct list calls; /* that it has not answered yet, oldest first */
    int64_t last_call_id;
    void *data;
    size_t budget;        /* bytes that may still be read in this round, for the others' sake */
    uint64_t deadline_ns; /* of HEAD, FLUSH and LINGER */
    uint64_t alive_ns;    /* last sign of life */
    uint64_t ping_ns;     /* next ping */
    struct admission_request admission;
    bool is_announced : 1; /* on_open was called */
    bool is_departed : 1;  /* on_closed was called */
    bool is_paused : 1;    /* by the owner */
    bool is_full : 1;      /* the owner was notified that there is no room */
    bool is_at_end : 1;    /* the other end writes no more */
    bool has_leftover : 1; /* reading stopped although more may be in our buffers */
    bool is_server : 1;    /* we connected to it */
    bool is_waiting : 1;   /* with its head, for a round in which there is time for it */
};

/* Has the hub go through its peers in the next round. */
static inline void hub_defer(struct rpc_hub *hub)
{
    loop_timer_start(hub->deferred, 0);
}

/* rpc_hub_tick() has to come at this time at the latest. */
static inline void hub_due_by(struct rpc_hub *hub, uint64_t due_ns)
{
    uint64_t now = clock_now_ns();

    if (due_ns >= hub->due_ns)
        return;
    hub->due_ns = due_ns;
    loop_timer_start(hub->timer, due_ns > now ? due_ns - now : 0);
}

static inline bool hub_is_full(const struct rpc_hub *hub)
{
    return hub->stats.peers_open >= hub->options.max_peers;
}

/* --- peer.c: the life of a peer, and bytes out --- */

/* Takes the stream; nothing is read before one of peer_start_...(). */
struct rpc_peer *peer_new(struct rpc_hub *hub, struct stream *stream, enum rpc_transport transport,
                          const char *name);
void peer_free(struct rpc_peer *peer);
bool peer_is_open(const struct rpc_peer *peer);
bool peer_may_read(const struct rpc_peer *peer);
void peer_announce(struct rpc_peer *peer);               /* on_open */
void peer_leave(struct rpc_peer *peer, const char *why); /* to FLUSH */
void peer_break(struct rpc_peer *peer, const char *why); /* to DEAD */
void peer_set_deadline(struct rpc_peer *peer, uint64_t seconds);

/* After anything that may change what it waits for. */
void peer_update_interest(struct rpc_peer *peer);

/* Sends bytes that are no message. */
void peer_put(struct rpc_peer *peer, const void *bytes, size_t len);
/* Writes what is queued. */
void peer_write(struct rpc_peer *peer);

/* Hands the answer to the caller that it is for. false when it answers no call. */
bool peer_take_answer(struct rpc_peer *peer, const struct rpc_message *answer);
void peer_expire_calls(struct rpc_peer *peer, uint64_t now_ns); /* answers what is due with NULL */
uint64_t peer_calls_due_ns(const struct rpc_peer *peer);        /* of the next one */
void peer_fail_calls(struct rpc_peer *peer);                    /* answers all with NULL */

/* Copies the parts without their first `skip` bytes. */
void outbox_push(struct outbox *outbox, const struct iovec *parts, size_t count, size_t skip);
/* Takes `data`, of which the first `skip` bytes are not sent; it is freed when it is all taken. */
void outbox_push_take(struct outbox *outbox, char *data, size_t len, size_t skip);
/* Fills at most `max` parts with what comes next; borrowed until the next call. */
size_t outbox_peek(const struct outbox *outbox, struct iovec *ret, size_t max);
/* Forgets the first `len` bytes, at most all. */
void outbox_consume(struct outbox *outbox, size_t len);
void outbox_done(struct outbox *outbox);

/* --- peer_input.c: bytes in --- */

void peer_start_head(struct rpc_peer *peer);
void peer_start_open(struct rpc_peer *peer); /* as WS or LINES, by its transport */
void peer_read(struct rpc_peer *peer);
void peer_read_leftover(struct rpc_peer *peer);
void peer_tick(struct rpc_peer *peer, uint64_t now_ns); /* deadlines, pings */
uint64_t peer_due_ns(const struct rpc_peer *peer);      /* when it has to come next */

void rpc_lines_init(struct rpc_lines *lines, size_t max);
void rpc_lines_done(struct rpc_lines *lines);
/* false when the line that is not complete yet is longer than the limit already. */
bool rpc_lines_append(struct rpc_lines *lines, const char *data, size_t len);
/* The next complete line without its line feed, borrowed until the next call; blank ones are left
 * out. */
bool rpc_lines_next(struct rpc_lines *lines, const char **ret_line, size_t *ret_len);
