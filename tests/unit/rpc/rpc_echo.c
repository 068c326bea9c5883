/* A server for the tests of transports: src/rpc and next to nothing behind it.
 *
 *     rpc_echo [--ws-... VALUE]... [--max-peers N] LISTEN...
 *
 * LISTEN is what cordon serve takes, or fd:N for a socket that listens already. Prints the URL of
 * each, one a line (to stderr for stdio). Methods:
 *
 *     echo      the params
 *     count     how many connections there are and were refused
 *     flood     {"count", "size"}: so many notifications "noise" {"seq", "chunk"}, then the result
 *     large     {"size"}: so many bytes in one answer
 *     ask       asks the peer "question" with the params; the result is what it answered
 *     close     {"code", "reason"}: closes the connection so
 *     end       shuts the server down
 *
 * A notification other than "note" closes the connection, as cordon serve does. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "loop/loop.h"
#include "rpc/message.h"
#include "rpc/rpc.h"
#include "rpc/transport/auth.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_LIMIT = 16 * 1024 * 1024 };

struct echo {
    struct rpc_hub *hub;
    bool is_done;
};

/* What a peer still has to get. */
struct flood {
    json_t *id;
    int64_t seq;
    int64_t count;
    size_t size;
};

static int64_t param(const struct rpc_message *message, const char *name)
{
    return json_integer_value(json_object_get(message->params, name));
}

static size_t param_size(const struct rpc_message *message)
{
    int64_t size = param(message, "size");

    return size < 0 ? 0 : size > SIZE_LIMIT ? SIZE_LIMIT : (size_t)size;
}

static void flood_free(struct flood *flood)
{
    if (flood)
        json_decref(flood->id);
    free(flood);
}

static bool flood_send(struct rpc_peer *peer, struct flood *flood, const char *noise)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    rpc_text_notification(&text, "noise");
    buf_appendf(&text, "{\"seq\":%lld,\"chunk\":\"", (long long)++flood->seq);
    rpc_text_base64(&text, noise, flood->size);
    buf_append_str(&text, "\"}}");
    rpc_peer_send(peer, text.data, text.len);
    return rpc_peer_has_room(peer);
}

static void flood_go_on(struct rpc_peer *peer)
{
    struct flood *flood = rpc_peer_data(peer);
    AUTO_FREE char *noise = NULL;
    AUTO_JSON json_t *result = json_object();

    if (!flood || !rpc_peer_has_room(peer))
        return;
    noise = alloc_zero(flood->size + 1, 1);
    while (flood->seq < flood->count)
        if (!flood_send(peer, flood, noise))
            return;
    rpc_peer_result(peer, flood->id, result);
    rpc_peer_set_data(peer, NULL);
    flood_free(flood);
}

static void on_echo(struct echo *echo, struct rpc_peer *peer, struct rpc_message *message)
{
    rpc_peer_result(peer, message->id, message->params ? message->params : json_null());
}

static void on_count(struct echo *echo, struct rpc_peer *peer, struct rpc_message *message)
{
    struct rpc_stats stats;
    AUTO_JSON json_t *result = NULL;

    rpc_hub_stats(echo->hub, &stats);
    result = json_pack("{s:I,s:I,s:I}", "open", (json_int_t)stats.peers_open, "refused",
                       (json_int_t)stats.peers_refused, "queued", (json_int_t)stats.bytes_queued);
    rpc_peer_result(peer, message->id, result);
}

static void on_flood(struct echo *echo, struct rpc_peer *peer, struct rpc_message *message)
{
    struct flood *flood = alloc_zero(1, sizeof *flood);

    flood_free(rpc_peer_data(peer));
    *flood = (struct flood){.id = json_incref((json_t *)message->id),
                            .count = param(message, "count"),
                            .size = param_size(message)};
    rpc_peer_set_data(peer, flood);
    flood_go_on(peer);
}

static void on_large(struct echo *echo, struct rpc_peer *peer, struct rpc_message *message)
{
    size_t size = param_size(message);
    AUTO_FREE char *text = alloc_zero(size + 1, 1);
    AUTO_JSON json_t *result = NULL;

    memset(text, 'x', size);
    result = json_string(text);
    rpc_peer_result(peer, message->id, result);
}

struct question {
    struct rpc_peer *peer;
    json_t *id;
};

static void on_answer(void *data, const struct rpc_message *answer)
{
    struct question *question = data;

    if (answer && answer->kind == RPC_RESULT)
        rpc_peer_result(question->peer, question->id, answer->result);
    else
        rpc_peer_error(question->peer, question->id, RPC_INTERNAL, "%s",
                       answer ? answer->error_text : "no answer");
    json_decref(question->id);
    free(question);
}

static void on_ask(struct echo *echo, struct rpc_peer *peer, struct rpc_message *message)
{
    struct question *question = alloc_zero(1, sizeof *question);

    *question = (struct question){peer, json_incref((json_t *)message->id)};
    rpc_peer_call(peer, &(struct rpc_call){.method = "question",
                                           .params = message->params,
                                           .on_answer = on_answer,
                                           .data = question});
}

static void on_close(struct echo *echo, struct rpc_peer *peer, struct rpc_message *message)
{
    rpc_peer_close(peer, (enum rpc_close_code)param(message, "code"),
                   json_string_value(json_object_get(message->params, "reason")));
}

static void on_end(struct echo *echo, struct rpc_peer *peer, struct rpc_message *message)
{
    rpc_hub_shutdown(echo->hub, RPC_CLOSE_GOING_AWAY, "the server ends");
}

static void on_message(void *data, struct rpc_peer *peer, struct rpc_message *message)
{
    static const struct {
        const char *name;
        void (*call)(struct echo *echo, struct rpc_peer *peer, struct rpc_message *message);
    } methods[] = {{"echo", on_echo}, {"count", on_count}, {"flood", on_flood}, {"large", on_large},
                   {"ask", on_ask},   {"close", on_close}, {"end", on_end}};

    for (size_t i = 0; message->id && i < sizeof methods / sizeof *methods; i++) {
        if (str_eq(message->method, methods[i].name)) {
            methods[i].call(data, peer, message);
            return;
        }
    }
    if (message->id)
        rpc_peer_error(peer, message->id, RPC_UNKNOWN_METHOD, "no method %.100s", message->method);
    else if (!str_eq(message->method, "note"))
        rpc_peer_close(peer, RPC_CLOSE_POLICY, "unknown notification");
}

static void on_room(void *data, struct rpc_peer *peer)
{
    flood_go_on(peer);
}

static void on_closed(void *data, struct rpc_peer *peer, const char *why)
{
    struct echo *echo = data;

    flood_free(rpc_peer_data(peer));
    if (rpc_peer_transport(peer) == RPC_STDIO)
        rpc_hub_shutdown(echo->hub, RPC_CLOSE_GOING_AWAY, "stdin ended");
}

static void on_idle(void *data)
{
    struct echo *echo = data;

    echo->is_done = true;
}

static void on_metrics(void *data, struct buf *body)
{
    buf_append_str(body, "echo_up 1\n");
}

static const struct rpc_handlers handlers = {
    .on_message = on_message,
    .on_room = on_room,
    .on_closed = on_closed,
    .on_idle = on_idle,
    .on_metrics = on_metrics,
};

static void fail(const struct err *err)
{
    fprintf(stderr, "rpc_echo: %s\n", err->msg);
    exit(1);
}

/* Takes an option and its value; false for a listen address. */
static bool take_option(char **words, struct rpc_auth_options *auth, unsigned *max_peers)
{
    const struct {
        const char *name;
        const char **slot;
    } texts[] = {
        {"--ws-token-file", &auth->token_file},
        {"--ws-token-sha256", &auth->token_sha256},
        {"--ws-shared-secret-file", &auth->shared_secret_file},
        {"--ws-issuer", &auth->issuer},
        {"--ws-audience", &auth->audience},
        {"--ws-max-clock-skew-seconds", &auth->max_clock_skew_s},
    };
    struct err err;

    if (str_eq(words[0], "--max-peers")) {
        *max_peers = (unsigned)atoi(words[1]);
        return true;
    }
    if (str_eq(words[0], "--ws-auth")) {
        if (rpc_auth_mode_parse(words[1], &auth->mode, &err))
            fail(&err);
        return true;
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (str_eq(words[0], texts[i].name)) {
            *texts[i].slot = words[1];
            return true;
        }
    }
    return false;
}

static void listen_at(struct rpc_hub *hub, const char *text)
{
    struct rpc_address address = {.transport = RPC_WS};
    struct rpc_listener *listener;
    struct err err;

    if (str_starts(text, "fd:")) {
        listener = rpc_hub_adopt(hub, atoi(text + 3), &err);
    } else {
        if (rpc_address_parse(text, &address, &err))
            fail(&err);
        listener = rpc_hub_listen(hub, &address, &err);
    }
    if (!listener)
        fail(&err);
    fprintf(address.transport == RPC_STDIO ? stderr : stdout, "%s\n", rpc_listener_url(listener));
    fflush(NULL);
}

int main(int argc, char **argv)
{
    struct err err;
    struct echo echo = {0};
    struct rpc_auth_options auth_options = {.mode = RPC_AUTH_NONE};
    struct rpc_hub_options options = {.handlers = &handlers, .data = &echo};
    struct rpc_auth *auth;
    struct loop *loop = loop_new(&err);
    char **words = argv + 1;

    signal(SIGPIPE, SIG_IGN);
    if (!loop)
        fail(&err);
    while (words[0] && words[1] && take_option(words, &auth_options, &options.max_peers))
        words += 2;
    if (rpc_auth_new(&auth_options, &auth, &err))
        fail(&err);
    options.auth = auth;
    echo.hub = rpc_hub_new(loop, &options);
    for (; *words; words++)
        listen_at(echo.hub, *words);
    if (loop_run(loop, &echo.is_done, &err))
        fail(&err);
    rpc_hub_free(echo.hub);
    rpc_auth_free(auth);
    loop_free(loop);
    return 0;
}
