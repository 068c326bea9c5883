/* See run_audit.h. */
#include "cli/run_audit.h"

#include "audit/audit.h"
#include "cli/console.h"
#include "cli/settings.h"
#include "executor/execution.h"
#include "executor/execution_audit.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t wait_ns = UINT64_C(1000000000); /* 1 s, when others hold the log */

/* A home folder that does not exist ("/nonexistent" of service users) is not made for the log. */
bool run_audit_has_place(const struct config_file *file)
{
    if (!file->folder)
        return false;
    return getenv("CORDON_HOME") || (file->home && access(file->home, F_OK) == 0);
}

void run_audit_init(struct run_audit *audit, const struct settings *settings)
{
    *audit = (struct run_audit){0};
    if (!run_audit_has_place(&settings->file))
        return;
    audit->audit = audit_new(settings->file.folder);
    audit_session_id(audit->session);
}

const char *run_audit_mode_name(enum sandbox_mode mode)
{
    static const char *const names[] = {
        [SANDBOX_AUTO] = "auto", [SANDBOX_REQUIRE] = "require", [SANDBOX_DISABLED] = "disabled"};

    return names[mode];
}

void run_audit_begin(struct run_audit *audit, const struct settings *settings, char *const *argv)
{
    const struct audit_begin begin = {
        .argv = argv,
        .env = strv_view(&settings->env),
        .cwd = settings->folder,
        .profile = settings->profile_name,
        .network = network_access_name(settings->access.network),
        .sandbox = run_audit_mode_name(settings->mode),
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
                                              strv_view(&settings->env), &note))
        add(audit, note.event, note.body);
}

static void add_patch_end(struct run_audit *audit, const struct execution_result *result)
{
    const struct oneshot_result *last =
        result->attempts_len ? &result->attempts[result->attempts_len - 1].result : NULL;
    bool is_applied = last && last->end == ONESHOT_EXITED && last->exit_code == 0;
    const char *reason = last ? oneshot_end_name(last->end) : result->reason;

    run_audit_patch_end(audit, is_applied, is_applied ? NULL : reason);
}

void run_audit_result(struct run_audit *audit, const struct execution_result *result)
{
    if (!audit->audit)
        return;
    if (audit->is_patch) {
        add_patch_end(audit, result);
        return;
    }
    for (size_t i = 0; i < result->attempts_len; i++)
        add(audit, AUDIT_OUTPUT, execution_audit_output(&result->attempts[i].result));
    add(audit, AUDIT_END, execution_audit_end(result));
}

void run_audit_failure(struct run_audit *audit, const char *reason)
{
    const struct audit_end end = {.end = "failed-to-start", .exit_code = -1, .reason = reason};

    if (audit->is_patch)
        run_audit_patch_end(audit, false, reason);
    else if (audit->audit)
        add(audit, AUDIT_END, audit_end_body(&end));
}

void run_audit_patch_begin(struct run_audit *audit, const char *folder, uint64_t bytes)
{
    audit->is_patch = true;
    if (audit->audit)
        add(audit, AUDIT_PATCH_BEGIN, audit_patch_begin_body(folder, bytes));
}

void run_audit_patch_end(struct run_audit *audit, bool is_applied, const char *reason)
{
    if (audit->audit)
        add(audit, AUDIT_PATCH_END, audit_patch_end_body(is_applied, reason));
}

static void write_down(struct run_audit *audit, uint64_t patience_ns)
{
    struct err err;

    if (!audit->audit || audit_flush(audit->audit, patience_ns, &err) == 0)
        return;
    if (err.code == ERR_LIMIT && !patience_ns)
        return; /* others hold the log; there will be another time */
    if (!audit->has_complained)
        console_say("this run is not in the audit log: %s", err.msg);
    audit->has_complained = true;
}

void run_audit_flush(struct run_audit *audit)
{
    write_down(audit, 0);
}

void run_audit_done(struct run_audit *audit)
{
    write_down(audit, wait_ns);
    audit_free(audit->audit);
    *audit = (struct run_audit){0};
}
