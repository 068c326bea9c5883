/* Puts the events of one process into the order of their numbers: a server may send them in
 * another one (spec/exec-server.md 5.5), and none of them twice counts. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORDER_HELD_MAX = 65536 }; /* events that wait for one that is missing */

struct order_event;

struct order {
    uint64_t taken;            /* the number of the last one; they begin with 1 */
    struct order_event *first; /* by number */
    size_t held;
};

void order_done(struct order *order);

/* Takes a copy of the method and a reference to the parameters; false when too many wait. */
bool order_put(struct order *order, uint64_t seq, const char *method, const json_t *params);

/* The next event, if it is there. The caller owns both: free() and json_decref(). */
bool order_take(struct order *order, char **ret_method, json_t **ret_params);
