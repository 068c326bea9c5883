/* See run_trail.h. */
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
bool run_trail_has_place(const struct config_file *file)
{
    if (!file->folder)
        return false;
    return getenv("CORDON_HOME") || (file->home && access(file->home, F_OK) == 0);
}

void run_trail_init(struct run_trail *trail, const struct settings *settings)
{
    *trail = (struct run_trail){0};
    if (!run_trail_has_place(&settings->file))
        return;
    trail->trail = audit_new(settings->file.folder);
    audit_session_id(trail->session);
}

const char *run_trail_mode_name(enum sandbox_mode mode)
{
    static const char *const names[] = {
        [SANDBOX_AUTO] = "auto", [SANDBOX_REQUIRE] = "require", [SANDBOX_DISABLED] = "disabled"};

    return names[mode];
}

void run_trail_begin(struct run_trail *trail, const struct settings *settings, char *const *argv)
{
    const struct audit_begin begin = {
        .argv = argv,
        .env = strv_view(&settings->env),
        .cwd = settings->folder,
        .profile = settings->profile_name,
        .network = network_access_name(settings->access.network),
        .sandbox = run_trail_mode_name(settings->mode),
        .face = "run",
    };

    if (trail->trail)
        audit_add(trail->trail, AUDIT_BEGIN, trail->session, audit_begin_body(&begin));
}

static void add(struct run_trail *trail, enum audit_event event, json_t *body)
{
    audit_add(trail->trail, event, trail->session, body);
}

void run_trail_event(struct run_trail *trail, const struct settings *settings,
                     const struct execution_event *event)
{
    char *const patch[] = {(char *)"apply_patch", NULL};
    struct audit_note note;

    if (trail->trail && execution_audit_event(event, trail->is_patch ? patch : NULL,
                                              strv_view(&settings->env), &note))
        add(trail, note.event, note.body);
}

static void add_patch_end(struct run_trail *trail, const struct execution_result *result)
{
    const struct oneshot_result *last =
        result->attempts_len ? &result->attempts[result->attempts_len - 1].result : NULL;
    bool is_applied = last && last->end == ONESHOT_EXITED && last->exit_code == 0;
    const char *reason = last ? oneshot_end_name(last->end) : result->reason;

    run_trail_patch_end(trail, is_applied, is_applied ? NULL : reason);
}

void run_trail_result(struct run_trail *trail, const struct execution_result *result)
{
    if (!trail->trail)
        return;
    if (trail->is_patch) {
        add_patch_end(trail, result);
        return;
    }
    for (size_t i = 0; i < result->attempts_len; i++)
        add(trail, AUDIT_OUTPUT, execution_audit_output(&result->attempts[i].result));
    add(trail, AUDIT_END, execution_audit_end(result));
}

void run_trail_failure(struct run_trail *trail, const char *reason)
{
    const struct audit_end end = {.end = "failed-to-start", .exit_code = -1, .reason = reason};

    if (trail->is_patch)
        run_trail_patch_end(trail, false, reason);
    else if (trail->trail)
        add(trail, AUDIT_END, audit_end_body(&end));
}

void run_trail_patch_begin(struct run_trail *trail, const char *folder, uint64_t bytes)
{
    trail->is_patch = true;
    if (trail->trail)
        add(trail, AUDIT_PATCH_BEGIN, audit_patch_begin_body(folder, bytes));
}

void run_trail_patch_end(struct run_trail *trail, bool is_applied, const char *reason)
{
    if (trail->trail)
        add(trail, AUDIT_PATCH_END, audit_patch_end_body(is_applied, reason));
}

static void write_down(struct run_trail *trail, uint64_t patience_ns)
{
    struct err err;

    if (!trail->trail || audit_flush(trail->trail, patience_ns, &err) == 0)
        return;
    if (err.code == ERR_LIMIT && !patience_ns)
        return; /* others hold the log; there will be another time */
    if (!trail->has_complained)
        console_say("this run is not in the audit log: %s", err.msg);
    trail->has_complained = true;
}

void run_trail_flush(struct run_trail *trail)
{
    write_down(trail, 0);
}

void run_trail_done(struct run_trail *trail)
{
    write_down(trail, wait_ns);
    audit_free(trail->trail);
    *trail = (struct run_trail){0};
}
