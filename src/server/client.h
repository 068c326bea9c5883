/* One connection: how far its handshake is, the session that it speaks for, the calls that wait. */
#pragma once

#include "base/list.h"

#include <stddef.h>

struct call;
struct client_session;
struct observer;
struct rpc_message;
struct rpc_peer;
struct server;

/* What a family of methods keeps with a connection (file handles, watches, streams), one pointer
 * for each. `done` is called when the connection closes, behind every on_gone of its calls. */
enum client_part {
    CLIENT_PART_FILES,
    CLIENT_PART_WATCHES,
    CLIENT_PART_HTTP,
    CLIENT_PART_LAYERS,
    CLIENT_PART_COUNT
};

struct client_part_type {
    void (*done)(void *part);
    void (*on_room)(void *part); /* there is room in the queue again (rpc_handlers); may be NULL */
};

enum client_state {
    CLIENT_NEW,         /* initialize has not succeeded */
    CLIENT_INITIALIZED, /* the client has not confirmed it */
    CLIENT_READY,
};

struct client {
    struct server *server;
    struct rpc_peer *peer;
    struct list in_server;
    enum client_state state;
    struct client_session *session; /* NULL before initialize */
    struct list calls;
    size_t calls_len;
    struct list observers; /* processes of others that it watches */
    struct {
        void *part;
        const struct client_part_type *type;
    } parts[CLIENT_PART_COUNT];
};

/* A request that is well-formed and may be used, to its handler: for one that had to wait before it. */
void client_handle(struct call *call);

/* What rpc_handlers call. */
void client_on_open(struct server *server, struct rpc_peer *peer);
void client_on_message(struct client *client, struct rpc_message *message);
void client_on_room(struct client *client);
void client_on_closed(struct client *client);

void *client_part(const struct client *client, enum client_part which); /* NULL: none yet */
void client_set_part(struct client *client, enum client_part which, void *part,
                     const struct client_part_type *type);
