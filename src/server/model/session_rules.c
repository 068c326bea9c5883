/* See session_rules.h. The text of the call is judged as the script of its shell, like the argv of
 * an exec/run, and before it is known to be a patch. A shell that the rules cannot read is no way
 * around them: its text is judged as a script of sh as well. */
#include "server/model/session_rules.h"

#include "approval/requirement.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "job/model_calls.h"
#include "patch/call.h"
#include "rules/rules.h"
#include "rules/shell/command_view.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/process/process_audit.h"
#include "server/rules_part.h"

/* NULL when nothing forbids it; caller frees. */
static char *find_reason(const struct rules *rules, char *const *argv)
{
    const struct requirement_request request = {
        .argv = argv,
        .rules = rules,
        .policy = {.mode = APPROVAL_NEVER},
        .flags = REQUIREMENT_FORBIDS_ONLY,
    };
    AUTO(requirement_done) struct requirement requirement;

    requirement_decide(&request, &requirement);
    return requirement.outcome == REQUIREMENT_FORBID ? TAKE_PTR(requirement.reason) : NULL;
}

/* The text of a patch is for no log. */
static void write_down(const struct call *call, const struct process_refusal *refusal)
{
    char *const patch[] = {(char *)"apply_patch", NULL};
    AUTO(patch_call_done) struct patch_call read;
    struct process_refusal shown = *refusal;

    patch_call_read(refusal->argv, &read);
    if (read.kind == PATCH_CALL_PATCH)
        shown.argv = patch;
    process_audit_refusal(call->client->session, &shown);
}

char *session_rules_refusal(const struct call *call, const struct model_exec *exec,
                            const struct place *place)
{
    char *argv[] = {(char *)exec->shell, (char *)(exec->is_login ? "-lc" : "-c"), (char *)exec->cmd,
                    NULL};
    char *as_sh[] = {(char *)"sh", argv[1], argv[2], NULL};
    struct server *server = call->client->server;
    const struct rule_owner owner = rules_part_owner(server);
    const struct rules *rules =
        rules_cache_get(&server->rules, &owner, rules_part_folder(place, exec->workdir));
    char *reason;

    if (rules_is_empty(rules))
        return NULL;
    reason = find_reason(rules, argv);
    if (!reason && !shell_wrapper_script(argv))
        reason = find_reason(rules, as_sh);
    if (reason)
        write_down(call, &(struct process_refusal){.argv = argv,
                                                   .env = exec->env,
                                                   .cwd = exec->workdir,
                                                   .place = place,
                                                   .reason = reason});
    return reason;
}
