/* See model_request.h. The answer is the text that the model is to see, and the same as values for
 * the program that runs the model. What a session runs in is held by its process
 * (model_process.h). */
#include "server/model/model_request.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "denial/denial.h"
#include "job/job.h"
#include "job/result_json.h"
#include "loop/loop.h"
#include "output/headtail.h"
#include "output/output.h"
#include "rpc/rpc.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/layer/layer_steps.h"
#include "server/model/model_process.h"
#include "server/model/write_queue.h"
#include "server/process/rpc_process.h"
#include "server/server.h"

#include <stdlib.h>
#include <string.h>

/* Head and tail as they are, one behind the other. */
static json_t *output_to_json(const struct headtail *output)
{
    size_t len = output->head.len + output->tail.len;
    AUTO_FREE char *bytes = alloc_zero(len + 1, 1);
    AUTO_FREE char *text = alloc_zero(base64_encoded_len(len) + 1, 1);

    ring_copy(&output->head, 0, bytes, output->head.len);
    ring_copy(&output->tail, 0, bytes + output->head.len, output->tail.len);
    base64_encode(bytes, len, text);
    return json_string(text);
}

static json_t *notes_to_json(char *const *notes)
{
    json_t *array = json_array();

    for (; notes && *notes; notes++)
        json_array_append_new(array, json_lossy(*notes));
    return array;
}

static json_t *response_to_json(const struct model_call_answer *response)
{
    static const char *const reasons[] = {
        [MODEL_CALL_ENDED] = "ended", [MODEL_CALL_YIELDED] = "yielded", [MODEL_CALL_MET] = "met"};
    const struct process_end *end = response->end;
    const struct headtail *output = response->output;
    int signal = end && end->how == PROCESS_SIGNALED ? end->signal : 0;

    json_t *json;

    json = json_pack("{s:o, s:s, s:o, s:o, s:o, s:s, s:I, s:o, s:I, s:I, s:I, s:o}", "text",
                     json_stringn(response->text, response->text_len), "reason",
                     reasons[response->reason], "sessionId",
                     end ? json_null() : json_integer(response->session_id), "exitCode",
                     end ? json_integer(response->exit_code) : json_null(), "signal",
                     signal_to_json(signal), "chunkId", response->chunk_id, "wallTimeMs",
                     (json_int_t)(response->wall_ns / CLOCK_NS_PER_MS), "output",
                     output_to_json(output), "outputBytes", (json_int_t)headtail_total(output),
                     "omittedBytes", (json_int_t)output->omitted, "omittedAt",
                     (json_int_t)output->head.len, "notes", notes_to_json(response->notes));
    if (*response->warnings)
        json_object_set_new(json, "warnings", json_lossy_list(response->warnings));
    if (response->denials->len)
        json_object_set_new(json, "denials", denials_to_json(response->denials));
    return json;
}

/* --- how far it is --- */

enum { PROGRESS_LINE_MAX = 200 }; /* bytes */

/* What was written last, without what would command a terminal. Caller frees. */
static char *last_line(struct output *output)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    struct output_info info;
    uint64_t from;
    char *line;

    output_info(output, &info);
    from = info.total > PROGRESS_LINE_MAX ? info.total - PROGRESS_LINE_MAX : 0;
    if (from >= info.prefix_end && from < info.tail_start)
        from = info.tail_start;
    if (!output_append_range(output, from, info.total, &text))
        return alloc_str("");
    while (text.len && strchr("\r\n", text.data[text.len - 1]))
        text.data[--text.len] = '\0';
    line = text.len ? text.data + text.len : (char *)"";
    while (text.len && line > text.data && !strchr("\r\n", line[-1]))
        line--;
    return utf8_plain(line);
}

static void tell_progress(struct model_request *request, struct job *job, int session)
{
    struct output *output = job_output(job);
    AUTO_FREE char *line = last_line(output);
    AUTO_JSON json_t *params = json_pack(
        "{s:O, s:i, s:I, s:o}", "requestId", (json_t *)request->call->message.id, "sessionId",
        session, "outputBytes", (json_int_t)output_total(output), "lastLine", json_lossy(line));

    request->told = output_total(output);
    rpc_peer_notify(request->call->client->peer, "session/progress", params);
}

static void on_progress(void *data)
{
    struct model_request *request = data;
    const int session = model_call_id(request->waiting);
    struct err ignored; /* it has ended, and the answer is on its way */
    struct job *job = model_calls_find(request->server->model_calls, session, &ignored);

    if (job && output_total(job_output(job)) != request->told &&
        rpc_peer_has_room(request->call->client->peer))
        tell_progress(request, job, session);
    loop_timer_start(request->progress, request->progress_ns);
}

/* At once, so that the session is known, and then as it comes. */
static void progress_begin(struct model_request *request)
{
    if (!request->progress_ns)
        return;
    request->told = UINT64_MAX;
    request->progress = loop_timer_new(request->server->loop, on_progress, request);
    on_progress(request);
}

/* --- a call that waits --- */

static void request_free(struct model_request *request)
{
    struct server *server = request->server;

    loop_timer_free(request->progress);
    queued_write_end(request->queued);
    server->model_requests--;
    free(request);
    stopping_check(server);
}

/* The connection is gone: the command goes on, and nothing of its output was taken. */
static void request_on_gone(void *data)
{
    struct model_request *request = data;

    if (request->waiting)
        model_call_cancel(request->waiting);
    request_free(request);
}

void model_request_on_done(void *data, const struct model_call_answer *response)
{
    struct model_request *request = data;
    json_t *result = response_to_json(response);

    const struct rpc_process *process =
        response->end ? model_process_find(request->call->client->session, response->session_id)
                      : NULL;

    if (request->is_traced)
        json_object_set_new(result, "processId", model_process_id(response->session_id));
    call_on_gone(request->call, NULL, NULL);
    layer_reply(request->call, result, process ? process->layer_id : NULL,
                process ? process->layer_step : 0);
    request_free(request);
}

struct model_request *model_request_new(struct call *call, const char *tool)
{
    struct model_request *request = alloc_zero(1, sizeof *request);

    request->call = call;
    request->server = call->client->server;
    request->tool = tool;
    request->server->model_requests++;
    return request;
}

/* An object, empty when no limit was the reason. Input is all that a call on a session can find
 * full. */
static json_t *limit_of(const struct model_request *request, const struct err *err)
{
    json_t *data = limit_data_of_errno(err->sys);

    if (!data && err->code == ERR_LIMIT && request->job)
        data = limit_data_of_input(request->job);
    return data ? data : json_object();
}

/* A command that cannot start is the system's error, everything else the caller's. */
static void request_fail(struct model_request *request, const char *command, const struct err *err)
{
    bool is_ours = err->code == ERR_SYSTEM || err->code == ERR_UNSUPPORTED || err->code == ERR_BUG;
    struct buf text;
    json_t *data;

    buf_init(&text, SIZE_MAX / 2);
    model_calls_format_error(request->tool, command, err, &text);
    data = limit_of(request, err);
    json_object_set_new(data, "text", json_lossy(text.data));
    call_fail_data(request->call, is_ours ? RPC_INTERNAL : RPC_INVALID_REQUEST, err->msg, data);
    buf_done(&text);
}

void model_request_began(struct model_request *request, struct model_call *waiting,
                         const char *command, const struct err *err)
{
    if (!waiting) {
        request_fail(request, command, err);
        request_free(request);
        return;
    }
    request->waiting = waiting;
    call_on_gone(request->call, request_on_gone, request);
    progress_begin(request);
}

int model_request_session(const struct call *call)
{
    const struct model_request *request = call->data;

    return call->on_gone == request_on_gone ? model_call_id(request->waiting) : 0;
}

void model_request_refuse(struct call *call, const char *tool, const char *command,
                          const char *reason)
{
    AUTO(buf_done) struct buf text = {0};

    buf_init(&text, SIZE_MAX / 2);
    model_calls_format_refusal(tool, command, reason, &text);
    call_fail_data(call, RPC_INVALID_REQUEST, reason,
                   json_pack("{s:o}", "text", json_lossy(text.data)));
}

/* --- the store --- */

enum { MODEL_SESSIONS_MAX = 1024 }; /* sessions of all clients */

struct model_calls *server_model_calls(struct server *server, struct err *err)
{
    const struct model_calls_options options = {
        .loop = server->loop,
        .capacity = MODEL_SESSIONS_MAX,
        .spool_quota = server->limits.spool_quota,
        .on_left = model_process_on_left,
        .data = server,
    };

    if (!server->model_calls)
        server->model_calls = model_calls_new(&options, err);
    return server->model_calls;
}

void model_part_end(const struct client_session *session)
{
    if (session->server->model_calls)
        model_calls_terminate_all(session->server->model_calls, session->number, 0);
}

void model_part_free(struct server *server)
{
    model_calls_free(TAKE_PTR(server->model_calls));
    write_queue_free(server);
}
