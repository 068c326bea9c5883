/* Why a requirement is what it is, in one sentence for people: what decides, where that is written,
 * and, when a question became a refusal, that nobody may be asked. */
#include "approval/requirement_part.h"

#include "base/alloc.h"
#include "base/auto.h"

#include <stdlib.h>

/* "the rule `git push` (FILE:LINE)", and what it says for itself. Caller frees. */
static char *name_rule(const struct prefix_rule *rule)
{
    AUTO_FREE char *pattern = prefix_rule_text(rule);

    return alloc_strf("the rule `%s` (%s:%u)", pattern, rule->file, rule->place.line);
}

static char *explain_rule(const struct prefix_rule *rule, enum requirement_outcome outcome)
{
    AUTO_FREE char *name = name_rule(rule);
    const char *why = rule->justification ? rule->justification : "";
    const char *colon = rule->justification ? ": " : "";

    if (outcome == REQUIREMENT_FORBID)
        return alloc_strf("%s forbids it%s%s", name, colon, why);
    if (outcome == REQUIREMENT_ASK && rule->verdict == RULE_FORBIDDEN)
        return alloc_strf("%s forbids what it may become when the shell expands it%s%s", name,
                          colon, why);
    if (outcome == REQUIREMENT_ASK)
        return alloc_strf("%s wants it to be asked about%s%s", name, colon, why);
    return alloc_strf("%s allows it %s%s%s", name,
                      rule->verdict == RULE_BYPASS ? "without a sandbox" : "in its sandbox", colon,
                      why);
}

static char *explain_danger(enum command_danger danger)
{
    if (danger == DANGER_FORCED_RM)
        return alloc_str("it removes files by force (rm -f), and no rule allows that");
    return alloc_str("it is nested too deep to be looked through, and no rule allows that");
}

/* No rule matches, and nothing is known about the command. */
static char *explain_skip(const struct requirement_request *request)
{
    switch (request->confinement) {
    case CONFINEMENT_NONE:
        return alloc_str("the profile does not restrict files");
    case CONFINEMENT_EXTERNAL:
        return alloc_str("it is isolated from outside");
    case CONFINEMENT_SANDBOX:
    case CONFINEMENT_DENIED_READS:
    case CONFINEMENT_MISSING:
    case CONFINEMENT_MISSING_DENIED_READS:
    default:
        break;
    }
    if (request->permissions == SANDBOX_ESCALATED)
        return alloc_str("its sandbox holds it: the profile has paths that must not be read, so it "
                         "is not left");
    if (request->permissions == SANDBOX_WITH_ADDITIONAL)
        return alloc_str("its sandbox holds it, and what it asks for was granted before");
    return alloc_str("its sandbox holds it");
}

static char *explain_policy(const struct requirement_request *request,
                            enum requirement_outcome outcome)
{
    if (outcome == REQUIREMENT_SKIP)
        return explain_skip(request);
    if (request->confinement == CONFINEMENT_MISSING)
        return alloc_str("no sandbox can be made on this host, so nothing would hold it");
    if (request->policy.mode == APPROVAL_UNTRUSTED)
        return alloc_str("the approval policy is untrusted, no rule allows it, and it is not known "
                         "to be harmless");
    return alloc_str(request->permissions == SANDBOX_ESCALATED
                         ? "it is to run without its sandbox"
                         : "it is to run with additional permissions");
}

static char *explain_judgement(const struct requirement_request *request,
                               const struct judgement *judgement)
{
    switch (judgement->cause) {
    case REQUIREMENT_BY_RULE:
        return explain_rule(judgement->rule, judgement->outcome);
    case REQUIREMENT_BY_PROBLEM:
        return alloc_strf("no rule decides it, and a rules file that might is broken: %s",
                          judgement->problem->text);
    case REQUIREMENT_BY_DANGER:
        return explain_danger(judgement->danger);
    case REQUIREMENT_BY_SAFETY:
        return alloc_str("it is known only to read and print");
    case REQUIREMENT_BY_POLICY:
        return explain_policy(request, judgement->outcome);
    case REQUIREMENT_BY_CALL:
    case REQUIREMENT_BY_APPROVAL:
    default:
        return alloc_str("nothing speaks against it");
    }
}

void requirement_explain(const struct requirement_request *request,
                         const struct judgement *judgement, struct requirement *ret)
{
    AUTO_FREE char *text = explain_judgement(request, judgement);

    if (ret->cause == REQUIREMENT_BY_APPROVAL)
        ret->reason = alloc_str("it was approved for this session");
    else if (judgement->outcome == REQUIREMENT_ASK && ret->outcome == REQUIREMENT_FORBID &&
             request->policy.mode == APPROVAL_NEVER)
        ret->reason = alloc_strf("%s; the approval policy is never, so nobody is asked", text);
    else if (judgement->outcome == REQUIREMENT_ASK && ret->outcome == REQUIREMENT_FORBID)
        ret->reason = alloc_strf("%s; the approval policy is granular and has questions like this "
                                 "switched off",
                                 text);
    else
        ret->reason = TAKE_PTR(text);
}
