/* See client.h. What comes in is looked up in the table of methods, held against its schema and
 * handed to its handler; requests never wait for each other. The order of the checks is that of the
 * original: an unknown method is said before anything else, the state of the connection next, the
 * parameters last.
 *
 *     new --initialize--> initialized --"initialized"--> ready
 */
#include "server/client.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/log.h"
#include "rpc/rpc.h"
#include "server/call.h"
#include "server/client_session.h"
#include "server/method_table.h"
#include "server/process/observer.h"
#include "server/run/exec_run.h"
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- which method --- */

static int compare_method(const void *name, const void *method)
{
    return strcmp(name, ((const struct method *)method)->name);
}

/* NULL when there is none. */
static const struct method *method_find(const char *name)
{
    return bsearch(name, methods, methods_len, sizeof *methods, compare_method);
}

/* --- may it be used now, and like this --- */

/* Methods without parameters take none, null or {}. */
static int check_nothing(const json_t *params, struct err *err)
{
    if (!params || json_is_null(params) || (json_is_object(params) && !json_object_size(params)))
        return 0;
    if (json_is_string(params))
        return err_set(err, ERR_INVALID, "invalid type: string \"%.100s\", expected unit",
                       json_string_value(params));
    return err_set(err, ERR_INVALID, "invalid type: %s, expected unit",
                   json_is_array(params)    ? "sequence"
                   : json_is_object(params) ? "map"
                                            : "value");
}

static int read_params(const struct method *method, struct call *call, char **ret_path,
                       struct err *err)
{
    bool is_given = call->message.params && !json_is_null(call->message.params);
    struct json_at root = json_at_root(call_params(call));

    if (!method->params)
        return check_nothing(call->message.params, err);
    if (method->params_size)
        call->params = alloc_zero(1, method->params_size);
    if (schema_read(method->params, &root, call->params, ret_path, err) == 0)
        return 0;
    if (!is_given)
        err_set(err, ERR_INVALID, "invalid type: null, expected struct %s", method->params->name);
    return -1;
}

static bool call_refuse(struct call *call, const struct method *method)
{
    enum client_state state = call->client->state;

    if (method->state == METHOD_ANY || state == CLIENT_READY)
        return false;
    call_fail(call, RPC_INVALID_REQUEST, "client must %s before using %s methods",
              state == CLIENT_NEW ? "call initialize" : "send initialized", method->family);
    return true;
}

static void call_dispatch(struct call *call)
{
    const char *name = call->message.method;
    const struct method *method = method_find(name);
    AUTO_FREE char *path = NULL;
    char text[64];
    struct err err;

    if (!method) {
        call_fail(call, RPC_UNKNOWN_METHOD, "exec-server stub does not implement `%s` yet", name);
        return;
    }
    if (call_refuse(call, method))
        return;
    if (call->client->calls_len > CALLS_MAX && !method->is_control) {
        snprintf(text, sizeof text, "%d requests of this connection wait already", CALLS_MAX);
        call_fail_data(call, RPC_INVALID_REQUEST, text, limit_data("max-calls", CALLS_MAX));
        return;
    }
    if (read_params(method, call, &path, &err)) {
        call_fail_data(call, RPC_INVALID_PARAMS, err.msg,
                       path ? json_pack("{s:s}", "path", path) : NULL);
        return;
    }
    call->method = method;
    client_handle(call);
}

void client_handle(struct call *call)
{
    call->method->handle(call, call->params);
}

/* A notification that makes no sense ends the connection, as in the original: the two sides do not
 * agree any more. */
static void client_on_notification(struct client *client, const char *name)
{
    bool is_known = strcmp(name, "initialized") == 0;

    if (is_known && client->state != CLIENT_NEW) {
        client->state = CLIENT_READY;
        return;
    }
    rpc_peer_close(client->peer, RPC_CLOSE_POLICY,
                   is_known ? "initialized came before initialize" : "unknown notification");
}

void client_on_message(struct client *client, struct rpc_message *message)
{
    if (message->kind == RPC_NOTIFICATION) {
        client_on_notification(client, message->method);
        return;
    }
    call_dispatch(call_begin(client, message));
}

/* --- life --- */

void client_on_open(struct server *server, struct rpc_peer *peer)
{
    struct client *client = alloc_zero(1, sizeof *client);

    client->server = server;
    client->peer = peer;
    list_add(&server->clients, &client->in_server);
    rpc_peer_set_data(peer, client);
    log_event(LOG_LEVEL_INFO, "client-connected", log_text("peer", rpc_peer_name(peer)));
}

void client_on_room(struct client *client)
{
    if (client->session) {
        client_session_on_room(client->session);
        exec_runs_on_room(client->session);
    }
    observers_on_room(client);
    for (int i = 0; i < CLIENT_PART_COUNT; i++)
        if (client->parts[i].part && client->parts[i].type->on_room)
            client->parts[i].type->on_room(client->parts[i].part);
}

void client_on_closed(struct client *client)
{
    calls_drop(client);
    observers_free(client);
    for (int i = 0; i < CLIENT_PART_COUNT; i++)
        if (client->parts[i].part)
            client->parts[i].type->done(client->parts[i].part);
    if (client->session)
        client_session_detach(client->session);
    list_remove(&client->in_server);
    free(client);
}

void *client_part(const struct client *client, enum client_part which)
{
    return client->parts[which].part;
}

void client_set_part(struct client *client, enum client_part which, void *part,
                     const struct client_part_type *type)
{
    client->parts[which].part = part;
    client->parts[which].type = type;
}
