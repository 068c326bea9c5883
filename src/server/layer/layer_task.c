/* See layer_task.h.
 *
 *     waiting --a helper may be started, and its layer is not being changed--> working --answer--> gone
 *
 * What looks at a layer works beside everything else. What changes one is told whether commands live; when none do,
 * and none is about to begin, the layer is kept free until it has ended. A call whose connection goes meanwhile gets
 * no answer, but what was begun comes to its end: half of an accept would be of no use to anybody. */
#include "server/layer/layer_task.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "layer/layer.h"
#include "sandbox/sandbox.h"
#include "server/call.h"
#include "server/client.h"
#include "server/layer/layer_audit.h"
#include "server/layer/layer_steps.h"
#include "server/layer/layer_table.h"
#include "server/sandbox_request.h"
#include "server/server.h"
#include "workspace/workspace.h"

#include <stdlib.h>

struct layer_task {
    struct list link; /* of those that wait, or that work */
    struct layer_table *table;
    struct layer_entry *entry; /* that it changes, or refreshes; NULL: it looks */
    struct call *call;         /* NULL: nobody is answered */
    const char *what;
    json_t *request;
    struct layer_helper *helper;
    bool is_change;
    bool is_alone; /* nothing lives in the layer, and nothing begins */
    bool was_open; /* layer_remove_closed() */
    char audit_id[SERVER_AUDIT_ID_SIZE];
};

static void tasks_pump(struct layer_table *table);

/* --- requests --- */

json_t *layer_request(const struct layer_table *table, const char *what, const char *name,
                      json_t *params)
{
    json_t *request = json_pack("{s:s, s:s, s:o}", "call", what, "heldBy", table->held_by, "params",
                                params ? params : json_object());

    if (name)
        json_object_set_new(request, "layer", json_string(name));
    return request;
}

static struct layer_helper *start_helper(struct layer_table *table, const json_t *request,
                                         const struct layer_helper_options *how, struct err *err)
{
    const struct sandbox_call none = {.otherwise = SANDBOX_NONE};
    struct layer_helper_options options = *how;
    enum rpc_code ignored;

    options.loop = table->server->loop;
    options.workspace = workspace_for_call(table->server->workspaces, &none, &ignored, err);
    return options.workspace ? layer_helper_start(&options, request, err) : NULL;
}

struct layer_helper *layer_helper_for(struct layer_table *table, const json_t *request,
                                      void (*on_answer)(void *data,
                                                        const struct layer_helper_answer *answer),
                                      void *data, struct err *err)
{
    const struct layer_helper_options how = {.on_answer = on_answer, .data = data};

    return start_helper(table, request, &how, err);
}

/* --- answers --- */

void layer_fail(struct call *call, const char *what, const struct layer_helper_answer *answer)
{
    const struct err *failure = answer->failure;
    bool is_one = str_eq(what, "diff") || str_eq(what, "read");
    const char *reason = answer->reason;
    json_t *data;

    if (failure->code == ERR_NOT_FOUND && is_one && !reason) {
        call_fail_with(call, RPC_NOT_FOUND, failure);
        return;
    }
    if (!reason && (failure->code == ERR_BUSY || failure->code == ERR_CONFLICT))
        reason = err_code_name(failure->code);
    data = reason ? json_pack("{s:s}", "reason", reason) : NULL;
    if (!data)
        call_fail_err(call, failure);
    else
        call_fail_data(call, RPC_INVALID_REQUEST, failure->msg, data);
}

static void task_free(struct layer_task *task)
{
    list_remove(&task->link);
    if (task->entry)
        task->entry->tasks--;
    layer_helper_free(task->helper);
    json_decref(task->request);
    free(task);
}

/* The connection is gone. */
static void on_gone(void *data)
{
    struct layer_task *task = data;

    struct layer_table *table = task->table;

    task->call = NULL;
    if (task->helper && task->is_change)
        return;
    if (task->helper)
        table->running--;
    task_free(task);
    tasks_pump(table);
}

bool layer_task_is_alone(const struct layer_task *task)
{
    return task->is_alone;
}

static void task_answer(struct layer_task *task, const struct layer_helper_answer *answer)
{
    struct call *call = TAKE_PTR(task->call);

    if (!call) {
        if (answer->failure)
            log_event(LOG_LEVEL_WARN, "layer-task-failed", log_text("what", task->what),
                      log_text("why", answer->failure->msg));
        return;
    }
    call_on_gone(call, NULL, NULL);
    if (task->was_open && answer->reason && str_eq(answer->reason, "no-layer"))
        call_reply(call, json_pack("{s:b, s:b}", "closed", 1, "removed", 1));
    else if (answer->failure)
        layer_fail(call, task->what, answer);
    else
        call_reply(call, json_incref((json_t *)answer->result));
}

/* Who looks at the changes wants to hear what becomes of them. */
static void task_watch(const struct layer_task *task, const struct layer_helper_answer *answer)
{
    const char *id = json_string_value(json_object_get(answer->result, "layerId"));
    struct layer_entry *entry;

    if (!id || !task->call || !str_eq(task->what, "changes"))
        return;
    layer_watch(task->call->client, id);
    entry = layer_note(task->table, id);
    if (!entry->outside)
        layer_steps_look(entry);
}

/* It was cut off in the middle: what it had decided is done before anything else. What fails twice waits for the next one
 * who changes something. */
static bool is_cut_off(const struct layer_task *task, const struct err *failure)
{
    return failure && (failure->code == ERR_BUG || failure->code == ERR_SYSTEM) &&
           !str_eq(task->what, "settle");
}

/* What the helper did is on disk; here it is read again. */
static void change_end(struct layer_task *task, const struct layer_helper_answer *answer)
{
    struct layer_entry *entry = task->entry;
    struct err err;

    entry->changing = NULL;
    layer_audit_change(entry, task->audit_id, task->what, json_object_get(task->request, "params"),
                       answer->result);
    entry->settles |= str_eq(task->what, "accept");
    if (task->is_alone && layer_reload(entry->layer, &err))
        log_event(LOG_LEVEL_ERROR, "layer-unreadable", log_text("layer", entry->id),
                  log_text("why", err.msg));
    if (is_cut_off(task, answer->failure))
        layer_change(entry, NULL, "settle", NULL);
    layer_tell_bytes(entry->layer,
                     0); /* it has less than it had; until that is counted all go in */
    entry->summary_is_old = true;
    layer_steps_look(entry);
}

/* What begins next may end at once, and what waits for the entry may have it gone: so it is held until then. */
static void task_end(struct layer_task *task, const struct layer_helper_answer *answer)
{
    struct layer_table *table = task->table;
    struct layer_entry *entry = task->entry;

    task_watch(task, answer);
    if (task->is_change)
        change_end(task, answer);
    else if (str_eq(task->what, "remove") && answer->result)
        layer_audit_remove(table->server, task->audit_id,
                           json_string_value(json_object_get(task->request, "layer")));
    task_answer(task, answer);
    if (entry)
        entry->tasks++;
    task_free(task);
    tasks_pump(table);
    if (entry) {
        entry->tasks--;
        layer_steps_prepare(entry);
        if (!entry->changing)
            layer_entry_resume(entry);
    }
    stopping_check(table->server);
}

static void on_answer(void *data, const struct layer_helper_answer *answer)
{
    struct layer_task *task = data;

    task->table->running--;
    task_end(task, answer);
}

/* --- work --- */

static size_t space_of(const struct layer_entry *entry, int ret[3])
{
    const struct sandbox_view *view = layer_view(entry->layer);

    ret[0] = layer_lock(entry->layer);
    ret[1] = view->users;
    ret[2] = view->mounts;
    return view->users >= 0 && view->mounts >= 0 ? 3 : 1;
}

static void task_begin(struct layer_task *task)
{
    struct layer_helper_options how = {.on_answer = on_answer, .data = task};
    struct layer_table *table = task->table;
    int fds[3];
    struct err err;

    list_remove(&task->link);
    list_append(&table->working, &task->link);
    if (task->entry) {
        task->is_alone = task->is_change && layer_entry_is_free(task->entry);
        if (task->is_alone)
            layer_unprepare(task->entry->layer);
        how.fds = fds;
        how.fds_len = space_of(task->entry, fds);
        json_object_set_new(task->request, "held", json_true());
        json_object_set_new(task->request, "alive", json_boolean(!task->is_alone));
        json_object_set_new(task->request, "space", json_boolean(how.fds_len == 3));
    }
    if (task->is_change)
        task->entry->changing = task;
    task->helper = start_helper(table, task->request, &how, &err);
    if (task->helper)
        table->running++;
    else
        task_end(task, &(struct layer_helper_answer){.failure = &err});
}

/* Who looks at a layer while something else has it to itself would see half of that. */
static bool may_begin(const struct layer_task *task)
{
    const char *name = json_string_value(json_object_get(task->request, "layer"));
    const struct layer_entry *entry = task->entry ? task->entry
                                      : name      ? layer_find_open(task->table->server, name)
                                                  : NULL;

    return !entry || !entry->changing || (!task->is_change && !entry->changing->is_alone);
}

/* The next one that may; NULL: none. */
static struct layer_task *next_task(const struct layer_table *table)
{
    struct layer_task *task;

    if (table->running >= LAYER_HELPERS_MAX)
        return NULL;
    list_for_each(task, &table->tasks, link)
        if (may_begin(task))
            return task;
    return NULL;
}

static void tasks_pump(struct layer_table *table)
{
    struct layer_task *task = next_task(table);

    while (task) {
        task_begin(task);
        task = next_task(table);
    }
}

static struct layer_task *task_new(struct layer_table *table, struct call *call, const char *what,
                                   const char *name, json_t *params)
{
    struct layer_task *task = alloc_zero(1, sizeof *task);

    task->table = table;
    task->call = call;
    task->what = what;
    task->request = layer_request(table, what, name, params);
    list_append(&table->tasks, &task->link);
    if (call)
        call_on_gone(call, on_gone, task);
    return task;
}

/* The entry is there, and open, until the task is gone. */
static void task_about(struct layer_task *task, struct layer_entry *entry)
{
    task->entry = entry;
    entry->tasks++;
}

/* --- for calls --- */

void layer_ask(struct call *call, const char *what, const char *name, json_t *params)
{
    struct layer_table *table = server_layers(call->client->server);

    task_new(table, call, what, name, params);
    tasks_pump(table);
}

void layer_change(struct layer_entry *entry, struct call *call, const char *what, json_t *params)
{
    struct layer_task *task = task_new(entry->table, call, what, entry->id, params);

    if (call)
        server_audit_id(call->client->session, task->audit_id);
    task_about(task, entry);
    task->is_change = true;
    tasks_pump(entry->table);
}

void layer_refresh_alive(struct layer_entry *entry, struct call *call)
{
    task_about(task_new(entry->table, call, "refresh", entry->id, NULL), entry);
    tasks_pump(entry->table);
}

void layer_remove_closed(struct call *call, const char *name, bool was_open)
{
    struct layer_table *table = server_layers(call->client->server);

    struct layer_task *task = task_new(table, call, "remove", name, NULL);

    server_audit_id(call->client->session, task->audit_id);
    task->was_open = was_open;
    tasks_pump(table);
}

void layer_tasks_free(struct layer_table *table)
{
    struct list *const lists[] = {&table->tasks, &table->working};

    for (size_t i = 0; i < 2; i++) {
        while (!list_is_empty(lists[i])) {
            struct layer_task *task = list_first(lists[i], struct layer_task, link);

            if (task->is_change && task->entry->changing == task)
                task->entry->changing = NULL;
            if (task->call)
                call_on_gone(task->call, NULL, NULL);
            task_free(task);
        }
    }
}
