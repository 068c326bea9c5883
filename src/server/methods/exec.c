/* exec/run and exec/cancel: the parameters of a command, made into what the engine takes. A call
 * that is a patch (patch/call.h) is run by the helper for patches; what is asked about stays the
 * command line of the call, and what is remembered are its files. */
#include "approval/grant.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/profile_json.h"
#include "server/approver_client.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/layer/layer_table.h"
#include "server/login_shell.h"
#include "server/methods.gen.h"
#include "server/rpc_path.h"
#include "server/run/exec_run.h"
#include "server/sandbox_request.h"
#include "server/server.h"
#include "server/start_env.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- who may be asked, and about what --- */

/* The call's own word, else the user's, else that of a sandbox that is left on request. */
static int read_policy(struct exec_run *run, const json_t *call, struct err *err)
{
    const struct json_at root = json_at_root(call);
    const struct json_at at = json_at_field(&root, "approvalPolicy");
    const struct server *server = run->server;
    const struct approval_policy *own = config_approval_policy(server->config.file);
    const char *word = json_string_value(at.value);
    bool is_left = word && str_eq(word, "forbids-only");
    struct approval_policy *ret = &run->options.policy;

    *ret = own ? *own : (struct approval_policy){.mode = APPROVAL_ON_REQUEST};
    run->options.gate = is_left && !own ? EXECUTION_FORBIDS_ONLY : EXECUTION_ASKS;
    if (json_at_is_given(&at) && !is_left && approval_policy_from_json(&at, ret, err))
        return -1;
    ret->yes_means_unsandboxed = config_yes_means_unsandboxed(server->config.file) ||
                                 json_is_true(json_object_get(call, "yesMeansUnsandboxed"));
    return 0;
}

static int read_wishes(struct exec_run *run, const struct exec_run_params *params, struct err *err)
{
    const char *word = params->sandbox_permissions;
    const json_t *additional = params->additional_permissions;

    if (read_policy(run, call_params(run->call), err) ||
        (word && sandbox_permissions_parse(word, &run->options.permissions, err)))
        return -1;
    if (additional && !json_is_null(additional) &&
        (profile_overlay_from_json(additional, &run->additional, err) ||
         profile_overlay_normalise(&run->additional, err) ||
         overlay_settle(&run->additional, workspaces_own_paths(run->server->workspaces), err)))
        return err_wrap(err, "additionalPermissions");
    run->justification = alloc_str(params->justification);
    call_words(params->prefix_rule, &run->proposed);
    return 0;
}

/* --- what is run --- */

static int check_cwd(const char *cwd, struct err *err)
{
    struct stat st;

    return stat(cwd, &st) ? err_sys(err, "the working directory %s", cwd) : 0;
}

/* A patch stays in the directory that its `cd` names. */
static int read_patch(struct exec_run *run, const struct exec_run_params *params,
                      enum rpc_code *ret_code, struct err *err)
{
    char *dir;

    patch_call_read(strv_view(&run->argv), &run->patch);
    if (run->patch.kind == PATCH_CALL_BARE)
        return err_set(err, ERR_INVALID, "%s", patch_call_advice);
    if (run->patch.kind == PATCH_CALL_NONE) {
        login_shell_keep(call_params(run->call), run->server->config.file, &run->keep);
        return 0;
    }
    *ret_code = RPC_INTERNAL;
    if (run->patch.dir) {
        dir = path_clean(run->cwd, run->patch.dir);
        free(run->cwd);
        run->cwd = dir;
    }
    if (check_cwd(run->cwd, err))
        return -1;
    patch_call_paths(&run->patch, run->cwd, &run->patched);
    run->options.patched = strv_view(&run->patched);
    return exec_run_patch(run, "apply", "text", err);
}

static int read_job(const struct exec_run_params *params, struct exec_run *run, struct err *err)
{
    static const char *const outputs[] = {
        [EXEC_RUN_LIVE] = "live", [EXEC_RUN_WHOLE] = "whole", [EXEC_RUN_NONE] = "none"};
    struct job_run_options *job = &run->job;

    job->timeout_ns = params->timeout_ms * CLOCK_NS_PER_MS;
    job->kill_after_ns = params->kill_after_ms * CLOCK_NS_PER_MS;
    job->max_output = (size_t)params->max_output_bytes;
    job->input = params->pipe_stdin ? JOB_RUN_INPUT_JOB : JOB_RUN_INPUT_NULL;
    if (params->tty) {
        job->stdio = PROCESS_TTY;
        job->size = (struct pty_size){.rows = (unsigned short)params->rows,
                                      .columns = (unsigned short)params->columns};
    }
    while (params->output && !str_eq(params->output, outputs[run->output]))
        run->output++;
    run->reports_later = params->report;
    return call_limits(CALL_LIMITS(params), &job->limits, err);
}

static int run_read(struct exec_run *run, const struct exec_run_params *params,
                    enum rpc_code *ret_code, struct err *err)
{
    const struct config *config = run->server->config.file;

    *ret_code = RPC_INVALID_PARAMS;
    run->cwd = rpc_path_parse(params->cwd, ret_code, err);
    if (!run->cwd || read_wishes(run, params, err) || read_job(params, run, err))
        return -1;
    *ret_code = RPC_INTERNAL;
    if (check_cwd(run->cwd, err))
        return -1;
    call_words(params->argv, &run->argv);
    start_env_for_call(params->env_policy, params->env, config, &run->env);
    start_env_for_call(params->env_policy, NULL, config, &run->base);
    start_env_for_call(NULL, NULL, config, &run->own_env);
    run->sandbox = json_incref((json_t *)params->sandbox);
    run->layer = json_incref((json_t *)params->layer);
    run->topics = sandbox_topics(params->trace);
    if (exec_run_workspace(run, ret_code, err))
        return -1;
    *ret_code = RPC_INVALID_PARAMS;
    return read_patch(run, params, ret_code, err);
}

/* --- the answer --- */

static json_t *warnings_of(const struct execution_result *result)
{
    json_t *list = json_array();

    for (size_t i = 0; i < result->problems.len; i++)
        json_array_append_new(list, json_lossy(result->problems.items[i]));
    for (size_t i = 0; i < result->warnings.len; i++)
        json_array_append_new(list, json_lossy(result->warnings.items[i]));
    return list;
}

/* As report_attempt() of `cordon run` says them. */
static json_t *notes_of(const struct exec_run *run, const struct execution_result *result)
{
    AUTO(strv_done) struct strv refused = {0};
    AUTO(strv_done) struct strv trace = {0};
    AUTO(strv_done) struct strv report = {0};
    const struct job_result *last;

    if (result->outcome == EXECUTION_RAN) {
        last = &result->attempts[result->attempts_len - 1].result;
        execution_notes(last, &refused);
        execution_tmp_notes(last, strv_view(&run->argv), &refused);
        execution_trace_notes(last, run->topics, &trace);
        if (run->reports_later)
            execution_later_notes(&run->later, last, &report);
    }
    return json_pack("{s:o, s:o, s:o}", "refused", json_lossy_list(strv_view(&refused)), "trace",
                     json_lossy_list(strv_view(&trace)), "report",
                     json_lossy_list(strv_view(&report)));
}

static json_t *document_of(struct exec_run *run, const struct execution_result *result)
{
    for (size_t i = 0; i < result->problems.len; i++)
        strv_push(&run->warnings, result->problems.items[i]);
    return result->outcome == EXECUTION_FAILED
               ? json_null()
               : execution_document(result, run->workspace, strv_view(&run->warnings),
                                    run->reports_later ? &run->later : NULL, NULL);
}

static json_t *answer(struct exec_run *run, const struct execution_result *result)
{
    json_t *json = execution_to_json(result, NULL);

    json_object_set_new(json, "exitCode", json_integer(execution_exit_code(result)));
    json_object_set_new(json, "notes", notes_of(run, result));
    json_object_set_new(json, "document", document_of(run, result));

    json_object_set_new(json, "runId", json_string(run->id));
    json_object_set_new(json, "patch", json_boolean(run->patch.kind == PATCH_CALL_PATCH));
    json_object_set_new(json, "warnings", warnings_of(result));
    return json;
}

void method_exec_run(struct call *call, const struct exec_run_params *params)
{
    struct client_session *session = call->client->session;
    const char *id = params->run_id;
    enum rpc_code code = RPC_INTERNAL;
    struct approvals *approvals;
    struct exec_run *run;
    struct err err;

    if (exec_run_find(session, id)) {
        call_fail(call, RPC_INVALID_REQUEST, "run %.60s already exists", id);
        return;
    }
    if (server_refuses(session->server, call) || !layer_admit(call, params->layer))
        return;
    approvals = session_approvals(session, &err);
    if (!approvals) {
        call_fail_with(call, code, &err);
        return;
    }
    run = exec_run_new(call, id);
    if (run_read(run, params, &code, &err)) {
        exec_run_free(run);
        call_fail_with(call, code, &err);
        return;
    }
    run->tells_changes = run->workspace->layer;
    run->options.approvals = approvals;
    run->answer = answer;
    exec_run_start(run);
}

void method_exec_cancel(struct call *call, const struct exec_cancel_params *params)
{
    struct exec_run *run = exec_run_find(call->client->session, params->run_id);

    if (run)
        exec_run_cancel(run);
    call_reply(call, json_pack("{s:b}", "running", run != NULL));
}
