/* See exec_run.h. The executor decides and drives; here is the way back to the client. A run is in
 * the server's list from its beginning to its answer, so that a server or session that ends finds
 * it. */
#include "server/run/exec_run.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "executor/patch_helper.h"
#include "policy/access.h"
#include "rpc/rpc.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/layer/layer_steps.h"
#include "server/layer/layer_table.h"
#include "server/login_shell.h"
#include "server/rules_cache.h"
#include "server/run/exec_audit.h"
#include "server/run/exec_event.h"
#include "server/sandbox_request.h"
#include "server/server.h"
#include "timeline/timeline.h"

#include <stdlib.h>

/* --- life --- */

void exec_run_cancel(struct exec_run *run)
{
    execution_cancel(run->execution);
}

struct job *exec_run_job(const struct exec_run *run)
{
    return run->execution ? execution_job(run->execution) : NULL;
}

void exec_run_close_input(struct exec_run *run)
{
    struct job *job = exec_run_job(run);

    run->is_input_closed = true;
    if (job)
        job_close_input(job);
}

/* A client that takes nothing makes the command wait; one that has gone does not. */
static void hold_output(struct exec_run *run)
{
    struct job *job = exec_run_job(run);
    bool is_held =
        run->output == EXEC_RUN_WHOLE && run->call && !rpc_peer_has_room(run->call->client->peer);

    if (job && is_held != run->is_held)
        job_hold_output(job, is_held);
    run->is_held = is_held;
}

void exec_runs_on_room(struct client_session *session)
{
    for (struct exec_run *run = session->server->exec_runs; run; run = run->next)
        if (run->session == session && run->is_held)
            hold_output(run);
}

/* The connection is gone: questions get no answer, and no caller waits. */
static void on_gone(void *data)
{
    struct exec_run *run = data;

    run->call = NULL;
    hold_output(run);
    exec_run_cancel(run);
}

struct exec_run *exec_run_new(struct call *call, const char *id)
{
    struct exec_run *run = alloc_zero(1, sizeof *run);

    run->server = call->client->server;
    run->session = call->client->session;
    run->call = call;
    run->id = alloc_str(id);
    run->options.policy.mode = APPROVAL_NEVER;
    run->options.gate = EXECUTION_UNRULED;
    job_run_defaults(&run->job);
    run->next = run->server->exec_runs;
    run->server->exec_runs = run;
    return run;
}

void exec_run_free(struct exec_run *run)
{
    struct exec_run **at = &run->server->exec_runs;

    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    if (run->execution)
        execution_free(run->execution);
    workspace_release(run->workspace);
    patch_call_done(&run->patch);
    strv_done(&run->patched);
    strv_done(&run->helper);
    profile_overlay_done(&run->additional);
    json_decref(run->sandbox);
    json_decref(run->layer);
    free(run->justification);
    free(run->cwd);
    strv_done(&run->proposed);
    strv_done(&run->keep);
    strv_done(&run->base);
    strv_done(&run->own_env);
    strv_done(&run->env);
    strv_done(&run->argv);
    strv_done(&run->warnings);
    strv_done(&run->later.paths);
    audit_trail_done(&run->trail);
    free(run->id);
    free(run);
}

struct exec_run *exec_run_find(const struct client_session *session, const char *id)
{
    for (struct exec_run *run = session->server->exec_runs; run; run = run->next)
        if (run->session == session && run->id && str_eq(run->id, id))
            return run;
    return NULL;
}

/* --- where it runs --- */

int exec_run_workspace(struct exec_run *run, enum rpc_code *ret_code, struct err *err)
{
    struct sandbox_call call = {.sandbox = run->sandbox,
                                .otherwise = server_own_default(run->server),
                                .cwd = run->cwd,
                                .tmpdir = getenv("TMPDIR"),
                                .topics = run->topics,
                                .audit_topics =
                                    server_audit_topics(run->server) |
                                    (run->reports_later ? (unsigned)TIMELINE_FILES : 0u)};

    *ret_code = RPC_INVALID_REQUEST;
    if (layer_choose(run->server, run->layer, &call, err))
        return -1;
    run->workspace = workspace_for_call(run->server->workspaces, &call, ret_code, err);
    if (!run->workspace)
        return -1;
    workspace_hold(run->workspace);
    return 0;
}

int exec_run_patch(struct exec_run *run, const char *task, const char *form, struct err *err)
{
    run->job.program = workspaces_program(run->server->workspaces, SANDBOX_PROGRAM_PATCH);
    if (!run->job.program)
        return err_set(err, ERR_UNSUPPORTED,
                       "the program \"cordon\", which applies patches, is not installed");
    patch_helper_words(run->workspace, server_rule_owner(run->server).home, run->cwd, task, form,
                       &run->helper);
    run->options.replacement_argv = strv_view(&run->helper);
    run->job.input = JOB_RUN_INPUT_DATA;
    run->job.input_data = run->patch.text;
    run->job.input_len = run->patch.text_len;
    return 0;
}

/* --- running --- */

static void on_attempt(void *data, enum run_where where, struct workspace *workspace)
{
    struct exec_run *run = data;

    run->at = where;
    run->has_begun = false;
    run->is_held = false;
    if (run->workspace)
        execution_warn_of_attempt(workspace, where, &run->warnings);
    run->told = workspace;
    run->trail.seq = 0; /* each attempt has a timeline of its own */
}

static void on_snapshot_failed(void *data, const struct err *why)
{
    login_shell_log_failure(((struct exec_run *)data)->argv.items[0], why);
}

static void notify_begin(struct exec_run *run)
{
    if (run->has_begun)
        return;
    run->has_begun = true;
    run->attempts++;
    if (run->workspace && run->workspace->layer)
        run->layer_step = layer_note_step(run->server, run->workspace->layer);
    if (run->told->sandbox)
        execution_warn_of_defences(run->told->sandbox, &run->warnings);
    if (exec_run_job(run))
        resource_limits_warn(job_limits(exec_run_job(run), NULL), &run->warnings);
    if (run->is_input_closed)
        job_close_input(exec_run_job(run));
    exec_event_begin(run);
}

static void on_started(void *data)
{
    notify_begin(data);
}

static void on_output(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset)
{
    notify_begin(data); /* what it writes can be here before the launcher got to say so */
    exec_event_output(data, &(struct exec_output){
                                .stream = stream, .bytes = bytes, .len = len, .offset = offset});
    hold_output(data);
}

static void on_traced(void *data, const struct job *job)
{
    struct exec_run *run = data;

    if (run->reports_later && job_audit_timeline(job))
        run_later_look(&run->later, job);
    if (job_audit_timeline(job))
        exec_audit_trace(data, job_audit_timeline(job));
}

static void on_event(void *data, const struct execution_event *event)
{
    exec_event_step(data, event);
    exec_audit_step(data, event);
}

static void on_done(void *data)
{
    struct exec_run *run = data;
    struct server *server = run->server;
    const struct execution_result *result = execution_result(run->execution);

    exec_audit_end(run, result);
    if (run->call) {
        struct call *call = run->call;

        exec_event_end(run, result);
        run->call = NULL;
        call_on_gone(call, NULL, NULL);
        layer_reply(call, run->answer(run, result),
                    run->tells_changes ? layer_id(run->workspace->layer) : NULL, run->layer_step);
    }
    exec_run_free(run);
    stopping_check(server);
}

void exec_run_start(struct exec_run *run)
{
    struct execution_options *options = &run->options;

    run->job.on_started = on_started;
    run->job.on_output = on_output;
    run->job.on_traced = on_traced;
    run->job.data = run;
    options->loop = run->server->loop;
    options->workspace = run->workspace;
    options->rules = server_rule_owner(run->server);
    options->argv = strv_view(&run->argv);
    options->env = strv_view(&run->env);
    options->own_env = strv_view(&run->own_env);
    options->snapshots = login_shell_snapshots(run->session);
    options->snapshot_env = strv_view(&run->base);
    options->snapshot_keep = strv_view(&run->keep);
    options->cwd = run->cwd;
    options->justification = run->justification;
    options->additional = &run->additional;
    options->proposed = run->proposed.len ? strv_view(&run->proposed) : NULL;
    options->job = &run->job;
    options->on_attempt = on_attempt;
    options->on_snapshot_failed = on_snapshot_failed;
    options->on_event = on_event;
    options->on_done = on_done;
    options->data = run;
    call_on_gone(run->call, on_gone, run);
    exec_audit_begin(run);
    run->execution = execution_start(options);
}

/* --- all of them --- */

size_t exec_runs_count(const struct server *server)
{
    size_t len = 0;

    for (const struct exec_run *run = server->exec_runs; run; run = run->next)
        len++;
    return len;
}

void exec_runs_cancel(struct server *server)
{
    for (struct exec_run *run = server->exec_runs; run; run = run->next)
        exec_run_cancel(run);
}

/* A call that waits still is not answered: its connection goes, too. */
static void run_abandon(struct exec_run *run)
{
    exec_audit_end(run, NULL);
    if (run->call)
        call_on_gone(run->call, NULL, NULL);
    exec_run_free(run);
}

void exec_runs_free(struct server *server)
{
    while (server->exec_runs)
        run_abandon(server->exec_runs);
}

void exec_runs_end(struct client_session *session)
{
    struct exec_run *next;

    for (struct exec_run *run = session->server->exec_runs; run; run = next) {
        next = run->next;
        if (run->session == session)
            run_abandon(run);
    }
}
