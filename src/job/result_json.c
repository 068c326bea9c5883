/* See result_json.h, which is the documentation. Values that are not known are null and not left
 * out, so that a reader need not guess; what only exists sometimes (base64, the gap) is left out.
 */
#include "job/result_json.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "job/oneshot.h"
#include "output/capture.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static json_t *json_u64(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

/* Paths and messages may hold anything; invalid UTF-8 becomes U+FFFD. NULL becomes null. */
static json_t *json_text(const char *text)
{
    AUTO(buf_done) struct buf valid = {0};

    if (!text)
        return json_null();
    buf_init(&valid, SIZE_MAX / 2);
    utf8_append_lossy(&valid, text, strlen(text));
    return json_stringn(valid.data ? valid.data : "", valid.len);
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

static json_t *failure_to_json(const struct oneshot_result *result)
{
    static const char *const stages[] = {
        [LAUNCH_STAGE_SANDBOX] = "sandbox",
        [LAUNCH_STAGE_CWD] = "cwd",
        [LAUNCH_STAGE_EXEC] = "exec",
    };

    if (!result->failed)
        return json_null();
    return json_pack("{s:s, s:s, s:o, s:o}", "stage", stages[result->stage], "code",
                     err_code_name(result->failure.code), "errno", json_errno(result->failure.sys),
                     "message", json_text(result->failure.msg));
}

static json_t *usage_to_json(const struct oneshot_result *result)
{
    const struct oneshot_usage *usage = &result->usage;
    json_t *json;

    if (!result->usage_known)
        return json_null();
    json = json_object();
    json_object_set_new(json, "user_time_ns", json_u64(usage->user_ns));
    json_object_set_new(json, "system_time_ns", json_u64(usage->system_ns));
    json_object_set_new(json, "memory_peak_kb", json_u64(usage->memory_peak_kb));
    json_object_set_new(json, "voluntary_context_switches", json_u64(usage->voluntary_switches));
    json_object_set_new(json, "involuntary_context_switches",
                        json_u64(usage->involuntary_switches));
    json_object_set_new(json, "bytes_written", json_u64(usage->bytes_written));
    return json;
}

json_t *resource_limits_to_json(const struct resource_limits *asked,
                                const struct resource_limits_report *report)
{
    const uint64_t values[LIMIT_COUNT] = {
        [LIMIT_MEMORY] = asked->memory,
        [LIMIT_CPU_TIME] = asked->cpu_time_ns,
        [LIMIT_PIDS] = asked->pids,
        [LIMIT_FILE_SIZE] = asked->file_size,
    };
    json_t *json = json_object();

    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (!values[i])
            continue;
        json_object_set_new(json, resource_limit_name((enum resource_limit)i),
                            json_pack("{s:o, s:s, s:b}", "value", json_u64(values[i]), "by",
                                      limit_mechanism_name(report->by[i]), "hit", report->hit[i]));
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

static bool view_is_utf8(const struct capture_view *view)
{
    AUTO(buf_done) struct buf all = {0};

    if (view->omitted)
        return utf8_is_valid(view->head, view->head_len) &&
               utf8_is_valid(view->tail, view->tail_len);
    buf_init(&all, SIZE_MAX / 2);
    buf_append(&all, view->head, view->head_len);
    buf_append(&all, view->tail, view->tail_len);
    return utf8_is_valid(all.data ? all.data : "", all.len);
}

static json_t *view_to_base64(const struct capture_view *view)
{
    size_t len = view->head_len + view->tail_len;
    AUTO_FREE char *bytes = alloc_zero(len + 1, 1);
    AUTO_FREE char *text = alloc_zero(base64_encoded_len(len) + 1, 1);

    memcpy(bytes, view->head, view->head_len);
    memcpy(bytes + view->head_len, view->tail, view->tail_len);
    base64_encode(bytes, len, text);
    return json_string(text);
}

static json_t *stream_text(struct capture *capture, enum stream stream)
{
    AUTO(buf_done) struct buf raw = {0};
    AUTO(buf_done) struct buf valid = {0};

    buf_init(&raw, SIZE_MAX / 2);
    buf_init(&valid, SIZE_MAX / 2);
    capture_render(capture, stream, &raw);
    utf8_append_lossy(&valid, raw.data ? raw.data : "", raw.len);
    return json_stringn(valid.data ? valid.data : "", valid.len);
}

static void set_stream(json_t *json, struct capture *capture, enum stream stream)
{
    const char *name = stream_name(stream);
    struct capture_view view;

    capture_view(capture, stream, &view);
    set_named(json, name, "", stream_text(capture, stream));
    if (!view_is_utf8(&view))
        set_named(json, name, "_base64", view_to_base64(&view));
    set_named(json, name, "_bytes", json_u64(view.total));
    set_named(json, name, "_omitted_bytes", json_u64(view.omitted));
    if (view.omitted)
        set_named(json, name, "_omitted_at", json_u64(view.head_len));
}

static void set_order(json_t *json, struct capture *capture)
{
    json_t *order = json_array();
    uint64_t omitted;
    size_t len;
    const struct capture_segment *segments = capture_segments(capture, &len, &omitted);

    for (size_t i = 0; i < len; i++)
        json_array_append_new(
            order, json_pack("{s:s, s:o, s:o, s:o}", "stream", stream_name(segments[i].stream),
                             "offset", json_u64(segments[i].offset), "at", json_u64(segments[i].at),
                             "len", json_u64(segments[i].len)));
    json_object_set_new(json, "order", order);
    json_object_set_new(json, "order_omitted_bytes", json_u64(omitted));
}

static json_t *denial_to_json(const struct denial *denial)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "operation",
                     denial_operation_name(denial->operation), "evidence",
                     denial_evidence_name(denial->evidence), "source",
                     denial_source_name(denial->source), "path", json_text(denial->path), "host",
                     json_text(denial->host), "errno", json_errno(denial->error), "decided_by",
                     json_text(denial->origin), "remedy", json_text(denial->remedy));
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
    for (int i = 0; i < LAYER_COUNT; i++) {
        const struct layer_report *report = sandbox_layer(sandbox, (enum layer)i);
        bool is_whole = report->state == LAYER_ENFORCED || report->state == LAYER_NOT_NEEDED;

        json_object_set_new(layers, layer_name((enum layer)i),
                            json_pack("{s:s, s:o}", "state", layer_state_name(report->state), "why",
                                      is_whole ? json_null() : json_text(report->why)));
    }
    return json_pack("{s:b, s:o}", "degraded", sandbox_is_degraded(sandbox), "layers", layers);
}

json_t *result_to_json(const struct oneshot_result *result)
{
    json_t *json = json_object();
    bool is_tty = result->stdio == ONESHOT_TTY;

    json_object_set_new(json, "end", json_string(oneshot_end_name(result->end)));
    json_object_set_new(json, "exit_code",
                        result->exit_code < 0 ? json_null() : json_integer(result->exit_code));
    json_object_set_new(json, "signal", signal_to_json(result->signal));
    json_object_set_new(json, "signal_number",
                        result->signal ? json_integer(result->signal) : json_null());
    json_object_set_new(json, "timed_out", json_boolean(result->end == ONESHOT_TIMED_OUT));
    json_object_set_new(json, "shell_exit_code", json_integer(oneshot_exit_code(result)));
    json_object_set_new(json, "wall_time_ns", json_u64(result->wall_ns));
    json_object_set_new(json, "failure", failure_to_json(result));
    json_object_set_new(json, "usage", usage_to_json(result));
    json_object_set_new(json, "limits",
                        resource_limits_to_json(&result->limits_asked, &result->limits));
    json_object_set_new(json, "tty", json_boolean(is_tty));
    set_stream(json, result->capture, STREAM_STDOUT);
    if (!is_tty)
        set_stream(json, result->capture, STREAM_STDERR);
    set_order(json, result->capture);
    json_object_set_new(json, "output_cut", json_boolean(result->drain_cut));
    json_object_set_new(json, "denials", denials_to_json(&result->denials));
    json_object_set_new(json, "sandbox", sandbox_to_json(result->sandbox));
    return json;
}
