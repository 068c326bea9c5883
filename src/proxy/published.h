/* The other direction: ports of the command that are published. Who connects outside is led to that port of the command's
 * own localhost, and to no other.
 *
 *     a visitor is accepted -> a socket of the command's network is asked for -> 127.0.0.1, else ::1 -> relayed
 *
 * The sockets come from the command's init (sandbox/launcher), which lives in there, over the way in. When that ends, so
 * has the command: the listeners are closed at once. */
#pragma once

#include "base/list.h"
#include "proxy/proxy_format.h"

#include <stdint.h>

struct command;
struct deadline;
struct loop_watch;

/* Of a command. */
struct way_in {
    int sockets; /* -1: nothing is published */
    struct loop_watch *watch;
    struct list published;
    struct list waiting; /* visitors that will ask for a socket */
    struct list asking;  /* that have, in the order in which sockets come */
    unsigned asking_len;
};

void way_in_init(struct way_in *way_in);
void way_in_done(struct way_in *way_in);

/* Takes the descriptors. */
void published_add(struct command *command, uint16_t port, const int fds[PROXY_WAYS_IN]);

void published_on_time(struct deadline *deadline); /* for the queue of visitors */
