/* What the files of an execution share. Internal to engine; execution.h is the interface. */
#pragma once

#include "approval/grant.h"
#include "base/json.h"
#include "executor/execution.h"
#include "policy/profile_overlay.h"

struct execution {
    const struct execution_options *options;
    struct execution_result result;
    struct requirement requirement;
    struct strv keys;           /* of the question that is open */
    struct loop_timer *defer;   /* begins, and tells that it is done */
    struct approval_wait *wait; /* while somebody is asked */
    bool was_approved;          /* by an answer to the first question */
    struct oneshot_options job;
    struct oneshot *oneshot; /* while the command runs */
    struct execution_stage stage;
    struct grant grant;
    struct profile_overlay widened; /* additional permissions and grant */
    json_t *asked;                  /* the open question; part of result.questions */
};

void execution_emit(struct execution *execution, const struct execution_event *event);

/* Tells that an earlier yes for the session covers what would be asked. */
void execution_answer_by_session(struct execution *execution);

/* Enters the last state; takes `reason` over. */
void execution_finish(struct execution *execution, enum execution_outcome outcome, char *reason);

/* What the command gets by its own call, in words; NULL: nothing. Caller frees. */
char *execution_additional_words(const struct execution *execution);

/* The attempt that was required; and the second one, widened by the grant or without a sandbox. */
void execution_run_first(struct execution *execution);
void execution_retry(struct execution *execution, enum requirement_place place);

/* Asks before the first attempt, and after it when there is a way to retry. */
void execution_ask_first(struct execution *execution);
void execution_ask_again(struct execution *execution);
