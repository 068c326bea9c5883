/* The audit log's records as OpenTelemetry has them: OTLP/HTTP in JSON (opentelemetry-proto 1.x,
 * "JSON Protobuf Encoding": 64-bit integers are strings, ids are hexadecimal). Pure.
 *
 *     end of a command      a span, from its begin to its end, "cordon.run" with its words
 *     asked, answered,      log records, "cordon.asked", ...: the decisions
 *     denied, retried
 */
#pragma once

#include "audit/record.h"

#include <stddef.h>

struct json_t;

struct otlp_context {
    const char *service;     /* service.name */
    const char *traceparent; /* W3C Trace Context: "00-TRACE-SPAN-FLAGS"; NULL: none. A malformed
                                one counts as none */
};

/* The body for /v1/traces; NULL when no command has ended. New reference. */
struct json_t *otlp_traces(const struct otlp_context *context, const struct audit_record *records,
                           size_t len);

/* The body for /v1/logs; NULL when nothing was decided. New reference. */
struct json_t *otlp_logs(const struct otlp_context *context, const struct audit_record *records,
                         size_t len);
