/* See result_json.h, which is the documentation. Values that are not known are null and not left
 * out, so that a reader need not guess; what only exists sometimes (base64, the gap) is left out.
 */
#include "job/result_json.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "job/job_run.h"
#include "job/result_text.h"
#include "output/output.h"
#include "timeline/exec_tree.h"
#include "timeline/timeline.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static json_t *json_u64(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *signal_to_json(int signal)
{
    const char *name = signal ? sigabbrev_np(signal) : NULL;
    char text[32];

    if (!signal)
        return json_null();
    if (name)
        snprintf(text, sizeof text, "SIG%s", name);
    else
        snprintf(text, sizeof text, "SIG%d", signal);
    return json_string(text);
}

static json_t *json_errno(int error)
{
    const char *name = error ? strerrorname_np(error) : NULL;

    return name ? json_string(name) : json_null();
}

static json_t *failure_to_json(const struct job_result *result)
{
    static const char *const stages[] = {
        [LAUNCH_STAGE_SANDBOX] = "sandbox",
        [LAUNCH_STAGE_CWD] = "cwd",
        [LAUNCH_STAGE_EXEC] = "exec",
    };

    if (!job_result_has_failed(result))
        return json_null();
    return json_pack("{s:s, s:s, s:o, s:o}", "stage", stages[result->process->stage], "code",
                     err_code_name(result->process->failure.code), "errno",
                     json_errno(result->process->failure.sys), "message",
                     json_lossy(result->process->failure.msg));
}

static json_t *json_time(const struct timeval *time)
{
    return json_u64((uint64_t)time->tv_sec * CLOCK_NS_PER_S + (uint64_t)time->tv_usec * 1000);
}

static json_t *usage_to_json(const struct job_result *result)
{
    const struct rusage *usage = &result->process->usage;
    struct resource_limits_report limits;

    if (!result->process->usage_known)
        return json_null();
    job_limits(result->job, &limits);
    /* memory: of the tree with a cgroup, otherwise of its largest process */
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o}", "user_time_ns", json_time(&usage->ru_utime),
        "system_time_ns", json_time(&usage->ru_stime), "memory_peak_kb",
        json_u64(limits.memory_peak ? limits.memory_peak / 1024 : (uint64_t)usage->ru_maxrss),
        "voluntary_context_switches", json_u64((uint64_t)usage->ru_nvcsw),
        "involuntary_context_switches", json_u64((uint64_t)usage->ru_nivcsw), "bytes_written",
        json_u64(result->process->bytes_written));
}

json_t *resource_limits_to_json(const struct resource_limits *asked,
                                const struct resource_limits_report *report)
{
    json_t *json = json_object();

    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (!asked->of[i] || asked->of[i] == LIMIT_NONE)
            continue;
        json_object_set_new(json, resource_limit_name((enum resource_limit)i),
                            json_pack("{s:o, s:s, s:o, s:b}", "value", json_u64(asked->of[i]), "by",
                                      limit_mechanism_name(report->by[i]), "hit",
                                      report->hit[i] == LIMIT_HIT_UNKNOWN
                                          ? json_null()
                                          : json_boolean(report->hit[i]),
                                      "default", !!(asked->defaults & 1u << i)));
    }
    return json;
}

/* Sets "NAME" and its companions "NAME_...". */
static void set_named(json_t *json, const char *name, const char *suffix, json_t *value)
{
    char key[64];

    snprintf(key, sizeof key, "%s%s", name, suffix);
    json_object_set_new(json, key, value);
}

static void set_stream(json_t *json, const struct job_result *result, enum stream stream,
                       struct result_texts *texts)
{
    struct output *output = job_stream(result->job, stream);
    const char *name = stream_name(stream);
    struct output_info info;
    uint64_t omitted;

    output_info(output, &info);
    omitted = info.tail_start - info.prefix_end;
    set_named(json, name, "", result_text(texts, output, false));
    if (!result_text_is_valid(output))
        set_named(json, name, "_base64", result_text(texts, output, true));
    set_named(json, name, "_bytes", json_u64(info.total));
    set_named(json, name, "_omitted_bytes", json_u64(omitted));
    if (omitted)
        set_named(json, name, "_omitted_at", json_u64(info.prefix_end));
}

static void set_order(json_t *json, const struct output_order *order)
{
    json_t *list = json_array();

    for (size_t i = 0; i < order->len; i++) {
        const struct output_run *run = output_order_at(order, i);

        json_array_append_new(list,
                              json_pack("{s:s, s:o, s:o, s:o}", "stream", stream_name(run->stream),
                                        "offset", json_u64(run->offset), "at", json_u64(run->at),
                                        "len", json_u64(run->len)));
    }
    json_object_set_new(json, "order", list);
    json_object_set_new(json, "order_omitted_bytes", json_u64(order->omitted));
}

static json_t *json_positive(unsigned number)
{
    return number ? json_integer(number) : json_null();
}

static json_t *denial_to_json(const struct denial *denial)
{
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "operation",
                  denial_operation_name(denial->operation), "evidence",
                  denial_evidence_name(denial->evidence), "source",
                  denial_source_name(denial->source), "path", json_lossy(denial->path), "host",
                  json_lossy(denial->host), "errno", json_errno(denial->error), "decided_by",
                  json_lossy(denial->origin), "remedy", json_lossy(denial->remedy));
    json_t *more = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:i, s:b, s:b}", "reason", json_lossy(denial->reason),
        "path2", json_lossy(denial->other_path), "port", json_positive(denial->port), "call",
        json_lossy(denial->call), "program", json_lossy(denial->program), "pid",
        json_positive((unsigned)denial->pid), "creates", !!(denial->flags & DENIAL_CREATES),
        "count", (int)denial->count, "below", !!(denial->flags & DENIAL_FOLDER), "aside",
        !!(denial->flags & DENIAL_ASIDE));

    json_object_update_missing_new(json, more);
    return json;
}

json_t *denials_to_json(const struct denials *denials)
{
    json_t *json = json_array();

    for (size_t i = 0; i < denials->len; i++)
        json_array_append_new(json, denial_to_json(&denials->items[i]));
    return json;
}

static json_t *sandbox_to_json(const struct sandbox *sandbox)
{
    json_t *layers;

    if (!sandbox)
        return json_null();
    layers = json_object();
    for (int i = 0; i < DEFENCE_COUNT; i++) {
        const struct defence_report *report = sandbox_defence(sandbox, (enum defence)i);
        bool is_whole = report->state == DEFENCE_ENFORCED || report->state == DEFENCE_NOT_NEEDED;

        json_object_set_new(layers, defence_name((enum defence)i),
                            json_pack("{s:s, s:o}", "state", defence_state_name(report->state),
                                      "why", is_whole ? json_null() : json_lossy(report->why)));
    }
    return json_pack("{s:b, s:o}", "degraded", sandbox_is_degraded(sandbox), "layers", layers);
}

char *events_to_text(const struct job *job)
{
    const struct timeline *timeline = job_timeline(job);
    uint64_t last;
    AUTO_JSON json_t *events = timeline ? timeline_to_json(timeline, 0, SIZE_MAX, &last) : NULL;

    return events ? json_dumps(events, JSON_COMPACT) : NULL;
}

static void set_timeline(json_t *json, const struct timeline *timeline)
{
    const struct exec_tree *execs = timeline_execs(timeline);
    uint64_t last;

    json_object_set_new(json, "events", timeline_to_json(timeline, 0, SIZE_MAX, &last));
    json_object_set_new(json, "events_dropped", json_u64(timeline_dropped(timeline)));
    if (!execs)
        return;
    json_object_set_new(json, "execs", exec_tree_to_json(execs));
    json_object_set_new(json, "execs_dropped", json_u64(exec_tree_dropped(execs)));
}

json_t *result_to_json(const struct job_result *result, struct result_texts *texts)
{
    json_t *json = json_object();
    struct resource_limits_report limits;
    const struct resource_limits *asked;
    bool is_tty = result->stdio == PROCESS_TTY;

    json_object_set_new(json, "end", json_string(job_run_end_name(result->end)));
    json_object_set_new(json, "exit_code",
                        result->process->code < 0 ? json_null()
                                                  : json_integer(result->process->code));
    json_object_set_new(json, "signal", signal_to_json(result->process->signal));
    json_object_set_new(json, "signal_number",
                        result->process->signal ? json_integer(result->process->signal)
                                                : json_null());
    json_object_set_new(json, "timed_out", json_boolean(result->end == JOB_RUN_TIMED_OUT));
    json_object_set_new(json, "shell_exit_code", json_integer(job_result_exit_code(result)));
    json_object_set_new(json, "wall_time_ns", json_u64(result->wall_ns));
    json_object_set_new(json, "failure", failure_to_json(result));
    json_object_set_new(json, "usage", usage_to_json(result));
    asked = &job_limits(result->job, &limits)->asked;
    json_object_set_new(json, "limits", resource_limits_to_json(asked, &limits));
    json_object_set_new(json, "tty", json_boolean(is_tty));
    set_stream(json, result, STREAM_STDOUT, texts);
    if (!is_tty)
        set_stream(json, result, STREAM_STDERR, texts);
    set_order(json, &result->order);
    json_object_set_new(json, "output_cut", json_boolean(result->drain_cut));
    json_object_set_new(json, "denials", denials_to_json(&result->denials));
    if (job_publications(result->job)->len)
        json_object_set_new(json, "published", publications_to_json(job_publications(result->job)));
    if (job_timeline(result->job))
        set_timeline(json, job_timeline(result->job));
    json_object_set_new(json, "sandbox", sandbox_to_json(result->sandbox));
    return json;
}
