/* See exec_trail.h. One trail for the server, made with its first run; events are written together,
 * a second after the first of them. What cannot be written is said once in the server's log and
 * stops nothing. Of a patch only its size is written, never its text. */
#include "server/exec_trail.h"

#include "audit/trail.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/execution_audit.h"
#include "loop/loop.h"
#include "policy/access.h"
#include "server/exec_run.h"
#include "server/place.h"
#include "server/server.h"

#include <stdlib.h>

#define FLUSH_NS UINT64_C(1000000000)     /* 1 s */
#define LAST_WAIT_NS UINT64_C(1000000000) /* 1 s, when the server ends and others hold the log */

struct exec_trail {
    struct audit_trail *audit;
    struct loop_timer *timer;
    bool has_complained;
};

static void write_down(struct exec_trail *trail, uint64_t wait_ns)
{
    struct err err;

    if (audit_trail_flush(trail->audit, wait_ns, &err) == 0)
        return;
    if (err.code == ERR_LIMIT && !wait_ns) { /* others hold the log; there will be another time */
        loop_timer_start(trail->timer, FLUSH_NS);
        return;
    }
    if (!trail->has_complained)
        log_event(LOG_LEVEL_ERROR, "audit-failed", log_text("why", err.msg));
    trail->has_complained = true;
}

static void on_time(void *data)
{
    write_down(data, 0);
}

/* NULL: the config folder is not known, so there is no log. */
static struct exec_trail *trail_of(struct server *server)
{
    struct exec_trail *trail = server->exec_trail;

    if (trail || !server->config.folder)
        return trail;
    trail = alloc_zero(1, sizeof *trail);
    trail->audit = audit_trail_new(server->config.folder);
    trail->timer = loop_timer_new(server->loop, on_time, trail);
    server->exec_trail = trail;
    return trail;
}

void exec_trail_free(struct server *server)
{
    struct exec_trail *trail = server->exec_trail;

    if (!trail)
        return;
    write_down(trail, LAST_WAIT_NS);
    loop_timer_free(trail->timer);
    audit_trail_free(trail->audit);
    free(trail);
    server->exec_trail = NULL;
}

/* Takes `body` over. */
static void add(struct exec_run *run, enum audit_event event, json_t *body)
{
    struct exec_trail *trail = run->server->exec_trail;

    if (!audit_trail_pending(trail->audit))
        loop_timer_start(trail->timer, FLUSH_NS);
    audit_trail_add(trail->audit, event, run->trail_id, body);
}

/* --- events --- */

static bool is_patch(const struct exec_run *run)
{
    return run->patch.kind == PATCH_CALL_PATCH;
}

void exec_trail_begin(struct exec_run *run)
{
    const struct place *place = run->places[0];
    const struct audit_begin begin = {
        .argv = strv_view(&run->argv),
        .env = strv_view(&run->env),
        .cwd = run->cwd,
        .profile = run->options.profile,
        .network = place->access ? network_access_name(place->access->network) : "enabled",
        .sandbox = place->access ? "require" : "disabled",
        .face = "serve",
    };

    if (!trail_of(run->server) || (is_patch(run) && !str_eq(run->helper[1], "apply")))
        return;
    audit_session_id(run->trail_id);
    if (is_patch(run))
        add(run, AUDIT_PATCH_BEGIN, audit_patch_begin_body(run->cwd, run->patch.text_len));
    else
        add(run, AUDIT_BEGIN, audit_begin_body(&begin));
}

void exec_trail_step(struct exec_run *run, const struct execution_event *event)
{
    char *const patch[] = {(char *)"apply_patch", NULL};
    struct audit_note note;

    if (*run->trail_id &&
        execution_audit_event(event, is_patch(run) ? patch : NULL, strv_view(&run->env), &note))
        add(run, note.event, note.body);
}

/* --- the end --- */

static void add_patch_end(struct exec_run *run, const struct execution_result *result)
{
    const struct oneshot_result *last =
        result && result->attempts_len ? &result->attempts[result->attempts_len - 1].result : NULL;
    bool is_applied = last && last->end == ONESHOT_EXITED && last->exit_code == 0;
    const char *reason = last ? oneshot_end_name(last->end) : result ? result->reason : "cancelled";

    add(run, AUDIT_PATCH_END, audit_patch_end_body(is_applied, is_applied ? NULL : reason));
}

void exec_trail_end(struct exec_run *run, const struct execution_result *result)
{
    if (!*run->trail_id)
        return;
    if (is_patch(run)) {
        add_patch_end(run, result);
        return;
    }
    for (size_t i = 0; result && i < result->attempts_len; i++)
        add(run, AUDIT_OUTPUT, execution_audit_output(&result->attempts[i].result));
    add(run, AUDIT_END, execution_audit_end(result));
}
