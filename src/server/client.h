/* One connection: how far its handshake is, the session that it speaks for, the calls that wait.
 * Internal to server. */
#pragma once

#include "server/method.h"

#include <stdint.h>

struct call;
struct client_session;
struct observer;
struct rpc_message;

enum client_state {
    CLIENT_NEW,         /* initialize has not succeeded */
    CLIENT_INITIALIZED, /* the client has not confirmed it */
    CLIENT_READY,
};

struct client {
    struct server *server;
    struct rpc_peer *peer;
    struct client *next; /* of the server's clients */
    struct client *previous;
    enum client_state state;
    struct client_session *session; /* NULL before initialize */
    struct call *calls;
    size_t calls_len;
    struct observer *observers; /* processes of others that it watches */
    struct {
        void *part;
        const struct client_part_type *type;
    } parts[CLIENT_PART_COUNT];
};

/* What rpc_handlers call. */
void client_on_open(struct server *server, struct rpc_peer *peer);
void client_on_message(struct client *client, struct rpc_message *message);
void client_on_room(struct client *client);
void client_on_closed(struct client *client);
