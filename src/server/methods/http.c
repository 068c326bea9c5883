/* http/request: an answer at once, or its head at once and its body as http/request/bodyDelta.
 *
 * A request belongs to its connection and ends with it. A client that does not take its deltas
 * holds up its own stream alone: nothing more is read from the other end then. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "rpc/rpc.h"
#include "server/call.h"
#include "server/client.h"
#include "server/http_exchange.h"
#include "server/methods.gen.h"
#include "server/sandbox_request.h"
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    BODY_MAX = 128 << 20, /* base64 of one answer that is not streamed: 96 MiB */
    REQUESTS_MAX = 32,    /* of one connection at once: each is a program in a sandbox */
};

struct request {
    struct request *next;
    struct http_part *part;
    struct http_exchange *exchange;
    struct call *call; /* until it is answered */
    char *id;
    bool is_streamed;
    bool is_held;
    json_int_t seq;
    json_t *head;
    struct buf body; /* base64 */
    bool is_too_large;
};

struct http_part {
    struct client *client;
    struct request *requests;
};

static void request_free(struct request *request)
{
    struct request **slot = &request->part->requests;

    while (*slot && *slot != request)
        slot = &(*slot)->next;
    if (*slot)
        *slot = request->next;
    http_exchange_free(request->exchange);
    json_decref(request->head);
    buf_done(&request->body);
    free(request->id);
    free(request);
}

static void part_done(void *data)
{
    struct http_part *part = data;

    while (part->requests)
        request_free(part->requests);
    free(part);
}

static void part_on_room(void *data)
{
    const struct http_part *part = data;

    for (struct request *request = part->requests; request; request = request->next) {
        if (request->is_held)
            http_exchange_hold(request->exchange, false);
        request->is_held = false;
    }
}

static struct http_part *part_of(struct client *client)
{
    static const struct client_part_type type = {.done = part_done, .on_room = part_on_room};
    struct http_part *part = client_part(client, CLIENT_PART_HTTP);

    if (part)
        return part;
    part = alloc_zero(1, sizeof *part);
    part->client = client;
    client_set_part(client, CLIENT_PART_HTTP, part, &type);
    return part;
}

/* --- answers --- */

static void request_reply(struct request *request)
{
    json_t *result =
        json_pack("{s:O, s:O, s:s#}", "status", json_object_get(request->head, "status"), "headers",
                  json_object_get(request->head, "headers"), "bodyBase64",
                  request->body.data ? request->body.data : "", request->body.len);

    call_on_gone(request->call, NULL, NULL);
    call_reply(TAKE_PTR(request->call), result);
}

static void send_delta(struct request *request, const char *text, bool is_last, const char *error)
{
    struct rpc_peer *peer = request->part->client->peer;
    AUTO_JSON json_t *params = json_object();
    bool has_room;

    json_object_set_new(params, "requestId", json_string(request->id));
    json_object_set_new(params, "seq", json_integer(++request->seq));
    json_object_set_new(params, "deltaBase64", json_string(text));
    json_object_set_new(params, "done", json_boolean(is_last));
    json_object_set_new(params, "error", json_lossy(error));
    has_room = rpc_peer_notify(peer, "http/request/bodyDelta", params);
    if (has_room || is_last || request->is_held)
        return;
    request->is_held = true;
    http_exchange_hold(request->exchange, true);
}

static void on_head(void *data, const json_t *head)
{
    struct request *request = data;

    if (request->head)
        return;
    request->head = json_incref((json_t *)head);
    if (request->is_streamed && request->call)
        request_reply(request);
}

static void on_body(void *data, const char *text, size_t len)
{
    struct request *request = data;

    if (request->is_streamed)
        send_delta(request, text, false, NULL);
    else if (!buf_append(&request->body, text, len))
        request->is_too_large = true; /* said at the end */
}

static void on_end(void *data, const char *error)
{
    struct request *request = data;
    struct call *call = request->call;

    if (!error && request->is_too_large)
        error = "the answer is too large: stream it";
    if (!error && !request->head)
        error = "there was no answer";
    if (!call) {
        send_delta(request, "", true, error);
    } else if (error) {
        call_on_gone(call, NULL, NULL);
        call_fail(call, RPC_INTERNAL, "http/request failed: %s", error);
    } else {
        request_reply(request);
    }
    request_free(request);
}

static void on_gone(void *data)
{
    request_free(data);
}

/* --- requests --- */

/* Nothing that would end the line. */
static bool is_one_line(const char *text)
{
    return !strpbrk(text, "\r\n");
}

static bool is_token(const char *text)
{
    return *text && strspn(text, "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz") == strlen(text); /* RFC 9110 5.6.2 */
}

/* A copy of the header with its value complete; NULL when it is wrong. */
static json_t *complete_header(const json_t *header, struct err *err)
{
    const char *name = json_string_value(json_object_get(header, "name"));
    const char *value = json_string_value(json_object_get(header, "value"));
    const char *variable = json_string_value(json_object_get(header, "valueEnvVar"));
    const char *more = variable ? getenv(variable) : "";
    AUTO_FREE char *whole = NULL;

    if (!more) {
        err_set(err, ERR_INVALID, "http/request header `%.60s`: the variable `%.60s` is not set",
                name, variable);
        return NULL;
    }
    whole = alloc_strf("%s%s", value, more);
    if (!is_token(name) || !is_one_line(whole)) {
        err_set(err, ERR_INVALID, "http/request header `%.60s` is invalid", name);
        return NULL;
    }
    return json_pack("{s:s, s:s}", "name", name, "value", whole);
}

/* The request for the program; NULL when something is wrong. */
static json_t *complete_request(const struct call *call, struct err *err)
{
    const struct http_request_params *params = call->params;
    const char *url = params->url;
    const char *method = params->method;
    const json_t *given = params->headers;
    AUTO_JSON json_t *request = json_copy((json_t *)call_params(call));
    AUTO_JSON json_t *headers = json_array();

    if (!is_token(method)) {
        err_set(err, ERR_INVALID, "http/request method `%.60s` is invalid", method);
        return NULL;
    }
    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0) {
        err_set(err, ERR_INVALID, "http/request only supports http and https URLs");
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(given); i++) {
        json_t *header = complete_header(json_array_get(given, i), err);

        if (!header)
            return NULL;
        json_array_append_new(headers, header);
    }
    json_object_set(request, "headers", headers);
    return json_incref(request);
}

/* Reads everything, writes nothing, reaches the network. */
static struct workspace *find_workspace(struct call *call, struct err *err)
{
    AUTO_JSON json_t *sandbox =
        json_pack("{s:{s:s, s:s, s:{s:s, s:[{s:{s:s, s:{s:s}}, s:s}]}}, s:s}", "permissions",
                  "type", "managed", "network", "enabled", "file_system", "type", "restricted",
                  "entries", "path", "type", "special", "value", "kind", "root", "access", "read",
                  "windowsSandboxLevel", "disabled");
    const struct sandbox_call request = {.sandbox = sandbox, .cwd = "/"};
    enum rpc_code code;

    return workspace_for_call(call->client->server->workspaces, &request, &code, err);
}

static int request_start(struct request *request, struct err *err)
{
    static const struct http_events events = {
        .on_head = on_head, .on_body = on_body, .on_end = on_end};
    AUTO_JSON json_t *complete = complete_request(request->call, err);
    struct workspace *workspace = complete ? find_workspace(request->call, err) : NULL;
    const struct http_options options = {.loop = request->call->client->server->loop,
                                         .workspace = workspace,
                                         .events = &events,
                                         .data = request};

    request->exchange = workspace ? http_exchange_start(&options, complete, err) : NULL;
    return request->exchange ? 0 : -1;
}

static bool is_streaming(const struct http_part *part, const char *id)
{
    for (const struct request *request = part->requests; request; request = request->next)
        if (request->is_streamed && str_eq(request->id, id))
            return true;
    return false;
}

static size_t count_requests(const struct http_part *part)
{
    size_t count = 0;

    for (const struct request *request = part->requests; request; request = request->next)
        count++;
    return count;
}

void method_http_request(struct call *call, const struct http_request_params *params)
{
    struct http_part *part = part_of(call->client);
    const char *id = params->request_id;
    bool is_streamed = params->stream_response;
    struct request *request;
    char text[80];
    struct err err;

    if (is_streamed && is_streaming(part, id)) {
        call_fail(call, RPC_INVALID_PARAMS, "http/request `%s` is being streamed already", id);
        return;
    }
    if (count_requests(part) >= REQUESTS_MAX) {
        snprintf(text, sizeof text, "at most %d http/requests may run per connection",
                 REQUESTS_MAX);
        call_fail_data(call, RPC_INVALID_REQUEST, text,
                       limit_data("max-http-requests", REQUESTS_MAX));
        return;
    }
    request = alloc_zero(1, sizeof *request);
    *request = (struct request){.next = part->requests,
                                .part = part,
                                .call = call,
                                .id = alloc_str(id),
                                .is_streamed = is_streamed};
    buf_init(&request->body, BODY_MAX);
    part->requests = request;
    if (request_start(request, &err) == 0) {
        call_on_gone(call, on_gone, request);
        return;
    }
    request_free(request);
    call_fail(call, err.code == ERR_INVALID ? RPC_INVALID_PARAMS : RPC_INTERNAL, "%s", err.msg);
}
