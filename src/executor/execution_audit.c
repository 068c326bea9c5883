/* See execution_audit.h. Pure: who writes them, when and where, is the business of the caller. */
#include "executor/execution_audit.h"

#include "approval/held.h"
#include "audit/audit.h"
#include "audit/redact.h"
#include "base/str.h"
#include "base/strv.h"
#include "denial/denial.h"
#include "executor/execution.h"
#include "output/output.h"
#include "timeline/timeline.h"

#include <jansson.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

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
        .reason = denial->reason,
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

_Static_assert((int)TIMELINE_FILES == 1 && (int)TIMELINE_NETWORK == 2 && (int)TIMELINE_EXEC == 4,
               "the topics are those of config_audit_trace()");

/* Which kind of record it makes; false: none. */
static bool trace_kind(const struct timeline_event *event, unsigned topics, enum audit_event *ret)
{
    switch (event->kind) {
    case TIMELINE_DONE:
        *ret = str_eq(event->operation, "connect") || str_eq(event->operation, "bind")
                   ? AUDIT_CONNECT
                   : AUDIT_FILE;
        return topics & (*ret == AUDIT_FILE ? TIMELINE_FILES : TIMELINE_NETWORK);
    case TIMELINE_EXECUTED:
        *ret = AUDIT_EXEC;
        return topics & TIMELINE_EXEC;
    case TIMELINE_MISSED:
        *ret = AUDIT_LOST;
        return true;
    case TIMELINE_DENIED:
    case TIMELINE_ASKED:
    case TIMELINE_ANSWERED:
    case TIMELINE_ENDED:
        break;
    }
    return false;
}

static json_t *trace_body(const struct timeline_event *event, char *const *env)
{
    json_t *body = timeline_event_to_json(event);

    json_object_del(body, "event"); /* the record has these two */
    json_object_del(body, "seq");
    if (event->kind == TIMELINE_DONE) /* that of now: it is told once, when it is done first */
        json_object_del(body, "count");
    if (event->kind == TIMELINE_EXECUTED)
        json_object_set_new(body, "argv", audit_redact_words(event->argv, env));
    return body;
}

void audit_trail_init(struct audit_trail *trail, unsigned topics, char *const *env)
{
    *trail = (struct audit_trail){.topics = topics};
    audit_secrets(env, &trail->secrets);
    audit_secrets(environ, &trail->secrets);
}

void audit_trail_done(struct audit_trail *trail)
{
    strv_done(&trail->secrets);
}

static bool tell_lost(struct audit_trail *trail, struct audit_note *ret)
{
    if (!trail->lost)
        return false;
    *ret = (struct audit_note){AUDIT_LOST, json_pack("{s:I}", "count", (json_int_t)trail->lost)};
    trail->lost = 0;
    return true;
}

bool execution_audit_trace(struct audit_trail *trail, const struct timeline *timeline,
                           bool has_room, struct audit_note *ret)
{
    const struct timeline_event *event;

    has_room &= trail->bytes < AUDIT_TRACE_BYTES_MAX;
    while (timeline && (event = timeline_after(timeline, trail->seq))) {
        if (has_room && tell_lost(trail, ret))
            return true;
        trail->seq = event->seq;
        if (!trace_kind(event, trail->topics, &ret->event))
            continue;
        if (has_room) {
            ret->body = trace_body(event, strv_view(&trail->secrets));
            trail->bytes += json_dumpb(ret->body, NULL, 0, JSON_COMPACT);
            return true;
        }
        trail->lost += event->kind == TIMELINE_MISSED ? event->count : 1;
    }
    return !timeline && tell_lost(trail, ret);
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
