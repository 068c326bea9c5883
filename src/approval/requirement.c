/* The requirement of one call, step by step; the first that applies decides:
 *
 *     1. the call contradicts itself, or asks for more under a policy that does not let it
 *     2. paths must not be read, and no sandbox here can keep them
 *     3. the strictest verdict about its commands (requirement_judge.c)
 *     4. a question that the policy does not allow is a refusal
 *     5. a question that was answered for the session is not asked again
 *
 * Where it runs is decided last, and separately: an allow rule without a sandbox and
 * `require_escalated` leave it, but never when only the sandbox hides something.
 *
 * Source: spec/exec-core.md 4.2 to 4.8, 6. Different on purpose: a rule may allow without a prompt
 * and keep the sandbox; a host without a sandbox is treated like the row "no sandbox backend"; a
 * call that raises two kinds of questions under granular needs both to be switched on. */
#include "approval/requirement.h"

#include "approval/requirement_part.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "rules/shell/command_view.h"

#include <stdlib.h>

void requirement_done(struct requirement *requirement)
{
    free(requirement->reason);
    strv_done(&requirement->proposal);
    *requirement = (struct requirement){.reason = NULL};
}

const char *requirement_outcome_name(enum requirement_outcome outcome)
{
    static const char *const names[] = {
        [REQUIREMENT_SKIP] = "skip", [REQUIREMENT_ASK] = "ask", [REQUIREMENT_FORBID] = "forbid"};

    return names[outcome];
}

const char *requirement_place_name(enum requirement_place place)
{
    static const char *const names[] = {[REQUIREMENT_SANDBOXED] = "sandbox",
                                        [REQUIREMENT_WIDENED] = "widened",
                                        [REQUIREMENT_UNCONFINED] = "none"};

    return names[place];
}

const char *requirement_cause_name(enum requirement_cause cause)
{
    static const char *const names[] = {
        [REQUIREMENT_BY_CALL] = "call",        [REQUIREMENT_BY_RULE] = "rule",
        [REQUIREMENT_BY_PROBLEM] = "problem",  [REQUIREMENT_BY_DANGER] = "danger",
        [REQUIREMENT_BY_SAFETY] = "safety",    [REQUIREMENT_BY_POLICY] = "policy",
        [REQUIREMENT_BY_APPROVAL] = "approval"};

    return names[cause];
}

/* --- 1: what the call may ask for, spec/exec-core.md 4.8 --- */

/* What is wrong with the call as such; NULL: nothing. */
static char *find_contradiction(const struct requirement_request *request)
{
    bool has_additional = request->flags & REQUIREMENT_HAS_ADDITIONAL;

    if (!request->argv[0])
        return alloc_str("the command is empty; it begins with a program");
    if (has_additional && request->permissions != SANDBOX_WITH_ADDITIONAL)
        return alloc_strf(
            "additional permissions are listed, but sandbox_permissions is %s; to use "
            "them say with_additional_permissions",
            sandbox_permissions_name(request->permissions));
    if (!has_additional && request->permissions == SANDBOX_WITH_ADDITIONAL)
        return alloc_str("sandbox_permissions is with_additional_permissions, but none are listed; "
                         "list them or say use_default");
    return NULL;
}

static bool is_overreaching(const struct requirement_request *request)
{
    bool is_granted =
        request->permissions == SANDBOX_WITH_ADDITIONAL && request->flags & REQUIREMENT_GRANTED;

    return request->permissions != SANDBOX_USE_DEFAULT && !is_granted &&
           request->policy.mode != APPROVAL_ON_REQUEST;
}

static char *find_objection(const struct requirement_request *request)
{
    char *text = find_contradiction(request);

    if (text || !is_overreaching(request))
        return text;
    return alloc_strf("the approval policy is %s, and only on-request lets a command ask for %s",
                      approval_mode_name(request->policy.mode),
                      request->permissions == SANDBOX_ESCALATED ? "running without its sandbox"
                                                                : "additional permissions");
}

/* --- 3 to 5 --- */

/* `questions`: of enum approval_question, all that there are to ask. */
static bool may_ask(const struct approval_policy *policy, unsigned questions)
{
    switch (policy->mode) {
    case APPROVAL_NEVER:
        return false;
    case APPROVAL_GRANULAR:
        return !(questions & ~policy->questions);
    case APPROVAL_ON_REQUEST:
    case APPROVAL_UNTRUSTED:
    default:
        return true;
    }
}

static enum requirement_place choose_place(const struct requirement_request *request,
                                           bool is_bypass)
{
    bool is_widened = request->permissions == SANDBOX_WITH_ADDITIONAL;

    if (!confinement_denies_reads(request->confinement) &&
        (is_bypass || request->permissions == SANDBOX_ESCALATED ||
         request->confinement == CONFINEMENT_MISSING))
        return REQUIREMENT_UNCONFINED;
    return is_widened ? REQUIREMENT_WIDENED : REQUIREMENT_SANDBOXED;
}

/* Adds to the reason why a rule's word is not taken. Takes `reason`. */
static char *explain_planted(char *reason)
{
    AUTO_FREE char *by_rule = reason;

    return alloc_strf("%s; it keeps its sandbox all the same, because the program lies where a "
                      "command in the sandbox could have put it",
                      by_rule);
}

static void decide_by_commands(const struct requirement_request *request, struct requirement *ret)
{
    AUTO(command_view_done) struct command_view view;
    struct judgements all;
    bool is_bypass;

    command_view_make(request->argv, &view);
    judgements_make(request, &view, &all);
    is_bypass = all.is_bypass && all.strictest.outcome == REQUIREMENT_SKIP;
    ret->outcome = all.strictest.outcome;
    ret->cause = all.strictest.cause;
    ret->rule = all.strictest.rule;
    ret->place = choose_place(request, is_bypass && !all.is_planted);
    if (ret->outcome == REQUIREMENT_ASK && !may_ask(&request->policy, all.questions))
        ret->outcome = REQUIREMENT_FORBID;
    else if (ret->outcome == REQUIREMENT_ASK && request->flags & REQUIREMENT_APPROVED)
        *ret = (struct requirement){
            .outcome = REQUIREMENT_SKIP, .cause = REQUIREMENT_BY_APPROVAL, .place = ret->place};
    requirement_explain(request, &all.strictest, ret);
    if (is_bypass && all.is_planted)
        ret->reason = explain_planted(ret->reason);
    requirement_propose(request, &view, &all, ret);
}

/* Apart from what else speaks for or against the call: a danger or a question that nobody is asked
 * must not stand before what is held. */
static void decide_forbidden(const struct requirement_request *request, struct requirement *ret)
{
    AUTO(command_view_done) struct command_view view;
    struct judgements all;

    command_view_make(request->argv, &view);
    judgements_make(request, &view, &all);
    if (all.held.outcome == REQUIREMENT_SKIP)
        return;
    ret->outcome = REQUIREMENT_FORBID;
    ret->cause = all.held.cause;
    ret->rule = all.held.rule;
    free(ret->reason);
    requirement_explain(request, &all.held, ret);
}

void requirement_decide(const struct requirement_request *request, struct requirement *ret)
{
    if (request->flags & REQUIREMENT_FORBIDS_ONLY) {
        *ret = (struct requirement){.cause = REQUIREMENT_BY_POLICY};
        ret->reason = alloc_str("no rule forbids it, and nobody has chosen an approval policy");
        if (request->argv[0])
            decide_forbidden(request, ret);
        return;
    }
    *ret = (struct requirement){.outcome = REQUIREMENT_FORBID, .cause = REQUIREMENT_BY_CALL};
    ret->reason = find_objection(request);
    if (ret->reason)
        return;
    if (request->confinement == CONFINEMENT_MISSING_DENIED_READS) {
        ret->cause = REQUIREMENT_BY_POLICY;
        ret->reason = alloc_str("the profile has paths that must not be read, and this host cannot "
                                "make the sandbox that would hide them");
        return;
    }
    decide_by_commands(request, ret);
}

/* --- tools without a decision of their own, spec/exec-core.md 4.3 --- */

enum requirement_outcome requirement_default(const struct approval_policy *policy,
                                             enum confinement confinement)
{
    if (policy->mode == APPROVAL_NEVER)
        return REQUIREMENT_SKIP;
    if (policy->mode == APPROVAL_UNTRUSTED)
        return REQUIREMENT_ASK;
    if (confinement == CONFINEMENT_NONE || confinement == CONFINEMENT_EXTERNAL)
        return REQUIREMENT_SKIP;
    return may_ask(policy, APPROVAL_QUESTION_SANDBOX) ? REQUIREMENT_ASK : REQUIREMENT_FORBID;
}
