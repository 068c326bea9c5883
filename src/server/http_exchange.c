/* See http_exchange.h. The program reads one JSON value and writes JSON lines (src/http/main.c);
 * it is started for one request and ends with it. Its lines are short and checked like anything
 * from outside: what makes no sense ends the exchange. */
#include "server/http_exchange.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/program.h"
#include "base/strv.h"
#include "process/process.h"
#include "server/sandbox_request.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_LEN = 2 << 20 }; /* all headers of an answer are one line */

struct http_exchange {
    struct workspace *workspace;
    struct process *process;
    const struct http_events *events;
    void *data;
    char *request;
    size_t request_len;
    size_t sent;
    struct buf line;
    bool is_over;  /* nothing more is expected but the end of the program */
    char *failure; /* what the program, or we, found wrong; NULL: nothing */
    bool is_whole; /* {"done": true} came */
};

static void exchange_send(struct http_exchange *exchange)
{
    exchange->sent += process_write(exchange->process, exchange->request + exchange->sent,
                                    exchange->request_len - exchange->sent);
    if (exchange->sent == exchange->request_len)
        process_close_input(exchange->process);
}

static void on_input(void *data, enum input_event event)
{
    struct http_exchange *exchange = data;

    if (event == INPUT_ROOM && exchange->sent < exchange->request_len)
        exchange_send(exchange);
}

/* Nothing that it still says counts. */
static void exchange_fail(struct http_exchange *exchange, const char *text)
{
    struct err ignored; /* its end is what we wait for, however it comes */

    if (!exchange->failure)
        exchange->failure = alloc_str(text);
    exchange->is_over = true;
    process_terminate(exchange->process, 0, &ignored);
}

static void take_line(struct http_exchange *exchange, const char *text, size_t len)
{
    struct err err;
    AUTO_JSON json_t *line = json_parse(text, len, &err);
    const json_t *body = json_object_get(line, "body");
    const char *error = json_string_value(json_object_get(line, "error"));

    if (error)
        exchange_fail(exchange, error);
    else if (json_is_array(json_object_get(line, "headers")))
        exchange->events->on_head(exchange->data, line);
    else if (json_is_string(body))
        exchange->events->on_body(exchange->data, json_string_value(body),
                                  json_string_length(body));
    else if (json_is_true(json_object_get(line, "done")))
        exchange->is_whole = exchange->is_over = true;
    else
        exchange_fail(exchange, "the helper for HTTP said what makes no sense");
}

static void on_output(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset)
{
    struct http_exchange *exchange = data;

    while (len && stream == STREAM_STDOUT && !exchange->is_over) {
        const char *end = memchr(bytes, '\n', len);
        size_t part = end ? (size_t)(end - bytes) : len;

        if (!buf_append(&exchange->line, bytes, part)) {
            exchange_fail(exchange, "the helper for HTTP said too much at once");
            return;
        }
        if (!end)
            return;
        take_line(exchange, exchange->line.data ? exchange->line.data : "", exchange->line.len);
        buf_clear(&exchange->line);
        bytes += part + 1;
        len -= part + 1;
    }
}

static void on_end(void *data, const struct process_end *end)
{
    struct http_exchange *exchange = data;

    if (!exchange->failure && end->how == PROCESS_FAILED_TO_START)
        exchange->failure = alloc_str(end->failure.msg);
    else if (!exchange->failure && !exchange->is_whole)
        exchange->failure = alloc_str("the helper for HTTP ended too early");
    exchange->events->on_end(exchange->data, exchange->failure);
}

/* What of our environment decides where requests go, and whom to trust. */
static void add_env(struct strv *env)
{
    static const char *const names[] = {
        "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy",  "ALL_PROXY",
        "all_proxy",  "NO_PROXY",   "no_proxy",    "SSL_CERT_DIR", "SSL_CERT_FILE"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            strv_pushf(env, "%s=%s", names[i], getenv(names[i]));
}

static int exchange_launch(struct http_exchange *exchange, const struct http_options *options,
                           struct err *err)
{
    static const struct process_events events = {
        .on_output = on_output, .on_input = on_input, .on_end = on_end};
    AUTO_FREE char *program = program_find("cordon-http", err);
    AUTO(strv_done) struct strv env = {0};
    char *const argv[] = {program, NULL};
    const struct process_options process = {
        .loop = options->loop,
        .sandbox = options->workspace->sandbox,
        .argv = argv,
        .env = (add_env(&env), strv_view(&env)),
        .cwd = "/",
        .stdio = PROCESS_PIPES,
        .input = PROCESS_STDIN_PIPE,
        .events = &events,
        .data = exchange,
    };

    if (!program)
        return err_wrap(err, "http/request works with the .deb of Cordon, or one built here");
    exchange->process = process_start(&process, err);
    return exchange->process ? 0 : -1;
}

static void exchange_auto(struct http_exchange **slot)
{
    http_exchange_free(*slot);
}

struct http_exchange *http_exchange_start(const struct http_options *options, const json_t *request,
                                          struct err *err)
{
    AUTO(exchange_auto) struct http_exchange *exchange = alloc_zero(1, sizeof *exchange);

    exchange->events = options->events;
    exchange->data = options->data;
    exchange->workspace = options->workspace;
    workspace_hold(exchange->workspace);
    exchange->request = json_dumps(request, JSON_COMPACT);
    exchange->request_len = strlen(exchange->request);
    buf_init(&exchange->line, LINE_MAX_LEN);
    if (exchange_launch(exchange, options, err))
        return NULL;
    exchange_send(exchange);
    return TAKE_PTR(exchange);
}

void http_exchange_free(struct http_exchange *exchange)
{
    if (!exchange)
        return;
    process_free(exchange->process);
    workspace_release(exchange->workspace);
    buf_done(&exchange->line);
    free(exchange->request);
    free(exchange->failure);
    free(exchange);
}

void http_exchange_hold(struct http_exchange *exchange, bool on)
{
    process_hold_output(exchange->process, STREAM_STDOUT, on);
}
