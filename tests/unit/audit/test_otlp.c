/* otlp: spans and log records in the shape of opentelemetry-proto's JSON. */
#include "audit/otlp.h"

#include "base/auto.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct audit_record record(const char *event, uint64_t time_ns, const char *body)
{
    return (struct audit_record){.time_ns = time_ns,
                                 .event = audit_text_of(event),
                                 .session = audit_text_of("0123456789abcdef"),
                                 .body = audit_text_of(body)};
}

static const json_t *dig(const json_t *json, const char *path)
{
    char copy[200];
    char *rest = copy;

    strcpy(copy, path); /* allow strcpy: tests only have short paths */
    for (char *word; json && (word = strsep(&rest, "."));)
        json = *word >= '0' && *word <= '9' ? json_array_get(json, (size_t)atoi(word))
                                            : json_object_get(json, word);
    return json;
}

static void assert_text(const json_t *json, const char *path, const char *expected)
{
    const char *text = json_string_value(dig(json, path));

    if (!text)
        fail_msg("there is no text at %s", path);
    assert_string_equal(text, expected);
}

/* The value of an attribute as compact JSON; caller frees. */
static char *attribute(const json_t *owner, const char *key)
{
    size_t i;
    json_t *item;

    json_array_foreach(json_object_get(owner, "attributes"), i, item)
    {
        if (strcmp(json_string_value(json_object_get(item, "key")), key) == 0)
            return json_dumps(json_object_get(item, "value"), JSON_COMPACT);
    }
    return NULL;
}

static void a_command_is_a_span(void **state)
{
    const struct audit_record records[] = {
        record("begin", 100, "{\"argv\":[\"make\",\"x\"],\"cwd\":\"/w\"}"),
        record("output", 150, "{\"stdout_bytes\":3}"),
        record("end", 200,
               "{\"end\":\"exited\",\"exit_code\":3,\"wall_time_ns\":90,\"reason\":null}"),
    };
    const struct otlp_context context = {.service = "test"};
    AUTO_JSON json_t *json = otlp_traces(&context, records, 3);
    const json_t *span = dig(json, "resourceSpans.0.scopeSpans.0.spans.0");
    AUTO_FREE char *words = attribute(span, "process.command_args");
    AUTO_FREE char *code = attribute(span, "cordon.exit_code");
    AUTO_FREE char *reason = attribute(span, "cordon.reason");

    assert_text(json, "resourceSpans.0.resource.attributes.0.value.stringValue", "test");
    assert_text(span, "startTimeUnixNano", "100");
    assert_text(span, "endTimeUnixNano", "200");
    assert_text(span, "name", "cordon.run");
    assert_int_equal(strlen(json_string_value(dig(span, "traceId"))), 32);
    assert_int_equal(strlen(json_string_value(dig(span, "spanId"))), 16);
    assert_null(dig(span, "parentSpanId"));
    assert_int_equal(json_integer_value(dig(span, "status.code")), 2);
    assert_string_equal(
        words,
        "{\"arrayValue\":{\"values\":[{\"stringValue\":\"make\"},{\"stringValue\":\"x\"}]}}");
    assert_string_equal(code, "{\"intValue\":\"3\"}");
    assert_null(reason);
    assert_null(otlp_logs(&context, records, 3));
}

static void without_its_begin_a_span_counts_back(void **state)
{
    const struct audit_record end = record("end", 200, "{\"end\":\"denied\",\"wall_time_ns\":90}");
    AUTO_JSON json_t *json = otlp_traces(&(struct otlp_context){.service = "test"}, &end, 1);
    const json_t *span = dig(json, "resourceSpans.0.scopeSpans.0.spans.0");

    assert_text(span, "startTimeUnixNano", "110");
    assert_int_equal(json_integer_value(dig(span, "status.code")), 2);
}

static void what_ended_well_has_no_status(void **state)
{
    const struct audit_record end =
        record("end", 200, "{\"end\":\"exited\",\"exit_code\":0,\"wall_time_ns\":90}");
    AUTO_JSON json_t *json = otlp_traces(&(struct otlp_context){.service = "test"}, &end, 1);

    assert_null(dig(dig(json, "resourceSpans.0.scopeSpans.0.spans.0"), "status"));
}

static void decisions_are_log_records(void **state)
{
    const struct audit_record records[] = {
        record("asked", 1, "{\"reason\":\"why\"}"),
        record("answered", 2, "{\"decision\":\"approved\",\"by\":\"hook\"}"),
        record("denied", 3, "{\"path\":\"/x\"}"),
        record("patch-begin", 4, "{}"),
    };
    const struct otlp_context context = {.service = "test"};
    AUTO_JSON json_t *json = otlp_logs(&context, records, 4);
    const json_t *logs = dig(json, "resourceLogs.0.scopeLogs.0.logRecords");
    AUTO_FREE char *decision = attribute(json_array_get(logs, 1), "cordon.decision");

    assert_int_equal(json_array_size(logs), 3);
    assert_text(logs, "0.body.stringValue", "cordon.asked");
    assert_text(logs, "2.severityText", "WARN");
    assert_text(logs, "2.timeUnixNano", "3");
    assert_string_equal(decision, "{\"stringValue\":\"approved\"}");
    assert_null(otlp_traces(&context, records, 4));
}

static void the_callers_trace_goes_on(void **state)
{
    static const char good[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    static const char *const bad[] = {
        NULL,
        "",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
    };
    const struct audit_record end = record("end", 200, "{\"end\":\"exited\"}");
    struct otlp_context context = {.service = "test", .traceparent = good};
    AUTO_JSON json_t *json = otlp_traces(&context, &end, 1);
    const json_t *span = dig(json, "resourceSpans.0.scopeSpans.0.spans.0");

    assert_text(span, "traceId", "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_text(span, "parentSpanId", "00f067aa0ba902b7");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        AUTO_JSON json_t *other = NULL;

        context.traceparent = bad[i];
        other = otlp_traces(&context, &end, 1);
        assert_null(dig(other, "resourceSpans.0.scopeSpans.0.spans.0.parentSpanId"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_is_a_span),
        cmocka_unit_test(without_its_begin_a_span_counts_back),
        cmocka_unit_test(what_ended_well_has_no_status),
        cmocka_unit_test(decisions_are_log_records),
        cmocka_unit_test(the_callers_trace_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
