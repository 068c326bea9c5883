/* What an execution is in the audit log (audit/record.h): records for the callers that keep an audit log. */
#pragma once

#include "audit/record.h"
#include "base/strv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct execution_event;
struct execution_result;
struct json_t;
struct job_result;
struct timeline;

struct audit_note {
    enum audit_event event;
    struct json_t *body; /* a new reference */
};

/* The record of an event; false when it makes none. `argv` stands for the command of a question
 * (NULL: as the question has it), and what is secret in `env` is taken out of it. */
bool execution_audit_event(const struct execution_event *event, char *const *argv, char *const *env,
                           struct audit_note *ret);

/* How far the audit log has what a command did. Zeroed: nothing of it, and it has no secrets. */
struct audit_trail {
    unsigned topics;     /* enum timeline_topic: what else the timeline has is no record */
    uint64_t seq;        /* of its job_audit_timeline(), the last event that was looked at */
    size_t bytes;        /* of the records */
    uint64_t lost;       /* events for which there was no room; not told yet */
    struct strv secrets; /* of the variables, those that are taken out of command lines */
};

void audit_trail_init(struct audit_trail *trail, unsigned topics, char *const *env);
void audit_trail_done(struct audit_trail *trail);

/* The next record of what the command did; false: that is all for now. NULL for `timeline`: there will be no
 * more. Without room (fewer than AUDIT_TRACE_PENDING_MAX records wait, and there are fewer than
 * AUDIT_TRACE_BYTES_MAX of the command) events are counted, and told as "lost" when there is some again, or at the end. What
 * was refused or asked about is in records of its own. */
bool execution_audit_trace(struct audit_trail *trail, const struct timeline *timeline,
                           bool has_room, struct audit_note *ret);

/* Of one attempt: how much it wrote. */
struct json_t *execution_audit_output(const struct job_result *result);

/* How it ended; NULL: it was given up by its host. */
struct json_t *execution_audit_end(const struct execution_result *result);
