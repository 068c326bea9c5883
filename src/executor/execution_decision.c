/* What is decided about a command from its options alone. After a denial its sandbox may be widened by
 * what was refused, which is a question of its own, and put whenever anything may be asked; only under
 * `never`, and under `granular` without such questions, the denial stands. The same holds for asking while
 * the command runs. Leaving the sandbox for a second attempt, as requirement_retry() and Codex have it, is
 * for those who have asked for that: a command brings about its own denial. */
#include "executor/execution.h"

#include "approval/approvals.h"
#include "approval/held.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "executor/outside.h"
#include "policy/profile.h"
#include "workspace/finder.h"
#include "workspace/layered.h"
#include "workspace/rule_layers.h"
#include "workspace/workspace.h"

#include <string.h>

/* --- what it begins with --- */

enum confinement execution_confinement(const struct workspace *workspace)
{
    if (!workspace->access)
        return CONFINEMENT_NONE;
    return confinement_of(&workspace->profile, workspace->access, !workspace->is_refused);
}

struct rules *execution_rules(const struct execution_options *options)
{
    const struct workspace *workspace = options->workspace;
    const char *dir = options->cwd;

    if (options->gate == EXECUTION_UNRULED)
        return NULL;
    if (!workspace->dir && !workspace_has_root(workspace, dir))
        dir = "/"; /* a model has chosen it, and its client does not vouch for it */
    else if (workspace->dir && options->replacement_argv)
        dir = workspace->dir; /* a patch chooses by its own `cd` where it is applied */
    return rule_layers_load(&options->rules, dir);
}

void execution_keys(const struct execution_options *options, struct strv *ret)
{
    AUTO(strv_done) struct strv variables = {0};
    bool ignored;
    AUTO_FREE char *programs = outside_programs(options, NULL, &ignored);
    const struct approval_call call = {
        .argv = options->argv,
        .cwd = options->cwd,
        .permissions = options->permissions,
        .additional = options->additional,
        .patched = options->patched,
        .programs = programs,
        .variables = &variables,
        .profile = &options->workspace->profile,
        .roots = strv_view(&options->workspace->roots),
    };

    outside_variables(options, &variables);
    approval_keys(&call, ret);
}

static bool is_approved(const struct execution_options *options)
{
    AUTO(strv_done) struct strv keys = {0};

    if (!options->approvals)
        return false;
    execution_keys(options, &keys);
    return approvals_has(options->approvals, &keys);
}

void execution_keep_inside(const struct workspace *workspace, struct requirement *requirement)
{
    struct err err;

    if (workspace_may_leave(workspace) || requirement->where != RUN_UNCONFINED ||
        requirement->outcome == REQUIREMENT_FORBID)
        return;
    layered_refuse_outside(&err);
    requirement_done(requirement);
    *requirement = (struct requirement){
        .outcome = REQUIREMENT_FORBID,
        .where = RUN_SANDBOXED,
        .cause = REQUIREMENT_BY_CALL,
        .reason = alloc_str(err.msg),
    };
}

void execution_decide(const struct execution_options *options, const struct rules *rules,
                      struct requirement *ret)
{
    const struct workspace *workspace = options->workspace;
    bool has_additional = options->additional && !profile_overlay_is_empty(options->additional);
    struct host_finder finder;
    AUTO(strv_done) struct strv variables = {0};
    struct requirement_request request = {
        .argv = options->argv,
        .finder = &finder.finder,
        .access = workspace->access,
        .rules = rules,
        .proposed = options->proposed,
        .policy = options->policy,
        .confinement = execution_confinement(workspace),
        .permissions = options->permissions,
        .flags = (has_additional ? REQUIREMENT_HAS_ADDITIONAL : 0) |
                 (options->gate == EXECUTION_FORBIDS_ONLY ? REQUIREMENT_FORBIDS_ONLY : 0) |
                 (is_approved(options) ? REQUIREMENT_APPROVED : 0),
    };

    host_finder_init(&finder, options->env ? options->env : strv_view(&workspace->env),
                     options->cwd);
    outside_variables(options, &variables);
    if (variables.len) {
        *strchrnul(variables.items[0], '=') = '\0';
        request.variable = variables.items[0];
    }
    requirement_decide(&request, ret);
    execution_keep_inside(workspace, ret);
}

/* --- which ways a second attempt may take --- */

static bool may_ask(const struct execution_options *options)
{
    return options->gate == EXECUTION_ASKS && held_may_ask(&options->policy);
}

bool execution_holds(const struct execution_options *options)
{
    const struct workspace *workspace = options->workspace;

    return may_ask(options) && options->approvals &&
           held_is_wanted(workspace->access, &workspace->profile, &options->policy);
}

static enum retry_outcome bare_retry(const struct execution_options *options, bool was_approved)
{
    const struct retry_request request = {
        .policy = options->policy,
        .confinement = execution_confinement(options->workspace),
        .tool = options->replacement_argv ? RETRY_PATCH : RETRY_COMMAND,
        .was_approved = was_approved,
    };

    return requirement_retry(&request);
}

unsigned execution_retry_ways(const struct execution_options *options, bool has_grant,
                              bool was_approved)
{
    enum retry_outcome outcome;
    unsigned ways = 0;

    if (!may_ask(options))
        return 0;
    if (!options->policy.yes_means_unsandboxed || !workspace_may_leave(options->workspace))
        return has_grant ? EXECUTION_RETRY_GRANT : 0;
    outcome = bare_retry(options, was_approved);
    if (outcome == RETRY_YES)
        ways |= EXECUTION_RETRY_AGREED;
    if (outcome != RETRY_NO)
        ways |= EXECUTION_RETRY_UNCONFINED;
    if (has_grant)
        ways |= EXECUTION_RETRY_GRANT;
    return ways;
}

bool execution_retry_is_covered(const struct execution_options *options)
{
    return may_ask(options) && options->policy.yes_means_unsandboxed &&
           workspace_may_leave(options->workspace) && bare_retry(options, true) == RETRY_YES;
}
