/* See execution_audit.h. Pure: who writes them, when and where, is the business of the caller. */
#include "executor/execution_audit.h"

#include "approval/held.h"
#include "audit/redact.h"
#include "base/strv.h"
#include "denial/denial.h"
#include "executor/execution.h"
#include "output/output.h"
#include "timeline/timeline.h"

#include <jansson.h>
#include <stddef.h>
#include <string.h>

static json_t *asked_body(const struct approval_request *question, char *const *argv,
                          char *const *env)
{
    const struct audit_asked asked = {
        .argv = argv ? argv : strv_view(&question->argv),
        .env = env,
        .reason = question->reason,
        .covers = question->covers,
    };

    return audit_asked_body(&asked);
}

static json_t *held_body(const struct held_event *held)
{
    const struct approval_answer *answer = held->answer;
    const struct audit_held body = {
        .reason = held->question->reason,
        .covers = held->question->covers,
        .decision = answer ? approval_decision_name(answer->decision) : NULL,
        .by = answer ? answer->by : NULL,
        .held_ns = held->held_ns,
        .is_done = held->is_done,
    };

    return audit_held_body(&body);
}

static json_t *denied_body(const struct denial *denial)
{
    const struct audit_denied denied = {
        .operation = denial_operation_name(denial->operation),
        .path = denial->path,
        .host = denial->host,
        .error = denial->error ? strerrorname_np(denial->error) : NULL,
        .evidence = denial_evidence_name(denial->evidence),
        .decided_by = denial->origin,
        .other_path = denial->other_path,
        .program = denial->program,
        .call = denial->call,
        .pid = denial->pid,
        .port = denial->port,
        .count = denial->count,
        .flags = (denial->flags & DENIAL_CREATES ? AUDIT_DENIED_CREATES : 0) |
                 (denial->flags & DENIAL_FOLDER ? AUDIT_DENIED_BELOW : 0),
    };

    return audit_denied_body(&denied);
}

bool execution_audit_event(const struct execution_event *event, char *const *argv, char *const *env,
                           struct audit_note *ret)
{
    if (event->kind != EXECUTION_HELD && event->held)
        return false; /* all of it is in one record, once it is over */
    switch (event->kind) {
    case EXECUTION_HELD:
        *ret = (struct audit_note){AUDIT_HELD, held_body(event->held)};
        return true;
    case EXECUTION_ASKED:
        *ret = (struct audit_note){AUDIT_ASKED, asked_body(event->question, argv, env)};
        return true;
    case EXECUTION_ANSWERED:
        *ret = (struct audit_note){
            AUDIT_ANSWERED, audit_answered_body(approval_decision_name(event->answer->decision),
                                                event->answer->by, event->rule)};
        return true;
    case EXECUTION_DENIED:
        if (event->denial->source == DENIAL_BY_HOST)
            return false;
        *ret = (struct audit_note){AUDIT_DENIED, denied_body(event->denial)};
        return true;
    case EXECUTION_RETRIED:
        *ret = (struct audit_note){AUDIT_RETRIED, audit_retried_body(event->words)};
        return true;
    }
    return false;
}

/* Which kind of record it makes; the topic that has to be wanted for it. */
static bool trace_kind(const struct timeline_event *event, enum audit_event *ret,
                       unsigned *ret_topic)
{
    bool is_network = event->operation && (strcmp(event->operation, "connect") == 0 ||
                                           strcmp(event->operation, "bind") == 0);

    switch (event->kind) {
    case TIMELINE_DONE:
        *ret = is_network ? AUDIT_CONNECT : AUDIT_FILE;
        *ret_topic = is_network ? TIMELINE_NETWORK : TIMELINE_FILES;
        return true;
    case TIMELINE_EXECUTED:
        *ret = AUDIT_EXEC;
        *ret_topic = TIMELINE_EXEC;
        return true;
    case TIMELINE_MISSED:
        *ret = AUDIT_LOST;
        *ret_topic = TIMELINE_ALL;
        return true;
    case TIMELINE_DENIED:
    case TIMELINE_ASKED:
    case TIMELINE_ANSWERED:
    case TIMELINE_ENDED:
        break;
    }
    return false;
}

bool execution_audit_trace(const struct timeline_event *event, unsigned topics, char *const *env,
                           struct audit_note *ret)
{
    unsigned topic;

    if (!trace_kind(event, &ret->event, &topic) || !(topic & topics))
        return false;
    ret->body = timeline_event_to_json(event);
    json_object_del(ret->body, "event"); /* the record has these two */
    json_object_del(ret->body, "seq");
    if (event->kind == TIMELINE_DONE)
        json_object_del(ret->body,
                        "count"); /* that of now: it is told once, when it is done first */
    if (event->kind == TIMELINE_EXECUTED)
        json_object_set_new(ret->body, "argv", audit_redact_words(event->argv, env));
    return true;
}

json_t *execution_audit_output(const struct job_result *result)
{
    return audit_output_body(output_total(job_stream(result->job, STREAM_STDOUT)),
                             output_total(job_stream(result->job, STREAM_STDERR)));
}

json_t *execution_audit_end(const struct execution_result *result)
{
    struct audit_end end = {.end = "cancelled", .exit_code = -1};
    const struct job_result *last =
        result && result->attempts_len ? &result->attempts[result->attempts_len - 1].result : NULL;

    if (result) {
        end.end = result->outcome == EXECUTION_FAILED ? "failed-to-start"
                                                      : execution_outcome_name(result->outcome);
        end.reason = result->reason;
    }
    if (result && result->outcome == EXECUTION_RAN && last) {
        end.end = job_run_end_name(last->end);
        end.exit_code = last->process->code;
        end.signal = last->process->signal;
        end.wall_ns = last->wall_ns;
        end.reason = job_result_has_failed(last) ? last->process->failure.msg : NULL;
    }
    return audit_end_body(&end);
}
