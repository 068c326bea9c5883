/* What a client gets by initialize: a table of processes, which outlives its connection.
 *
 *     client_session_new()      attached to the connection that asked
 *       client_session_detach()   the connection is gone: the clock runs
 *       client_session_attach()   another one took it up (resumeSessionId)
 *     client_session_free()     kills what still runs
 */
#pragma once

#include "base/list.h"
#include "server/process/process_table.h"

#include <stdbool.h>
#include <stdint.h>

struct approvals;
struct client;
struct loop_timer;
struct server;
struct snapshots;

enum {
    CLIENT_SESSION_ID_SIZE = 37,     /* a UUID and its NUL */
    CLIENT_SESSIONS_DETACHED = 1024, /* kept that have nothing in them */
};

#define CLIENT_SESSION_LIFETIME_NS UINT64_C(80000000000) /* 80 s, as the original does */

struct client_session {
    char id[CLIENT_SESSION_ID_SIZE];
    uint64_t number; /* owner of its jobs; from 1 */
    struct server *server;
    struct client *client; /* NULL while detached */
    struct list in_server;
    uint64_t lifetime_ns; /* without a connection; 0: until nothing runs, and then the usual */
    uint64_t detached;    /* counts in the order in which connections were lost; 0: it has one */
    struct loop_timer *timer;
    struct process_table processes;
    struct snapshots *snapshots; /* of its login shells; NULL until one is asked for */
    struct approvals *approvals; /* its questions; NULL until there can be one */
};

struct client_session *client_session_new(struct server *server, uint64_t lifetime_ns);
void client_session_free(struct client_session *session);

/* NULL when there is none. */
struct client_session *client_session_find(const struct server *server, const char *id);

void client_session_attach(struct client_session *session, struct client *client);
/* Beyond CLIENT_SESSIONS_DETACHED of those with no process in them the oldest ends that has no
 * session of a model either, which may be this one; the others are bounded by their number. */
void client_session_detach(struct client_session *session);

/* Its connection takes output again. */
void client_session_on_room(struct client_session *session);

/* One of its processes has come to its end. */
void client_session_on_idle(struct client_session *session);
