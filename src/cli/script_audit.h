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
    char trail_id[AUDIT_SESSION_SIZE];
};

/* Zeroed it writes nothing. */
struct script_trail {
    struct audit *trail;
    struct script_session *sessions;
    size_t len;
    size_t cap;
};

void script_trail_init(struct script_trail *trail, const struct settings *settings);
void script_trail_begin(struct script_trail *trail, const struct settings *settings,
                        const struct unified_exec *exec, int id);
/* Of any answer; only one with an end is written. */
void script_trail_answer(struct script_trail *trail, const struct unified_response *response);

/* Ends what still runs, and writes everything; what is wrong is said once. */
void script_trail_done(struct script_trail *trail);
