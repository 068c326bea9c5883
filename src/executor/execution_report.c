/* See execution_report.h. Lines are short and each stands for itself, because they come behind output that a
 * person really wanted to see. */
#include "executor/execution_report.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "job/result_json.h"
#include "policy/access.h"
#include "policy/run_later.h"
#include "sandbox/sandbox.h"
#include "timeline/exec_tree.h"
#include "timeline/timeline.h"
#include "workspace/workspace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DENIALS_SHOWN = 3 };

/* --- before, and while it runs --- */

void execution_warn_of_defences(const struct sandbox *sandbox, struct strv *warnings)
{
    if (sandbox_is_degraded(sandbox))
        strv_pushf(warnings,
                   "the sandbox is weaker than it should be: %s (cordon doctor tells what to do)",
                   sandbox_degradation(sandbox));
}

void execution_warn_of_attempt(const struct workspace *workspace, enum run_where where,
                               struct strv *warnings)
{
    if (where == RUN_UNCONFINED)
        strv_push(warnings, "no sandbox: a rule or an answer allows that");
    else if (workspace->mode == SANDBOX_DISABLED && workspace->profile.kind == PROFILE_DISABLED)
        strv_pushf(warnings, "no sandbox: the profile is %s (from %s)", workspace->profile_name,
                   workspace->profile_from);
    else if (workspace->mode == SANDBOX_DISABLED)
        strv_push(warnings, "no sandbox: --sandbox disabled");
    else if (workspace->topics & TIMELINE_NETWORK && workspace->profile.network == NETWORK_HOST)
        strv_push(warnings, "the trace has no connects: they are not seen with the "
                            "network of the host");
}

/* --- after --- */

static bool has_cause_of(const struct denial *denial, const struct denial *first)
{
    return denial_matters(denial) && denial->evidence == first->evidence &&
           str_eq(denial->remedy, first->remedy);
}

/* One line for all that the same thing would allow: what, why, and that. Of hosts, who it was, too: what asks for them
 * is often far below what was run. */
static void say_denial(const struct denial *denial, unsigned others, struct strv *ret)
{
    AUTO_FREE char *words = denial_words(denial);
    const char *program = denial->host ? denial->program : NULL;
    char more[32] = "";

    if (others)
        snprintf(more, sizeof more, ", and %u more", others);
    strv_pushf(ret, "refused%s: %s%s%s%s%s%s%s. %s",
               denial->evidence == DENIAL_FACT ? "" : " (read from the output, so a guess)", words,
               program ? " by " : "", program ? program : "", more, denial->origin ? " (" : "",
               denial->origin ? denial->origin : "", denial->origin ? ")" : "", denial->remedy);
}

/* The command knows of a reset alone. */
static void say_failed(const struct denial *denial, struct strv *ret)
{
    AUTO_FREE char *words = denial_words(denial);

    strv_pushf(ret, "%s failed: %s", words, denial->reason);
}

/* What the sandbox refused, and what it let through and was not there: of the rest the command's own message tells
 * enough. */
static void say_denials(const struct denials *denials, struct strv *ret)
{
    size_t shown = 0;

    for (size_t i = 0; i < denials->len; i++) {
        const struct denial *denial = &denials->items[i];
        bool is_said = !denial_matters(denial);
        unsigned others = 0;

        if (denial->flags & DENIAL_FAILED && shown++ < DENIALS_SHOWN)
            say_failed(denial, ret);
        if (denial->flags & (DENIAL_VARIABLE | DENIAL_LAYER) && shown++ < DENIALS_SHOWN)
            strv_pushf(ret, "%s. %s", denial->reason, denial->remedy);
        for (size_t k = 0; k < i && !is_said; k++)
            is_said = has_cause_of(&denials->items[k], denial);
        if (is_said || shown++ >= DENIALS_SHOWN)
            continue;
        for (size_t k = i + 1; k < denials->len; k++)
            others += has_cause_of(&denials->items[k], denial);
        say_denial(denial, others, ret);
    }
    if (shown > DENIALS_SHOWN)
        strv_pushf(ret, "... and %zu more; --json has them all", shown - DENIALS_SHOWN);
}

void execution_notes(const struct job_result *result, struct strv *ret)
{
    struct resource_limits_report limits;

    if (result->end == JOB_RUN_TIMED_OUT)
        strv_pushf(ret, "time is up after %" PRIu64 " ms: the command was ended",
                   result->wall_ns / 1000000);
    if (result->drain_cut)
        strv_pushf(ret,
                   "not all output was passed on: when it was given up, a process still held it "
                   "open, or the reader did not take it");
    job_limits(result->job, &limits);
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (limits.hit[i] == LIMIT_HIT)
            strv_pushf(ret, "the limit --max-%s was reached (kept by %s)",
                       resource_limit_name((enum resource_limit)i),
                       limit_mechanism_name(limits.by[i]));
    if (result->process->how != PROCESS_EXITED || result->process->code)
        say_denials(&result->denials, ret);
}

/* Such a file is there, and no other in its place. */
static bool is_hidden_file(const struct access_map *map, const char *path)
{
    const struct access_entry *entry = access_map_find(map, path);
    AUTO_FREE char *inside = NULL;
    struct stat st;

    if (!entry || !entry->source || lstat(path, &st))
        return false;
    inside = alloc_strf("%s%s", entry->source, path + strlen(entry->path));
    return !*entry->source || lstat(inside, &st) != 0;
}

void execution_tmp_notes(const struct job_result *result, char *const *argv, struct strv *ret)
{
    static const char around[] = " \t\n'\"`=:;|&()<>,";
    const struct access_map *map = result->sandbox ? sandbox_access(result->sandbox) : NULL;

    if (!map || (result->process->how == PROCESS_EXITED && !result->process->code))
        return;
    for (; *argv; argv++) {
        for (const char *at = *argv + strspn(*argv, around); *at; at += strspn(at, around)) {
            const size_t len = strcspn(at, around);
            AUTO_FREE char *word = alloc_strn(at, len);
            AUTO_FREE char *path = *word == '/' ? path_clean("/", word) : NULL;

            at += len;
            if (!path || !is_hidden_file(map, path))
                continue;
            strv_pushf(ret,
                       "%s of this machine is not in the temporary folders of this workspace: "
                       "--readable %s shows it, --tmp host all that is there",
                       path, path);
            return;
        }
    }
}

static void say_events(const struct timeline *timeline, struct strv *ret)
{
    const struct timeline_event *event;
    uint64_t dropped = timeline_dropped(timeline);
    uint64_t seq = 0;

    strv_pushf(ret, "trace: %" PRIu64 " events", timeline_last(timeline));
    if (dropped)
        strv_pushf(ret, "  ... %" PRIu64 " before these are not kept; --trace-to has them all",
                   dropped);
    while ((event = timeline_after(timeline, seq))) {
        AUTO(buf_done) struct buf line = {.max = SIZE_MAX / 2};

        timeline_event_line(event, &line);
        strv_pushf(ret, "%s", line.data);
        seq = event->seq;
    }
}

static void say_execs(const struct exec_tree *execs, struct strv *ret)
{
    AUTO(buf_done) struct buf lines = {.max = SIZE_MAX / 2};
    char *rest;

    exec_tree_append(execs, &lines);
    strv_pushf(ret, "programs: %zu", exec_tree_len(execs));
    rest = lines.data;
    for (char *line; rest && (line = strsep(&rest, "\n")) && *line;)
        strv_pushf(ret, "  %s", line);
}

void execution_trace_notes(const struct job_result *result, unsigned topics, struct strv *ret)
{
    const struct timeline *timeline = job_timeline(result->job);

    if (!topics)
        return;
    if (!timeline) {
        strv_pushf(ret,
                   "no trace: without a guard, or without a sandbox, nobody sees what is done");
        return;
    }
    say_events(timeline, ret);
    if (timeline_execs(timeline))
        say_execs(timeline_execs(timeline), ret);
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
           sandbox_defence(result->sandbox, DEFENCE_GUARD)->state == DEFENCE_ENFORCED &&
           (sandbox_watch(result->sandbox) & WATCH_FILES);
}

void execution_later_notes(const struct run_later *later, const struct job_result *result,
                           struct strv *ret)
{
    AUTO(buf_done) struct buf line = {0};

    buf_init(&line, SIZE_MAX / 2);
    if (!is_told(result))
        strv_pushf(ret,
                   "no report: without a guard, or without a sandbox, nobody sees what is changed");
    for (size_t i = 0; i < later->paths.len; i++)
        buf_appendf(&line, "%s%s (%s)", i ? ", " : "", later->paths.items[i],
                    run_later_by(later->paths.items[i]));
    if (line.len)
        strv_pushf(ret, "changed, and run or obeyed by other programs: %s", line.data);
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

const char *execution_mode_name(enum sandbox_mode mode)
{
    static const char *const names[] = {[SANDBOX_AUTO] = "auto",
                                        [SANDBOX_REQUIRE] = "require",
                                        [SANDBOX_DISABLED] = "disabled",
                                        [SANDBOX_LANDLOCK] = "landlock"};

    return names[mode];
}

/* The keys of a result, of a command that never was. */
static json_t *not_run_to_json(const char *end, int shell_exit_code, json_t *failure)
{
    return json_pack("{s:s, s:n, s:n, s:n, s:b, s:i, s:o, s:[], s:[], s:n}", "end", end,
                     "exit_code", "signal", "signal_number", "timed_out", 0, "shell_exit_code",
                     shell_exit_code, "failure", failure, "denials", "warnings", "sandbox");
}

static json_t *refusal_to_json(const struct execution_result *execution)
{
    json_t *failure =
        json_pack("{s:s, s:s, s:n, s:o}", "stage", "approval", "code", err_code_name(ERR_FORBIDDEN),
                  "errno", "message", json_lossy(execution->reason));

    return not_run_to_json(execution_outcome_name(execution->outcome), EXECUTION_EXIT_REFUSED,
                           failure);
}

static json_t *sandbox_to_json(const struct job_result *result, const struct workspace *workspace)
{
    const char *why = sandbox_degradation(result->sandbox);

    return json_pack("{s:s, s:o, s:o, s:o, s:s}", "mode", execution_mode_name(workspace->mode),
                     "degradation", *why ? json_lossy(why) : json_null(), "profile",
                     json_lossy(workspace->profile_name), "profile_from",
                     json_lossy(workspace->profile_from), "network",
                     network_access_name(workspace->map.network));
}

json_t *execution_document(const struct execution_result *execution,
                           const struct workspace *workspace, char *const *warnings,
                           const struct run_later *later, struct result_texts *texts)
{
    const struct job_result *last = execution->outcome == EXECUTION_RAN
                                        ? &execution->attempts[execution->attempts_len - 1].result
                                        : NULL;
    bool is_plain = last && execution->attempts_len == 1 && !json_array_size(execution->questions);
    json_t *json = last ? result_to_json(last, texts) : refusal_to_json(execution);

    json_object_set_new(json, "warnings", json_lossy_list(warnings));
    json_object_set_new(json, "approval",
                        is_plain ? json_null() : execution_to_json(execution, texts));
    if (last && later)
        json_object_set_new(json, "runs_later", is_told(last) ? later_to_json(later) : json_null());
    if (last)
        json_object_update_new(json_object_get(json, "sandbox"), sandbox_to_json(last, workspace));
    return json;
}

json_t *execution_failure_document(const struct err *err)
{
    const char *name = err->sys ? strerrorname_np(err->sys) : NULL;
    json_t *failure =
        json_pack("{s:s, s:s, s:o, s:o}", "stage", "cordon", "code", err_code_name(err->code),
                  "errno", name ? json_string(name) : json_null(), "message", json_lossy(err->msg));

    return not_run_to_json("failed-to-start", EXECUTION_EXIT_FAILED, failure);
}
