/* JSON-RPC connections: listeners, peers, messages in and out. One loop, no threads.
 *
 *     rpc_hub_new(loop, &options)
 *     rpc_hub_listen(hub, &address)              any number of times: ws://, unix:, stdio
 *     rpc_hub_adopt(hub, fd)                     a listening socket from systemd
 *        -> on_open(peer), then per message on_message(peer, message); at last on_closed(peer)
 *        <- rpc_peer_result(), _error(), _notify(), _call(), _send()
 *
 *     rpc_hub_shutdown(hub, code, reason)        listens no more, closes every peer
 *     rpc_hub_free(hub)                          without callbacks
 *
 * Callbacks come from the loop only, never from inside a function below, so an owner may call
 * anything at any time. on_closed comes exactly once for each on_open; a peer is gone when it
 * returns. Whatever is sent to a peer that is closing is dropped.
 *
 * What the hub does by itself: WebSocket and HTTP (/readyz, /healthz, /metrics), authentication,
 * deadlines, pings, limits, the answer with id -1 to what is no message, matching of answers to
 * rpc_peer_call(). A peer that answers a request that was not made is closed.
 *
 * Back pressure: what a peer does not take yet is queued. rpc_peer_send() and its kin say whether
 * there is room; an owner that produces without being asked (output of commands) then stops until
 * on_room. Answers may be sent in any case: beyond `queue_stop` the peer is not read any more, so
 * no new requests come, and memory stays bounded by queue_stop and what requests already taken
 * still answer.
 *
 * The program has to ignore SIGPIPE. */
#pragma once

#include "base/err.h"
#include "rpc/message.h"
#include "rpc/transport/listener.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct loop;
struct rpc_auth;
struct rpc_hub;
struct rpc_peer;

/* Status codes of RFC 6455, 7.4.1, for rpc_peer_close(). */
enum rpc_close_code {
    RPC_CLOSE_NORMAL = 1000,
    RPC_CLOSE_GOING_AWAY = 1001,
    RPC_CLOSE_PROTOCOL = 1002,
    RPC_CLOSE_BAD_TEXT = 1007,
    RPC_CLOSE_POLICY = 1008,
    RPC_CLOSE_TOO_BIG = 1009,
    RPC_CLOSE_INTERNAL = 1011,
    RPC_CLOSE_TRY_LATER = 1013, /* in the IANA registry */
};

struct rpc_handlers {
    /* A peer is through with handshake and authentication. May be NULL. */
    void (*on_open)(void *data, struct rpc_peer *peer);

    /* A request or a notification; freed when the call returns unless rpc_message_take()n. */
    void (*on_message)(void *data, struct rpc_peer *peer, struct rpc_message *message);

    /* The queue of a peer for which there was no room fell to queue_low. May be NULL. */
    void (*on_room)(void *data, struct rpc_peer *peer);

    /* The peer is gone after this. `why` is a short text for a log. */
    void (*on_closed)(void *data, struct rpc_peer *peer, const char *why);

    /* After rpc_hub_shutdown(): the last byte is written and the last connection gone. May be NULL.
     */
    void (*on_idle)(void *data);

    /* Appends the body of /metrics (Prometheus text format). NULL: there is no such page. */
    void (*on_metrics)(void *data, struct buf *body);
};

/* Zero means the default. */
struct rpc_hub_options {
    const struct rpc_handlers *handlers; /* borrowed */
    void *data;                          /* for the handlers */
    const struct rpc_auth *auth; /* borrowed; of ws listeners; NULL: processes that could do by
                                            themselves what this one does (peer_admission.h) */
    bool
        takes_nul; /* texts of messages may hold NUL, as what commands write does: the owner takes their
                       lengths */
    unsigned max_peers; /* open connections; 256 */
    size_t message_max; /* bytes of one incoming message; 64 MiB */
    size_t queue_high;  /* bytes: no room from here on; 1 MiB */
    size_t queue_low;   /* bytes: room again from here on; 256 KiB */
    size_t queue_stop;  /* bytes: not read from here on; 4 MiB */
};

struct rpc_hub *rpc_hub_new(struct loop *loop, const struct rpc_hub_options *options);
void rpc_hub_free(struct rpc_hub *hub); /* not from a callback */

/* Starts to listen; the listener is the hub's. An IP address that is not loopback needs `auth`:
 * ERR_FORBIDDEN. Of RPC_STDIO descriptors 0 and 1 become a peer in the next round of the loop. */
struct rpc_listener *rpc_hub_listen(struct rpc_hub *hub, const struct rpc_address *address,
                                    struct err *err);

/* Listens on a socket that already does (systemd socket activation), which becomes the hub's also
 * on failure: TCP under the rules of ws://, Unix under those of unix:. */
struct rpc_listener *rpc_hub_adopt(struct rpc_hub *hub, int fd, struct err *err);

/* A connected stream that speaks JSON lines (a socket, pipes, files), `in` to read from and `out`
 * to write to; both become the hub's. The same socket for both is a peer of RPC_UNIX, of which there
 * may be many; two descriptors are that of RPC_STDIO. on_open comes in the next round. */
struct rpc_peer *rpc_hub_attach(struct rpc_hub *hub, int in, int out, struct err *err);

/* --- the other way round --- */

struct rpc_target {
    struct rpc_address address; /* RPC_WS or RPC_UNIX */
    const char *token;          /* sent as "Authorization: Bearer ..."; NULL: none */
    const char *user_token;     /* in its place: never sent, but shown to be known, which the
                                   server has to do, too (transport/auth.h); NULL: none */
};

/* Connects to a server, whose peer is then like any other; waits for it, without the loop, 10 s at
 * most. on_open comes in the next round. ERR_SYSTEM when no server answers (`sys` tells),
 * ERR_FORBIDDEN when the server wants a token or another one, or does not know the user's,
 * ERR_INVALID when it is not a WebSocket server. */
struct rpc_peer *rpc_hub_connect(struct rpc_hub *hub, const struct rpc_target *target,
                                 struct err *err);

/* Listens no more (socket files go) and closes every peer with this code; on_idle comes when all is
 * done, some seconds later at most. */
void rpc_hub_shutdown(struct rpc_hub *hub, enum rpc_close_code code, const char *reason);

/* Does what is due by clock_now_ns(): pings, deadlines. The hub calls it by a timer of its own;
 * tests that stop the clock call it themselves. */
void rpc_hub_tick(struct rpc_hub *hub);

struct rpc_stats {
    uint64_t peers_open; /* between on_open and on_closed */
    uint64_t peers_opened;
    uint64_t peers_refused; /* by authentication, Origin, uid or max_peers */
    uint64_t messages_in;
    uint64_t messages_out;
    uint64_t bytes_in; /* as they are on the wire, as are the next */
    uint64_t bytes_out;
    uint64_t bytes_queued; /* now, for all peers */
    uint64_t parse_errors;
};
void rpc_hub_stats(const struct rpc_hub *hub, struct rpc_stats *ret);

/* --- one peer --- */

/* The owner's own pointer. */
void rpc_peer_set_data(struct rpc_peer *peer, void *data);
void *rpc_peer_data(const struct rpc_peer *peer);

/* For logs: "127.0.0.1:4711", "unix:uid=1000,pid=99", "stdio". */
const char *rpc_peer_name(const struct rpc_peer *peer);
enum rpc_transport rpc_peer_transport(const struct rpc_peer *peer);

bool rpc_peer_has_room(const struct rpc_peer *peer);

/* Sends one message: JSON text without a line feed in it. Written at once when the peer takes it;
 * what it does not take is copied. Each returns whether there is room for more. */
bool rpc_peer_send(struct rpc_peer *peer, const char *text, size_t len);
/* The same without the copy; `text` is from malloc() and becomes the peer's. */
bool rpc_peer_send_take(struct rpc_peer *peer, char *text, size_t len);

/* `result`, `params` and `failure.data` stay the caller's. */
bool rpc_peer_result(struct rpc_peer *peer, const json_t *id, const json_t *result);
bool rpc_peer_error(struct rpc_peer *peer, const json_t *id, enum rpc_code code, const char *fmt,
                    ...) __attribute__((format(printf, 4, 5)));
bool rpc_peer_fail(struct rpc_peer *peer, const json_t *id, const struct rpc_failure *failure);
bool rpc_peer_notify(struct rpc_peer *peer, const char *method, const json_t *params);

/* A request to the peer. on_answer comes exactly once unless it is cancelled: with the answer
 * (RPC_RESULT or RPC_ERROR), or with NULL when `timeout_ns` (0: none) passed or the peer closes,
 * then before on_closed. Returns the id, from 1. */
typedef void rpc_answer_fn(void *data, const struct rpc_message *answer);
struct rpc_call {
    const char *method;
    const json_t *params;
    uint64_t timeout_ns;
    rpc_answer_fn *on_answer;
    void *data;
};
int64_t rpc_peer_call(struct rpc_peer *peer, const struct rpc_call *call);
/* No on_answer any more; an answer that still comes is ignored. Unknown ids are fine. */
void rpc_peer_call_cancel(struct rpc_peer *peer, int64_t id);

/* Stops messages from coming in, at once, for an owner that has too many. */
void rpc_peer_pause(struct rpc_peer *peer);
void rpc_peer_resume(struct rpc_peer *peer);

/* Writes what is queued, says good-bye (a Close frame; on JSON lines: end of file) and closes, all
 * within some seconds; no message comes any more. `reason` is at most 123 bytes and may be NULL. */
void rpc_peer_close(struct rpc_peer *peer, enum rpc_close_code code, const char *reason);
