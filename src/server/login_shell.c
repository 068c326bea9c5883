/* See login_shell.h. Every client's session has snapshots of its own, and each is for one place. */
#include "server/login_shell.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/log.h"
#include "policy/config/config.h"
#include "server/client_session.h"
#include "server/sandbox_request.h"
#include "server/server.h"
#include "workspace/snapshots.h"

#include <string.h>

static void push_names(const json_t *map, struct strv *ret)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)map, name, value) strv_push(ret, name);
}

/* What the caller, its policy or the user's configuration set on purpose. */
static void push_chosen(const struct login_shell_call *call, const struct config *config,
                        struct strv *ret)
{
    const json_t *policy = json_object_get(call->params, "envPolicy");
    const struct strv *set = config ? &config_environment(config)->set : NULL;

    push_names(json_object_get(call->params, "env"), ret);
    push_names(json_object_get(policy, "set"), ret);
    for (size_t i = 0; set && !json_is_object(policy) && i < set->len; i++)
        strv_push_take(ret, alloc_strn(set->items[i], strcspn(set->items[i], "=")));
}

static void on_hold(void *data)
{
    workspace_hold(data);
}

static void on_release(void *data)
{
    log_event(LOG_LEVEL_DEBUG, "shell-snapshot-over");
    workspace_release(data);
}

bool login_shell_use(struct client_session *session, const struct login_shell_call *call,
                     struct strv *ret_argv, struct strv *ret_env, const char **ret_note)
{
    struct server *server = session->server;
    AUTO(strv_done) struct strv chosen = {0};
    struct snapshot_request request = {
        .argv = call->argv,
        .cwd = call->cwd,
        .place = call->workspace->number,
        .sandbox = call->workspace->sandbox,
        .access = call->workspace->access,
        .env = call->env,
        .hold = on_hold,
        .release = on_release,
        .data = call->workspace,
    };
    const struct err *failure;
    bool is_used;

    if (!session->snapshots)
        session->snapshots = snapshots_new(server->loop);
    push_chosen(call, server->config.file, &chosen);
    request.keep = strv_view(&chosen);
    is_used = snapshots_use(session->snapshots, &request, ret_argv, ret_env, &failure);
    *ret_note = failure ? SNAPSHOTS_NOTE : NULL;
    if (failure)
        log_event(LOG_LEVEL_WARN, "shell-snapshot-failed", log_text("shell", call->argv[0]),
                  log_text("why", failure->msg));
    return is_used;
}
