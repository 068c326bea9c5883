/* The events of a run in the audit log. */
#include "cli/run.h"

#include "audit/audit.h"
#include "cli/console.h"
#include "cli/settings.h"
#include "executor/execution.h"
#include "executor/execution_audit.h"
#include "executor/execution_report.h"
#include "job/job_run.h"
#include "policy/config/config.h"
#include "timeline/timeline.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

/* --- the audit log --- */

enum { FLUSH_LEN = 64 }; /* events: some tenths of a millisecond */

static const uint64_t end_wait_ns = UINT64_C(1000000000); /* 1 s, when others hold the log */

/* A home directory that does not exist ("/nonexistent" of service users) is not made for the log.
 */
bool run_audit_has_place(const struct config_file *file)
{
    if (!file->dir)
        return false;
    return getenv("CORDON_HOME") || (file->home && access(file->home, F_OK) == 0);
}

void run_audit_init(struct run_audit *audit, const struct settings *settings)
{
    *audit = (struct run_audit){0};
    if (!run_audit_has_place(&settings->file))
        return;
    audit->audit = audit_new(settings->file.dir);
    audit_session_id(audit->session);
    audit_trail_init(&audit->trail, config_audit_trace(settings->file.config),
                     strv_view(&settings->workspace->env));
}

void run_audit_begin(struct run_audit *audit, const struct settings *settings, char *const *argv)
{
    const struct audit_begin begin = {
        .argv = argv,
        .env = strv_view(&settings->workspace->env),
        .cwd = settings->workspace->dir,
        .profile = settings->workspace->profile_name,
        .network = network_access_name(settings->workspace->map.network),
        .sandbox = execution_mode_name(settings->workspace->mode),
        .face = "run",
    };

    if (audit->audit)
        audit_add(audit->audit, AUDIT_BEGIN, audit->session, audit_begin_body(&begin));
}

static void add(struct run_audit *audit, enum audit_event event, json_t *body)
{
    audit_add(audit->audit, event, audit->session, body);
}

void run_audit_event(struct run_audit *audit, const struct settings *settings,
                     const struct execution_event *event)
{
    char *const patch[] = {(char *)"apply_patch", NULL};
    struct audit_note note;

    if (audit->audit && execution_audit_event(event, audit->is_patch ? patch : NULL,
                                              strv_view(&settings->workspace->env), &note))
        add(audit, note.event, note.body);
}

void run_audit_trace(struct run_audit *audit, const struct timeline *timeline)
{
    struct audit_note note;

    if (!audit->audit || !audit->trail.topics)
        return;
    while (execution_audit_trace(&audit->trail, timeline,
                                 audit_pending(audit->audit) < AUDIT_TRACE_PENDING_MAX, &note)) {
        add(audit, note.event, note.body);
        if (audit_pending(audit->audit) % FLUSH_LEN == 0)
            run_audit_flush(audit, 0);
    }
}

void run_audit_result(struct run_audit *audit, const struct execution_result *result)
{
    if (!audit->audit)
        return;
    if (audit->is_patch) {
        const struct execution_attempt *last =
            result->attempts_len ? &result->attempts[result->attempts_len - 1] : NULL;
        bool is_applied =
            last && last->result.end == JOB_RUN_EXITED && last->result.process->code == 0;

        run_audit_patch_end(audit, is_applied,
                            is_applied ? NULL
                            : last     ? job_run_end_name(last->result.end)
                                       : result->reason);
        return;
    }
    for (size_t i = 0; i < result->attempts_len; i++)
        add(audit, AUDIT_OUTPUT, execution_audit_output(&result->attempts[i].result));
    add(audit, AUDIT_END, execution_audit_end(result));
}

void run_audit_layer(struct run_audit *audit, json_t *body)
{
    if (audit->audit)
        add(audit, AUDIT_LAYER, body);
    else
        json_decref(body);
}

void run_audit_failure(struct run_audit *audit, const char *reason)
{
    const struct audit_end end = {.end = "failed-to-start", .exit_code = -1, .reason = reason};

    if (audit->is_patch)
        run_audit_patch_end(audit, false, reason);
    else if (audit->audit)
        add(audit, AUDIT_END, audit_end_body(&end));
}

void run_audit_patch_begin(struct run_audit *audit, const char *dir, uint64_t bytes)
{
    audit->is_patch = true;
    if (audit->audit)
        add(audit, AUDIT_PATCH_BEGIN, audit_patch_begin_body(dir, bytes));
}

void run_audit_patch_end(struct run_audit *audit, bool is_applied, const char *reason)
{
    if (audit->audit)
        add(audit, AUDIT_PATCH_END, audit_patch_end_body(is_applied, reason));
}

bool run_audit_has_some(const struct run_audit *audit)
{
    return audit->audit && audit_pending(audit->audit);
}

void run_audit_flush(struct run_audit *audit, uint64_t wait_ns)
{
    struct err err;

    if (!audit->audit || audit_flush(audit->audit, wait_ns, &err) == 0)
        return;
    if (err.code == ERR_LIMIT && !wait_ns)
        return; /* others hold the log; there will be another time */
    if (!audit->has_complained)
        console_say("this run is not in the audit log: %s", err.msg);
    audit->has_complained = true;
}

void run_audit_done(struct run_audit *audit)
{
    run_audit_flush(audit, end_wait_ns);
    audit_free(audit->audit);
    audit_trail_done(&audit->trail);
    *audit = (struct run_audit){0};
}
