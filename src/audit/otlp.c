/* See otlp.h. A record's session decides the ids, so a command's span and its decisions find each
 * other without any state here: by default the trace's and the span's ids are parts of the SHA-256
 * of the session's id; within a trace of the caller's (TRACEPARENT) only the span's is.
 *
 * Attributes are the body's members, "cordon.NAME"; the words of the command also stand under the
 * name that the semantic conventions have for them. */
#include "audit/otlp.h"

#include "audit/event.h"
#include "audit/sha256.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TRACE_DIGITS = 32, SPAN_DIGITS = 16, TRACE_AT = 3, PARENT_AT = 36, TRACEPARENT_SIZE = 55 };

/* Values of SpanKind, StatusCode and SeverityNumber in opentelemetry-proto. */
enum { KIND_INTERNAL = 1, STATUS_ERROR = 2, SEVERITY_INFO = 9, SEVERITY_WARN = 13 };

struct ids {
    char trace[TRACE_DIGITS + 1];
    char span[SPAN_DIGITS + 1];
    char parent[SPAN_DIGITS + 1]; /* "" without one */
};

/* --- ids --- */

static bool is_hex(const char *text, size_t len)
{
    return strspn(text, "0123456789abcdef") >= len && strspn(text, "0") < len;
}

/* https://www.w3.org/TR/trace-context/, version 00. */
static bool is_traceparent(const char *text)
{
    return text && strlen(text) == TRACEPARENT_SIZE && str_starts(text, "00-") &&
           is_hex(text + TRACE_AT, TRACE_DIGITS) && text[PARENT_AT - 1] == '-' &&
           is_hex(text + PARENT_AT, SPAN_DIGITS);
}

static void ids_make(const struct otlp_context *context, struct audit_text session, struct ids *ret)
{
    uint8_t hash[SHA256_SIZE];
    char hex[AUDIT_HEX_SIZE];
    struct sha256 sha;

    sha256_start(&sha);
    sha256_add(&sha, session.at, session.len);
    sha256_finish(&sha, hash);
    audit_hash_format(hash, hex);
    *ret = (struct ids){0};
    memcpy(ret->trace, hex, TRACE_DIGITS);
    memcpy(ret->span, hex + TRACE_DIGITS, SPAN_DIGITS);
    if (!is_traceparent(context->traceparent))
        return;
    memcpy(ret->trace, context->traceparent + TRACE_AT, TRACE_DIGITS);
    memcpy(ret->parent, context->traceparent + PARENT_AT, SPAN_DIGITS);
}

/* --- values --- */

static json_t *nanoseconds(uint64_t ns)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, ns);
    return json_string(text);
}

static json_t *value_of(const json_t *json);

static json_t *array_value(const json_t *array)
{
    json_t *values = json_array();
    size_t i;
    json_t *item;

    json_array_foreach(array, i, item)
    {
        if (json_is_string(item)) /* one level: argv and the like */
            json_array_append_new(values, value_of(item));
    }
    return json_pack("{s:{s:o}}", "arrayValue", "values", values);
}

/* AnyValue; NULL for what has none (null). */
static json_t *value_of(const json_t *json)
{
    char text[24];

    switch (json_typeof(json)) {
    case JSON_STRING:
        return json_pack("{s:O}", "stringValue", json);
    case JSON_INTEGER:
        snprintf(text, sizeof text, "%" PRId64, (int64_t)json_integer_value(json));
        return json_pack("{s:s}", "intValue", text);
    case JSON_TRUE:
    case JSON_FALSE:
        return json_pack("{s:O}", "boolValue", json);
    case JSON_ARRAY:
        return array_value(json);
    case JSON_OBJECT:
    case JSON_REAL:
    case JSON_NULL:
        break;
    }
    return NULL;
}

static void add_attribute(json_t *attributes, const char *prefix, const char *name,
                          const json_t *json)
{
    AUTO_FREE char *key = alloc_strf("%s%s", prefix, name);
    json_t *value = value_of(json);

    if (value)
        json_array_append_new(attributes, json_pack("{s:s, s:o}", "key", key, "value", value));
}

static void add_attributes(json_t *attributes, json_t *body)
{
    const char *name;
    json_t *value;

    json_object_foreach(body, name, value)
    {
        bool is_argv = str_eq(name, "argv");

        add_attribute(attributes, is_argv ? "" : "cordon.", is_argv ? "process.command_args" : name,
                      value);
    }
}

static json_t *body_of(const struct audit_record *record)
{
    struct err ignored;

    return json_parse(record->body.at, record->body.len, &ignored);
}

static json_t *resource(const struct otlp_context *context)
{
    return json_pack("{s:[{s:s, s:{s:o}}]}", "attributes", "key", "service.name", "value",
                     "stringValue", json_lossy(context->service));
}

static bool is_event(const struct audit_record *record, enum audit_event event)
{
    return audit_text_eq(record->event, audit_text_of(audit_event_name(event)));
}

/* --- spans --- */

/* How the command began, when that is among the records; NULL otherwise. */
static const struct audit_record *find_begin(const struct audit_record *records, size_t end)
{
    for (size_t i = end; i-- > 0;)
        if (is_event(&records[i], AUDIT_BEGIN) &&
            audit_text_eq(records[i].session, records[end].session))
            return &records[i];
    return NULL;
}

static bool is_good_end(const json_t *body)
{
    const char *end = json_string_value(json_object_get(body, "end"));

    return end && (str_eq(end, "exited") || str_eq(end, "cancelled"));
}

static json_t *span_to_json(const struct otlp_context *context, const struct audit_record *records,
                            size_t end)
{
    const struct audit_record *begin = find_begin(records, end);
    AUTO_JSON json_t *body = body_of(&records[end]);
    AUTO_JSON json_t *start = begin ? body_of(begin) : NULL;
    uint64_t wall = (uint64_t)json_integer_value(json_object_get(body, "wall_time_ns"));
    uint64_t since = begin ? begin->time_ns : records[end].time_ns - wall;
    json_t *attributes = json_array();
    json_t *span;
    struct ids ids;

    ids_make(context, records[end].session, &ids);
    add_attributes(attributes, start);
    add_attributes(attributes, body);
    span = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:o}", "traceId", ids.trace, "spanId",
                     ids.span, "name", "cordon.run", "kind", KIND_INTERNAL, "startTimeUnixNano",
                     nanoseconds(since), "endTimeUnixNano", nanoseconds(records[end].time_ns),
                     "attributes", attributes);
    if (*ids.parent)
        json_object_set_new(span, "parentSpanId", json_string(ids.parent));
    if (!is_good_end(body))
        json_object_set_new(span, "status", json_pack("{s:i}", "code", STATUS_ERROR));
    return span;
}

json_t *otlp_traces(const struct otlp_context *context, const struct audit_record *records,
                    size_t len)
{
    AUTO_JSON json_t *spans = json_array();

    for (size_t i = 0; i < len; i++)
        if (is_event(&records[i], AUDIT_END))
            json_array_append_new(spans, span_to_json(context, records, i));
    if (!json_array_size(spans))
        return NULL;
    return json_pack("{s:[{s:o, s:[{s:{s:s}, s:O}]}]}", "resourceSpans", "resource",
                     resource(context), "scopeSpans", "scope", "name", "cordon", "spans", spans);
}

/* --- decisions --- */

static bool is_decision(const struct audit_record *record)
{
    return is_event(record, AUDIT_ASKED) || is_event(record, AUDIT_ANSWERED) ||
           is_event(record, AUDIT_DENIED) || is_event(record, AUDIT_RETRIED);
}

static json_t *log_to_json(const struct otlp_context *context, const struct audit_record *record)
{
    AUTO_FREE char *name = alloc_strf("cordon.%.*s", (int)record->event.len, record->event.at);
    bool is_denied = is_event(record, AUDIT_DENIED);
    AUTO_JSON json_t *body = body_of(record);
    json_t *attributes = json_array();
    struct ids ids;

    ids_make(context, record->session, &ids);
    add_attributes(attributes, body);
    return json_pack("{s:o, s:o, s:i, s:s, s:{s:s}, s:s, s:s, s:o}", "timeUnixNano",
                     nanoseconds(record->time_ns), "observedTimeUnixNano",
                     nanoseconds(record->time_ns), "severityNumber",
                     is_denied ? SEVERITY_WARN : SEVERITY_INFO, "severityText",
                     is_denied ? "WARN" : "INFO", "body", "stringValue", name, "traceId", ids.trace,
                     "spanId", ids.span, "attributes", attributes);
}

json_t *otlp_logs(const struct otlp_context *context, const struct audit_record *records,
                  size_t len)
{
    AUTO_JSON json_t *logs = json_array();

    for (size_t i = 0; i < len; i++)
        if (is_decision(&records[i]))
            json_array_append_new(logs, log_to_json(context, &records[i]));
    if (!json_array_size(logs))
        return NULL;
    return json_pack("{s:[{s:o, s:[{s:{s:s}, s:O}]}]}", "resourceLogs", "resource",
                     resource(context), "scopeLogs", "scope", "name", "cordon", "logRecords", logs);
}
