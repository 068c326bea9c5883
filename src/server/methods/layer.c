/* The methods layer/...: what a layer would change, and taking it. The server's one thread neither walks nor
 * accepts: each call is handed to a program of its own (server/layer/layer_task.h), which reads the parameters that the
 * schema leaves open, paths among them. Only making a layer, a few folders, is done here: it has to be covered by the sandbox
 * of the call, which is the server's. */
#include "layer/layer.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "layer/as_json.h"
#include "server/call.h"
#include "server/client.h"
#include "server/layer/layer_table.h"
#include "server/layer/layer_task.h"
#include "server/methods.gen.h"
#include "server/rpc_path.h"
#include "server/sandbox_request.h"
#include "server/server.h"
#include "server/server_audit.h"
#include "workspace/workspace.h"

#include <stdlib.h>
#include <unistd.h>

/* What came, but for whom it is about. New reference. */
static json_t *params_of(const struct call *call)
{
    json_t *params = json_copy((json_t *)call_params(call));

    json_object_del(params, "layerId");
    return params;
}

/* --- layer/create --- */

/* They have to be there, and are taken without links. */
static int read_direct(const json_t *list, struct strv *ret, struct err *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        struct err why = {.msg = "should be an absolute path or a file URI"};
        AUTO_FREE char *path = text[0] == '/' ? alloc_str(text) : file_uri_parse(text, &why);
        char *real = path ? realpath(path, NULL) : NULL;

        if (!path)
            return err_set(err, ERR_INVALID, "$.direct[%zu]: %s", i, why.msg);
        if (!real) {
            err_sys(err, "$.direct[%zu]", i);
            err->code = ERR_INVALID;
            return -1;
        }
        strv_push_take(ret, real);
    }
    return 0;
}

static json_t *warnings_of(const struct layer *layer)
{
    size_t len = 0;
    const struct layer_root *roots = layer_roots(layer, &len);
    json_t *list = json_array();

    if (layer_is_in_memory(layer))
        json_array_append_new(
            list,
            json_string("no disk can keep the layer: it is in memory, and goes with the machine"));
    for (size_t i = 0; i < len; i++) {
        AUTO_FREE char *text =
            roots[i].is_near || roots[i].is_direct
                ? NULL
                : alloc_strf("%s is on another file system than its layer: accepting copies",
                             roots[i].path);

        if (text)
            json_array_append_new(list, json_lossy(text));
    }
    return list;
}

/* The sandbox is made once, with the layer under it: so what a command would be refused for is said now. */
static int cover(struct call *call, const struct layer_create_params *params, struct layer *layer,
                 const char *cwd, enum rpc_code *ret_code, struct err *err)
{
    struct server *server = call->client->server;
    const struct sandbox_call request = {.sandbox = params->sandbox,
                                         .otherwise = server_own_default(server),
                                         .cwd = cwd,
                                         .tmpdir = getenv("TMPDIR"),
                                         .audit_topics = server_audit_topics(server),
                                         .layer = layer};

    return workspace_for_call(server->workspaces, &request, ret_code, err) ? 0 : -1;
}

static void created(struct call *call, const struct layer_create_params *params,
                    struct layer *layer, char *cwd)
{
    struct layer_entry *entry = layer_add(server_layers(call->client->server), layer, 0);
    size_t len;
    const struct layer_root *roots = layer_roots(layer, &len);

    json_decref(entry->sandbox);
    free(entry->cwd);
    entry->sandbox = json_incref((json_t *)params->sandbox);
    entry->cwd = cwd;
    layer_watch(call->client, entry->id);
    call_reply(call, json_pack("{s:s, s:o, s:o, s:o}", "layerId", entry->id, "name",
                               json_lossy(entry->name), "roots", layer_roots_to_json(roots, len),
                               "warnings", warnings_of(layer)));
}

void method_layer_create(struct call *call, const struct layer_create_params *params)
{
    struct layer_table *table = server_layers(call->client->server);
    AUTO(strv_done) struct strv direct = {0};
    AUTO_FREE char *cwd = NULL;
    enum rpc_code code = RPC_INVALID_PARAMS;
    struct layer_options options = {
        .name = params->name,
        .has_git = params->git,
        .max_bytes = params->max_bytes,
        .held_by = table->held_by,
    };
    struct layer *layer;
    struct err err;

    if (server_refuses(call->client->server, call) || layer_refuses(table, call))
        return;
    if ((params->cwd && !(cwd = rpc_path_parse(params->cwd, &code, &err))) ||
        read_direct(params->direct, &direct, &err)) {
        call_fail_with(call, code, &err);
        return;
    }
    options.direct = direct.len ? strv_view(&direct) : NULL;
    layer = layer_create(&options, &err);
    if (!layer) {
        call_fail_err(call, &err);
    } else if (cover(call, params, layer, cwd, &code, &err)) {
        workspaces_forget_layer(call->client->server->workspaces, layer);
        layer_close(layer);
        call_fail_with(call, err.code == ERR_INVALID ? RPC_INVALID_PARAMS : code, &err);
    } else {
        created(call, params, layer, TAKE_PTR(cwd));
    }
}

/* --- looking --- */

void method_layer_list(struct call *call, const struct layer_list_params *params)
{
    const char *held_by = server_layers(call->client->server)->held_by;
    AUTO_FREE char *holder = alloc_strf("%s (%d)", held_by, (int)getpid()); /* as in the locks */
    json_t *asked = json_pack("{s:b}", "sizes", params->sizes);

    if (params->cwd)
        json_object_set_new(asked, "path", json_string(params->cwd));
    json_object_set_new(asked, "holder", json_string(holder));
    layer_ask(call, "list", NULL, asked);
}

void method_layer_info(struct call *call, const struct layer_info_params *params)
{
    layer_ask(call, "info", params->layer_id, NULL);
}

void method_layer_changes(struct call *call, const struct layer_changes_params *params)
{
    json_t *asked = params_of(call);

    json_object_set_new(asked, "limit", json_integer((json_int_t)params->limit));
    layer_ask(call, "changes", params->layer_id, asked);
}

void method_layer_diff(struct call *call, const struct layer_diff_params *params)
{
    json_t *asked = params_of(call);

    json_object_set_new(asked, "context", json_integer((json_int_t)params->context));
    json_object_set_new(asked, "maxBytes", json_integer((json_int_t)params->max_bytes));
    layer_ask(call, "diff", params->layer_id, asked);
}

void method_layer_read(struct call *call, const struct layer_read_params *params)
{
    layer_ask(call, "read", params->layer_id, params_of(call));
}

/* --- changing --- */

/* The layer is opened first; the call comes back then. */
static void change(struct call *call, const char *what, const char *name)
{
    if (layer_admit_named(call, name))
        layer_change(layer_find_open(call->client->server, name), call, what, params_of(call));
}

void method_layer_accept(struct call *call, const struct layer_accept_params *params)
{
    change(call, "accept", params->layer_id);
}

void method_layer_drop(struct call *call, const struct layer_drop_params *params)
{
    change(call, "drop", params->layer_id);
}

void method_layer_undo(struct call *call, const struct layer_undo_params *params)
{
    change(call, "undo", params->layer_id);
}

void method_layer_refresh(struct call *call, const struct layer_refresh_params *params)
{
    struct layer_entry *entry = layer_find_open(call->client->server, params->layer_id);

    if (entry && !layer_is_quiet(entry->layer))
        layer_refresh_alive(entry, call);
    else
        layer_ask(call, "refresh", params->layer_id, NULL);
}

/* --- layer/close --- */

static void close_open(struct call *call, const struct layer_close_params *params,
                       struct layer_entry *entry)
{
    AUTO_FREE char *id = alloc_str(entry->id);
    bool is_closed;

    layer_unwatch(call->client, id);
    is_closed = layer_entry_close(entry);
    if (params->keep)
        call_reply(call, json_pack("{s:b, s:b}", "closed", is_closed, "removed", 0));
    else if (is_closed)
        layer_remove_closed(call, id, true);
    else
        call_fail_data(call, RPC_INVALID_REQUEST,
                       "commands run in the layer: end them first, or keep it",
                       json_pack("{s:s}", "reason", "busy"));
}

void method_layer_close(struct call *call, const struct layer_close_params *params)
{
    struct layer_entry *entry = layer_find_open(call->client->server, params->layer_id);

    if (entry && entry->tasks)
        layer_wait(entry, call);
    else if (entry)
        close_open(call, params, entry);
    else if (params->keep)
        layer_ask(call, "closed", params->layer_id, NULL);
    else
        layer_remove_closed(call, params->layer_id, false);
}
