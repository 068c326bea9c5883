/* See exec_audit.h. Of a patch only its size is written, never its text. */
#include "server/run/exec_audit.h"

#include "base/str.h"
#include "executor/execution_audit.h"
#include "policy/access.h"
#include "server/run/exec_run.h"
#include "server/sandbox_request.h"
#include "server/server_audit.h"

/* Takes `body` over. */
static void add(struct exec_run *run, enum audit_event event, struct json_t *body)
{
    server_audit_add(run->server, event, run->audit_id, body);
}

/* --- events --- */

static bool is_patch(const struct exec_run *run)
{
    return run->patch.kind == PATCH_CALL_PATCH;
}

void exec_audit_begin(struct exec_run *run)
{
    const struct workspace *workspace = run->workspace;
    const struct audit_begin begin = {
        .argv = strv_view(&run->argv),
        .env = strv_view(&run->env),
        .cwd = run->cwd,
        .profile = run->workspace->profile_name,
        .network = workspace->access ? network_access_name(workspace->access->network) : "enabled",
        .sandbox = workspace->access ? "require" : "disabled",
        .face = "serve",
        .process = run->id,
    };

    if ((is_patch(run) && !str_eq(run->helper.items[1], "apply")) ||
        !server_audit_id(run->session, run->audit_id))
        return;
    if (is_patch(run))
        add(run, AUDIT_PATCH_BEGIN, audit_patch_begin_body(run->cwd, run->patch.text_len));
    else
        add(run, AUDIT_BEGIN, audit_begin_body(&begin));
    if (workspace->audit_topics)
        audit_trail_init(&run->trail, workspace->audit_topics, strv_view(&run->env));
}

void exec_audit_step(struct exec_run *run, const struct execution_event *event)
{
    char *const patch[] = {(char *)"apply_patch", NULL};
    struct audit_note note;

    if (*run->audit_id &&
        execution_audit_event(event, is_patch(run) ? patch : NULL, strv_view(&run->env), &note))
        add(run, note.event, note.body);
}

void exec_audit_trace(struct exec_run *run, const struct timeline *timeline)
{
    if (*run->audit_id)
        server_audit_trace(run->server, run->audit_id, &run->trail, timeline);
}

/* --- the end --- */

static void add_patch_end(struct exec_run *run, const struct execution_result *result)
{
    const struct job_result *last =
        result && result->attempts_len ? &result->attempts[result->attempts_len - 1].result : NULL;
    bool is_applied = last && last->end == JOB_RUN_EXITED && last->process->code == 0;
    const char *reason = last ? job_run_end_name(last->end) : result ? result->reason : "cancelled";

    add(run, AUDIT_PATCH_END, audit_patch_end_body(is_applied, is_applied ? NULL : reason));
}

void exec_audit_end(struct exec_run *run, const struct execution_result *result)
{
    if (!*run->audit_id)
        return;
    exec_audit_trace(run, NULL);
    if (is_patch(run)) {
        add_patch_end(run, result);
        return;
    }
    for (size_t i = 0; result && i < result->attempts_len; i++)
        add(run, AUDIT_OUTPUT, execution_audit_output(&result->attempts[i].result));
    add(run, AUDIT_END, execution_audit_end(result));
}
