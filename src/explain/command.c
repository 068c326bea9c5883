/* See command.h. The requirement is what `cordon run` begins with, by the same function
 * and the same options; everything else here says what went into it. */
#include "explain/command.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "executor/execution.h"
#include "explain/explanation.h"
#include "patch/call.h"
#include "rules/rules.h"
#include "workspace/workspace.h"

#include <string.h>

static const char bypass_text[] =
    "an allow rule without sandbox = \"keep\" means what it means to Codex: the command runs "
    "without a question and without any sandbox";
static const char bypass_unused_text[] =
    "an allow rule without sandbox = \"keep\" would let the command out of its sandbox under an "
    "approval policy; none was chosen, so it stays in";
static const char bypass_held_text[] =
    "an allow rule without sandbox = \"keep\" would let the command out of its sandbox; it keeps "
    "it all the same, because only the sandbox hides what the profile denies, or because the "
    "program lies where a command in the sandbox could have put it";
static const char broken_text[] = "a rules file that does not parse could have forbidden anything, "
                                  "so what no other rule decides is asked about, or refused where "
                                  "no question is asked";
void explained_command_init(struct explained_command *ret, const struct explained *about)
{
    const struct execution_options *options = about->execution;
    AUTO(patch_call_done) struct patch_call call;

    patch_call_read(options->argv, &call);
    *ret = (struct explained_command){.about = about, .argv = options->argv};
    ret->rules = execution_rules(options);
    host_finder_init(&ret->finder, about->env, options->cwd);
    rules_check_make(ret->rules, options->argv, &ret->check);
    ret->danger = command_view_danger(&ret->check.view);
    ret->is_safe = command_view_is_safe(&ret->check.view, &ret->finder.finder);
    ret->is_patch = call.kind == PATCH_CALL_PATCH;
    execution_decide(options, ret->rules, &ret->requirement);
}

void explained_command_done(struct explained_command *command)
{
    if (!command->argv)
        return;
    requirement_done(&command->requirement);
    rules_check_done(&command->check);
    rules_free(command->rules);
    *command = (struct explained_command){.argv = NULL};
}

/* --- in words --- */

const char *explained_command_class(const struct explained_command *command)
{
    if (command->danger == DANGER_FORCED_RM)
        return "dangerous: it removes files by force (rm -f)";
    if (command->danger != DANGER_NONE)
        return "dangerous: it is nested too deep to be looked through";
    return command->is_safe ? "known to be harmless: it only reads and prints"
                            : "neither known to be harmless nor to be dangerous";
}

const char *explained_command_bypass(const struct explained_command *command)
{
    if (rules_check_verdict(&command->check) != RULE_BYPASS)
        return NULL;
    if (!command->about->approval_from)
        return bypass_unused_text;
    return command->requirement.where == RUN_UNCONFINED ? bypass_text : bypass_held_text;
}

const char *explained_command_broken(const struct explained_command *command)
{
    size_t len;

    (void)rules_problems(command->rules, &len);
    return len ? broken_text : NULL;
}

const char *explained_command_place(const struct explained_command *command)
{
    if (command->requirement.outcome == REQUIREMENT_FORBID)
        return "nowhere";
    return command->about->workspace->mode == SANDBOX_DISABLED ||
                   command->requirement.where == RUN_UNCONFINED
               ? "without a sandbox"
               : "in the sandbox of the profile";
}

/* --- as a value --- */

json_t *explained_command_to_json(const struct explained_command *command)
{
    static const char *const dangers[] = {
        [DANGER_NONE] = NULL, [DANGER_FORCED_RM] = "forced-rm", [DANGER_OTHER] = "nested-too-deep"};
    const struct explained *about = command->about;
    const struct requirement *requirement = &command->requirement;
    bool is_bare = about->workspace->mode == SANDBOX_DISABLED;
    const char *class = command->danger != DANGER_NONE ? "dangerous"
                        : command->is_safe             ? "known-safe"
                                                       : "neither";

    return json_pack(
        "{s:o, s:b, s:o, s:s, s:o, s:{s:o, s:o}, s:{s:s, s:s, s:o, s:s}, s:o, s:o}", "argv",
        json_lossy_list(command->argv), "patch", command->is_patch, "rules",
        rules_check_to_json(&command->check), "class", class, "danger",
        json_lossy(dangers[command->danger]), "approval", "policy",
        about->approval_from ? approval_policy_to_json(&about->execution->policy) : json_null(),
        "from", json_lossy(about->approval_from), "requirement", "outcome",
        requirement_outcome_name(requirement->outcome), "cause",
        requirement_cause_name(requirement->cause), "reason", json_lossy(requirement->reason),
        "place", is_bare ? "none" : run_where_name(requirement->where), "bypass",
        json_lossy(explained_command_bypass(command)), "broken",
        json_lossy(explained_command_broken(command)));
}
