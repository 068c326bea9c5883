/* The resolver that a command has, whichever it asks: its questions by UDP and TCP. */
#pragma once

#include "base/list.h"
#include "policy/host.h"
#include "proxy/deadline.h"
#include "proxy/search.h"

struct command;
struct loop_watch;

enum { DNS_SOCKETS = 2 };

struct dns_server {
    int fds[DNS_SOCKETS]; /* of UDP; -1: none */
    struct loop_watch *watches[DNS_SOCKETS];
    struct list pending; /* questions whose answer is looked up */
    unsigned pending_len;
    struct list streams;
    unsigned streams_len;
    struct search_guesses guesses;
    char last_refused
        [NET_HOST_SIZE]; /* name; what a resolver tries with its domains next is not told */
};

void dns_server_init(struct dns_server *server);

/* Takes a UDP socket. Its address has to be the one that is asked for answers to be taken (127.0.0.1, ::1), not the
 * wildcard. */
void dns_server_add(struct command *command, unsigned index, int fd);

/* Takes a connection to port 53. */
void dns_server_add_stream(struct command *command, int fd);

void dns_server_done(struct command *command);

/* For the queue of streams that say nothing. */
void dns_server_on_idle(struct deadline *deadline);
