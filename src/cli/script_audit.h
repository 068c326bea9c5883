/* What `cordon script` writes to the audit log: beginning and end of each session. */
#pragma once

#include "audit/audit.h"

#include <stdbool.h>
#include <stddef.h>

struct settings;
struct unified_exec;
struct unified_response;

/* A session whose end is still to be written. */
struct script_session {
    int id;
    char audit_id[AUDIT_SESSION_SIZE];
};

/* Zeroed it writes nothing. */
struct script_audit {
    struct audit *audit;
    struct script_session *sessions;
    size_t len;
    size_t cap;
};

void script_audit_init(struct script_audit *audit, const struct settings *settings);
void script_audit_begin(struct script_audit *audit, const struct settings *settings,
                        const struct unified_exec *exec, int id);
/* Of any answer; only one with an end is written. */
void script_audit_answer(struct script_audit *audit, const struct unified_response *response);

/* Ends what still runs, and writes everything; what is wrong is said once. */
void script_audit_done(struct script_audit *audit);
