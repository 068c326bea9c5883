/* One connection of a command, from its first byte to its last.
 *
 *     what is meant (by where it goes, or said to us) -> decided -> asked, perhaps -> dialled -> relayed
 *
 * The first bytes of what is relayed are looked at: TLS has to be for the name that was meant, and so has each request
 * of plain HTTP. */
#pragma once

#include "proxy/command.h"
#include "proxy/deadline.h"
#include "proxy/relay.h"

struct dial;
struct ended;
struct explicit_client;
struct http_flow;
struct http_request;
struct upstream;

struct connection {
    struct command *command;
    struct list in_connections;
    struct deadline deadline;
    struct target target;
    int client; /* -1: the relay has it */
    struct loop_watch *watch;
    struct question_waiter held;      /* while somebody is asked */
    struct dial *dial;                /* while it is dialled */
    struct explicit_client *explicit; /* NULL: it does not know of us */
    size_t
        passed; /* bytes of what the client says first that went on already; they are still in the flow's `in` */
    struct http_flow *http; /* once it is known to be plain HTTP */
    struct ended *ended;    /* once its TLS is ended */
    const struct upstream
        *forwarder; /* the server is the host's own proxy, which wants whole URLs */
    bool is_relaying;
    struct relay relay;
    struct buf last_words; /* to the client, in place of what it wanted */
};

/* Why something is refused. */
struct refusal {
    enum network_reason reason; /* NETWORK_REASON_NONE: for `text` */
    int status;                 /* of HTTP; 0: 403 */
    const char *text; /* a limit that was hit, or what was wrong; NULL: the word of the reason */
    const struct network_rule *rule;
};

/* A client that was accepted, which it takes. */
void connection_new(struct command *command, int client);
void connection_free(struct connection *connection);

/* Once `target` is set: decides, and goes on as is decided. May free the connection. */
void connection_reach(struct connection *connection);

/* Tells the host. */
void connection_tell(struct connection *connection, const struct refusal *refusal);

/* What a client says that it is connected to (SNI, Host): whether it may say so; told if not. */
bool connection_may_name(struct connection *connection, const char *name, size_t len);

/* The filter of what a client sends first. */
relay_filter_fn connection_look;

/* Sends the last words, and reads on until the client has them. Not before its relay is over. */
void connection_close(struct connection *connection);

/* Sets the relay up between the client and this socket, which it takes; and starts it, with filters that the caller has set
 * meanwhile. It may be over, and the connection freed, after that. */
void connection_relay(struct connection *connection, int server);
void connection_start(struct connection *connection);

/* A head or hello has to be whole soon; and it is. */
void connection_limit_first_bytes(struct connection *connection);
void connection_limit_idle(struct connection *connection);

/* For the queues. */
void connection_on_time(struct deadline *deadline);
void connection_on_idle(struct deadline *deadline);
void connection_on_first_bytes(struct deadline *deadline);
