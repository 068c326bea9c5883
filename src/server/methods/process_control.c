/* The methods that do something to a process: process/write, signal, terminate, resize, closeStdin.
 * What they do to one that is not known or has ended is as in the original: for some an error, for
 * others an answer (spec/exec-server.md 5.4). */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/clock.h"
#include "server/call.h"
#include "server/client.h"
#include "server/limit_data.h"
#include "server/process/observer.h"
#include "server/process/rpc_process.h"

#include <string.h>

static const char *text_of(const json_t *params, const char *name)
{
    return json_string_value(json_object_get(params, name));
}

static struct rpc_process *find(const struct call *call, const json_t *params)
{
    return client_process(call->client, text_of(params, "processId"));
}

static void reply_status(struct call *call, const char *status)
{
    call_reply(call, json_pack("{s:s}", "status", status));
}

/* --- process/write --- */

static void fail_ended(struct call *call)
{
    call_fail(call, RPC_INTERNAL, "failed to write to process stdin");
}

static void fail_no_room(struct call *call, const struct rpc_process *process)
{
    AUTO_FREE char *text = alloc_strf("%zu bytes of input wait already for process %s to read them",
                                      JOB_INPUT_MAX, process->id);

    call_fail_data(call, RPC_INVALID_REQUEST, text, limit_data_of_input(process->job));
}

static void write_bytes(struct call *call, struct rpc_process *process, const json_t *params,
                        const char *bytes, size_t len)
{
    enum job_written written;
    struct err err;

    if (job_write(process->job, bytes, len, text_of(params, "writeId"), &written, &err)) {
        call_fail_err(call, &err);
        return;
    }
    switch (written) {
    case JOB_WRITTEN:
    case JOB_WRITTEN_BEFORE:
    case JOB_INTERRUPTED:
        reply_status(call, "accepted");
        break;
    case JOB_NO_INPUT:
        reply_status(call, "stdinClosed");
        break;
    case JOB_NO_ROOM:
        fail_no_room(call, process);
        break;
    case JOB_IS_OVER:
        fail_ended(call);
        break;
    }
}

/* Checked before the process is looked for, as in the original. NULL: answered. */
static char *decode(struct call *call, const json_t *params, size_t *ret_len)
{
    const json_t *chunk = json_object_get(params, "chunk");
    const char *text = json_string_value(chunk);
    size_t text_len = json_string_length(chunk);
    AUTO_FREE char *bytes = alloc_zero(base64_decoded_len(text, text_len) + 1, 1);
    struct err err;

    if (base64_decode(text, text_len, bytes, &err)) {
        size_t at = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789+/=");

        if (at < text_len)
            call_fail(call, RPC_INVALID_PARAMS, "Invalid symbol %d, offset %zu.",
                      (unsigned char)text[at], at);
        else
            call_fail(call, RPC_INVALID_PARAMS, "Invalid padding");
        return NULL;
    }
    *ret_len = base64_decoded_len(text, text_len);
    return TAKE_PTR(bytes);
}

void method_process_write(struct call *call, const json_t *params)
{
    size_t len = 0;
    AUTO_FREE char *bytes = decode(call, params, &len);
    struct rpc_process *process;

    if (!bytes)
        return;
    process = find(call, params);
    if (!process)
        reply_status(call, "unknownProcess");
    else if (process->state == RPC_PROCESS_STARTING)
        reply_status(call, "starting");
    else if (!process->takes_input)
        reply_status(call, "stdinClosed");
    else if (process->state != RPC_PROCESS_RUNNING)
        fail_ended(call);
    else if (!client_may_write(call->client, process))
        call_fail(call, RPC_INVALID_REQUEST, "another connection writes to process %s",
                  process->id);
    else
        write_bytes(call, process, params, bytes, len);
}

void method_process_close_stdin(struct call *call, const json_t *params)
{
    struct rpc_process *process = call_process(call, params);
    struct job_info info;

    if (!process)
        return;
    if (!client_may_write(call->client, process)) {
        call_fail(call, RPC_INVALID_REQUEST, "another connection writes to process %s",
                  process->id);
        return;
    }
    job_info(process->job, &info);
    job_close_input(process->job);
    call_reply(call, json_pack("{s:b}", "closed", info.has_input));
}

/* --- signals --- */

void method_process_signal(struct call *call, const json_t *params)
{
    struct rpc_process *process = find(call, params);
    struct err err;

    if (process && job_interrupt(process->job, &err))
        call_fail_err(call, &err);
    else
        call_reply(call, json_object());
}

void method_process_terminate(struct call *call, const json_t *params)
{
    struct rpc_process *process = find(call, params);
    uint64_t grace_ms = (uint64_t)json_integer_value(json_object_get(params, "graceMs"));
    bool was_running = false;
    struct err err;

    if (process && rpc_process_terminate(process, grace_ms * CLOCK_NS_PER_MS, &was_running, &err))
        call_fail_err(call, &err);
    else
        call_reply(call, json_pack("{s:b}", "running", was_running));
}

void method_process_resize(struct call *call, const json_t *params)
{
    struct rpc_process *process = call_process(call, params);
    const struct pty_size size = {
        .rows = (unsigned short)json_integer_value(json_object_get(params, "rows")),
        .columns = (unsigned short)json_integer_value(json_object_get(params, "columns")),
    };
    struct err err;

    if (!process)
        return;
    if (!process->has_tty)
        call_fail(call, RPC_INVALID_REQUEST, "process %s has no terminal to resize", process->id);
    else if (job_resize(process->job, size, &err))
        call_fail_err(call, &err);
    else
        call_reply(call, json_object());
}
