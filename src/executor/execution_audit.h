/* What an execution is in the audit log (audit/record.h): records for the callers that keep an audit log. */
#pragma once

#include "audit/record.h"

#include <stdbool.h>

struct execution_event;
struct execution_result;
struct json_t;
struct job_result;
struct timeline_event;

struct audit_note {
    enum audit_event event;
    struct json_t *body; /* a new reference */
};

/* The record of an event; false when it makes none. `argv` stands for the command of a question
 * (NULL: as the question has it), and what is secret in `env` is taken out of it. */
bool execution_audit_event(const struct execution_event *event, char *const *argv, char *const *env,
                           struct audit_note *ret);

/* The record of something that the command did (timeline/timeline.h); false when it makes none, or is
 * of no topic of `topics`. What was refused or asked about is in records of its own. */
bool execution_audit_trace(const struct timeline_event *event, unsigned topics, char *const *env,
                           struct audit_note *ret);

/* Of one attempt: how much it wrote. */
struct json_t *execution_audit_output(const struct job_result *result);

/* How it ended; NULL: it was given up by its host. */
struct json_t *execution_audit_end(const struct execution_result *result);
