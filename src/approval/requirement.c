/* The requirement of one call, step by step; the first that applies decides:
 *
 *     1. the call contradicts itself, or asks for more under a policy that does not let it
 *     2. paths must not be read, and no sandbox here can keep them
 *     3. the strictest verdict about its commands
 *     4. a question that the policy does not allow is a refusal
 *     5. a question that was answered for the session is not asked again
 *
 * Step 3, for each command that the call runs:
 *
 *     a rule matches            its word counts; one that allows in the sandbox says nothing about
 *                               a call that wants out of it
 *     a rules file is broken    ask
 *     nothing                   danger, then what holds the command, then the approval policy
 *
 * What runs inside of a command, or anywhere in a script that cannot be read, only makes it stricter.
 *
 * Where it runs is decided last, and separately: an allow rule without a sandbox and
 * `require_escalated` leave it, but never when only the sandbox hides something.
 *
 * The prefix that a question may offer to allow for good is what the caller of the command
 * proposes, when that would settle the whole call, or the words of the first command that no rule
 * decides. Never a prefix that would allow everything (rules/shell/command_class.h), nor one for what is
 * dangerous, cannot be read, or still has to be expanded.
 *
 * The decisions are Codex's. Different on purpose: a rule may allow without a prompt and keep the
 * sandbox; a host without a sandbox is treated like the row "no sandbox backend"; a call that
 * raises two kinds of questions under granular needs both to be switched on. */
#include "approval/requirement.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "policy/access.h"
#include "policy/host_view.h"
#include "rules/rules.h"
#include "rules/shell/command_class.h"
#include "rules/shell/command_view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A judgement about one command, or the strictest about several so far. */
struct judgement {
    enum requirement_outcome outcome;
    enum requirement_cause cause;
    enum command_danger danger;          /* BY_DANGER: which */
    const struct prefix_rule *rule;      /* BY_RULE */
    const struct rules_problem *problem; /* BY_PROBLEM */
};

/* What all commands of a view come to. */
struct judgements {
    struct judgement strictest;
    struct judgement held; /* the strictest of rules that forbid, for certain or when the shell has
                              expanded a word, and of broken files; outcome SKIP: none */
    bool has_rule;         /* that matches any of them */
    unsigned questions;    /* of enum approval_question: what would have to be asked */
    bool is_bypass;        /* every command is allowed by a rule, without a sandbox */
    bool is_planted;       /* but one of the programs may be another one by now */
    const struct prefix_rule
        *too_wide; /* that would have let one of them out, and allows nothing */
    const struct shell_command *undecided; /* the first that no rule decides, of those with the
                                              outcome of the strictest; NULL: none */
};

/* --- words --- */

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

const char *run_where_name(enum run_where where)
{
    static const char *const names[] = {
        [RUN_SANDBOXED] = "sandbox", [RUN_WIDENED] = "widened", [RUN_UNCONFINED] = "none"};

    return names[where];
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

/* --- 1: what the call may ask for --- */

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

/* The call wants more than its profile, and no yes has granted it yet. */
static bool request_wants_out(const struct requirement_request *request)
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

/* --- 3: no rule decides --- */

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
    static const char *const shells[] = {"sh", "bash", "dash", "zsh", NULL};
    const char *slash = strrchr(command->words.items[0], '/');
    const char *name = slash ? slash + 1 : command->words.items[0];
    struct shell_command copy = *command;
    const struct command_view one = {.commands = {.items = &copy, .len = 1},
                                     .opaque = view->opaque,
                                     .offset = view->offset,
                                     .shell = view->shell};

    for (const char *const *shell = shells; request->flags & REQUIREMENT_EXEC && *shell; shell++)
        if (str_eq(name, *shell)) /* what it executes is judged by itself */
            return true;
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
    bool is_never = request->policy.mode == APPROVAL_NEVER;

    if (danger != DANGER_NONE)
        return (struct judgement){.outcome = is_never ? REQUIREMENT_FORBID : REQUIREMENT_ASK,
                                  .cause = REQUIREMENT_BY_DANGER,
                                  .danger = danger};
    judgement.outcome = outcome_by_policy(request);
    if (judgement.outcome != REQUIREMENT_SKIP && is_excused(request, view, command))
        judgement = (struct judgement){.outcome = REQUIREMENT_SKIP, .cause = REQUIREMENT_BY_SAFETY};
    return judgement;
}

/* --- 3: a rule decides --- */

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

/* A rule means the program of the host, and not what a command in a sandbox has put into a directory of
 * $PATH (a virtual environment of the workspace is one): without a sandbox that would be the way out. What
 * this sandbox cannot write another one may (of another call, with another workspace), so whoever did not
 * name the very path, by the rule (`is_named`) or host_executable, is believed only where the system's
 * programs are. */
static bool may_be_planted(const struct requirement_request *request, const char *name,
                           bool is_named)
{
    const struct program_finder *finder = request->finder;
    const struct access_map *access = request->access;
    AUTO_FREE char *found = NULL;
    AUTO_FREE char *real = NULL;

    if (!access || !access->restricted || !finder || !finder->find(finder, name, &found, &real))
        return false;
    if ((finder->may_move && finder->may_move(finder, name)) ||
        path_may_change(&host_view_real, access, found))
        return true;
    return finder->is_settled && !is_named && !rules_list_program(request->rules, found) &&
           !(finder->is_settled(finder, found) && finder->is_settled(finder, real));
}

/* --- 3: which commands --- */

static void view_make(const struct requirement_request *request, struct command_view *ret)
{
    struct shell_command *command;

    if (!(request->flags & REQUIREMENT_EXEC)) {
        command_view_make(request->argv, ret);
        return;
    }
    *ret = (struct command_view){.commands = {.len = 1, .cap = 1}};
    command = ret->commands.items = alloc_zero(1, sizeof *command);
    strv_push_all(&command->words, request->argv);
    command->exact = command->words.len;
}

/* --- 3: all commands --- */

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
    bool is_beyond, is_named;

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
    if (decision.too_wide)
        all->too_wide = decision.too_wide;
    all->has_rule |= decision.len > 0;
    all->is_bypass &= decision.verdict == RULE_BYPASS;
    is_named =
        decision.len && *command->words.items[0] == '/' && !rules_decision_match(&decision)->name;
    all->is_planted |= all->is_bypass && may_be_planted(request, command->words.items[0], is_named);
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

static void judgements_make(const struct requirement_request *request,
                            const struct command_view *view, struct judgements *ret)
{
    *ret = (struct judgements){.is_bypass = true, .held.cause = REQUIREMENT_BY_CALL};
    ret->is_planted = view->shell && may_be_planted(request, view->shell, false);
    ret->strictest = (struct judgement){.outcome = REQUIREMENT_SKIP, .cause = REQUIREMENT_BY_CALL};
    for (size_t i = 0; i < view->commands.len; i++)
        judge_command(request, view, &view->commands.items[i], ret);
    for (size_t i = 0; i < view->inside.len; i++)
        judge_inside(request, &view->inside.items[i], ret);
}

/* --- why: one sentence for people --- */

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

/* Sets `reason`, for a requirement that is whole otherwise. */
static void requirement_explain(const struct requirement_request *request,
                                const struct judgement *judgement, struct requirement *ret)
{
    AUTO_FREE char *text = explain_judgement(request, judgement);

    if (ret->cause == REQUIREMENT_BY_APPROVAL)
        ret->reason = alloc_str("it was approved for this session");
    else if (judgement->outcome == REQUIREMENT_ASK && ret->outcome == REQUIREMENT_FORBID &&
             request->policy.mode == APPROVAL_NEVER)
        ret->reason = alloc_strf("%s; the approval policy is never, so no question is asked", text);
    else if (judgement->outcome == REQUIREMENT_ASK && ret->outcome == REQUIREMENT_FORBID)
        ret->reason = alloc_strf("%s; the approval policy is granular and has questions like this "
                                 "switched off",
                                 text);
    else
        ret->reason = TAKE_PTR(text);
}

/* --- what may be allowed for good --- */

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

/* Sets `proposal`. */
static void requirement_propose(const struct requirement_request *request,
                                const struct command_view *view,
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

static enum run_where choose_place(const struct requirement_request *request, bool is_bypass)
{
    bool is_widened = request->permissions == SANDBOX_WITH_ADDITIONAL;

    if (!confinement_denies_reads(request->confinement) &&
        (is_bypass || request->permissions == SANDBOX_ESCALATED ||
         request->confinement == CONFINEMENT_MISSING))
        return RUN_UNCONFINED;
    return is_widened ? RUN_WIDENED : RUN_SANDBOXED;
}

/* Adds to the reason why a rule's word is not taken. */
static void explain_rules(const struct judgements *all, bool is_bypass, const char *variable,
                          struct requirement *ret)
{
    AUTO_FREE char *alone = ret->reason;
    AUTO_FREE char *name = all->too_wide ? name_rule(all->too_wide) : NULL;

    const char *why = !is_bypass ? NULL
                      : all->is_planted
                          ? "the program lies where a command in a sandbox could have put it"
                      : variable ? "its call sets a variable that may change what runs: "
                                 : NULL;

    ret->reason = alloc_strf(
        "%s%s%s%s%s%s%s", alone, why ? "; it keeps its sandbox all the same, because " : "",
        why ? why : "", why && !all->is_planted ? variable : "", name ? "; " : "", name ? name : "",
        name ? " would let nearly anything out of the sandbox, so it allows nothing" : "");
}

static void decide_by_commands(const struct requirement_request *request, struct requirement *ret)
{
    AUTO(command_view_done) struct command_view view;
    struct judgements all;
    bool is_bypass;

    view_make(request, &view);
    judgements_make(request, &view, &all);
    is_bypass = all.is_bypass && all.strictest.outcome == REQUIREMENT_SKIP;
    ret->outcome = all.strictest.outcome;
    ret->cause = all.strictest.cause;
    ret->rule = all.strictest.rule;
    ret->where = choose_place(request, is_bypass && !all.is_planted && !request->variable);
    if (ret->outcome == REQUIREMENT_ASK && !may_ask(&request->policy, all.questions))
        ret->outcome = REQUIREMENT_FORBID;
    else if (ret->outcome == REQUIREMENT_ASK && request->flags & REQUIREMENT_APPROVED)
        *ret = (struct requirement){
            .outcome = REQUIREMENT_SKIP, .cause = REQUIREMENT_BY_APPROVAL, .where = ret->where};
    requirement_explain(request, &all.strictest, ret);
    explain_rules(&all, is_bypass, request->variable, ret);
    requirement_propose(request, &view, &all, ret);
}

/* Apart from what else speaks for or against the call: a danger or a question that is not put
 * must not stand before what is held. */
static void decide_forbidden(const struct requirement_request *request, struct requirement *ret)
{
    AUTO(command_view_done) struct command_view view;
    struct judgements all;

    view_make(request, &view);
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
        ret->reason = alloc_str("no rule forbids it, and no approval policy was chosen");
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
