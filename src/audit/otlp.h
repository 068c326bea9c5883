/* The audit log's records for OpenTelemetry: OTLP/HTTP in JSON (opentelemetry-proto 1.x, "JSON
 * Protobuf Encoding": 64-bit integers are strings, ids are hexadecimal).
 *
 *     end of a command      a span, from its begin to its end, "cordon.run" with its words
 *     asked, answered, held, log records, "cordon.asked", ...: the decisions
 *     denied, retried
 *
 * They are sent to a collector when the environment names one
 * (https://opentelemetry.io/docs/specs/otel/protocol/exporter/):
 *
 *     OTEL_EXPORTER_OTLP_ENDPOINT    "http://localhost:4318"; unset or empty: nothing is sent
 *     OTEL_EXPORTER_OTLP_HEADERS     "name=value,name=value", values percent-encoded
 *     OTEL_EXPORTER_OTLP_TIMEOUT     milliseconds; 10000 unless set
 *     OTEL_SDK_DISABLED              "true": nothing is sent
 *     OTEL_TRACES_EXPORTER           "none": no spans; OTEL_LOGS_EXPORTER: no log records
 *     OTEL_SERVICE_NAME              "cordon" unless set
 *     TRACEPARENT                    the trace that this is part of
 *
 * Each request is carried out by a process of its own (`cordon-http`), which is not waited for; a
 * failure is not reported. */
#pragma once

#include "audit/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

enum { OTLP_SENDERS_MAX = 8 };

/* Processes that may still be sending. Zeroed: none. */
struct otlp_senders {
    pid_t pids[OTLP_SENDERS_MAX];
    size_t len;
};

/* A collector is named. */
bool otlp_is_on(void);

/* Only when it is on. Never waits. Requests beyond OTLP_SENDERS_MAX at a time are left out. */
void otlp_export(struct otlp_senders *senders, const struct audit_record *records, size_t len);

/* Collects those that are done. */
void otlp_reap(struct otlp_senders *senders);

/* Starts a program, `argv[0]` its path, with stdin from `input` (-1: nothing) and no output; 0 when
 * that fails. */
pid_t otlp_spawn(char *const *argv, int input);
