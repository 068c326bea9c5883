/* The verdict about every command that a call runs, and the strictest of them.
 *
 *     a rule matches            its word counts; one that allows in the sandbox says nothing about
 * a call that wants out of it a rules file is broken    ask nothing                   the table of
 * spec/exec-core.md 6.1: danger, then what holds the command, then the approval policy
 *
 * What runs inside of a command, or anywhere in a script that cannot be read, can only make the
 * verdict stricter. */
#include "approval/requirement_part.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "policy/access.h"
#include "rules/shell/command_view.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

bool request_wants_out(const struct requirement_request *request)
{
    switch (request->permissions) {
    case SANDBOX_ESCALATED: /* quietly taken back where only the sandbox hides something */
        return !confinement_denies_reads(request->confinement);
    case SANDBOX_WITH_ADDITIONAL:
        return !(request->flags & REQUIREMENT_GRANTED);
    case SANDBOX_USE_DEFAULT:
    default:
        return false;
    }
}

/* Files are held by a sandbox of ours, or should be. */
static bool is_restricted(enum confinement confinement)
{
    return confinement != CONFINEMENT_NONE && confinement != CONFINEMENT_EXTERNAL;
}

/* --- no rule decides: spec/exec-core.md 6.1 --- */

static struct judgement judge_danger(const struct requirement_request *request,
                                     enum command_danger danger)
{
    return (struct judgement){.outcome = request->policy.mode == APPROVAL_NEVER ? REQUIREMENT_FORBID
                                                                                : REQUIREMENT_ASK,
                              .cause = REQUIREMENT_BY_DANGER,
                              .danger = danger};
}

static enum requirement_outcome outcome_by_policy(const struct requirement_request *request)
{
    switch (request->policy.mode) {
    case APPROVAL_NEVER:
        return request->confinement == CONFINEMENT_MISSING ? REQUIREMENT_FORBID : REQUIREMENT_SKIP;
    case APPROVAL_UNTRUSTED:
        return REQUIREMENT_ASK;
    case APPROVAL_ON_REQUEST:
    case APPROVAL_GRANULAR:
    default:
        if (!is_restricted(request->confinement))
            return REQUIREMENT_SKIP;
        return request_wants_out(request) || request->confinement == CONFINEMENT_MISSING
                   ? REQUIREMENT_ASK
                   : REQUIREMENT_SKIP;
    }
}

/* Only these two policies have a row for what is known to be harmless; asking the disk about names
 * is left out where it changes nothing. */
static bool is_excused(const struct requirement_request *request, const struct command_view *view,
                       const struct shell_command *command)
{
    struct shell_command copy = *command;
    const struct command_view one = {.commands = {.items = &copy, .len = 1},
                                     .opaque = view->opaque,
                                     .offset = view->offset,
                                     .shell = view->shell};

    if (request->policy.mode != APPROVAL_UNTRUSTED && request->policy.mode != APPROVAL_NEVER)
        return false;
    return request->finder && command_view_is_safe(&one, request->finder);
}

/* The danger of this command, of those of the view. */
static enum command_danger danger_of(const struct command_view *view,
                                     const struct shell_command *command)
{
    enum command_danger danger = command_view_danger(view);
    struct command_view one;

    if (danger == DANGER_NONE || view->too_deep || view->commands.len == 1)
        return danger;
    command_view_make(command->words.items, &one);
    danger = command_view_danger(&one);
    command_view_done(&one);
    return danger;
}

static struct judgement judge_unruled(const struct requirement_request *request,
                                      const struct command_view *view,
                                      const struct shell_command *command)
{
    enum command_danger danger = danger_of(view, command);
    struct judgement judgement = {.cause = REQUIREMENT_BY_POLICY};

    if (danger != DANGER_NONE)
        return judge_danger(request, danger);
    judgement.outcome = outcome_by_policy(request);
    if (judgement.outcome != REQUIREMENT_SKIP && is_excused(request, view, command))
        judgement = (struct judgement){.outcome = REQUIREMENT_SKIP, .cause = REQUIREMENT_BY_SAFETY};
    return judgement;
}

/* --- a rule decides --- */

/* A rule that allows in the sandbox has nothing to say where there is none to stay in. */
static bool is_beyond_rule(const struct requirement_request *request, enum rule_verdict verdict)
{
    if (verdict != RULE_KEEP || !is_restricted(request->confinement))
        return false;
    return request_wants_out(request) || request->confinement == CONFINEMENT_MISSING;
}

static struct judgement judge_decision(const struct rules_decision *decision)
{
    const struct rule_match *match = rules_decision_match(decision);
    struct judgement judgement = {.outcome = REQUIREMENT_SKIP, .cause = REQUIREMENT_BY_RULE};

    if (decision->verdict == RULE_FORBIDDEN)
        judgement.outcome = REQUIREMENT_FORBID;
    else if (decision->verdict == RULE_PROMPT)
        judgement.outcome = REQUIREMENT_ASK;
    judgement.rule = match ? match->rule : NULL;
    judgement.problem = decision->problem;
    if (decision->problem)
        judgement.cause = REQUIREMENT_BY_PROBLEM;
    return judgement;
}

/* A rule for a bare name means the program of the host, and not what a command in the sandbox has
 * put into a folder of $PATH (a virtual environment of the workspace is one): without a sandbox
 * that would be the way out. */
static bool may_be_planted(const struct requirement_request *request, const char *name)
{
    const struct access_map *access = request->access;
    AUTO_FREE char *found = NULL;
    AUTO_FREE char *real = NULL;

    if (!access || !access->restricted || !request->finder || strchr(name, '/') ||
        !request->finder->find(request->finder, name, &found, &real))
        return false;
    return access_map_check(access, found) == ACCESS_WRITE ||
           access_map_check(access, real) == ACCESS_WRITE;
}

/* --- all of them --- */

/* Of equal outcomes, the one that says most: of several that ask or forbid a rule (the longest), of
 * several that skip the one that no rule stands behind. */
static bool is_better(const struct judgement *judgement, const struct judgement *than)
{
    if (judgement->outcome != than->outcome)
        return judgement->outcome > than->outcome;
    if (judgement->cause != than->cause)
        return judgement->outcome == REQUIREMENT_SKIP ? judgement->cause > than->cause
                                                      : judgement->cause < than->cause;
    return judgement->cause == REQUIREMENT_BY_RULE && judgement->rule->len > than->rule->len;
}

static void add(struct judgements *all, const struct judgement *judgement)
{
    bool is_by_file =
        judgement->cause == REQUIREMENT_BY_RULE || judgement->cause == REQUIREMENT_BY_PROBLEM;

    if (judgement->outcome == REQUIREMENT_ASK)
        all->questions |= is_by_file ? APPROVAL_QUESTION_RULES : APPROVAL_QUESTION_SANDBOX;
    if (is_better(judgement, &all->strictest))
        all->strictest = *judgement;
}

/* Keeps what a decision forbids, also when a milder word of it is the one that counts. */
static void hold(struct judgements *all, const struct rules_decision *decision)
{
    struct judgement judgement = {
        .outcome = REQUIREMENT_ASK, .cause = REQUIREMENT_BY_PROBLEM, .problem = decision->problem};

    if (decision->problem && is_better(&judgement, &all->held))
        all->held = judgement;
    for (size_t i = 0; i < decision->len; i++) {
        const struct rule_match *match = &decision->items[i];

        if (match->rule->verdict != RULE_FORBIDDEN)
            continue;
        judgement = (struct judgement){.outcome = rule_match_verdict(match) == RULE_FORBIDDEN
                                                      ? REQUIREMENT_FORBID
                                                      : REQUIREMENT_ASK,
                                       .cause = REQUIREMENT_BY_RULE,
                                       .rule = match->rule};
        if (is_better(&judgement, &all->held))
            all->held = judgement;
    }
}

/* A broken file asks, and does not excuse from what is asked or refused without it. */
static void judge_command(const struct requirement_request *request,
                          const struct command_view *view, const struct shell_command *command,
                          struct judgements *all)
{
    AUTO(rules_decision_done) struct rules_decision decision;
    bool is_beyond;

    rules_decide(request->rules, command, &decision);
    hold(all, &decision);
    is_beyond = is_beyond_rule(request, decision.verdict);
    if (!decision.len || is_beyond) {
        const struct judgement judgement = judge_unruled(request, view, command);

        if (!decision.len && (!all->undecided || judgement.outcome > all->strictest.outcome))
            all->undecided = command;
        add(all, &judgement);
    }
    if (decision.verdict != RULE_NONE && !is_beyond) {
        const struct judgement judgement = judge_decision(&decision);

        add(all, &judgement);
    }
    all->has_rule |= decision.len > 0;
    all->is_bypass &= decision.verdict == RULE_BYPASS;
    all->is_planted |= all->is_bypass && may_be_planted(request, command->words.items[0]);
}

/* Only a rule that asks or forbids counts here. */
static void judge_inside(const struct requirement_request *request,
                         const struct shell_command *command, struct judgements *all)
{
    AUTO(rules_decision_done) struct rules_decision decision;
    struct judgement judgement;

    rules_decide(request->rules, command, &decision);
    if (decision.verdict < RULE_PROMPT || decision.problem)
        return;
    hold(all, &decision);
    judgement = judge_decision(&decision);
    all->has_rule = true;
    add(all, &judgement);
}

void judgements_make(const struct requirement_request *request, const struct command_view *view,
                     struct judgements *ret)
{
    *ret = (struct judgements){.is_bypass = true, .held.cause = REQUIREMENT_BY_CALL};
    ret->is_planted = view->shell && may_be_planted(request, view->shell);
    ret->strictest = (struct judgement){.outcome = REQUIREMENT_SKIP, .cause = REQUIREMENT_BY_CALL};
    for (size_t i = 0; i < view->commands.len; i++)
        judge_command(request, view, &view->commands.items[i], ret);
    for (size_t i = 0; i < view->inside.len; i++)
        judge_inside(request, &view->inside.items[i], ret);
}
