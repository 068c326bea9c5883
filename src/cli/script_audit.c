/* See script_audit.h. A session that ends without an answer that tells of it (another one pushed it
 * out, or the script is over) was ended by us. */
#include "cli/script_audit.h"

#include "base/alloc.h"
#include "cli/console.h"
#include "cli/run_audit.h"
#include "cli/settings.h"
#include "executor/execution.h"
#include "executor/execution_audit.h"
#include "job/model_calls.h"

#include <stdlib.h>

static const uint64_t wait_ns = UINT64_C(1000000000); /* 1 s, when others hold the log */

void script_audit_init(struct script_audit *audit, const struct settings *settings)
{
    *audit = (struct script_audit){.audit = NULL};
    if (run_audit_has_place(&settings->file))
        audit->audit = audit_new(settings->file.folder);
}

void script_audit_begin(struct script_audit *audit, const struct settings *settings,
                        const struct unified_exec *exec, int id)
{
    char *const argv[] = {(char *)exec->shell, (char *)(exec->is_login ? "-lc" : "-c"),
                          (char *)exec->cmd, NULL};
    const struct audit_begin begin = {
        .argv = argv,
        .env = exec->env,
        .cwd = exec->workdir,
        .profile = settings->profile_name,
        .network = network_access_name(settings->access.network),
        .sandbox = run_audit_mode_name(settings->mode),
        .face = "script",
    };
    struct script_session *session;

    if (!audit->audit)
        return;
    audit->sessions = alloc_grow(audit->sessions, audit->len, &audit->cap, sizeof *audit->sessions);
    session = &audit->sessions[audit->len++];
    session->id = id;
    audit_session_id(session->audit_id);
    audit_add(audit->audit, AUDIT_BEGIN, session->audit_id, audit_begin_body(&begin));
}

static void add_denials(struct script_audit *audit, const struct script_session *session,
                        const struct denials *denials)
{
    for (size_t i = 0; denials && i < denials->len; i++) {
        const struct execution_event event = {.kind = EXECUTION_DENIED,
                                              .denial = &denials->items[i]};
        struct audit_note note;

        if (execution_audit_event(&event, NULL, NULL, &note))
            audit_add(audit->audit, note.event, session->audit_id, note.body);
    }
}

static void add_end(struct script_audit *audit, const struct script_session *session,
                    const struct process_end *end)
{
    struct audit_end body = {.end = "cancelled", .exit_code = -1};

    if (end) {
        body.wall_ns = end->ended_ns - end->started_ns;
        body.end = end->how == PROCESS_FAILED_TO_START ? "failed-to-start"
                   : end->how == PROCESS_SIGNALED      ? "signaled"
                                                       : "exited";
        body.exit_code = end->how == PROCESS_EXITED ? end->code : -1;
        body.signal = end->how == PROCESS_SIGNALED ? end->signal : 0;
        body.reason = end->how == PROCESS_FAILED_TO_START ? end->failure.msg : NULL;
    }
    audit_add(audit->audit, AUDIT_END, session->audit_id, audit_end_body(&body));
}

void script_audit_answer(struct script_audit *audit, const struct unified_response *response)
{
    for (size_t i = 0; response->end && i < audit->len; i++) {
        if (audit->sessions[i].id != response->session_id)
            continue;
        add_denials(audit, &audit->sessions[i], response->denials);
        add_end(audit, &audit->sessions[i], response->end);
        audit->sessions[i] = audit->sessions[--audit->len];
        return;
    }
}

void script_audit_done(struct script_audit *audit)
{
    struct err err;

    for (size_t i = 0; i < audit->len; i++)
        add_end(audit, &audit->sessions[i], NULL);
    if (audit->audit && audit_flush(audit->audit, wait_ns, &err))
        console_say("this script is not in the audit log: %s", err.msg);
    audit_free(audit->audit);
    free(audit->sessions);
    *audit = (struct script_audit){.audit = NULL};
}
