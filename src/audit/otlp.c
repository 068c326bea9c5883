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

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/program.h"
#include "base/sha256.h"
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

static void ids_make(const struct otlp_context *context, struct audit_text session, struct ids *ret)
{
    const char *parent = context->traceparent;
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
    /* https://www.w3.org/TR/trace-context/, version 00. */
    if (!parent || strlen(parent) != TRACEPARENT_SIZE || !str_starts(parent, "00-") ||
        !is_hex(parent + TRACE_AT, TRACE_DIGITS) || parent[PARENT_AT - 1] != '-' ||
        !is_hex(parent + PARENT_AT, SPAN_DIGITS))
        return;
    memcpy(ret->trace, parent + TRACE_AT, TRACE_DIGITS);
    memcpy(ret->parent, parent + PARENT_AT, SPAN_DIGITS);
}

/* --- values --- */

static json_t *nanoseconds(uint64_t ns)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, ns);
    return json_string(text);
}

/* AnyValue; NULL for what has none (null). */
static json_t *value_of(const json_t *json)
{
    json_t *values;
    size_t i;
    json_t *item;
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
        values = json_array();
        json_array_foreach(json, i, item)
        {
            if (json_is_string(item)) /* one level: argv and the like */
                json_array_append_new(values, json_pack("{s:O}", "stringValue", item));
        }
        return json_pack("{s:{s:o}}", "arrayValue", "values", values);
    case JSON_OBJECT:
    case JSON_REAL:
    case JSON_NULL:
        break;
    }
    return NULL;
}

static void add_attributes(json_t *attributes, json_t *body)
{
    const char *name;
    json_t *json;

    json_object_foreach(body, name, json)
    {
        AUTO_FREE char *key = str_eq(name, "argv") ? alloc_str("process.command_args")
                                                   : alloc_strf("cordon.%s", name);
        json_t *value = value_of(json);

        if (value)
            json_array_append_new(attributes, json_pack("{s:s, s:o}", "key", key, "value", value));
    }
}

static json_t *body_of(const struct audit_record *record)
{
    struct err ignored;

    return json_parse(record->body.at, record->body.len, &ignored);
}

/* The body of a request: `items` (taken) under the names of its kind; NULL when there are none. */
static json_t *request_body(const struct otlp_context *context, const char *resources,
                            const char *scopes, const char *kind, json_t *items)
{
    if (!json_array_size(items)) {
        json_decref(items);
        return NULL;
    }
    return json_pack("{s:[{s:{s:[{s:s, s:{s:o}}]}, s:[{s:{s:s}, s:o}]}]}", resources, "resource",
                     "attributes", "key", "service.name", "value", "stringValue",
                     json_lossy(context->service), scopes, "scope", "name", "cordon", kind, items);
}

static bool is_event(const struct audit_record *record, enum audit_event event)
{
    return audit_text_eq(record->event, audit_text_of(audit_event_name(event)));
}

/* --- spans --- */

static json_t *span_to_json(const struct otlp_context *context, const struct audit_record *records,
                            const struct audit_record *end)
{
    const struct audit_record *begin = end; /* how the command began, when that is there */
    AUTO_JSON json_t *body = body_of(end);
    AUTO_JSON json_t *start = NULL;
    uint64_t wall = (uint64_t)json_integer_value(json_object_get(body, "wall_time_ns"));
    const char *how = json_string_value(json_object_get(body, "end"));
    uint64_t since = end->time_ns - wall;
    json_t *attributes = json_array();
    json_t *span;
    struct ids ids;

    do
        begin = begin == records ? NULL : begin - 1;
    while (begin && !(is_event(begin, AUDIT_BEGIN) && audit_text_eq(begin->session, end->session)));
    if (begin) {
        start = body_of(begin);
        since = begin->time_ns;
    }
    ids_make(context, end->session, &ids);
    add_attributes(attributes, start);
    add_attributes(attributes, body);
    span = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:o}", "traceId", ids.trace, "spanId",
                     ids.span, "name", "cordon.run", "kind", KIND_INTERNAL, "startTimeUnixNano",
                     nanoseconds(since), "endTimeUnixNano", nanoseconds(end->time_ns), "attributes",
                     attributes);
    if (*ids.parent)
        json_object_set_new(span, "parentSpanId", json_string(ids.parent));
    if (!how || (str_eq(how, "exited") ? json_integer_value(json_object_get(body, "exit_code")) != 0
                                       : !str_eq(how, "cancelled")))
        json_object_set_new(span, "status", json_pack("{s:i}", "code", STATUS_ERROR));
    return span;
}

json_t *otlp_traces(const struct otlp_context *context, const struct audit_record *records,
                    size_t len)
{
    json_t *spans = json_array();

    for (size_t i = 0; i < len; i++)
        if (is_event(&records[i], AUDIT_END))
            json_array_append_new(spans, span_to_json(context, records, &records[i]));
    return request_body(context, "resourceSpans", "scopeSpans", "spans", spans);
}

/* --- decisions --- */

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
    json_t *logs = json_array();

    for (const struct audit_record *record = records; record < records + len; record++)
        if (is_event(record, AUDIT_ASKED) || is_event(record, AUDIT_ANSWERED) ||
            is_event(record, AUDIT_HELD) || is_event(record, AUDIT_DENIED) ||
            is_event(record, AUDIT_RETRIED))
            json_array_append_new(logs, log_to_json(context, record));
    return request_body(context, "resourceLogs", "scopeLogs", "logRecords", logs);
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

/* --- sending --- */

void otlp_reap(struct otlp_senders *senders)
{
    for (size_t i = senders->len; i-- > 0;)
        if (waitpid(senders->pids[i], NULL, WNOHANG) != 0)
            senders->pids[i] = senders->pids[--senders->len];
}

pid_t otlp_spawn(char *const *argv, int input)
{
    static char null[] = "/dev/null";
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;

    posix_spawn_file_actions_init(&actions);
    if (input >= 0)
        posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    for (int fd = input >= 0 ? 1 : 0; fd < 3; fd++)
        posix_spawn_file_actions_addopen(&actions, fd, null, O_RDWR, 0);
    if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ))
        pid = 0;
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* The whole request goes to cordon-http (src/http/main.c) as a file. */
static void send(struct otlp_senders *senders, const char *path, const json_t *body)
{
    const char *endpoint = getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    size_t slash = strlen(endpoint);
    struct err ignored;
    AUTO_FREE char *program = body ? program_find("cordon-http", &ignored) : NULL;
    AUTO_FREE char *text = NULL;
    AUTO_FREE char *encoded = NULL;
    AUTO_FREE char *url = NULL;
    AUTO_JSON json_t *request = NULL;
    AUTO_FREE char *line = NULL;
    AUTO_CLOSE int fd = -1;
    pid_t pid;

    if (!program || senders->len >= OTLP_SENDERS_MAX)
        return;
    while (slash && endpoint[slash - 1] == '/')
        slash--;
    url = alloc_strf("%.*s%s", (int)slash, endpoint, path);
    text = json_dumps(body, JSON_COMPACT);
    encoded = alloc_zero(base64_encoded_len(strlen(text)) + 1, 1);
    base64_encode(text, strlen(text), encoded);
    request = json_pack("{s:s, s:o, s:o, s:s, s:I}", "method", "POST", "url", json_lossy(url),
                        "headers", headers_to_json(getenv("OTEL_EXPORTER_OTLP_HEADERS")),
                        "bodyBase64", encoded, "timeoutMs", timeout_ms());
    line = json_dumps(request, JSON_COMPACT);
    fd = fd_sealed_memory("cordon-otlp", line, strlen(line), &ignored);
    pid = fd < 0 ? 0 : otlp_spawn((char *[]){program, NULL}, fd);
    if (pid)
        senders->pids[senders->len++] = pid;
}

bool otlp_is_on(void)
{
    const char *endpoint = getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    const char *disabled = getenv("OTEL_SDK_DISABLED");

    return endpoint && *endpoint && !(disabled && strcasecmp(disabled, "true") == 0);
}

static bool is_exported(const char *variable)
{
    const char *exporter = getenv(variable);

    return !exporter || !str_eq(exporter, "none");
}

void otlp_export(struct otlp_senders *senders, const struct audit_record *records, size_t len)
{
    const char *service = getenv("OTEL_SERVICE_NAME");
    const struct otlp_context context = {.service = service && *service ? service : "cordon",
                                         .traceparent = getenv("TRACEPARENT")};
    AUTO_JSON json_t *traces =
        is_exported("OTEL_TRACES_EXPORTER") ? otlp_traces(&context, records, len) : NULL;
    AUTO_JSON json_t *logs =
        is_exported("OTEL_LOGS_EXPORTER") ? otlp_logs(&context, records, len) : NULL;

    otlp_reap(senders);
    send(senders, "/v1/traces", traces);
    send(senders, "/v1/logs", logs);
}
