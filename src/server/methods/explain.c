/* permissions/explain: what `cordon explain --json` answers, for the sandbox of a call. The workspace is the one that session/exec
 * with the same sandbox and directory would run in, so that both say the same. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "executor/execution.h"
#include "explain/answer.h"
#include "explain/command.h"
#include "explain/explanation.h"
#include "policy/environment.h"
#include "server/call.h"
#include "server/client.h"
#include "server/methods.gen.h"
#include "server/rpc_path.h"
#include "server/rules_cache.h"
#include "server/sandbox_request.h"
#include "server/server.h"
#include "server/server_audit.h"
#include "server/start_env.h"
#include "workspace/workspace.h"

#include <stdlib.h>

/* What an explanation borrows from. */
struct explain_parts {
    char *cwd;
    struct strv argv;
    struct strv env;
    struct environment_report env_report;
    struct execution_options execution;
    struct err refusal;
    struct explained about;
};

static void parts_done(struct explain_parts *parts)
{
    free(parts->cwd);
    strv_done(&parts->argv);
    strv_done(&parts->env);
    environment_report_done(&parts->env_report);
}

static int read_approval(const struct call *call, struct explain_parts *parts, struct err *err)
{
    const struct json_at root = json_at_root(call_params(call));
    const struct json_at at = json_at_field(&root, "approvalPolicy");

    parts->execution.gate = EXECUTION_FORBIDS_ONLY;
    parts->execution.policy.mode = APPROVAL_NEVER;
    if (!json_at_is_given(&at) || str_eq(json_string_value(at.value), "forbids-only"))
        return 0;
    parts->execution.gate = EXECUTION_ASKS;
    parts->about.approval_from = "approvalPolicy";
    return approval_policy_from_json(&at, &parts->execution.policy, err);
}

static int parts_read(const struct call *call, const struct permissions_explain_params *params,
                      struct explain_parts *parts, enum rpc_code *ret_code, struct err *err)
{
    struct server *server = call->client->server;
    struct sandbox_call request = {.sandbox = params->sandbox,
                                   .otherwise = server_own_default(server),
                                   .tmpdir = getenv("TMPDIR"),
                                   .audit_topics = server_audit_topics(server)};
    struct workspace *workspace;

    *ret_code = RPC_INVALID_PARAMS;
    if (!!params->path + !!params->host + !!params->argv > 1)
        return err_set(err, ERR_INVALID,
                       "path, host and argv are different questions; ask one at a time");
    request.cwd = parts->cwd = rpc_path_parse(params->cwd, ret_code, err);
    if (!parts->cwd || read_approval(call, parts, err))
        return -1;
    workspace = workspace_for_call(server->workspaces, &request, ret_code, err);
    if (!workspace)
        return -1;
    call_words(params->argv, &parts->argv);
    start_env_own(server->config.file, &parts->env, &parts->env_report);
    parts->execution.workspace = workspace;
    parts->execution.rules = server_rule_owner(server);
    parts->execution.argv = strv_view(&parts->argv);
    parts->execution.cwd = parts->cwd;
    parts->about.workspace = workspace;
    parts->about.sandbox =
        workspace_probe(workspace, &parts->refusal) == 0 ? workspace->sandbox : NULL;
    parts->about.refusal = &parts->refusal;
    parts->about.execution = &parts->execution;
    parts->about.config = server->config.path;
    parts->about.home = server->config.home;
    parts->about.dir = parts->cwd;
    parts->about.env = strv_view(&parts->env);
    parts->about.env_report = &parts->env_report;
    parts->about.warnings = strv_view(&(struct strv){0});
    return 0;
}

static json_t *explain_all(const struct explained *about, const json_t *argv)
{
    struct explained_command command = {.argv = NULL};
    json_t *json;

    if (argv)
        explained_command_init(&command, about);
    json = explained_to_json(about, argv ? &command : NULL, false);
    explained_command_done(&command);
    return json;
}

/* NULL on failure. */
static json_t *explain_one(const struct explained *about,
                           const struct permissions_explain_params *params, struct err *err)
{
    AUTO(explain_answer_done) struct explain_answer answer = {0};
    enum access wanted =
        params->access && str_eq(params->access, "write") ? ACCESS_WRITE : ACCESS_READ;

    if (params->host ? explain_host(about, params->host, &answer, err)
                     : explain_path(about, params->path, wanted, &answer, err))
        return NULL;
    return explain_answer_to_json(&answer);
}

void method_permissions_explain(struct call *call, const struct permissions_explain_params *params)
{
    AUTO(parts_done) struct explain_parts parts = {.cwd = NULL};
    enum rpc_code code;
    struct err err;
    json_t *answer;

    if (parts_read(call, params, &parts, &code, &err)) {
        call_fail_with(call, code, &err);
        return;
    }
    answer = params->path || params->host ? explain_one(&parts.about, params, &err)
                                          : explain_all(&parts.about, params->argv);
    if (answer)
        call_reply(call, json_pack("{s:o}", "answer", answer));
    else
        call_fail_err(call, &err);
}
