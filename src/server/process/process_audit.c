/* See process_audit.h. The id in `audit_id` stands for a begin whose end is still to be written. */
#include "server/process/process_audit.h"

#include "base/clock.h"
#include "executor/execution.h"
#include "executor/execution_audit.h"
#include "policy/access.h"
#include "server/client_session.h"
#include "server/process/rpc_process.h"
#include "server/sandbox_request.h"
#include "server/server.h"
#include "server/server_audit.h"

static void add(const struct rpc_process *process, enum audit_event event, struct json_t *body)
{
    server_audit_add(process->owner->server, event, process->audit_id, body);
}

/* Adds what is known of the workspace. Takes nothing over; a new reference. */
static struct json_t *begin_body(struct audit_begin begin, const struct workspace *workspace)
{
    const struct access_map *access = workspace->access;

    begin.profile = access ? "of this call" : "none";
    begin.network = access ? network_access_name(access->network) : "enabled";
    begin.sandbox = access ? "require" : "disabled";
    begin.face = "serve";
    return audit_begin_body(&begin);
}

void process_audit_begin(struct rpc_process *process, char *const *env)
{
    const struct audit_begin begin = {
        .argv = strv_view(&process->argv), .env = env, .cwd = process->cwd, .process = process->id};

    if (!server_audit_id(process->owner, process->audit_id))
        return;
    add(process, AUDIT_BEGIN, begin_body(begin, process->workspace));
    if (job_audit_timeline(process->job))
        audit_trail_init(&process->trail, server_audit_topics(process->owner->server), env);
}

void process_audit_event(const struct rpc_process *process, const struct execution_event *event)
{
    struct audit_note note;

    if (*process->audit_id && execution_audit_event(event, NULL, NULL, &note))
        add(process, note.event, note.body);
}

static void add_trace(struct rpc_process *process, const struct timeline *timeline)
{
    server_audit_trace(process->owner->server, process->audit_id, &process->trail, timeline);
}

void process_audit_trace(struct rpc_process *process)
{
    if (*process->audit_id && job_audit_timeline(process->job))
        add_trace(process, job_audit_timeline(process->job));
}

/* --- the end --- */

static void add_denials(const struct rpc_process *process)
{
    for (size_t i = 0; i < process->end.denials.len; i++)
        process_audit_event(process,
                            &(struct execution_event){.kind = EXECUTION_DENIED,
                                                      .denial = &process->end.denials.items[i]});
}

static struct json_t *end_body(const struct rpc_process *process)
{
    const struct process_end *end = job_end(process->job);
    struct audit_end body = {.end = "cancelled", .exit_code = -1};
    struct job_info info;

    if (!end)
        return audit_end_body(&body);
    job_info(process->job, &info);
    body.wall_ns = clock_now_ns() - info.started_ns;
    if (end->how == PROCESS_FAILED_TO_START) {
        body.end = "failed-to-start";
        body.reason = end->failure.msg;
    } else {
        body.end = end->how == PROCESS_SIGNALED ? "signaled" : "exited";
        body.signal = process->end.signal;
        body.exit_code = body.signal ? -1 : process->end.code;
    }
    return audit_end_body(&body);
}

void process_audit_end(struct rpc_process *process)
{
    if (!*process->audit_id)
        return;
    add_trace(process, NULL);
    add_denials(process);
    add(process, AUDIT_END, end_body(process));
    *process->audit_id = '\0';
}

void process_audit_refusal(const struct client_session *owner,
                           const struct process_refusal *refusal)
{
    const struct audit_begin begin = {
        .argv = refusal->argv, .env = refusal->env, .cwd = refusal->cwd};
    const struct audit_end end = {.end = execution_outcome_name(EXECUTION_FORBIDDEN),
                                  .reason = refusal->reason,
                                  .exit_code = -1};
    char id[SERVER_AUDIT_ID_SIZE];

    if (!server_audit_id(owner, id))
        return;
    server_audit_add(owner->server, AUDIT_BEGIN, id, begin_body(begin, refusal->workspace));
    server_audit_add(owner->server, AUDIT_END, id, audit_end_body(&end));
}
