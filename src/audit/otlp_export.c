/* See otlp_export.h. The request goes to the program as a sealed anonymous file on its stdin, so
 * neither side waits for a pipe, and headers (tokens) stand in no argument. */
#include "audit/otlp_export.h"

#include "audit/otlp.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "base/units.h"
#include "files/program.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_MS = 10000 };

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

/* The whole request for cordon-http (http/fetch.h), as a file. -1 when it cannot be made. */
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
    AUTO_FREE char *program = body ? libexec_program("cordon-http", &ignored) : NULL;
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
