/* See login_shell.h. Every client's session has snapshots of its own, and each is for one
 * workspace. */
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

void login_shell_keep(const json_t *params, const struct config *config, struct strv *ret)
{
    const json_t *policy = json_object_get(params, "envPolicy");
    const struct strv *set = config ? &config_environment(config)->set : NULL;

    push_names(json_object_get(params, "env"), ret);
    push_names(json_object_get(policy, "set"), ret);
    for (size_t i = 0; set && !json_is_object(policy) && i < set->len; i++)
        strv_push_take(ret, alloc_strn(set->items[i], strcspn(set->items[i], "=")));
}

struct snapshots *login_shell_snapshots(struct client_session *session)
{
    if (!session->snapshots)
        session->snapshots = snapshots_new(session->server->loop);
    return session->snapshots;
}

void login_shell_log_failure(const char *shell, const struct err *why)
{
    log_event(LOG_LEVEL_WARN, "shell-snapshot-failed", log_text("shell", shell),
              log_text("why", why->msg));
}

bool login_shell_use(struct client_session *session, const struct login_shell_call *call,
                     struct strv *ret_argv, struct strv *ret_env, const char **ret_note)
{
    AUTO(strv_done) struct strv chosen = {0};
    struct snapshot_request request = snapshot_request_for(call->workspace);
    const struct err *failure;
    bool is_used;

    request.argv = call->argv;
    request.cwd = call->cwd;
    request.env = call->env;
    login_shell_keep(call->params, session->server->config.file, &chosen);
    request.keep = strv_view(&chosen);
    is_used = snapshots_use(login_shell_snapshots(session), &request, ret_argv, ret_env, &failure);
    *ret_note = failure ? SNAPSHOTS_NOTE : NULL;
    if (failure)
        login_shell_log_failure(call->argv[0], failure);
    return is_used;
}
