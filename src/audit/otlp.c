/* A record's session decides the ids, so a command's span and its decisions find each other without
 * any state here: by default the trace's and the span's ids are parts of the SHA-256 of the
 * session's id; within a trace of the caller's (TRACEPARENT) only the span's is.
 *
 * Attributes are the body's members, "cordon.NAME"; the words of the command also stand under the
 * name that the semantic conventions have for them.
 *
 * A request goes to the program that sends it as a sealed anonymous file on its stdin, so neither
 * side waits for a pipe, and headers (tokens) stand in no argument. */
#include "audit/otlp.h"

#include "audit/sha256.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/program.h"
#include "base/str.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRACE_DIGITS = 32, SPAN_DIGITS = 16, TRACE_AT = 3, PARENT_AT = 36, TRACEPARENT_SIZE = 55 };

enum { TIMEOUT_MS = 10000 };

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

/* --- the request --- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

/* Percent-decoding (RFC 3986, 2.1) in place; what is no sequence stays. */
static void decode(char *text)
{
    char *to = text;

    for (const char *at = text; *at; at++) {
        int high = *at == '%' ? hex_digit(at[1]) : -1;
        int low = high >= 0 ? hex_digit(at[2]) : -1;

        *to++ = low >= 0 ? (char)(high << 4 | low) : *at;
        at += low >= 0 ? 2 : 0;
    }
    *to = '\0';
}

static void add_header(json_t *headers, const char *name, const char *value)
{
    json_array_append_new(
        headers, json_pack("{s:o, s:o}", "name", json_lossy(name), "value", json_lossy(value)));
}

static json_t *headers_to_json(const char *text)
{
    json_t *headers = json_array();
    AUTO_FREE char *copy = alloc_str(text ? text : "");
    char *rest = copy;

    add_header(headers, "Content-Type", "application/json");
    for (char *pair; (pair = strsep(&rest, ","));) {
        char *value = strchr(pair, '=');

        pair += strspn(pair, " ");
        if (!value || value <= pair)
            continue;
        *value++ = '\0';
        decode(value);
        add_header(headers, pair, value);
    }
    return headers;
}

static json_int_t timeout_ms(void)
{
    const char *text = getenv("OTEL_EXPORTER_OTLP_TIMEOUT");
    struct err ignored; /* a bad value counts as none, says the specification */
    uint64_t value;

    if (!text || units_parse_count(text, &value, &ignored) || !value || value > INT32_MAX)
        return TIMEOUT_MS;
    return (json_int_t)value;
}

/* The whole request for cordon-http (src/http/main.c), as a file. -1 when it cannot be made. */
static int request_open(const char *endpoint, const char *path, const json_t *body)
{
    size_t slash = strlen(endpoint);
    AUTO_FREE char *text = json_dumps(body, JSON_COMPACT);
    AUTO_FREE char *encoded = alloc_zero(base64_encoded_len(strlen(text)) + 1, 1);
    AUTO_FREE char *url = NULL;
    AUTO_JSON json_t *request = NULL;
    AUTO_FREE char *line = NULL;
    struct err ignored;
    int fd;

    while (slash && endpoint[slash - 1] == '/')
        slash--;
    url = alloc_strf("%.*s%s", (int)slash, endpoint, path);
    base64_encode(text, strlen(text), encoded);
    request = json_pack("{s:s, s:o, s:o, s:s, s:I}", "method", "POST", "url", json_lossy(url),
                        "headers", headers_to_json(getenv("OTEL_EXPORTER_OTLP_HEADERS")),
                        "bodyBase64", encoded, "timeoutMs", timeout_ms());
    line = json_dumps(request, JSON_COMPACT);
    fd = fd_sealed_memory("cordon-otlp", line, strlen(line), &ignored);
    return fd;
}

/* --- sending --- */

void otlp_reap(struct otlp_senders *senders)
{
    for (size_t i = senders->len; i-- > 0;)
        if (waitpid(senders->pids[i], NULL, WNOHANG) != 0)
            senders->pids[i] = senders->pids[--senders->len];
}

static void send(struct otlp_senders *senders, const char *path, const json_t *body)
{
    static char null[] = "/dev/null";
    struct err ignored;
    AUTO_FREE char *program = body ? program_find("cordon-http", &ignored) : NULL;
    AUTO_CLOSE int request = -1;
    char *argv[] = {program, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;

    if (!program || senders->len >= OTLP_SENDERS_MAX)
        return;
    request = request_open(getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), path, body);
    if (request < 0)
        return;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, request, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, null, O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, null, O_WRONLY, 0);
    if (posix_spawn(&pid, program, &actions, NULL, argv, environ) == 0)
        senders->pids[senders->len++] = pid;
    posix_spawn_file_actions_destroy(&actions);
}

bool otlp_is_on(void)
{
    const char *endpoint = getenv("OTEL_EXPORTER_OTLP_ENDPOINT");

    return endpoint && *endpoint;
}

void otlp_export(struct otlp_senders *senders, const struct audit_record *records, size_t len)
{
    const char *service = getenv("OTEL_SERVICE_NAME");
    const struct otlp_context context = {.service = service && *service ? service : "cordon",
                                         .traceparent = getenv("TRACEPARENT")};

    AUTO_JSON json_t *traces = NULL;
    AUTO_JSON json_t *logs = NULL;

    if (!otlp_is_on())
        return;
    otlp_reap(senders);
    traces = otlp_traces(&context, records, len);
    logs = otlp_logs(&context, records, len);
    send(senders, "/v1/traces", traces);
    send(senders, "/v1/logs", logs);
}
