/* The two questions of an execution: before the first attempt, and after a denial; see execution.h.
 */
#include "executor/execution_part.h"

#include "approval/approval_text.h"
#include "approval/approvals.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "executor/execution_retry.h"
#include "rules/rules_disk.h"

static char *refusal(const struct approval_answer *answer)
{
    const char *colon = answer->reason ? ": " : "";
    const char *why = answer->reason ? answer->reason : "";

    if (answer->decision == APPROVAL_TIMED_OUT)
        return alloc_str("it had to be asked about, and nobody answered in time");
    if (str_eq(answer->by, "nobody"))
        return alloc_str("it had to be asked about, and there was nobody to ask");
    return alloc_strf("it had to be asked about, and the answer was no (by %s)%s%s", answer->by,
                      colon, why);
}

static void refuse_by_nobody(struct execution *execution)
{
    const struct approval_answer nobody = {.decision = APPROVAL_DENIED, .by = "nobody"};

    execution->result.decision = nobody.decision;
    execution_finish(execution, EXECUTION_REJECTED, refusal(&nobody));
}

static void note_answer(struct execution *execution, const struct approval_answer *answer,
                        const char *rule)
{
    json_object_set_new(execution->asked, "answer", approval_answer_to_json(answer));
    execution->result.decision = answer->decision;
    execution_emit(execution, &(struct execution_event){
                                  .kind = EXECUTION_ANSWERED, .answer = answer, .rule = rule});
}

/* Takes over what the question holds. */
static void ask(struct execution *execution, struct approval_request *question,
                void (*on_answer)(void *data, const struct approval_answer *answer))
{
    const struct execution_options *options = execution->options;

    strv_push_all(&question->argv, options->argv);
    question->cwd = alloc_str(options->cwd);
    question->is_wider = options->patched;
    question->offers |= 1u << APPROVAL_DENIED | 1u << APPROVAL_ABORT;
    execution->asked = approval_request_to_json(question);
    json_array_append_new(execution->result.questions, execution->asked);
    approvals_name(options->approvals, question);
    execution_emit(execution,
                   &(struct execution_event){.kind = EXECUTION_ASKED, .question = question});
    execution->wait = approvals_ask(options->approvals, question, on_answer, execution);
}

/* Appends a rule that allows the proposed prefix: without a sandbox only when the question was
 * about that. Caller frees; NULL when nothing was added. */
static char *add_rule(struct execution *execution)
{
    const struct execution_options *options = execution->options;
    const struct requirement *requirement = &execution->requirement;
    enum rule_verdict verdict =
        requirement->place == REQUIREMENT_UNCONFINED ? RULE_BYPASS : RULE_KEEP;
    struct err err;
    enum rules_append appended;
    AUTO_FREE char *line =
        rule_line_for_prefix(strv_view(&requirement->proposal), verdict, NULL, &err);
    AUTO_FREE char *folder = path_parent(options->rules_file);

    if (line && fd_make_folders(folder, 0700, &err) == 0 &&
        rules_append(options->rules_file, options->home, line, &appended, &err) == 0)
        return TAKE_PTR(line);
    strv_pushf(&execution->result.warnings, "the rule could not be written: %s", err.msg);
    return NULL;
}

static void on_first_answer(void *data, const struct approval_answer *answer)
{
    struct execution *execution = data;
    AUTO_FREE char *rule = NULL;

    execution->wait = NULL;
    if (answer->decision == APPROVAL_WITH_RULE)
        rule = add_rule(execution);
    note_answer(execution, answer, rule);
    if (!approval_decision_is_yes(answer->decision)) {
        execution_finish(execution, EXECUTION_REJECTED, refusal(answer));
        return;
    }
    execution->was_approved = true;
    execution_run_first(execution);
}

static bool can_last(const struct execution *execution)
{
    return !execution->options->is_last && execution->keys.len;
}

static unsigned yes_offers(const struct execution *execution)
{
    return 1u << APPROVAL_APPROVED | (can_last(execution) ? 1u << APPROVAL_FOR_SESSION : 0);
}

/* Whether nothing will hold the command, wherever it is said to run. */
static bool is_unconfined(const struct execution *execution)
{
    enum confinement confinement = execution->options->confinement;

    return execution->requirement.place == REQUIREMENT_UNCONFINED ||
           confinement == CONFINEMENT_NONE || confinement == CONFINEMENT_MISSING;
}

static char *first_covers(const struct execution *execution)
{
    const struct execution_options *options = execution->options;
    AUTO_FREE char *widened = execution_additional_words(execution);
    const struct approval_scope scope = {
        .place = is_unconfined(execution) ? REQUIREMENT_UNCONFINED : execution->requirement.place,
        .profile = options->profile,
        .widened = widened,
        .covers_retry = execution_retry_is_covered(options),
        .patched = can_last(execution) ? options->patched : NULL,
    };

    return approval_covers(&scope);
}

void execution_ask_first(struct execution *execution)
{
    const struct execution_options *options = execution->options;
    struct requirement *requirement = &execution->requirement;
    struct approval_request question;

    if (!options->approvals) {
        refuse_by_nobody(execution);
        return;
    }
    question = (struct approval_request){
        .kind = APPROVAL_KIND_COMMAND,
        .reason = options->justification ? alloc_strf("%s. Its caller says: %s",
                                                      requirement->reason, options->justification)
                                         : alloc_str(requirement->reason),
        .covers = first_covers(execution),
        .offers = yes_offers(execution),
    };
    strv_push_all(&question.keys, strv_view(&execution->keys));
    if (options->rules_file && requirement->proposal.len) {
        strv_push_all(&question.proposal, strv_view(&requirement->proposal));
        question.offers |= 1u << APPROVAL_WITH_RULE;
    }
    ask(execution, &question, on_first_answer);
}

/* --- once more --- */

static void on_second_answer(void *data, const struct approval_answer *answer)
{
    struct execution *execution = data;

    execution->wait = NULL;
    note_answer(execution, answer, NULL);
    if (!approval_decision_is_yes(answer->decision))
        execution_finish(execution, EXECUTION_RAN, NULL);
    else if (answer->decision == APPROVAL_UNCONFINED)
        execution_retry(execution, REQUIREMENT_UNCONFINED);
    else
        execution_retry(execution, REQUIREMENT_WIDENED);
}

static struct approval_request second_question(const struct execution *execution, unsigned ways)
{
    const struct execution_options *options = execution->options;
    const struct denials *denials = &execution->result.attempts[0].result.denials;
    const struct approval_scope scope = {
        .place = ways & EXECUTION_RETRY_GRANT ? REQUIREMENT_WIDENED : REQUIREMENT_UNCONFINED,
        .profile = options->profile,
        .widened = execution->grant.words,
        .patched = ways & EXECUTION_RETRY_GRANT && can_last(execution) ? options->patched : NULL,
    };
    struct approval_request question = {
        .kind = APPROVAL_KIND_RETRY,
        .reason = execution_denial_words(denials),
        .covers = approval_covers(&scope),
    };

    if (ways & EXECUTION_RETRY_GRANT) {
        strv_push_all(&question.keys, strv_view(&execution->keys));
        question.offers |= yes_offers(execution);
    }
    if (ways & EXECUTION_RETRY_UNCONFINED)
        question.offers |= 1u << APPROVAL_UNCONFINED;
    return question;
}

/* The keys of this call with this grant: a yes to the one is none to another. */
static void set_retry_keys(struct execution *execution)
{
    struct strv keys = {0};

    for (size_t i = 0; i < execution->keys.len; i++)
        strv_pushf(&keys, "%s + %s", execution->keys.items[i], execution->grant.words);
    strv_done(&execution->keys);
    execution->keys = keys;
}

void execution_ask_again(struct execution *execution)
{
    const struct execution_options *options = execution->options;
    const struct execution_attempt *first = &execution->result.attempts[0];
    const struct grant_bounds bounds = {.access = execution->stage.access,
                                        .own_paths = options->own_paths};
    bool has_grant =
        execution->stage.access && grant_find(&first->result.denials, &bounds, &execution->grant);
    unsigned ways = execution_retry_ways(options, has_grant, execution->was_approved);
    struct approval_request question;

    if (!ways || (!options->approvals && !(ways & EXECUTION_RETRY_AGREED))) {
        execution_finish(execution, EXECUTION_RAN, NULL);
        return;
    }
    if (has_grant)
        set_retry_keys(execution);
    if (ways & EXECUTION_RETRY_AGREED) {
        execution_retry(execution, has_grant ? REQUIREMENT_WIDENED : REQUIREMENT_UNCONFINED);
        return;
    }
    if (has_grant && approvals_has(options->approvals, &execution->keys)) {
        execution_answer_by_session(execution);
        execution_retry(execution, REQUIREMENT_WIDENED);
        return;
    }
    question = second_question(execution, ways);
    ask(execution, &question, on_second_answer);
}
