/* Sends records to an OpenTelemetry collector, when the environment names one:
 *
 *     OTEL_EXPORTER_OTLP_ENDPOINT    "http://localhost:4318"; unset or empty: nothing is sent
 *     OTEL_EXPORTER_OTLP_HEADERS     "name=value,name=value", values percent-encoded
 *     OTEL_EXPORTER_OTLP_TIMEOUT     milliseconds; 10000 unless set
 *     OTEL_SERVICE_NAME              "cordon" unless set
 *     TRACEPARENT                    the trace that this is part of
 *
 * (https://opentelemetry.io/docs/specs/otel/protocol/exporter/). Each request is carried out by a
 * process of its own (`cordon-http`), which nobody waits for, and nobody is told when it fails. */
#pragma once

#include "audit/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { OTLP_SENDERS_MAX = 8 };

/* Processes that may still be sending. Zeroed: none. */
struct otlp_senders {
    pid_t pids[OTLP_SENDERS_MAX];
    size_t len;
};

/* A collector is named. */
bool otlp_is_on(void);

/* Never waits. Requests beyond OTLP_SENDERS_MAX at a time are left out. */
void otlp_export(struct otlp_senders *senders, const struct audit_record *records, size_t len);

/* Collects those that are done. */
void otlp_reap(struct otlp_senders *senders);
