/* See execution.h. Each state has one function that enters it and one callback that leaves it:
 *
 *     deciding         on_begin
 *     asking           ask_first     on_first_answer
 *     running          attempt       on_over
 *     asking again     ask_again     on_second_answer
 *     retrying         attempt       on_over
 *     done             finish
 *
 * A failure in the second round (no sandbox can be made for it, say) leaves the first attempt as
 * the result: it did run. */
#include "executor/execution.h"

#include "approval/approval.h"
#include "approval/approvals.h"
#include "approval/grant.h"
#include "approval/held.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "denial/denial.h"
#include "executor/execution_exec.h"
#include "executor/execution_held.h"
#include "executor/outside.h"
#include "loop/loop.h"
#include "policy/access.h"
#include "policy/profile.h"
#include "rules/file/rule.h"
#include "rules/rules.h"
#include "rules/rules_disk.h"
#include "workspace/snapshots.h"
#include "workspace/workspace.h"

#include <stdbool.h>

struct execution {
    const struct execution_options *options;
    struct execution_result result;
    struct requirement requirement;
    struct strv keys;           /* of the question that is open */
    struct loop_timer *defer;   /* begins, and tells that it is done */
    struct approval_wait *wait; /* while a question is open */
    bool was_approved;          /* by an answer to the first question */
    struct job_run_options job;
    struct job_run *run; /* while the command runs */
    struct rules *rules;
    char *
        program; /* that argv[0] leads to, once it was judged: runs if it leaves the sandbox; or NULL */
    struct outside outside; /* in place of argv and env, of what a rule lets out */
    char *rules_file;       /* that APPROVAL_WITH_RULE appends to; NULL: it is not offered */
    struct workspace *workspaces[EXECUTION_ATTEMPTS_MAX]; /* of the attempts; held */
    size_t workspaces_len;
    struct strv snapshot_argv; /* in place of argv; empty: none */
    struct strv snapshot_env;
    bool is_cancelled;
    bool was_refused; /* something that was held: by who was asked */
    struct grant grant;
    struct profile_overlay widened; /* additional permissions and grant */
    json_t *asked;                  /* the open question; part of result.questions */
};

static void ask_again(struct execution *execution);

const struct execution_result *execution_result(const struct execution *execution)
{
    return &execution->result;
}

void execution_free(struct execution *execution)
{
    struct execution_result *result = &execution->result;

    if (execution->wait)
        approvals_leave(execution->wait);
    loop_timer_free(execution->defer);
    job_run_free(execution->run);
    requirement_done(&execution->requirement);
    strv_done(&execution->keys);
    grant_done(&execution->grant);
    profile_overlay_done(&execution->widened);
    for (size_t i = 0; i < result->attempts_len; i++) {
        free(result->attempts[i].widened);
        job_result_done(&result->attempts[i].result);
    }
    for (size_t i = 0; i < execution->workspaces_len; i++)
        workspace_release(execution->workspaces[i]);
    workspace_release(execution->options->workspace);
    rules_free(execution->rules);
    free(execution->rules_file);
    free(execution->program);
    outside_done(&execution->outside);
    strv_done(&execution->snapshot_argv);
    strv_done(&execution->snapshot_env);
    free(result->reason);
    json_decref(result->questions);
    strv_done(&result->problems);
    strv_done(&result->warnings);
    free(execution);
}

static void emit(struct execution *execution, const struct execution_event *event)
{
    if (execution->options->on_event)
        execution->options->on_event(execution->options->data, event);
}

static void answer_by_session(struct execution *execution)
{
    const struct approval_answer answer = {.decision = APPROVAL_FOR_SESSION, .by = "session"};

    emit(execution, &(struct execution_event){.kind = EXECUTION_ANSWERED, .answer = &answer});
}

/* --- done --- */

static void on_told(void *data)
{
    struct execution *execution = data;

    execution->options->on_done(execution->options->data);
}

/* Takes `reason` over. Told from the loop, so that execution_free() may be called there. */
static void finish(struct execution *execution, enum execution_outcome outcome, char *reason)
{
    execution->result.outcome = outcome;
    free(execution->result.reason);
    execution->result.reason = reason;
    loop_timer_free(execution->defer);
    execution->defer = loop_timer_new(execution->options->loop, on_told, execution);
    loop_timer_start(execution->defer, 0);
}

static void fail(struct execution *execution, const struct err *err)
{
    if (execution->result.attempts_len) { /* of the retry: the first attempt is the result */
        strv_pushf(&execution->result.warnings, "it could not be run once more: %s", err->msg);
        finish(execution, EXECUTION_RAN, NULL);
        return;
    }
    execution->result.failure = *err;
    finish(execution, EXECUTION_FAILED, alloc_str(err->msg));
}

/* --- running --- */

static void on_started(void *data)
{
    const struct job_run_options *job = ((struct execution *)data)->options->job;

    if (job->on_started)
        job->on_started(job->data);
}

static void on_output(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset)
{
    const struct job_run_options *job = ((struct execution *)data)->options->job;

    if (job->on_output)
        job->on_output(job->data, stream, bytes, len, offset);
}

static void on_traced(void *data, const struct job *traced)
{
    const struct job_run_options *job = ((struct execution *)data)->options->job;

    if (job->on_traced)
        job->on_traced(job->data, traced);
}

static void on_over(void *data)
{
    struct execution *execution = data;
    struct execution_result *result = &execution->result;
    struct execution_attempt *attempt = &result->attempts[result->attempts_len++];
    const struct denials *denials = &attempt->result.denials;

    job_run_take(execution->run, &attempt->result);
    job_run_free(TAKE_PTR(execution->run));
    for (size_t i = 0; i < denials->len; i++)
        emit(execution,
             &(struct execution_event){.kind = EXECUTION_DENIED, .denial = &denials->items[i]});
    if (result->attempts_len < EXECUTION_ATTEMPTS_MAX && attempt->result.end == JOB_RUN_DENIED &&
        !attempt->result.process->signal && attempt->where != RUN_UNCONFINED &&
        !execution->was_refused)
        ask_again(execution);
    else
        finish(execution, EXECUTION_RAN, NULL);
}

/* --- what is held meanwhile --- */

static void on_held(void *data, const struct held_event *event)
{
    static const enum execution_event_kind kinds[] = {
        [HELD_ASKED] = EXECUTION_ASKED,
        [HELD_ANSWERED] = EXECUTION_ANSWERED,
        [HELD_OVER] = EXECUTION_HELD,
    };
    struct execution *execution = data;
    const struct approval_answer *answer = event->answer;

    execution->was_refused |= answer && !approval_decision_is_yes(answer->decision);
    questions_note_held(execution->result.questions, event);
    if (event->warning)
        strv_push(&execution->result.warnings, event->warning);
    emit(execution, &(struct execution_event){.kind = kinds[event->step],
                                              .question = event->question,
                                              .answer = answer,
                                              .rule = event->rule,
                                              .held = event});
}

static struct job_asker *asker_for(struct execution *execution, struct workspace *workspace)
{
    const struct execution_options *options = execution->options;

    return held_new(&(struct held_options){
        .approvals = options->approvals,
        .argv = options->argv,
        .cwd = options->cwd,
        .profile = workspace->profile_name,
        .own_paths = strv_view(&workspace->own_paths),
        .home = options->rules.home,
        .rules_file = execution->rules_file,
        .is_last = options->is_last,
        .offers_unconfined =
            options->policy.yes_means_unsandboxed && workspace_may_leave(workspace),
        .on_event = on_held,
        .execs = workspace_judges_execs(workspace)
                     ? execution_execs_new(options, execution->rules, workspace)
                     : NULL,
        .data = execution,
    });
}

/* --- the attempts --- */

/* Only in the workspace of the call: nothing that was made there is read with wider permissions. */
static void use_snapshot(struct execution *execution, struct workspace *workspace)
{
    const struct execution_options *options = execution->options;
    struct snapshot_request request = snapshot_request_for(workspace);
    AUTO(strv_done) struct strv added = {0};
    const struct err *failure;

    request.argv = options->argv;
    request.cwd = options->cwd;
    if (options->snapshot_env)
        request.env = options->snapshot_env;
    if (options->snapshot_keep)
        request.keep = options->snapshot_keep;
    if (snapshots_use(options->snapshots, &request, &execution->snapshot_argv, &added, &failure)) {
        strv_push_all(&execution->snapshot_env, execution->job.env);
        strv_push_all(&execution->snapshot_env, strv_view(&added));
        execution->job.argv = strv_view(&execution->snapshot_argv);
        execution->job.env = strv_view(&execution->snapshot_env);
    }
    if (!failure)
        return;
    strv_push(&execution->result.warnings, SNAPSHOTS_NOTE);
    if (options->on_snapshot_failed)
        options->on_snapshot_failed(options->data, failure);
}

static void fill_job(struct execution *execution, struct workspace *workspace)
{
    static char *const no_env[] = {NULL};
    const struct execution_options *options = execution->options;
    struct job_run_options *job = &execution->job;

    *job = *options->job;
    job->loop = options->loop;
    job->sandbox = workspace->sandbox;
    job->access = workspace->access;
    job->topics = workspace->topics;
    job->audit_topics = workspace->audit_topics;
    job->is_judged = workspace_judges_execs(workspace);
    job->argv = options->replacement_argv ? options->replacement_argv : options->argv;
    job->env = options->replacement_argv ? no_env
               : options->env            ? options->env
                                         : strv_view(&workspace->env);
    job->cwd = options->cwd;
    job->asks = workspace->access && execution_holds(options);
    job->on_started = on_started;
    job->on_output = on_output;
    job->on_traced = on_traced;
    job->on_over = on_over;
    job->data = execution;
    if (!workspace->access && !options->replacement_argv)
        job->program = execution->program;
    if (execution->outside.program) {
        job->program = execution->outside.program;
        job->argv = strv_view(&execution->outside.argv);
        job->env = strv_view(&execution->outside.env);
    }
    if (options->snapshots && !options->replacement_argv && workspace == options->workspace)
        use_snapshot(execution, workspace);
}

/* Open, and held. NULL on failure. */
static struct workspace *workspace_for(struct execution *execution, enum run_where where,
                                       struct err *err)
{
    struct workspace *own = execution->options->workspace;

    if (where == RUN_UNCONFINED)
        return workspace_derive(own, NULL, err);
    if (!profile_overlay_is_empty(&execution->widened))
        return workspace_derive(own, &execution->widened, err);
    if (workspace_open(own, err))
        return NULL;
    workspace_hold(own);
    return own;
}

/* Nobody was asked. */
static bool leaves_by_rule(const struct execution *execution, enum run_where where)
{
    const struct execution_options *options = execution->options;
    const struct access_map *access = options->workspace->access;

    return where == RUN_UNCONFINED && execution->requirement.cause == REQUIREMENT_BY_RULE &&
           execution->requirement.outcome == REQUIREMENT_SKIP && access && access->restricted &&
           !options->replacement_argv && !execution->result.attempts_len;
}

/* The first one, or, when there was one, the second, with what has been granted since. */
static void attempt(struct execution *execution, enum run_where where)
{
    static const struct profile_overlay nothing;
    const struct execution_options *options = execution->options;
    struct execution_result *result = &execution->result;
    struct profile_overlay *widened = &execution->widened;
    AUTO_FREE char *words = NULL;
    struct workspace *workspace = NULL;
    struct err err;

    profile_overlay_done(widened);
    *widened = nothing;
    if (where == RUN_WIDENED) {
        profile_overlay_merge(options->additional ? options->additional : &nothing,
                              &execution->grant.overlay, widened);
        words = overlay_words(widened);
    }
    if (result->attempts_len)
        emit(execution, &(struct execution_event){.kind = EXECUTION_RETRIED,
                                                  .words = words ? words : "no sandbox"});
    if (execution->is_cancelled)
        err_set(&err, ERR_FORBIDDEN, "it was cancelled before it began");
    else if (!leaves_by_rule(execution, where) ||
             outside_by_rule(options, execution->rules, &execution->outside, &err) == 0)
        workspace = workspace_for(execution, where, &err);
    if (!workspace) {
        fail(execution, &err);
        return;
    }
    execution->workspaces[execution->workspaces_len++] = workspace;
    fill_job(execution, workspace);
    if (options->on_attempt)
        options->on_attempt(options->data, where, workspace);
    execution->run = job_run_start(&execution->job, &err);
    if (!execution->run) {
        fail(execution, &err);
        return;
    }
    if (execution->job.asks || workspace_judges_execs(workspace))
        job_set_asker(job_run_job(execution->run), asker_for(execution, workspace));
    result->attempts[result->attempts_len].where = where;
    result->attempts[result->attempts_len].widened = TAKE_PTR(words);
}

/* --- words --- */

/* A fact, where there is one. */
static char *refusal_words(const struct denials *denials)
{
    const struct denial *denial = NULL;
    AUTO_FREE char *words = NULL;

    for (size_t i = 0; i < denials->len; i++)
        if (denial_matters(&denials->items[i]) &&
            (!denial || denials->items[i].evidence < denial->evidence))
            denial = &denials->items[i];
    words = denial ? denial_words(denial) : alloc_str("something");
    return alloc_strf(
        "the sandbox refused %s%s", words,
        !denial || denial->evidence == DENIAL_FACT ? "" : " (read from the output, so a guess)");
}

/* --- the question before the first attempt --- */

static char *refusal(const struct approval_answer *answer)
{
    const char *colon = answer->reason ? ": " : "";

    if (answer->decision == APPROVAL_TIMED_OUT)
        return alloc_str("it had to be asked about, and nobody answered in time");
    if (str_eq(answer->by, "nobody"))
        return alloc_str("it had to be asked about, and there was nobody to ask");
    return alloc_strf("it had to be asked about, and the answer was no (by %s)%s%s", answer->by,
                      colon, answer->reason ? answer->reason : "");
}

static void note_answer(struct execution *execution, const struct approval_answer *answer,
                        const char *rule)
{
    json_object_set_new(execution->asked, "answer", approval_answer_to_json(answer));
    execution->result.decision = answer->decision;
    emit(execution,
         &(struct execution_event){.kind = EXECUTION_ANSWERED, .answer = answer, .rule = rule});
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
    emit(execution, &(struct execution_event){.kind = EXECUTION_ASKED, .question = question});
    execution->wait = approvals_ask(options->approvals, question, on_answer, execution);
}

/* Appends a rule that allows the proposed prefix: without a sandbox only when the question was
 * about that. Caller frees; NULL when nothing was added. */
static char *add_rule(struct execution *execution)
{
    const struct requirement *requirement = &execution->requirement;
    enum rule_verdict verdict = requirement->where == RUN_UNCONFINED ? RULE_BYPASS : RULE_KEEP;
    struct err err;
    AUTO_FREE char *line =
        rule_line_for_prefix(strv_view(&requirement->proposal), verdict, NULL, &err);

    if (line &&
        rules_append_made(execution->rules_file, execution->options->rules.home, line, &err) == 0)
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
        finish(execution, EXECUTION_REJECTED, refusal(answer));
        return;
    }
    execution->was_approved = true;
    attempt(execution, execution->requirement.where);
}

static bool can_last(const struct execution *execution)
{
    return !execution->options->is_last && execution->keys.len;
}

static unsigned yes_offers(const struct execution *execution)
{
    return 1u << APPROVAL_APPROVED | (can_last(execution) ? 1u << APPROVAL_FOR_SESSION : 0);
}

static char *first_covers(const struct execution *execution)
{
    const struct execution_options *options = execution->options;
    enum run_where where = execution->requirement.where;
    enum confinement held_by = execution_confinement(options->workspace);
    AUTO_FREE char *widened = where == RUN_WIDENED ? overlay_words(options->additional) : NULL;
    const struct approval_scope scope = {
        /* whether nothing will hold the command, wherever it is said to run */
        .where =
            held_by == CONFINEMENT_NONE || held_by == CONFINEMENT_MISSING ? RUN_UNCONFINED : where,
        .profile = options->workspace->profile_name,
        .widened = widened,
        .covers_retry = execution_retry_is_covered(options),
        .patched = can_last(execution) ? options->patched : NULL,
    };

    return approval_covers(&scope);
}

static void ask_first(struct execution *execution)
{
    const struct execution_options *options = execution->options;
    struct requirement *requirement = &execution->requirement;
    struct approval_request question;
    bool is_settled;

    if (!options->approvals) {
        execution->result.decision = APPROVAL_DENIED;
        finish(execution, EXECUTION_REJECTED,
               refusal(&(struct approval_answer){.decision = APPROVAL_DENIED, .by = "nobody"}));
        return;
    }
    question = (struct approval_request){
        .kind = APPROVAL_KIND_COMMAND,
        .reason = options->justification ? alloc_strf("%s. Its caller says: %s",
                                                      requirement->reason, options->justification)
                                         : alloc_str(requirement->reason),
        .covers = first_covers(execution),
        .offers = yes_offers(execution),
        .programs = outside_programs(options, execution->rules, &is_settled),
    };
    outside_variables(options, &question.variables);
    if (requirement->where == RUN_UNCONFINED && !is_settled)
        question.offers &= ~(1u << APPROVAL_FOR_SESSION); /* it may be another one by then */
    strv_push_all(&question.keys, strv_view(&execution->keys));
    if (execution->rules_file && requirement->proposal.len) {
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
        finish(execution, EXECUTION_RAN, NULL);
    else if (answer->decision == APPROVAL_UNCONFINED)
        attempt(execution, RUN_UNCONFINED);
    else
        attempt(execution, RUN_WIDENED);
}

static struct approval_request second_question(const struct execution *execution, unsigned ways)
{
    const struct execution_options *options = execution->options;
    const struct denials *denials = &execution->result.attempts[0].result.denials;
    const struct approval_scope scope = {
        .where = ways & EXECUTION_RETRY_GRANT ? RUN_WIDENED : RUN_UNCONFINED,
        .profile = options->workspace->profile_name,
        .widened = execution->grant.words,
        .patched = ways & EXECUTION_RETRY_GRANT && can_last(execution) ? options->patched : NULL,
    };
    struct approval_request question = {
        .kind = APPROVAL_KIND_RETRY,
        .reason = refusal_words(denials),
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

static void ask_again(struct execution *execution)
{
    const struct execution_options *options = execution->options;
    const struct execution_attempt *first = &execution->result.attempts[0];
    const struct workspace *workspace = execution->workspaces[0];
    const struct grant_bounds bounds = {.access = workspace->access,
                                        .own_paths = strv_view(&workspace->own_paths),
                                        .home = options->rules.home};
    bool has_grant =
        workspace->access && grant_find(&first->result.denials, &bounds, &execution->grant);
    unsigned ways = execution_retry_ways(options, has_grant, execution->was_approved);
    struct approval_request question;

    if (!ways || (!options->approvals && !(ways & EXECUTION_RETRY_AGREED))) {
        finish(execution, EXECUTION_RAN, NULL);
        return;
    }
    if (has_grant)
        set_retry_keys(execution);
    if (ways & EXECUTION_RETRY_AGREED) {
        attempt(execution, has_grant ? RUN_WIDENED : RUN_UNCONFINED);
        return;
    }
    if (has_grant && approvals_has(options->approvals, &execution->keys)) {
        answer_by_session(execution);
        attempt(execution, RUN_WIDENED);
        return;
    }
    question = second_question(execution, ways);
    ask(execution, &question, on_second_answer);
}

/* --- deciding --- */

static void on_begin(void *data)
{
    struct execution *execution = data;
    const struct execution_options *options = execution->options;
    struct requirement *requirement = &execution->requirement;

    /* Without rules there is nothing to forbid. */
    if (!execution->is_cancelled && (options->gate == EXECUTION_ASKS ||
                                     (execution->rules && !rules_is_empty(execution->rules)))) {
        execution_keys(options, &execution->keys);
        execution->program = outside_program(options);
        execution_decide(options, execution->rules, requirement);
        execution->was_approved = requirement->cause == REQUIREMENT_BY_APPROVAL;
        if (execution->was_approved)
            answer_by_session(execution);
    }
    if (requirement->outcome == REQUIREMENT_FORBID)
        finish(execution, EXECUTION_FORBIDDEN, alloc_str(requirement->reason));
    else if (requirement->outcome == REQUIREMENT_ASK)
        ask_first(execution);
    else
        attempt(execution, requirement->where);
}

static void load_rules(struct execution *execution)
{
    const struct execution_options *options = execution->options;
    const struct rules_problem *problems;
    size_t len = 0;

    execution->rules = execution_rules(options);
    if (options->gate == EXECUTION_ASKS)
        execution->rules_file = rule_layers_file(&options->rules);
    if (!execution->rules)
        return;
    problems = rules_problems(execution->rules, &len);
    for (size_t i = 0; i < len; i++)
        strv_pushf(&execution->result.problems, "rules: %s", problems[i].text);
}

struct execution *execution_start(const struct execution_options *options)
{
    struct execution *execution = alloc_zero(1, sizeof *execution);

    execution->options = options;
    workspace_hold(options->workspace);
    load_rules(execution);
    execution->result.questions = json_array();
    execution->defer = loop_timer_new(options->loop, on_begin, execution);
    loop_timer_start(execution->defer, 0);
    return execution;
}

void execution_begin(struct execution *execution)
{
    loop_timer_stop(execution->defer);
    on_begin(execution);
}

void execution_lend_terminal(struct execution *execution, bool on)
{
    if (execution->run)
        job_run_lend_terminal(execution->run, on);
}

struct job *execution_job(const struct execution *execution)
{
    return execution->run ? job_run_job(execution->run) : NULL;
}

void execution_cancel(struct execution *execution)
{
    execution->is_cancelled = true;
    if (execution->run)
        job_run_cancel(execution->run);
    if (!execution->wait)
        return;
    approvals_leave(TAKE_PTR(execution->wait));
    if (execution->result.attempts_len)
        finish(execution, EXECUTION_RAN, NULL);
    else
        finish(execution, EXECUTION_REJECTED, alloc_str("it was cancelled before it was approved"));
}
