/* See exec_run.h. The engine decides and drives; here is what it needs of the server: a sandbox for
 * each attempt, and the way back to the client. A run is in the server's list from its beginning to
 * its answer, so that a server or session that ends finds it. */
#include "server/run/exec_run.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "patch/patch.h"
#include "policy/access.h"
#include "rules/rules.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/login_shell.h"
#include "server/run/exec_audit.h"
#include "server/run/exec_event.h"
#include "server/sandbox_request.h"
#include "server/server.h"

#include <stdlib.h>

/* --- life --- */

void exec_run_cancel(struct exec_run *run)
{
    run->is_cancelled = true;
    execution_cancel(run->execution);
}

/* The connection is gone: nobody answers questions, nobody waits. */
static void on_gone(void *data)
{
    struct exec_run *run = data;

    run->call = NULL;
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
    run->options.gate = EXECUTION_FORBIDS_ONLY;
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
    for (size_t i = 0; i < run->workspaces_len; i++)
        workspace_release(run->workspaces[i]);
    rules_free(run->rules);
    free(run->rules_file);
    patch_call_done(&run->patch);
    strv_done(&run->patched);
    profile_overlay_done(&run->additional);
    json_decref(run->sandbox);
    free(run->justification);
    free(run->cwd);
    strv_done(&run->proposed);
    json_decref(run->params);
    strv_done(&run->login_env);
    strv_done(&run->login_argv);
    strv_done(&run->base);
    strv_done(&run->env);
    strv_done(&run->argv);
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

int exec_run_place(struct exec_run *run, enum rpc_code *ret_code, struct err *err)
{
    const struct sandbox_call call = {
        .sandbox = run->sandbox, .cwd = run->cwd, .tmpdir = getenv("TMPDIR")};
    struct workspace *workspace = workspace_for_call(run->server->workspaces, &call, ret_code, err);

    if (!workspace)
        return -1;
    workspace_hold(workspace);
    run->workspaces[run->workspaces_len++] = workspace;
    return 0;
}

/* Only in the place of the call: nothing that was made there is read with wider permissions. */
static void use_login(struct exec_run *run, struct execution_stage *stage)
{
    const struct login_shell_call call = {.params = run->params,
                                          .argv = strv_view(&run->argv),
                                          .cwd = run->cwd,
                                          .workspace = run->workspaces[0],
                                          .env = strv_view(&run->base)};
    AUTO(strv_done) struct strv added = {0};

    if (!login_shell_use(run->session, &call, &run->login_argv, &added, &run->login_note))
        return;
    strv_push_all(&run->login_env, strv_view(&run->env));
    strv_push_all(&run->login_env, strv_view(&added));
    stage->argv = strv_view(&run->login_argv);
    stage->env = strv_view(&run->login_env);
}

static int prepare(void *data, const struct execution_place *where, struct execution_stage *ret,
                   struct err *err)
{
    struct exec_run *run = data;
    bool is_bare = where->place == REQUIREMENT_UNCONFINED;
    struct workspace *workspace = run->workspaces[0];

    if (run->is_cancelled)
        return err_set(err, ERR_FORBIDDEN, "it was cancelled before it began");
    if (is_bare || where->widened) {
        workspace = workspace_derive(run->workspaces[0], is_bare ? NULL : where->widened, err);
        if (!workspace)
            return -1;
        run->workspaces[run->workspaces_len++] = workspace;
    }
    run->at = where->place;
    run->has_begun = false;
    *ret = (struct execution_stage){
        .sandbox = workspace->sandbox, .access = workspace->access, .env = strv_view(&run->env)};
    if (workspace == run->workspaces[0] && run->params)
        use_login(run, ret);
    return 0;
}

int exec_run_patch(struct exec_run *run, const char *task, const char *form, struct err *err)
{
    run->job.program = workspaces_program(run->server->workspaces, SANDBOX_PROGRAM_PATCH);
    if (!run->job.program)
        return err_set(err, ERR_UNSUPPORTED,
                       "the program \"cordon\", which applies patches, is not installed");
    run->helper[0] = (char *)PATCH_HELPER_NAME;
    run->helper[1] = (char *)task;
    run->helper[2] = (char *)form;
    run->options.stand_in = run->helper;
    run->job.input = JOB_RUN_INPUT_DATA;
    run->job.input_data = run->patch.text;
    run->job.input_len = run->patch.text_len;
    strv_done(&run->env);
    run->env = (struct strv){0};
    return 0;
}

/* --- running --- */

static void notify_begin(struct exec_run *run)
{
    if (run->has_begun)
        return;
    run->has_begun = true;
    run->attempts++;
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
        call_reply(call, run->answer(run, result));
    }
    exec_run_free(run);
    stopping_check(server);
}

/* $PATH as the command has it. */
static const char *search_path(const struct exec_run *run)
{
    for (size_t i = 0; i < run->env.len; i++)
        if (str_starts(run->env.items[i], "PATH="))
            return run->env.items[i] + 5;
    return NULL;
}

static enum confinement confinement(const struct workspace *workspace)
{
    return workspace->access ? confinement_of(&workspace->profile, workspace->access, true)
                             : CONFINEMENT_NONE;
}

void exec_run_start(struct exec_run *run)
{
    struct execution_options *options = &run->options;
    const struct workspace *workspace = run->workspaces[0];

    host_finder_init(&run->finder, search_path(run), run->cwd);
    run->job.on_started = on_started;
    run->job.on_output = on_output;
    run->job.data = run;
    options->loop = run->server->loop;
    options->rules = run->rules;
    options->rules_file = run->rules_file;
    options->home = run->server->config.home;
    options->own_paths = workspaces_own_paths(run->server->workspaces);
    options->access = workspace->access;
    options->finder = &run->finder.finder;
    options->confinement = confinement(workspace);
    options->profile = "of this call";
    options->argv = strv_view(&run->argv);
    options->cwd = run->cwd;
    options->justification = run->justification;
    options->additional = &run->additional;
    options->proposed = run->proposed.len ? strv_view(&run->proposed) : NULL;
    options->job = &run->job;
    options->prepare = prepare;
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

/* A call that waits still is answered by nobody: its connection goes, too. */
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
