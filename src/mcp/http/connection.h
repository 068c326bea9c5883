/* What the files of MCP over HTTP share: server.c on top, connection.c and endpoint.c below it. Internal. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "loop/loop.h"
#include "mcp/http/door.h"
#include "mcp/http/events.h"
#include "mcp/http/intake.h"
#include "mcp/http/reply.h"
#include "mcp/http/server.h"
#include "rpc/transport/listener.h"
#include "rpc/transport/peer_admission.h"

enum {
    CONNECTIONS_MAX = 256,
    CONNECTIONS_IDLE_MAX =
        64, /* between two requests; the one that is it for the longest goes first */
    SESSIONS_MAX = 256,
    QUEUE_FULL = 1 << 20, /* bytes that a client has not taken: what may be lost is not sent */
    QUEUE_MAX = 4 << 20,  /* bytes: a stream is closed, and its client may come back for the rest */
};

struct endpoint_stream;
struct endpoint_session;
struct stream;

struct mcp_http {
    struct mcp_http_options options;
    struct loop *loop;
    struct rpc_listener **listeners; /* `listeners_len` of them, of as many addresses */
    char **urls;
    size_t listeners_len;
    struct list connections; /* the one that began its last request the longest ago first */
    size_t connections_len;
    struct list sessions;
    size_t sessions_len;
    struct endpoint_session
        *modern; /* of all requests of versions without sessions; NULL: none came yet */
    struct admission admission;
    struct loop_timer *timer; /* for the earliest of all deadlines */
    uint64_t due_ns;          /* when it fires */
    struct loop_timer
        *deferred; /* for what must not happen inside a call of a session: going on, freeing */
};

/* Has the server go through its connections in the next round. */
static inline void http_defer(struct mcp_http *http)
{
    loop_timer_start(http->deferred, 0);
}

/* Deadlines are looked at by then. */
static inline void http_due_by(struct mcp_http *http, uint64_t due_ns)
{
    uint64_t now = clock_now_ns();

    if (due_ns >= http->due_ns)
        return;
    http->due_ns = due_ns;
    loop_timer_start(http->timer, due_ns > now ? due_ns - now : 0);
}

/* --- connection.c: bytes, and who they are from --- */

/*     READS ---> ADMITS ---> READS ---> ANSWERS ---> READS ...          any of them ---> DEAD
 *       ^           \           \______    \___> STREAMS ---> READS         when broken
 *    accepted        \__________ a refusal \______> FLUSHES ---> LINGERS ---> DEAD        or too late */
enum connection_stage {
    CONNECTION_READS,   /* a request, or waits for one */
    CONNECTION_ADMITS,  /* whose process it is, is being found out */
    CONNECTION_ANSWERS, /* the endpoint has the request */
    CONNECTION_STREAMS, /* the endpoint sends events */
    CONNECTION_FLUSHES, /* writes what is queued; reads nothing */
    CONNECTION_LINGERS, /* drops what still comes, so that a reset does not overtake what was written */
    CONNECTION_DEAD, /* freed in the next round */
};

struct connection {
    struct mcp_http *http;
    struct list in_http;
    struct stream *stream;
    enum connection_stage stage;
    struct intake intake;
    struct admission_request admission;
    struct buf out; /* what is not written yet, from `out_at` on */
    size_t out_at;
    uint64_t deadline_ns;           /* of READS and LINGERS */
    uint64_t written_ns;            /* when some of it was taken last */
    struct endpoint_stream *events; /* of STREAMS; NULL: their end was sent */
    bool is_known;                  /* it was let in once */
    bool is_chunked;                /* the events are */
    bool goes_on;                   /* there may be a whole request already */
};

void connection_accept(struct mcp_http *http, int fd, const struct rpc_address *from);
void connection_free(struct connection *connection);
/* Takes what has come. */
void connection_go_on(struct connection *connection);
void connection_break(struct connection *connection);
/* Deadlines; and when it has to come next. */
void connection_tick(struct connection *connection, uint64_t now_ns);
uint64_t connection_due_ns(const struct connection *connection);
bool connection_is_idle(const struct connection *connection);

/* The answer to the request that it has. `closes` is filled in, unless it is true. */
void connection_reply(struct connection *connection, struct reply reply);
void connection_refuse(struct connection *connection, int status, const char *text);

/* The answer as a stream of events. What a client takes too slowly breaks the connection. */
void connection_begin_events(struct connection *connection, struct endpoint_stream *events);
/* `id` NULL: none; `text` as event_write() has it. */
void connection_event(struct connection *connection, const struct event_id *id, const char *text,
                      size_t len);
void connection_end_events(struct connection *connection);
bool connection_is_full(const struct connection *connection);

/* --- endpoint.c: sessions, and what is said to them --- */

/* A whole request, which was let in. It is answered now, or begins a stream. */
void endpoint_take(struct connection *connection);
/* The connection of a stream is gone. Not inside a call of a session. */
void endpoint_lost(struct connection *connection);
/* Ends sessions that are idle; when to come next. */
uint64_t endpoint_tick(struct mcp_http *http, uint64_t now_ns);
void endpoint_end_sessions(struct mcp_http *http);
