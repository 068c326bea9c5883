/* The prefix that a question may offer to allow for good. Either what the caller of the command
 * proposes, when that would settle the whole call, or the words of the first command that no rule
 * decides. Never a prefix that would allow everything (rules/banned_prefix.h), nor one for what is
 * dangerous, cannot be read, or still has to be expanded. Source: spec/exec-core.md 6.2. */
#include "approval/requirement_part.h"

#include "base/str.h"
#include "rules/banned_prefix.h"
#include "rules/shell/command_view.h"

static bool has_prefix(const struct shell_command *command, char *const *prefix)
{
    for (size_t i = 0; prefix[i]; i++)
        if (i == command->exact || !str_eq(prefix[i], command->words.items[i]))
            return false;
    return true;
}

/* Every command would be allowed by it. */
static bool is_settling(const struct command_view *view, char *const *prefix)
{
    for (size_t i = 0; i < view->commands.len; i++)
        if (!has_prefix(&view->commands.items[i], prefix))
            return false;
    return true;
}

static bool is_offerable(const struct judgements *judgements, const struct requirement *requirement)
{
    if (requirement->outcome == REQUIREMENT_FORBID ||
        requirement->cause == REQUIREMENT_BY_APPROVAL ||
        requirement->cause == REQUIREMENT_BY_DANGER)
        return false;
    return requirement->outcome == REQUIREMENT_ASK
               ? !(judgements->questions & APPROVAL_QUESTION_RULES)
               : !judgements->has_rule;
}

void requirement_propose(const struct requirement_request *request, const struct command_view *view,
                         const struct judgements *judgements, struct requirement *ret)
{
    const struct shell_command *command = judgements->undecided;

    if (!is_offerable(judgements, ret))
        return;
    if (request->proposed && request->proposed[0] && !judgements->has_rule &&
        !prefix_is_banned(request->proposed) && is_settling(view, request->proposed)) {
        strv_push_all(&ret->proposal, request->proposed);
        return;
    }
    if (command && !view->opaque && command->exact == command->words.len &&
        !prefix_is_banned(command->words.items))
        strv_push_all(&ret->proposal, command->words.items);
}
