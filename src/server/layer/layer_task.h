/* Things done with layers beside the server's thread, each by a cordon-layer of its own. */
#pragma once

#include "base/err.h"
#include "server/layer/layer_helper.h"

#include <jansson.h>
#include <stdbool.h>

struct call;
struct layer_entry;
struct layer_table;
struct layer_task;

/* A request for a helper (layer/call.h) about a layer that is not open here; `params` is taken over, and may be NULL. New
 * reference. */
json_t *layer_request(const struct layer_table *table, const char *what, const char *name,
                      json_t *params);

/* A helper at once, which is the caller's. */
struct layer_helper *layer_helper_for(struct layer_table *table, const json_t *request,
                                      void (*on_answer)(void *data,
                                                        const struct layer_helper_answer *answer),
                                      void *data, struct err *err);

/* --- for a call: the result of the helper is that of the call --- */

/* Looks only, and takes no lock. `what` is static; `name` may be NULL; `params` is taken over. */
void layer_ask(struct call *call, const char *what, const char *name, json_t *params);

/* Changes an open layer, one thing after the other: while nothing lives in it, it has it to itself, and calls that
 * would begin something wait; else it is told that commands live. `call` may be NULL: nobody is answered. */
void layer_change(struct layer_entry *entry, struct call *call, const char *what, json_t *params);

/* It has its layer to itself: nothing may begin. */
bool layer_task_is_alone(const struct layer_task *task);

/* Has the commands that live in it see what others changed. */
void layer_refresh_alive(struct layer_entry *entry, struct call *call);

/* One that is not open here. `was_open`: just now it was, so that it may be gone already. */
void layer_remove_closed(struct call *call, const char *name, bool was_open);

/* A failure as an answer on the wire, with data.reason. */
void layer_fail(struct call *call, const char *what, const struct layer_helper_answer *answer);

/* Ends what works, without answers: the connections are gone. */
void layer_tasks_free(struct layer_table *table);
