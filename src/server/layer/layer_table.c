/* See layer_table.h.
 *
 *     (on disk) --a call names it: cordon-layer opens, recovers, and passes the lock--> open
 *     open --quiet, and unused for LAYER_IDLE_NS, or layer/close--> (on disk)
 *
 * Layers are opened one at a time, so that a call by name and one by id never wait for each other's lock. An entry
 * outlives its open layer while connections want to hear of it; what it is called there is its id.
 *
 * To have a layer to itself, a task needs that nothing of it lives and nothing is about to begin: workspaces of
 * it that are held are runs between two attempts, or processes that have just been started. What the server keeps by
 * itself, a spare launcher and idle helpers for files, is ended then. */
#include "server/layer/layer_table.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "loop/loop.h"
#include "rpc/rpc.h"
#include "server/call.h"
#include "server/client.h"
#include "server/files/file_pool.h"
#include "server/layer/layer_helper.h"
#include "server/layer/layer_outside.h"
#include "server/layer/layer_steps.h"
#include "server/layer/layer_task.h"
#include "server/sandbox_request.h"
#include "server/server.h"
#include "workspace/workspace.h"

#include <stdlib.h>
#include <unistd.h>

/* A call that waits until its layer is open, or free. */
struct waiting {
    struct list link;
    struct call *call;
    char *name;
};

static void open_next(struct layer_table *table);

static void tick(struct layer_table *table)
{
    if (!table->is_ticking)
        loop_timer_start(table->idle, LAYER_IDLE_NS / 2);
    table->is_ticking = true;
}

/* --- finding --- */

struct layer_entry *layer_find(const struct layer_table *table, const char *id)
{
    struct layer_entry *entry;

    list_for_each(entry, &table->entries, link)
        if (str_eq(entry->id, id))
            return entry;
    return NULL;
}

static struct layer_entry *find_open(const struct layer_table *table, const char *name)
{
    struct layer_entry *entry;

    list_for_each(entry, &table->entries, link)
        if (entry->layer && (str_eq(entry->id, name) || (entry->name && str_eq(entry->name, name))))
            return entry;
    return NULL;
}

struct layer_entry *layer_find_open(const struct server *server, const char *name)
{
    return server->layers ? find_open(server->layers, name) : NULL;
}

int layer_last_step(const struct layer *layer)
{
    size_t len = 0;
    const struct layer_step *steps = layer_steps(layer, &len);

    return len ? steps[len - 1].number : 0;
}

int layer_note_step(const struct server *server, const struct layer *layer)
{
    struct layer_entry *entry = layer_find(server->layers, layer_id(layer));
    const int step = layer_last_step(layer);

    if (entry && step > entry->live_step)
        entry->live_step = step;
    return step;
}

bool layer_step_is_shared(const struct layer *layer, int step)
{
    size_t len = 0;
    const struct layer_step *steps = layer_steps(layer, &len);

    for (size_t i = 0; i < len; i++)
        if (steps[i].number == step)
            return steps[i].commands > 1;
    return false;
}

/* --- who hears of them --- */

struct watched {
    struct layer_table *table;
    struct strv ids;
};

/* What nobody hears of any more goes a little later: this connection is still in the list. */
static void watched_done(void *part)
{
    struct watched *watched = part;

    tick(watched->table);
    strv_done(&watched->ids);
    free(watched);
}

static bool watches(const struct client *client, const char *id)
{
    const struct watched *watched = client_part(client, CLIENT_PART_LAYERS);

    return watched && strv_has(&watched->ids, id);
}

void layer_watch(struct client *client, const char *id)
{
    static const struct client_part_type type = {.done = watched_done};
    struct watched *watched = client_part(client, CLIENT_PART_LAYERS);

    if (!watched) {
        watched = alloc_zero(1, sizeof *watched);
        watched->table = server_layers(client->server);
        client_set_part(client, CLIENT_PART_LAYERS, watched, &type);
    }
    if (!strv_has(&watched->ids, id))
        strv_push(&watched->ids, id);
}

void layer_unwatch(struct client *client, const char *id)
{
    struct watched *watched = client_part(client, CLIENT_PART_LAYERS);
    AUTO(strv_done) struct strv old = {0};

    if (!watched)
        return;
    old = watched->ids;
    watched->ids = (struct strv){0};
    for (size_t i = 0; i < old.len; i++)
        if (!str_eq(old.items[i], id))
            strv_push(&watched->ids, old.items[i]);
}

bool layer_is_watched(const struct server *server, const char *id)
{
    const struct client *client;

    list_for_each(client, &server->clients, in_server)
        if (watches(client, id))
            return true;
    return false;
}

void layer_notify(const struct server *server, const char *id, const char *method,
                  const json_t *params)
{
    const struct client *client;

    list_for_each(client, &server->clients, in_server)
        if (watches(client, id))
            rpc_peer_notify(client->peer, method, params);
}

/* --- calls that wait --- */

static void waiting_free(struct waiting *waiting)
{
    list_remove(&waiting->link);
    free(waiting->name);
    free(waiting);
}

static void on_gone(void *data)
{
    waiting_free(data);
}

static void wait_in(struct list *list, struct call *call, const char *name)
{
    struct waiting *waiting = alloc_zero(1, sizeof *waiting);

    waiting->call = call;
    waiting->name = alloc_str(name);
    list_append(list, &waiting->link);
    call_on_gone(call, on_gone, waiting);
}

void layer_wait(struct layer_entry *entry, struct call *call)
{
    wait_in(&entry->waiting, call, entry->id);
}

static struct call *waiting_end(struct waiting *waiting)
{
    struct call *call = waiting->call;

    call_on_gone(call, NULL, NULL);
    waiting_free(waiting);
    return call;
}

/* Of those that are there now: a handler may put its call back. */
static void resume_all(struct list *list)
{
    struct list now = {0};
    struct waiting *waiting;

    while (!list_is_empty(list)) {
        struct list *link = list->next;

        list_remove(link);
        list_append(&now, link);
    }
    while ((waiting = list_first(&now, struct waiting, link)))
        client_handle(waiting_end(waiting));
    list_init(&now);
}

static void drop_all(struct list *list)
{
    while (!list_is_empty(list))
        waiting_end(list_first(list, struct waiting, link));
}

/* --- free, idle, gone --- */

static void drop_prepared(const struct layer_entry *entry)
{
    struct server *server = entry->table->server;

    if (server->next_workspace && server->next_workspace->layer == entry->layer)
        workspace_release(TAKE_PTR(server->next_workspace));
    if (server->file_pool)
        file_pool_end_idle(server->file_pool, entry->layer);
}

bool layer_entry_is_free(struct layer_entry *entry)
{
    const struct workspaces *workspaces = entry->table->server->workspaces;

    drop_prepared(entry);
    return layer_is_quiet(entry->layer) && !workspaces_hold_layer(workspaces, entry->layer);
}

static void entry_free(struct layer_entry *entry)
{
    list_remove(&entry->link);
    layer_outside_free(entry->outside);
    loop_timer_free(entry->timer);
    json_decref(entry->sandbox);
    free(entry->cwd);
    free(entry->name);
    free(entry->id);
    free(entry);
}

/* Unless it is needed by somebody. */
static void entry_settle(struct layer_entry *entry)
{
    if (!layer_is_watched(entry->table->server, entry->id))
        layer_outside_free(TAKE_PTR(entry->outside));
    if (!entry->layer && !entry->outside && !entry->summary && !entry->tasks)
        entry_free(entry);
}

static void entry_end(struct layer_entry *entry)
{
    workspaces_forget_layer(entry->table->server->workspaces, entry->layer);
    layer_steps_end(entry);
    layer_close(TAKE_PTR(entry->layer));
}

bool layer_entry_close(struct layer_entry *entry)
{
    if (entry->tasks || !list_is_empty(&entry->waiting) || !layer_entry_is_free(entry))
        return false;
    entry_end(entry);
    entry_settle(entry);
    return true;
}

/* Nothing would stay of it, and somebody has it in mind. */
static bool is_new(const struct layer_entry *entry)
{
    return !layer_last_step(entry->layer) && layer_is_watched(entry->table->server, entry->id);
}

/* Only looks at those that are quiet: what lives is told of at its end. */
static void on_idle(void *data)
{
    struct layer_table *table = data;
    const uint64_t now = clock_now_ns();
    struct layer_entry *entry;
    struct layer_entry *next;

    table->is_ticking = false;
    list_for_each_safe(entry, next, &table->entries, link) {
        if (!entry->layer) {
            entry_settle(entry);
            continue; /* it is looked at again when the next one is used */
        }
        if (!list_is_empty(&entry->waiting) &&
            !entry->tasks) { /* whose tasks went with their calls */
            layer_entry_resume(entry);
            continue;
        }
        if (!layer_is_quiet(entry->layer) || is_new(entry))
            entry->used_ns = now;
        if (entry->summary || now - entry->used_ns < LAYER_IDLE_NS || !layer_entry_close(entry))
            tick(table);
    }
}

void layer_entry_resume(struct layer_entry *entry)
{
    entry->used_ns = clock_now_ns();
    tick(entry->table);
    resume_all(&entry->waiting);
}

/* --- opening --- */

struct layer_entry *layer_note(struct layer_table *table, const char *id)
{
    struct layer_entry *entry = layer_find(table, id);

    if (entry)
        return entry;
    entry = alloc_zero(1, sizeof *entry);
    entry->table = table;
    entry->apart_fd = -1;
    entry->id = alloc_str(id);
    list_append(&table->entries, &entry->link);
    tick(table);
    return entry;
}

struct layer_entry *layer_add(struct layer_table *table, struct layer *layer, uint64_t bytes)
{
    struct layer_entry *entry = layer_note(table, layer_id(layer));

    layer_tell_bytes(layer, bytes);
    entry->layer = layer;
    free(entry->name);
    entry->name = alloc_str(layer_own_name(layer));
    entry->used_ns = clock_now_ns();
    layer_steps_begin(entry);
    tick(table);
    return entry;
}

bool layer_refuses(const struct layer_table *table, struct call *call)
{
    const struct layer_entry *entry;
    char text[80];
    size_t open = 0;

    list_for_each(entry, &table->entries, link)
        open += entry->layer != NULL;
    if (open < LAYERS_OPEN_MAX)
        return false;
    snprintf(text, sizeof text, "%d layers are in use, which is the limit: close one",
             LAYERS_OPEN_MAX);
    call_fail_data(call, RPC_INVALID_REQUEST, text, limit_data("max-layers", LAYERS_OPEN_MAX));
    return true;
}

/* All calls that wait for what has been opened, or could not be. */
static void answer_opening(struct layer_table *table, const char *name,
                           const struct layer_helper_answer *answer)
{
    struct list theirs = {0};
    struct waiting *waiting;
    struct waiting *next;

    list_for_each_safe(waiting, next, &table->opening, link) {
        if (!str_eq(waiting->name, name))
            continue;
        list_remove(&waiting->link);
        list_append(&theirs, &waiting->link);
    }
    if (!answer->failure) {
        resume_all(&theirs);
        return;
    }
    while ((waiting = list_first(&theirs, struct waiting, link)))
        layer_fail(waiting_end(waiting), "open", answer);
    list_init(&theirs);
}

static void on_opened(void *data, const struct layer_helper_answer *answer)
{
    struct layer_table *table = data;
    AUTO_FREE char *name = TAKE_PTR(table->opener_name);
    const char *id = json_string_value(json_object_get(answer->result, "layerId"));
    struct layer_helper_answer told = *answer;
    struct layer *layer = NULL;
    struct err err;

    if (!answer->failure && (!id || *answer->fd < 0))
        err_set(&err, ERR_BUG, "the helper for layers gave no lock");
    else if (!answer->failure)
        layer = layer_adopt(
            id,
            &(struct layer_adoption){
                .lock = TAKE_FD(*answer->fd), .users = -1, .mounts = -1, .held_by = table->held_by},
            &err);
    if (layer)
        layer_add(table, layer,
                  (uint64_t)json_integer_value(json_object_get(answer->result, "bytes")));
    else if (!answer->failure)
        told = (struct layer_helper_answer){.failure = &err};
    layer_helper_free(TAKE_PTR(table->opener));
    answer_opening(table, name, &told);
    open_next(table);
}

static void start_opener(struct layer_table *table, const char *name)
{
    AUTO_JSON json_t *request = layer_request(table, "open", name, NULL);
    struct layer_helper_answer answer = {0};
    struct err err;

    table->opener_name = alloc_str(name);
    table->opener = layer_helper_for(table, request, on_opened, table, &err);
    if (table->opener)
        return;
    answer.failure = &err;
    free(TAKE_PTR(table->opener_name));
    answer_opening(table, name, &answer);
}

/* Those of one that has been opened meanwhile, by its other name, go on at once. */
static void open_next(struct layer_table *table)
{
    while (!table->opener && !list_is_empty(&table->opening)) {
        struct waiting *waiting = list_first(&table->opening, struct waiting, link);
        AUTO_FREE char *name = alloc_str(waiting->name);

        if (find_open(table, name))
            client_handle(waiting_end(waiting));
        else if (layer_refuses(table, waiting->call))
            waiting_free(waiting);
        else
            start_opener(table, name);
    }
}

bool layer_admit_named(struct call *call, const char *name)
{
    struct layer_table *table = server_layers(call->client->server);
    struct layer_entry *entry = find_open(table, name);

    if (!entry) {
        wait_in(&table->opening, call, name);
        open_next(table);
        return false;
    }
    entry->used_ns = clock_now_ns();
    layer_watch(call->client, entry->id);
    return true;
}

bool layer_admit(struct call *call, const json_t *given)
{
    const char *name = json_string_value(json_object_get(given, "layerId"));
    const char *step = json_string_value(json_object_get(given, "step"));
    struct layer_entry *entry;

    if (!name)
        return true;
    if (!layer_admit_named(call, name))
        return false;
    entry = layer_find_open(call->client->server, name);
    if (!layer_is_ready(call->client->server, given)) {
        layer_wait(entry, call);
        return false;
    }
    if (!step || !str_eq(step, "new") || layer_is_quiet(entry->layer))
        return true;
    call_fail_data(call, RPC_INVALID_REQUEST,
                   "something runs in the layer, so nothing can begin a step: leave `step` out to "
                   "join the one that goes on, or wait for layer/stepEnded",
                   json_pack("{s:s}", "reason", "busy"));
    return false;
}

bool layer_is_ready(const struct server *server, const json_t *given)
{
    const char *name = json_string_value(json_object_get(given, "layerId"));
    const struct layer_entry *entry = name ? layer_find_open(server, name) : NULL;

    return !name || (entry && !(entry->changing && layer_task_is_alone(entry->changing)));
}

int layer_choose(struct server *server, const json_t *given, struct sandbox_call *request,
                 struct err *err)
{
    const char *name = json_string_value(json_object_get(given, "layerId"));
    const struct layer_entry *entry = name ? layer_find_open(server, name) : NULL;

    if (!name)
        return 0;
    if (!entry || !layer_is_ready(server, given))
        return err_set(err, ERR_BUSY, "layer %.64s is being changed or was let go: try again",
                       name);
    request->layer = entry->layer;
    if (request->sandbox && !json_is_null(request->sandbox))
        return 0;
    request->sandbox = entry->sandbox;
    request->otherwise = server_own_default(server);
    if (entry->cwd)
        request->cwd = entry->cwd;
    return 0;
}

/* --- all of them --- */

bool layer_table_is_busy(const struct layer_table *table)
{
    const struct layer_entry *entry;

    if (table)
        list_for_each(entry, &table->entries, link)
            if (entry->changing)
                return true;
    return false;
}

struct layer_table *server_layers(struct server *server)
{
    struct layer_table *table = server->layers;

    if (table)
        return table;
    table = server->layers = alloc_zero(1, sizeof *table);
    table->server = server;
    table->idle = loop_timer_new(server->loop, on_idle, table);
    table->held_by = "cordon serve";
    return table;
}

/* Connections, and the calls that wait on them, are gone before. */
void layer_table_free(struct layer_table *table)
{
    struct layer_entry *entry;
    struct layer_entry *next;

    if (!table)
        return;
    layer_helper_free(table->opener);
    free(table->opener_name);
    drop_all(&table->opening);
    layer_tasks_free(table);
    list_for_each_safe(entry, next, &table->entries, link) {
        drop_all(&entry->waiting);
        if (entry->layer)
            entry_end(entry);
        layer_helper_free(entry->summary);
        entry_free(entry);
    }
    loop_timer_free(table->idle);
    free(table);
}
