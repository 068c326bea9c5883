/* Passes on what a process writes, and hears how it ends, from the events that the server sends.
 *
 *     follow_new(&options, &err)      before the events can come
 *     connection_run(connection)      returns when the process is closed, or enough was seen
 *     follow_finish(follow, &err)     writes what still waits
 *     follow_free(follow)
 */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection;
struct client_console;
struct follow;

enum follow_order {
    FOLLOW_BY_NUMBER, /* a process of our own: every event has come, in whatever order */
    FOLLOW_AS_SENT,   /* process/attach: parts may be missing, which process/gap says */
};

struct follow_options {
    struct connection *connection; /* borrowed; events go to the follow from now on */
    const struct client_console *console;
    const char *id; /* by which the connection speaks of the process, or of the exec/run; copied */
    enum follow_order order;
    uint64_t
        until; /* the connection stops when the output has come up to here; UINT64_MAX: never */
    void (*on_step)(void *data, const json_t *event); /* exec/event; NULL: nobody wants to know */
    void *data;
};

struct follow *follow_new(const struct follow_options *options, struct err *err);
void follow_free(struct follow *follow); /* before the connection; safe on NULL */

/* Output that did not come by itself: a chunk of process/read. */
void follow_chunk(struct follow *follow, const json_t *chunk);

/* Writes nothing for now: the terminal is needed for something else; or goes on. */
void follow_hold(struct follow *follow, bool on);

bool follow_is_closed(const struct follow *follow);
int follow_exit_code(const struct follow *follow, int otherwise); /* when it has not exited */

/* The parameters of process/exited; NULL: it did not come. */
const json_t *follow_end(const struct follow *follow);

/* Whether the reader of our stdout or stderr went away: then nothing more can be written. */
bool follow_has_no_reader(const struct follow *follow);

/* Waits until everything is written; ERR_SYSTEM when something could not be, or the server sent
 * what cannot be understood. Not for a reader that went away. */
int follow_finish(struct follow *follow, struct err *err);

/* --- the order of events, by itself ---
 *
 * A server may send the events of a process in another order than that of their numbers; one that
 * comes twice counts once. Pure. */

enum { EVENT_ORDER_MAX = 65536 }; /* events that wait for one that is missing */

struct event_order_item;

struct event_order {
    uint64_t taken;                 /* the number of the last one; they begin with 1 */
    struct event_order_item *first; /* by number */
    size_t held;
};

void event_order_done(struct event_order *order);

/* Takes a copy of the method and a reference to the parameters; false when too many wait. */
bool event_order_put(struct event_order *order, uint64_t seq, const char *method,
                     const json_t *params);

/* The next event, if it is there. The caller owns both: free() and json_decref(). */
bool event_order_take(struct event_order *order, char **ret_method, json_t **ret_params);
