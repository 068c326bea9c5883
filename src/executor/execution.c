/* See execution.h. Each state has one function that enters it and one callback that leaves it:
 *
 *     deciding         on_begin
 *     asking           execution_ask_first    on_first_answer     (execution_ask.c)
 *     running          attempt                on_over
 *     asking again     execution_ask_again    on_second_answer    (execution_ask.c)
 *     retrying         attempt                on_over
 *     done             finish
 *
 * A failure in the second round (no sandbox can be made for it, say) leaves the first attempt as
 * the result: it did run. */
#include "executor/execution.h"

#include "approval/approval_key.h"
#include "approval/approvals.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "executor/execution_part.h"
#include "loop/loop.h"
#include "rules/file/prefix_rule.h"

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
    oneshot_free(execution->oneshot);
    requirement_done(&execution->requirement);
    strv_done(&execution->keys);
    grant_done(&execution->grant);
    profile_overlay_done(&execution->widened);
    for (size_t i = 0; i < result->attempts_len; i++) {
        free(result->attempts[i].widened);
        oneshot_result_done(&result->attempts[i].result);
    }
    free(result->reason);
    json_decref(result->questions);
    strv_done(&result->warnings);
    free(execution);
}

void execution_emit(struct execution *execution, const struct execution_event *event)
{
    if (execution->options->on_event)
        execution->options->on_event(execution->options->data, event);
}

void execution_answer_by_session(struct execution *execution)
{
    const struct approval_answer answer = {.decision = APPROVAL_FOR_SESSION, .by = "session"};

    execution_emit(execution,
                   &(struct execution_event){.kind = EXECUTION_ANSWERED, .answer = &answer});
}

/* --- done --- */

static void on_told(void *data)
{
    struct execution *execution = data;

    execution->options->on_done(execution->options->data);
}

/* Takes `reason` over. Told from the loop, so that execution_free() may be called there. */
void execution_finish(struct execution *execution, enum execution_outcome outcome, char *reason)
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
        execution_finish(execution, EXECUTION_RAN, NULL);
        return;
    }
    execution->result.failure = *err;
    execution_finish(execution, EXECUTION_FAILED, alloc_str(err->msg));
}

/* --- running --- */

static void on_started(void *data)
{
    const struct oneshot_options *job = ((struct execution *)data)->options->job;

    if (job->on_started)
        job->on_started(job->data);
}

static void on_output(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset)
{
    const struct oneshot_options *job = ((struct execution *)data)->options->job;

    if (job->on_output)
        job->on_output(job->data, stream, bytes, len, offset);
}

static void tell_denials(struct execution *execution, const struct denials *denials)
{
    for (size_t i = 0; i < denials->len; i++)
        execution_emit(execution, &(struct execution_event){.kind = EXECUTION_DENIED,
                                                            .denial = &denials->items[i]});
}

static void on_over(void *data)
{
    struct execution *execution = data;
    struct execution_result *result = &execution->result;
    struct execution_attempt *attempt = &result->attempts[result->attempts_len++];

    oneshot_take(execution->oneshot, &attempt->result);
    oneshot_free(TAKE_PTR(execution->oneshot));
    tell_denials(execution, &attempt->result.denials);
    if (result->attempts_len < EXECUTION_ATTEMPTS_MAX && attempt->result.end == ONESHOT_DENIED &&
        !attempt->result.signal && attempt->place != REQUIREMENT_UNCONFINED)
        execution_ask_again(execution);
    else
        execution_finish(execution, EXECUTION_RAN, NULL);
}

static void fill_job(struct execution *execution)
{
    const struct execution_options *options = execution->options;

    execution->job = *options->job;
    execution->job.loop = options->loop;
    execution->job.sandbox = execution->stage.sandbox;
    execution->job.access = execution->stage.access;
    execution->job.env = execution->stage.env;
    execution->job.argv = execution->stage.argv ? execution->stage.argv
                          : options->stand_in   ? options->stand_in
                                                : options->argv;
    execution->job.cwd = options->cwd;
    execution->job.on_started = on_started;
    execution->job.on_output = on_output;
    execution->job.on_over = on_over;
    execution->job.data = execution;
}

/* `words`, taken over, say what it gets beyond its profile. */
static void attempt(struct execution *execution, enum requirement_place place, char *words)
{
    struct execution_result *result = &execution->result;
    const struct execution_place where = {
        .place = place,
        .widened = profile_overlay_is_empty(&execution->widened) ? NULL : &execution->widened};
    AUTO_FREE char *widened = words;
    struct err err;

    if (execution->options->prepare(execution->options->data, &where, &execution->stage, &err)) {
        fail(execution, &err);
        return;
    }
    fill_job(execution);
    execution->oneshot = oneshot_start(&execution->job, &err);
    if (!execution->oneshot) {
        fail(execution, &err);
        return;
    }
    result->attempts[result->attempts_len].place = place;
    result->attempts[result->attempts_len].widened = TAKE_PTR(widened);
}

/* What a command gets by its own call. */
char *execution_additional_words(const struct execution *execution)
{
    bool has_any = execution->requirement.place == REQUIREMENT_WIDENED;

    return has_any ? overlay_words(execution->options->additional) : NULL;
}

void execution_run_first(struct execution *execution)
{
    static const struct profile_overlay nothing;

    if (execution->requirement.place == REQUIREMENT_WIDENED)
        profile_overlay_merge(execution->options->additional, &nothing, &execution->widened);
    attempt(execution, execution->requirement.place, execution_additional_words(execution));
}

void execution_retry(struct execution *execution, enum requirement_place place)
{
    static const struct profile_overlay nothing;
    const struct profile_overlay *additional = execution->options->additional;
    bool is_confined = place != REQUIREMENT_UNCONFINED;
    char *words = NULL;

    profile_overlay_done(&execution->widened);
    execution->widened = (struct profile_overlay){0};
    if (is_confined) {
        profile_overlay_merge(additional ? additional : &nothing, &execution->grant.overlay,
                              &execution->widened);
        words = overlay_words(&execution->widened);
    }
    execution_emit(execution, &(struct execution_event){.kind = EXECUTION_RETRIED,
                                                        .words = words ? words : "no sandbox"});
    attempt(execution, place, words);
}

/* --- deciding --- */

static void decide(struct execution *execution)
{
    const struct execution_options *options = execution->options;
    const struct approval_call call = {options->argv, options->cwd, options->permissions,
                                       options->additional, options->patched};
    bool has_additional = options->additional && !profile_overlay_is_empty(options->additional);
    struct requirement_request request = {
        .argv = options->argv,
        .finder = options->finder,
        .access = options->access,
        .rules = options->rules,
        .proposed = options->proposed,
        .policy = options->policy,
        .confinement = options->confinement,
        .permissions = options->permissions,
        .flags = has_additional ? REQUIREMENT_HAS_ADDITIONAL : 0,
    };

    approval_keys(&call, &execution->keys);
    if (options->gate == EXECUTION_FORBIDS_ONLY)
        request.flags |= REQUIREMENT_FORBIDS_ONLY;
    if (options->approvals && approvals_has(options->approvals, &execution->keys))
        request.flags |= REQUIREMENT_APPROVED;
    requirement_decide(&request, &execution->requirement);
    execution->was_approved = execution->requirement.cause == REQUIREMENT_BY_APPROVAL;
    if (execution->was_approved)
        execution_answer_by_session(execution);
}

static void on_begin(void *data)
{
    struct execution *execution = data;
    struct requirement *requirement = &execution->requirement;

    /* Without rules there is nothing to forbid. */
    if (execution->options->gate == EXECUTION_ASKS || execution->options->rules)
        decide(execution);
    if (requirement->outcome == REQUIREMENT_FORBID)
        execution_finish(execution, EXECUTION_FORBIDDEN, alloc_str(requirement->reason));
    else if (requirement->outcome == REQUIREMENT_ASK)
        execution_ask_first(execution);
    else
        execution_run_first(execution);
}

struct execution *execution_start(const struct execution_options *options)
{
    struct execution *execution = alloc_zero(1, sizeof *execution);

    execution->options = options;
    execution->result.questions = json_array();
    execution->defer = loop_timer_new(options->loop, on_begin, execution);
    loop_timer_start(execution->defer, 0);
    return execution;
}

void execution_cancel(struct execution *execution)
{
    if (execution->oneshot)
        oneshot_cancel(execution->oneshot);
    if (!execution->wait)
        return;
    approvals_leave(TAKE_PTR(execution->wait));
    if (execution->result.attempts_len)
        execution_finish(execution, EXECUTION_RAN, NULL);
    else
        execution_finish(execution, EXECUTION_REJECTED,
                         alloc_str("it was cancelled before it was approved"));
}
