/* What one process writes to the audit log: events are collected and appended in one go.
 *
 *     audit = audit_new(directory);
 *     audit_add(audit, AUDIT_BEGIN, session, audit_begin_body(&begin));
 *     ...
 *     audit_flush(audit, wait_ns, err)      when the result is out, or now and then
 *     audit_free(audit);
 *
 * Nothing here may stop a command: adding cannot fail, and a flush that fails (disk full, locked,
 * damaged) is to be said once and is no reason for anything else. */
#pragma once

#include "audit/record.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct audit;

enum {
    AUDIT_SESSION_SIZE = 20,  /* an id made here, with its NUL */
    AUDIT_PENDING_MAX = 4096, /* events; more are counted and left out until the next flush */
    /* Of what commands do (execution_audit_trace()), so that it crowds nothing else out: events that wait for
     * a flush, and bytes of one command, of the 64 MiB that the log keeps. */
    AUDIT_TRACE_PENDING_MAX = 2048,
    AUDIT_TRACE_BYTES_MAX = 8 << 20,
};

/* `dir` ($CORDON_HOME) need not be there; nothing is touched before the first flush. Never
 * NULL. */
struct audit *audit_new(const char *dir);
void audit_free(struct audit *audit); /* what was not flushed is lost */

/* An id for a run or session: unguessable, and unique for all practical purposes. */
void audit_session_id(char ret[AUDIT_SESSION_SIZE]);

/* Notes an event, with the time of now. Takes the reference to `body`. */
void audit_add(struct audit *audit, enum audit_event event, const char *session,
               struct json_t *body);

/* Events that wait for a flush. */
size_t audit_pending(const struct audit *audit);

/* Appends what was added. After a failure (ERR_LIMIT: others hold the log) the events are kept for the next
 * flush. Now and then starts the program that moves records
 * to the database; and sends them to an OpenTelemetry collector when there is one (otlp.h).
 */
int audit_flush(struct audit *audit, uint64_t wait_ns, struct err *err);
