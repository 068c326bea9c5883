/* See file_queue.h. At most 128 files are open, so a list is searched as fast as anything.
 *
 * What goes to a helper is the call as it came, without its `sandbox` (which says where it runs)
 * and with each path in its canonical spelling, so that what is wrong with a path is said here in
 * the words of the protocol. */
#include "server/files/file_queue.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/str.h"
#include "server/call.h"
#include "server/client.h"
#include "server/files/file_pool.h"
#include "server/layer/layer_table.h"
#include "server/rpc_path.h"
#include "server/sandbox_request.h"
#include "server/server.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- open files --- */

struct handle {
    char *id;
    int fd;
};

struct file_handles {
    struct handle items[FILE_HANDLES_MAX];
    size_t len;
};

struct file_handles *file_handles_new(void)
{
    return alloc_zero(1, sizeof(struct file_handles));
}

static void handle_done(struct handle *handle)
{
    close(handle->fd);
    free(handle->id);
}

void file_handles_free(struct file_handles *handles)
{
    if (!handles)
        return;
    while (handles->len)
        handle_done(&handles->items[--handles->len]);
    free(handles);
}

size_t file_handles_count(const struct file_handles *handles)
{
    return handles->len;
}

static size_t handles_index(const struct file_handles *handles, const char *id)
{
    size_t i = 0;

    while (i < handles->len && !str_eq(handles->items[i].id, id))
        i++;
    return i;
}

int file_handles_find(const struct file_handles *handles, const char *id)
{
    size_t i = handles_index(handles, id);

    return i < handles->len ? handles->items[i].fd : -1;
}

void file_handles_add(struct file_handles *handles, const char *id, int fd)
{
    handles->items[handles->len++] = (struct handle){.id = alloc_str(id), .fd = fd};
}

void file_handles_close(struct file_handles *handles, const char *id)
{
    size_t i = handles_index(handles, id);

    if (i == handles->len)
        return;
    handle_done(&handles->items[i]);
    handles->items[i] = handles->items[--handles->len];
}

/* --- the queue --- */

enum { URI_MAX = 3 * PATH_MAX + 32 }; /* every byte escaped */

struct file_queue {
    struct file_pool *pool;
    struct workspaces *workspaces;
    struct file_handles *handles;
    struct file_task *first; /* waiting */
    struct file_task *current;
    bool is_pumping;
};

static void queue_done(void *part)
{
    struct file_queue *queue = part;

    file_handles_free(queue->handles);
    free(queue);
}

static struct file_queue *queue_of(struct call *call)
{
    static const struct client_part_type type = {.done = queue_done};
    struct client *client = call->client;
    struct file_queue *queue = client_part(client, CLIENT_PART_FILES);

    if (queue)
        return queue;
    queue = alloc_zero(1, sizeof *queue);
    queue->pool = server_file_pool(call->client->server);
    queue->workspaces = call->client->server->workspaces;
    queue->handles = file_handles_new();
    client_set_part(client, CLIENT_PART_FILES, queue, &type);
    return queue;
}

/* A task may end from inside its `begin`; then the loop goes on here, not in there. */
static void queue_pump(struct file_queue *queue)
{
    if (queue->is_pumping)
        return;
    queue->is_pumping = true;
    while (!queue->current && queue->first) {
        struct file_task *task = queue->first;

        queue->first = task->next;
        queue->current = task;
        task->begin(task);
    }
    queue->is_pumping = false;
}

static void queue_remove(struct file_queue *queue, const struct file_task *task)
{
    struct file_task **slot = &queue->first;

    if (queue->current == task) {
        queue->current = NULL;
        return;
    }
    while (*slot != task)
        slot = &(*slot)->next;
    *slot = task->next;
}

/* The connection closes: nothing new begins. */
static void on_gone(void *data)
{
    struct file_task *task = data;
    struct file_queue *queue = task->queue;

    queue->is_pumping = true;
    if (task->job)
        file_job_abandon(task->job);
    queue_remove(queue, task);
    free(task);
}

void file_queue_add(struct call *call, const struct file_task *how)
{
    struct file_queue *queue = queue_of(call);
    struct file_task *task = alloc_zero(1, sizeof *task);
    struct file_task **last = &queue->first;

    *task = *how;
    task->queue = queue;
    task->call = call;
    call_on_gone(call, on_gone, task);
    while (*last)
        last = &(*last)->next;
    *last = task;
    queue_pump(queue);
}

struct call *file_task_end(struct file_task *task)
{
    struct call *call = task->call;

    call_on_gone(call, NULL, NULL);
    queue_remove(task->queue, task);
    free(task);
    return call;
}

struct file_handles *file_task_handles(const struct file_task *task)
{
    return task->queue->handles;
}

/* --- to a helper and back --- */

static int spell_path(json_t *params, const char *key, enum rpc_code *ret_code, struct err *err)
{
    const char *text = json_string_value(json_object_get(params, key));
    AUTO_FREE char *path = NULL;
    AUTO_FREE char *uri = NULL;

    if (!text)
        return 0;
    if (strlen(text) > URI_MAX) {
        *ret_code = RPC_INTERNAL;
        return err_set(err, ERR_LIMIT, "Filename too long (os error 36)");
    }
    path = rpc_path_parse(text, ret_code, err);
    if (!path)
        return -1;
    uri = file_uri_format(path);
    json_object_set_new(params, key, json_string(uri));
    return 0;
}

/* The call for the helper. */
static int task_call(const struct file_task *task, struct file_call *ret, enum rpc_code *ret_code,
                     struct err *err)
{
    static const char *const paths[] = {"path", "sourcePath", "destinationPath"};
    const json_t *given = call_params(task->call);
    AUTO_JSON json_t *params = json_copy((json_t *)given);
    AUTO_JSON json_t *root = NULL;

    json_object_del(params, "sandbox");
    json_object_del(params, "layer");
    json_object_del(params, "dataBase64");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (spell_path(params, paths[i], ret_code, err))
            return -1;
    root = json_pack("{s:s,s:O}", "method", task->call->message.method, "params", params);
    ret->text = json_dumps(root, JSON_COMPACT);
    ret->len = strlen(ret->text);
    ret->data = json_incref(json_object_get(given, "dataBase64"));
    return 0;
}

static void on_answer(void *user, const struct file_answer *answer)
{
    struct file_task *task = user;
    struct file_queue *queue = task->queue;
    file_done_fn *done = task->done;

    done(file_task_end(task), queue->handles, answer);
    queue_pump(queue);
}

/* Its layer has to be opened first, or is being changed: it comes to the end of the queue when that is done. */
static void admit_again(struct file_task *task, const json_t *layer)
{
    struct call *call = file_task_end(task);

    if (layer_admit(call, layer))
        client_handle(call);
}

void file_task_send(struct file_task *task)
{
    struct server *server = task->call->client->server;
    const json_t *layer = json_object_get(call_params(task->call), "layer");
    struct sandbox_call request = {
        .sandbox = json_object_get(call_params(task->call), "sandbox"),
        .otherwise = server->default_sandbox,
        .tmpdir = getenv("TMPDIR"),
    };
    AUTO(file_call_done) struct file_call call = {.on_answer = on_answer, .user = task};
    enum rpc_code code = RPC_INTERNAL;
    struct workspace *workspace = NULL;
    struct err err;

    if (!layer_is_ready(server, layer)) {
        admit_again(task, layer);
        return;
    }
    if (layer_choose(server, layer, &request, &err) == 0 &&
        task_call(task, &call, &code, &err) == 0)
        workspace = workspace_for_call(task->queue->workspaces, &request, &code, &err);
    if (workspace)
        file_pool_call(task->queue->pool, workspace, &call, &task->job);
    else
        call_fail(file_task_end(task), code, "%s", err.msg);
}
