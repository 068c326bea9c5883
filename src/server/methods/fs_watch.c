/* fs/watchMissing: one watch per connection; the newest ends the older, even when it comes to
 * nothing. A client that is told `false` looks by itself from time to time, so everything that is
 * not simple is `false`: also a watch for a sandboxed client, whom the names below a denied folder
 * are none of its business. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/strv.h"
#include "rpc/rpc.h"
#include "server/files/missing_watch.h"
#include "server/method.h"
#include "server/rpc_path.h"

#include <stdlib.h>

struct watcher {
    struct rpc_peer *peer;
    json_int_t last_id; /* ids grow */
    struct missing_watch *watch;
};

static void watcher_done(void *part)
{
    struct watcher *watcher = part;

    missing_watch_free(watcher->watch);
    free(watcher);
}

static struct watcher *watcher_of(struct client *client)
{
    static const struct client_part_type type = {.done = watcher_done};
    struct watcher *watcher = client_part(client, CLIENT_PART_WATCHES);

    if (watcher)
        return watcher;
    watcher = alloc_zero(1, sizeof *watcher);
    watcher->peer = client_peer(client);
    client_set_part(client, CLIENT_PART_WATCHES, watcher, &type);
    return watcher;
}

static void on_change(void *data)
{
    struct watcher *watcher = data;
    AUTO_JSON json_t *params = json_pack("{s:I}", "watchId", watcher->last_id);

    missing_watch_free(TAKE_PTR(watcher->watch));
    rpc_peer_notify(watcher->peer, "fs/missingChanged", params);
}

static int read_paths(const json_t *list, struct strv *ret, enum rpc_code *ret_code,
                      struct err *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        char *path = rpc_path_parse(json_string_value(json_array_get(list, i)), ret_code, err);

        if (!path)
            return -1;
        strv_push_take(ret, path);
    }
    return 0;
}

void method_fs_watch_missing(struct call *call, const json_t *params)
{
    struct watcher *watcher = watcher_of(call_client(call));
    json_int_t id = json_integer_value(json_object_get(params, "watchId"));
    const char *uri = json_string_value(json_object_get(params, "present"));
    bool is_sandboxed = json_is_object(json_object_get(params, "sandbox"));
    AUTO(strv_done) struct strv missing = {0};
    AUTO_FREE char *present = NULL;
    enum rpc_code code = RPC_INTERNAL;
    struct err err;

    if (read_paths(json_object_get(params, "missing"), &missing, &code, &err) ||
        (uri && !(present = rpc_path_parse(uri, &code, &err)))) {
        call_fail(call, code, "%s", err.msg);
        return;
    }
    missing_watch_free(TAKE_PTR(watcher->watch));
    if (id > watcher->last_id && !is_sandboxed) {
        watcher->last_id = id;
        watcher->watch = missing_watch_new(server_loop(call_server(call)), &missing, present,
                                           on_change, watcher, &err);
    }
    call_reply(call, json_pack("{s:b}", "watching", watcher->watch != NULL));
}
