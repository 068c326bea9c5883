/* See layer.h. The server has the layer, and lets other programs have it while nothing of it is in use: this is its id, and a
 * connection that hears when a step of it ends, for those who listen to its resources (news.h). */
#include "mcp/layer.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/str.h"
#include "base/utf8.h"
#include "loop/loop.h"
#include "mcp/engine.h"
#include "mcp/mcp.h"
#include "mcp/news.h"
#include "mcp/session.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct mcp_layer {
    struct mcp *mcp;
    struct mcp_engine *engine;
    struct mcp_engine_listener events;
    char *id;
    char *name; /* NULL: none */
    /* while it is opened */
    const char *wanted;
    bool is_settled;
    char *failure; /* NULL: none */
};

static void on_event(void *data, const char *method, const json_t *params)
{
    const struct mcp_layer *layer = data;
    const char *id = json_string_value(json_object_get(params, "layerId"));
    const struct mcp_session *session;

    if ((!str_eq(method, "layer/stepEnded") && !str_eq(method, "layer/outsideChanged")) || !id ||
        !str_eq(id, layer->id))
        return;
    list_for_each(session, &layer->mcp->sessions, in_mcp)
        mcp_news_changed(session->news);
}

/* --- opening --- */

static void settle(struct mcp_layer *layer, const struct rpc_message *answer)
{
    const json_t *result = answer && answer->kind == RPC_RESULT ? answer->result : NULL;

    layer->is_settled = true;
    layer->id = alloc_str(json_string_value(json_object_get(result, "layerId")));
    layer->name = alloc_str(json_string_value(json_object_get(result, "name")));
    if (!layer->id)
        layer->failure = alloc_str(answer ? answer->error_text : "the server is gone");
}

static void on_made(void *data, const struct rpc_message *answer)
{
    settle(data, answer);
}

static void make(struct mcp_layer *layer, const char *name)
{
    mcp_engine_call(layer->engine, "layer/create",
                    json_pack("{s:s?, s:O}", "name", name, "sandbox", layer->mcp->options.sandbox),
                    on_made, layer);
}

static void on_found(void *data, const struct rpc_message *answer)
{
    struct mcp_layer *layer = data;
    const char *reason = answer ? json_string_value(json_object_get(answer->data, "reason")) : NULL;

    if (answer && answer->kind == RPC_ERROR && reason && str_eq(reason, "no-layer"))
        make(layer, layer->wanted);
    else
        settle(layer, answer);
}

/* It hears of what others do in a layer when it has asked for the changes once. */
static void listen(struct mcp_layer *layer)
{
    layer->events.on_event = on_event;
    layer->events.data = layer;
    mcp_engine_listen(layer->engine, &layer->events);
    mcp_engine_call(layer->engine, "layer/changes",
                    json_pack("{s:s, s:i}", "layerId", layer->id, "limit", 1), NULL, NULL);
}

int mcp_layer_open(struct mcp *mcp, const char *name, struct err *err)
{
    struct mcp_layer *layer = mcp->layer = alloc_zero(1, sizeof *layer);

    layer->mcp = mcp;
    layer->engine = mcp_engine_new(mcp, err);
    if (!layer->engine)
        return -1;
    layer->wanted = name;
    if (str_eq(name, "new"))
        make(layer, NULL);
    else
        mcp_engine_call(layer->engine, "layer/info", json_pack("{s:s}", "layerId", name), on_found,
                        layer);
    if (loop_run(mcp->loop, &layer->is_settled, err))
        return -1;
    if (layer->failure)
        return err_set(err, ERR_UNSUPPORTED, "no change layer: %s", layer->failure);
    listen(layer);
    return 0;
}

void mcp_layer_close(struct mcp *mcp)
{
    struct mcp_layer *layer = TAKE_PTR(mcp->layer);

    if (!layer)
        return;
    layer->is_settled = true; /* what is still asked is answered with nothing */
    list_remove(&layer->events.in_engine);
    mcp_engine_free(layer->engine);
    free(layer->failure);
    free(layer->name);
    free(layer->id);
    free(layer);
}

/* --- for others --- */

const char *mcp_layer_id(const struct mcp *mcp)
{
    return mcp->layer ? mcp->layer->id : NULL;
}

const char *mcp_layer_name(const struct mcp *mcp)
{
    return mcp->layer && mcp->layer->name ? mcp->layer->name : mcp_layer_id(mcp);
}

json_t *mcp_layer_ref(const struct mcp *mcp)
{
    return mcp->layer ? json_pack("{s:s}", "layerId", mcp->layer->id) : NULL;
}

void mcp_layer_list(const struct mcp *mcp, const json_t *changes, json_t *list)
{
    AUTO_FREE char *all = alloc_strf(MCP_LAYER_URIS "%s/changes", mcp_layer_id(mcp));

    json_array_append_new(
        list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "uri", all, "name", "changes", "title",
                        "Changes", "mimeType", "application/json", "description",
                        "What is in the change layer, as layer_changes tells it."));
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const json_t *change = json_array_get(changes, i);
        const char *path = json_string_value(json_object_get(change, "path"));
        AUTO_FREE char *file = file_uri_format(path);
        AUTO_FREE char *plain = utf8_plain(path);
        AUTO_FREE char *uri =
            alloc_strf(MCP_LAYER_URIS "%s/diff%s", mcp_layer_id(mcp), file + strlen("file://"));
        AUTO_FREE char *title =
            alloc_strf("%s %s", json_string_value(json_object_get(change, "kind")), plain);

        if (json_object_get(change, "pathBase64")) /* it has no name that could be asked for */
            continue;
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "uri", uri, "name", title,
                                              "title", title, "mimeType", "text/x-diff"));
    }
}
