/* The change layers that a server has: opened when a call names one, shared by all of its connections, and let go when
 * nobody has used them for a while (layer/layer.h, docs/decisions/0039-layers.md).
 *
 *     if (!layer_admit(call, params->layer))   a call that wants to work in a layer: opened first, by a helper
 *         return;                              answered, or its handler is called again
 *     layer_choose(server, params->layer, &request, err)
 *
 * What walks, compares or moves is done by cordon-layer (layer_task.h); what the ends of steps lead to is in
 * layer_steps.h. */
#pragma once

#include "base/err.h"
#include "base/list.h"
#include "layer/layer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;
struct client;
struct layer_helper;
struct layer_outside;
struct layer_task;
struct loop_timer;
struct loop_watch;
struct sandbox_call;
struct server;
struct workspace;

enum {
    LAYERS_OPEN_MAX = 64,
    LAYER_HELPERS_MAX = 8, /* at work at once; others wait */
};

#define LAYER_IDLE_NS UINT64_C(2000000000) /* then others (cordon accept) may have it */

struct layer_table {
    struct server *server;
    struct list entries;
    struct list opening; /* calls that wait for a layer that is not open */
    struct layer_helper *opener;
    char *opener_name;   /* what it opens */
    struct list tasks;   /* that have not begun (layer_task.c) */
    struct list working; /* that have */
    size_t running;      /* helpers */
    struct loop_timer *idle;
    bool is_ticking;
    const char *held_by; /* what others are told who has them; they see our number behind it */
};

/* One that is open, or that connections want to hear of. */
struct layer_entry {
    struct list link;
    struct layer_table *table;
    struct layer *layer; /* NULL: not open */
    char *id;
    char *name;          /* NULL: none */
    json_t *sandbox;     /* of layer/create: where a call says nothing; NULL: not known */
    char *cwd;           /* the same */
    struct list waiting; /* calls, until it is free */
    struct layer_task *changing;
    size_t
        tasks; /* that are about it, also those that have not begun: it is there and open for them */
    struct loop_timer *timer; /* what the end of a step leads to */
    struct loop_watch
        *apart;   /* the mounts of a step are left by a process of its own; NULL: none are */
    int apart_fd; /* for its end; -1 */
    struct layer_helper *summary;
    int summary_step;
    bool summary_is_old; /* something was changed since it began */
    int live_step;       /* the last one in which a command was started */
    int ended_step;      /* to be told of; 0: none */
    int told_step;
    int tidied_step; /* the newest one when that was tried last */
    bool looks;      /* a summary is wanted though no step has ended */
    bool settles;    /* something was accepted: what of it is left in the layer goes */
    struct list replies;
    struct layer_outside *outside; /* NULL: nothing is watched */
    uint64_t used_ns;
};

/* The server's; made when it is first asked for. */
struct layer_table *server_layers(struct server *server);
void layer_table_free(struct layer_table *table);

/* Something is being changed that is better not cut short. */
bool layer_table_is_busy(const struct layer_table *table);

/* By id or name, open; NULL: none is. By id, open or not. */
struct layer_entry *layer_find_open(const struct server *server, const char *name);
struct layer_entry *layer_find(const struct layer_table *table, const char *id);

/* The same, made when there is none. */
struct layer_entry *layer_note(struct layer_table *table, const char *id);

/* Puts an open layer, which is taken over, into the table. */
struct layer_entry *layer_add(struct layer_table *table, struct layer *layer, uint64_t bytes);

/* Too many are open: the call is answered then. */
bool layer_refuses(const struct layer_table *table, struct call *call);

/* `given` is the parameter `layer` of a call (may be NULL or JSON null: nothing is to be waited for). */
bool layer_admit(struct call *call, const json_t *given);

/* The same of a call that is about a layer: an id or a name. */
bool layer_admit_named(struct call *call, const char *name);

/* What layer_admit() waits for is so, still; also when nothing is to be waited for. */
bool layer_is_ready(const struct server *server, const json_t *given);

/* Behind layer_admit(): where the call's commands run. Fails when the layer is not ready any more: nothing of such a
 * call may ever run beside it. */
int layer_choose(struct server *server, const json_t *given, struct sandbox_call *request,
                 struct err *err);

/* Nothing of it runs or is about to, but for what waits for work: that is ended. */
bool layer_entry_is_free(struct layer_entry *entry);

/* The handler of the call is called again when nothing changes the layer any more. */
void layer_wait(struct layer_entry *entry, struct call *call);

/* Calls that wait for it go on, and what is not needed any more goes. */
void layer_entry_resume(struct layer_entry *entry);

/* Lets go of it; false: something runs in it. */
bool layer_entry_close(struct layer_entry *entry);

/* The number of its newest step; 0: none. */
int layer_last_step(const struct layer *layer);

/* The same, of a command that has just been started in it: its end will be told of. */
int layer_note_step(const struct server *server, const struct layer *layer);

/* Others are or were in it, too. */
bool layer_step_is_shared(const struct layer *layer, int step);

/* --- who hears of them --- */

void layer_watch(struct client *client, const char *id);
void layer_unwatch(struct client *client, const char *id);
bool layer_is_watched(const struct server *server, const char *id);
void layer_notify(const struct server *server, const char *id, const char *method,
                  const json_t *params);
