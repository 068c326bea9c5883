/* See process_held.h. These commands have no approval policy of their own: the configuration's
 * counts, else on-request, as for exec/run. */
#include "server/process/process_held.h"

#include "approval/held.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/log.h"
#include "executor/execution.h"
#include "executor/execution_exec.h"
#include "policy/config/approval.h"
#include "process/process.h"
#include "server/approver_client.h"
#include "server/client_session.h"
#include "server/process/process_audit.h"
#include "server/process/process_network.h"
#include "server/process/rpc_process.h"
#include "server/rules_cache.h"
#include "server/server.h"
#include "workspace/rule_layers.h"
#include "workspace/workspace.h"

static const struct approval_policy *policy_of(const struct client_session *session)
{
    static const struct approval_policy normal = {.mode = APPROVAL_ON_REQUEST};
    const struct approval_policy *own = config_approval_policy(session->server->config.file);

    return own ? own : &normal;
}

bool process_is_held(struct client_session *session, const struct workspace *workspace)
{
    struct err ignored; /* nobody can be asked */

    return held_is_wanted(workspace->access, &workspace->profile, policy_of(session)) &&
           session_approvals(session, &ignored);
}

static void on_held(void *data, const struct held_event *event)
{
    if (event->warning)
        log_event(LOG_LEVEL_WARN, "rule-not-written", log_text("why", event->warning));
    if (event->step == HELD_OVER)
        process_audit_event(data, &(struct execution_event){.kind = EXECUTION_HELD, .held = event});
}

void process_hold(struct rpc_process *process, const struct process_options *options)
{
    struct workspace *workspace = process->workspace;
    struct client_session *session = process->owner;
    const struct rule_owner rules = server_rule_owner(session->server);
    AUTO_FREE char *rules_file = rule_layers_file(&rules);
    struct job_asker *asker;
    struct err ignored; /* nobody can be asked: then what has to be is refused */
    struct held_execs *execs = execution_execs_for_session(&(struct execution_options){
        .loop = session->server->loop,
        .workspace = workspace,
        .rules = rules,
        .gate = EXECUTION_ASKS,
        .policy = *policy_of(session),
        .env = options->env,
        .cwd = process->cwd,
    });

    if (!options->asks && !execs && !process->is_managed)
        return;
    asker = held_new(&(struct held_options){
        .approvals = session_approvals(session, &ignored),
        .argv = strv_view(&process->argv),
        .cwd = process->cwd,
        .number = process->number,
        .profile = workspace->profile_name,
        .own_paths = strv_view(&workspace->own_paths),
        .home = rules.home,
        .rules_file = rules_file,
        .offers_unconfined =
            policy_of(session)->yes_means_unsandboxed && workspace_may_leave(workspace),
        .on_event = on_held,
        .execs = execs,
        .data = process,
    });
    job_set_asker(process->job,
                  process->is_managed ? process_network_asker(process, asker) : asker);
}
