/* What is told of a run: lines for people, one JSON value, and the events of the audit log. Lines
 * are short and each stands for itself, because they come behind output that a person really wanted
 * to see. */
#include "cli/run.h"

#include "audit/audit.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/settings.h"
#include "executor/execution.h"
#include "executor/execution_audit.h"
#include "job/job_run.h"
#include "job/result_json.h"
#include "policy/config/config.h"
#include "policy/run_later.h"
#include "sandbox/sandbox.h"
#include "timeline/exec_tree.h"
#include "timeline/timeline.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DENIALS_SHOWN = 3 };

/* --- before --- */

void run_report_degradation(const struct sandbox *sandbox, struct strv *warnings)
{
    static const char remedy[] = "(cordon doctor tells what to do)";
    const char *why = sandbox_degradation(sandbox);

    if (!sandbox_is_degraded(sandbox))
        return;
    if (*why)
        strv_pushf(warnings, "the sandbox is weaker than it should be: %s %s", why, remedy);
    for (enum layer layer = 0; !*why && layer < LAYER_COUNT; layer++) {
        const struct layer_report *report = sandbox_layer(sandbox, layer);

        if (report->state != LAYER_ABSENT && report->state != LAYER_PARTIAL)
            continue;
        strv_pushf(warnings, "the sandbox is weaker than it should be: %s is %s: %s %s",
                   layer_name(layer), layer_state_name(report->state), report->why, remedy);
        return;
    }
}

/* --- after --- */

static void say_denial(const struct denial *denial)
{
    AUTO_FREE char *words = denial_words(denial);

    console_say("refused%s: %s%s%s",
                denial->evidence == DENIAL_FACT ? "" : " (read from the output, so a guess)", words,
                denial->origin ? ", by " : "", denial->origin ? denial->origin : "");
    console_say("  %s", denial->remedy);
}

/* Only what the sandbox refused: of the rest the command's own message tells enough. */
static void say_denials(const struct denials *denials)
{
    size_t shown = 0;

    for (size_t i = 0; i < denials->len; i++) {
        if (!denial_matters(&denials->items[i]))
            continue;
        if (shown++ < DENIALS_SHOWN)
            say_denial(&denials->items[i]);
    }
    if (shown > DENIALS_SHOWN)
        console_say("... and %zu more; --json has them all", shown - DENIALS_SHOWN);
}

void run_report_notes(const struct job_result *result)
{
    struct resource_limits_report limits;

    if (result->end == JOB_RUN_TIMED_OUT)
        console_say("time is up after %" PRIu64 " ms: the command was ended",
                    result->wall_ns / 1000000);
    if (result->drain_cut)
        console_say("not all output was passed on: when it was given up, a process still held it "
                    "open, or the reader did not take it");
    job_resource_limits(result->job, &limits);
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (limits.hit[i])
            console_say("the limit --max-%s was reached (kept by %s)",
                        resource_limit_name((enum resource_limit)i),
                        limit_mechanism_name(limits.by[i]));
    /* The kernel does not count root's processes (setrlimit(2), RLIMIT_NPROC). */
    if (limits.by[LIMIT_PIDS] == LIMIT_BY_RLIMIT && geteuid() == 0)
        console_say("--max-pids was not enforced: for root that takes a cgroup, and there is none "
                    "here (cordon doctor tells what to do)");
    if (result->process->how != PROCESS_EXITED || result->process->code)
        say_denials(&result->denials);
}

static void say_events(const struct timeline *timeline)
{
    const struct timeline_event *event;
    uint64_t dropped = timeline_dropped(timeline);
    uint64_t seq = 0;

    console_say("trace: %" PRIu64 " events", timeline_last(timeline));
    if (dropped)
        console_say("  ... %" PRIu64 " before these are not kept; --trace-to has them all",
                    dropped);
    while ((event = timeline_after(timeline, seq))) {
        AUTO(buf_done) struct buf line = {.max = SIZE_MAX / 2};

        timeline_event_line(event, &line);
        console_say("%s", line.data);
        seq = event->seq;
    }
}

static void say_execs(const struct exec_tree *execs)
{
    AUTO(buf_done) struct buf lines = {.max = SIZE_MAX / 2};
    char *rest;

    exec_tree_append(execs, &lines);
    console_say("programs: %zu", exec_tree_len(execs));
    rest = lines.data;
    for (char *line; rest && (line = strsep(&rest, "\n")) && *line;)
        console_say("  %s", line);
}

void run_report_timeline(const struct job_result *result, unsigned topics)
{
    const struct timeline *timeline = job_timeline(result->job);

    if (!topics)
        return;
    if (!timeline) {
        console_say("no trace: without a guard, or without a sandbox, nobody sees what is done");
        return;
    }
    say_events(timeline);
    if (timeline_execs(timeline))
        say_execs(timeline_execs(timeline));
}

/* --- what runs later --- */

enum { LATER_MAX = 1000 };

static void add_later(struct run_later *later, const char *path)
{
    if (!path || !run_later_by(path) || later->paths.len >= LATER_MAX)
        return;
    for (size_t i = 0; i < later->paths.len; i++)
        if (str_eq(later->paths.items[i], path))
            return;
    strv_push(&later->paths, path);
}

void run_later_look(struct run_later *later, const struct job *job)
{
    const struct timeline *timeline = job_audit_timeline(job);
    const struct timeline_event *event;

    if (later->job != job)
        later->seq = 0;
    later->job = job;
    while ((event = timeline_after(timeline, later->seq))) {
        later->seq = event->seq;
        if (event->kind != TIMELINE_DONE || str_eq(event->operation, "remove") || event->is_socket)
            continue;
        /* of a rename the new name, of a link, too, which comes first */
        add_later(later, str_eq(event->operation, "rename") ? event->other_path : event->path);
    }
}

/* There was a guard, and it was to tell. */
static bool is_told(const struct job_result *result)
{
    return result->sandbox &&
           sandbox_layer(result->sandbox, LAYER_GUARD)->state == LAYER_ENFORCED &&
           (sandbox_watch(result->sandbox) & WATCH_FILES);
}

void run_report_later(const struct run_later *later, const struct job_result *result)
{
    AUTO(buf_done) struct buf line = {0};

    buf_init(&line, SIZE_MAX / 2);
    if (!is_told(result))
        console_say(
            "no report: without a guard, or without a sandbox, nobody sees what is changed");
    for (size_t i = 0; i < later->paths.len; i++)
        buf_appendf(&line, "%s%s (%s)", i ? ", " : "", later->paths.items[i],
                    run_later_by(later->paths.items[i]));
    if (line.len)
        console_say("changed, and run or obeyed by other programs: %s", line.data);
}

static json_t *later_to_json(const struct run_later *later)
{
    json_t *list = json_array();

    for (size_t i = 0; i < later->paths.len; i++)
        json_array_append_new(list,
                              json_pack("{s:o, s:s}", "path", json_lossy(later->paths.items[i]),
                                        "by", run_later_by(later->paths.items[i])));
    return list;
}

/* --- JSON --- */

int run_report_json(const struct settings *settings, const struct execution_result *execution,
                    const struct run_later *later)
{
    const struct job_result *result = &execution->attempts[execution->attempts_len - 1].result;
    AUTO_JSON json_t *json = result_to_json(result);
    const struct workspace *workspace = settings->workspace;
    const char *why = sandbox_degradation(result->sandbox);
    bool is_plain = execution->outcome == EXECUTION_RAN && execution->attempts_len == 1 &&
                    !json_array_size(execution->questions);

    json_object_set_new(json, "warnings", json_lossy_list(strv_view(&settings->warnings)));
    json_object_set_new(json, "approval", is_plain ? json_null() : execution_to_json(execution));
    if (later)
        json_object_set_new(json, "runs_later",
                            is_told(result) ? later_to_json(later) : json_null());
    json_object_update_new(json_object_get(json, "sandbox"),
                           json_pack("{s:s, s:o, s:o, s:o, s:s}", "mode",
                                     run_audit_mode_name(workspace->mode), "degradation",
                                     *why ? json_lossy(why) : json_null(), "profile",
                                     json_lossy(workspace->profile_name), "profile_from",
                                     json_lossy(workspace->profile_from), "network",
                                     network_access_name(workspace->map.network)));
    return console_print_json(json);
}

/* The keys of a result, of a command that never was. */
static json_t *not_run_to_json(const char *end, int shell_exit_code, json_t *failure)
{
    return json_pack("{s:s, s:n, s:n, s:n, s:b, s:i, s:o, s:[], s:[], s:n}", "end", end,
                     "exit_code", "signal", "signal_number", "timed_out", 0, "shell_exit_code",
                     shell_exit_code, "failure", failure, "denials", "warnings", "sandbox");
}

void run_report_refusal_json(const struct settings *settings,
                             const struct execution_result *execution)
{
    json_t *failure =
        json_pack("{s:s, s:s, s:n, s:o}", "stage", "approval", "code", err_code_name(ERR_FORBIDDEN),
                  "errno", "message", json_lossy(execution->reason));
    AUTO_JSON json_t *json =
        not_run_to_json(execution_outcome_name(execution->outcome), EXIT_REFUSED, failure);

    json_object_set_new(json, "warnings", json_lossy_list(strv_view(&settings->warnings)));
    json_object_set_new(json, "approval", execution_to_json(execution));
    console_print_json(json);
}

void run_report_failure_json(const struct err *err)
{
    const char *name = err->sys ? strerrorname_np(err->sys) : NULL;
    json_t *failure =
        json_pack("{s:s, s:s, s:o, s:o}", "stage", "cordon", "code", err_code_name(err->code),
                  "errno", name ? json_string(name) : json_null(), "message", json_lossy(err->msg));
    AUTO_JSON json_t *json = not_run_to_json("failed-to-start", EXIT_FAILED, failure);

    console_print_json(json);
}

/* --- the audit log --- */

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
        .env = strv_view(&settings->workspace->env),
        .cwd = settings->workspace->dir,
        .profile = settings->workspace->profile_name,
        .network = network_access_name(settings->workspace->map.network),
        .sandbox = run_audit_mode_name(settings->workspace->mode),
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
    if (audit_pending(audit->audit) >= AUDIT_TRACE_PENDING_MAX)
        run_audit_flush(audit, 0);
    while (execution_audit_trace(&audit->trail, timeline,
                                 audit_pending(audit->audit) < AUDIT_TRACE_PENDING_MAX, &note))
        add(audit, note.event, note.body);
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
