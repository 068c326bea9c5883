/* See call.h. A call is in its client's list from its arrival until its answer, so a
 * connection that closes finds every handler that is still at work. */
#include "server/call.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/strv.h"
#include "job/job.h"
#include "rpc/message.h"
#include "rpc/rpc.h"
#include "server/client.h"
#include "server/server.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct call *call_begin(struct client *client, struct rpc_message *message)
{
    struct call *call = alloc_zero(1, sizeof *call);

    call->client = client;
    call->message = rpc_message_take(message);
    list_add(&client->calls, &call->in_client);
    client->calls_len++;
    return call;
}

static void call_free(struct call *call)
{
    struct client *client = call->client;

    list_remove(&call->in_client);
    client->calls_len--;
    rpc_message_done(&call->message);
    free(call->params);
    free(call);
}

void calls_drop(struct client *client)
{
    while (!list_is_empty(&client->calls)) {
        struct call *call = list_first(&client->calls, struct call, in_client);

        if (call->on_gone)
            call->on_gone(call->data);
        call_free(call);
    }
}

void call_cancel(struct call *call, const char *message)
{
    void (*on_gone)(void *data) = TAKE_PTR(call->on_gone);

    on_gone(call->data);
    call_fail_data(call, RPC_INVALID_REQUEST, message, json_pack("{s:s}", "reason", "cancelled"));
}

const json_t *call_params(const struct call *call)
{
    static json_t *nothing;

    if (call->message.params && !json_is_null(call->message.params))
        return call->message.params;
    if (!nothing)
        nothing = json_object();
    return nothing;
}

void call_words(const json_t *array, struct strv *ret)
{
    size_t i;
    json_t *word;

    json_array_foreach((json_t *)array, i, word) strv_push(ret, json_string_value(word));
}

void call_on_gone(struct call *call, void (*on_gone)(void *data), void *data)
{
    call->on_gone = on_gone;
    call->data = data;
}

/* --- answers --- */

void call_reply(struct call *call, json_t *result)
{
    rpc_peer_result(call->client->peer, call->message.id, result);
    json_decref(result);
    call_free(call);
}

void call_reply_text(struct call *call, char *json, size_t len)
{
    AUTO_FREE char *result = json;
    struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    rpc_text_result(&text, call->message.id);
    buf_append(&text, result, len);
    rpc_text_end(&text);
    len = text.len;
    rpc_peer_send_take(call->client->peer, buf_take(&text), len);
    call_free(call);
}

enum { SCRATCH_KEEP = 1 << 20 }; /* bytes: a larger buffer is given back */

struct buf *call_result_begin(struct call *call)
{
    struct buf *text = &call->client->server->scratch;

    buf_clear(text);
    rpc_text_result(text, call->message.id);
    return text;
}

void call_result_end(struct call *call)
{
    struct buf *text = &call->client->server->scratch;

    rpc_text_end(text);
    rpc_peer_send(call->client->peer, text->data, text->len);
    if (text->cap > SCRATCH_KEEP) {
        buf_done(text);
        buf_init(text, SIZE_MAX / 2);
    }
    call_free(call);
}

void call_fail_data(struct call *call, enum rpc_code code, const char *message, json_t *data)
{
    const struct rpc_failure failure = {.code = code, .message = message, .data = data};
    struct buf text;
    size_t len;

    buf_init(&text, SIZE_MAX / 2);
    rpc_text_error(&text, call->message.id, &failure);
    json_decref(data);
    len = text.len;
    rpc_peer_send_take(call->client->peer, buf_take(&text), len);
    call_free(call);
}

void call_fail(struct call *call, enum rpc_code code, const char *fmt, ...)
{
    AUTO_FREE char *message = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&message, fmt, args) < 0)
        message = NULL;
    va_end(args);
    call_fail_data(call, code, message ? message : fmt, NULL);
}

/* The form of the original: "No such file or directory (os error 2)". */
void call_fail_errno(struct call *call, int error)
{
    enum rpc_code code = RPC_INTERNAL;
    AUTO_FREE char *text = NULL;

    if (error == ENOENT)
        code = RPC_NOT_FOUND;
    else if (error == EACCES || error == EPERM || error == EINVAL)
        code = RPC_INVALID_REQUEST;
    text = alloc_strf("%s (os error %d)", strerror(error), error);
    call_fail_data(call, code, text, limit_data_of_errno(error));
}

void call_fail_with(struct call *call, enum rpc_code code, const struct err *err)
{
    call_fail_data(call, code, err->msg, limit_data_of_errno(err->sys));
}

void call_fail_err(struct call *call, const struct err *err)
{
    static const enum rpc_code codes[] = {
        [ERR_NONE] = RPC_INTERNAL,
        [ERR_INVALID] = RPC_INVALID_PARAMS,
        [ERR_NOT_FOUND] = RPC_INVALID_REQUEST,
        [ERR_FORBIDDEN] = RPC_INVALID_REQUEST,
        [ERR_UNSUPPORTED] = RPC_INTERNAL,
        [ERR_LIMIT] = RPC_INVALID_REQUEST,
        [ERR_SYSTEM] = RPC_INTERNAL,
        [ERR_BUG] = RPC_INTERNAL,
        [ERR_BUSY] = RPC_INVALID_REQUEST,
        [ERR_CONFLICT] = RPC_INVALID_REQUEST,
    };

    call_fail_with(call, codes[err->code], err);
}

/* --- limits --- */

int call_limits(const uint64_t given[LIMIT_COUNT], struct resource_limits *ret, struct err *err)
{
    *ret = (struct resource_limits){0};
    for (int i = 0; i < LIMIT_COUNT; i++) {
        const uint64_t unit = i == LIMIT_CPU_TIME ? CLOCK_NS_PER_MS : 1;

        if (given[i] != UINT64_MAX &&
            resource_limit_check((enum resource_limit)i, given[i] * unit, &ret->of[i], err))
            return err_wrap(err, "the limit %s", resource_limit_name((enum resource_limit)i));
    }
    return 0;
}

json_t *limit_data(const char *reason, size_t limit)
{
    return json_pack("{s:s, s:I}", "reason", reason, "limit", (json_int_t)limit);
}

json_t *limit_data_of_input(const struct job *job)
{
    struct job_info info;

    job_info(job, &info);
    return json_pack("{s:s, s:I, s:I}", "reason", "input-full", "limit", (json_int_t)JOB_INPUT_MAX,
                     "pendingBytes", (json_int_t)info.input_len);
}

json_t *limit_data_of_errno(int error)
{
    static const struct {
        int error;
        const char *reason;
    } reasons[] = {
        {EMFILE, "descriptors"},      {ENFILE, "descriptors"},   {ENOSPC, "disk-full"},
        {EDQUOT, "disk-full"},        {EFBIG, "file-too-large"}, {ENOMEM, "memory"},
        {EAGAIN, "system-processes"}, /* fork(2): RLIMIT_NPROC, pids.max */
    };

    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].error == error)
            return json_pack("{s:s, s:s}", "reason", reasons[i].reason, "errno",
                             strerrorname_np(error));
    return NULL;
}
