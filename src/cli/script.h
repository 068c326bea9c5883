/* `cordon script`: lines of JSON in, lines of JSON out. Internal to it. */
#pragma once

#include "audit/audit.h"
#include "base/err.h"
#include "job/model_calls.h"

#include <stdbool.h>
#include <stddef.h>

struct json_t;
struct loop;
struct settings;

/* What is written to the audit log. A session whose end is still to be written. */
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
    bool has_complained;
};

struct script {
    struct loop *loop;
    struct settings *settings;
    struct sandbox *sandbox;
    const struct access_map *access; /* the sandbox's; NULL without one */
    char *const *env;                /* of every session */
    struct model_calls *model_calls;
    struct script_audit audit;
    bool has_fixed_times;  /* no measured time in the output */
    bool is_answered;      /* the call that runs is over */
    struct json_t *answer; /* and this is what it came to; owned */
    const char *call;      /* name of the call that runs */
};

/* Plays one line: starts the call that it is and waits for its end. New reference; NULL when the
 * line is wrong. A call that fails is an answer. */
struct json_t *script_play(struct script *script, const char *line, size_t len, struct err *err);

/* The audit log: beginning and end of each session, each written at once. */
void script_audit_init(struct script_audit *audit, const struct settings *settings);
void script_audit_begin(struct script_audit *audit, const struct settings *settings,
                        const struct model_exec *exec);
/* What began last has this id now; 0: it could not be started. */
void script_audit_started(struct script_audit *audit, int id, const struct err *failure);
/* Of any answer; only one with an end is written. */
void script_audit_answer(struct script_audit *audit, const struct model_call_answer *response);

/* Ends what still runs, and writes everything; what is wrong is said once. */
void script_audit_done(struct script_audit *audit);
