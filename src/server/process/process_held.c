/* See process_held.h. These commands have no approval policy of their own: the configuration's
 * counts, else on-request, as for exec/run. */
#include "server/process/process_held.h"

#include "approval/held.h"
#include "executor/execution.h"
#include "policy/config/approval.h"
#include "server/approver_client.h"
#include "server/client_session.h"
#include "server/process/process_audit.h"
#include "server/process/rpc_process.h"
#include "server/server.h"
#include "workspace/workspace.h"

bool process_is_held(struct client_session *session, const struct workspace *workspace)
{
    static const struct approval_policy normal = {.mode = APPROVAL_ON_REQUEST};
    const struct approval_policy *own = config_approval_policy(session->server->config.file);
    struct err ignored; /* nobody can be asked */

    return workspace->access && workspace->profile.watch == PROFILE_WATCH_ASK &&
           held_is_wanted(&workspace->profile, own ? own : &normal,
                          session_approvals(session, &ignored));
}

static void on_held(void *data, const struct held_event *event)
{
    if (event->step == HELD_OVER)
        process_audit_event(data, &(struct execution_event){.kind = EXECUTION_HELD, .held = event});
}

void process_hold(struct rpc_process *process)
{
    const struct workspace *workspace = process->workspace;

    job_set_asker(process->job, held_new(&(struct held_options){
                                    .approvals = process->owner->approvals,
                                    .argv = strv_view(&process->argv),
                                    .cwd = process->cwd,
                                    .profile = workspace->profile_name,
                                    .own_paths = strv_view(&workspace->own_paths),
                                    .on_event = on_held,
                                    .data = process,
                                }));
}
