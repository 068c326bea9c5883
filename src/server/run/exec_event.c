/* See exec_event.h. Nothing here is kept: a client that does not read in time misses output, which
 * the offsets of the next piece tell, and the answer has what is retained of it. Other events are
 * few, and are always sent. */
#include "server/run/exec_event.h"

#include "approval/held.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "denial/denial.h"
#include "executor/execution.h"
#include "job/result_json.h"
#include "rpc/message.h"
#include "rpc/rpc.h"
#include "server/approver_client.h"
#include "server/call.h"
#include "server/client.h"
#include "server/run/exec_run.h"
#include "server/server.h"

#include <inttypes.h>
#include <string.h>

static bool is_heard(const struct exec_run *run)
{
    return run->call && run->id;
}

/* Takes `more` over. */
static void event_send(struct exec_run *run, const char *kind, json_t *more)
{
    AUTO_JSON json_t *fields = more;
    AUTO_JSON json_t *params = NULL;

    if (!is_heard(run))
        return;
    params = json_pack("{s:s, s:I, s:s}", "runId", run->id, "seq", (json_int_t)++run->seq, "event",
                       kind);
    json_object_update(params, fields);
    rpc_peer_notify(run->call->client->peer, "exec/event", params);
}

void exec_event_begin(struct exec_run *run)
{
    event_send(
        run, "begin",
        json_pack("{s:i, s:s}", "attempt", (int)run->attempts, "place", run_where_name(run->at)));
}

void exec_event_output(struct exec_run *run, const struct exec_output *output)
{
    struct buf *text = &run->server->scratch;

    if (!is_heard(run) || run->output == EXEC_RUN_NONE ||
        (run->output == EXEC_RUN_LIVE && !rpc_peer_has_room(run->call->client->peer)))
        return;
    buf_clear(text);
    rpc_text_notification(text, "exec/output");
    buf_append_str(text, "{\"runId\":");
    rpc_text_string(text, run->id, strlen(run->id));
    buf_appendf(text, ",\"seq\":%" PRIu64 ",\"attempt\":%u,\"stream\":\"%s\",\"chunk\":\"",
                ++run->seq, run->attempts, output->stream == STREAM_STDOUT ? "stdout" : "stderr");
    rpc_text_base64(text, output->bytes, output->len);
    buf_appendf(text, "\",\"offset\":%" PRIu64 "}", output->offset);
    rpc_text_end(text);
    rpc_peer_send(run->call->client->peer, text->data, text->len);
}

/* --- steps --- */

/* By the id that approval/request and approval/list have, too. */
static json_t *asked_fields(const struct exec_run *run, const struct execution_event *event)
{
    json_t *fields =
        client_session_question(run->session, approval_request_to_json(event->question));

    json_object_del(fields, "sessionId"); /* this one */
    return fields;
}

/* {"approvalId"} */
static json_t *question_id(const struct exec_run *run, const struct approval_request *question)
{
    json_t *fields = client_session_question(run->session, approval_request_to_json(question));

    json_object_del(fields, "sessionId");
    json_object_del(fields, "question");
    return fields;
}

static json_t *answered_fields(const struct exec_run *run, const struct execution_event *event)
{
    json_t *fields = json_pack("{s:o, s:o}", "answer", approval_answer_to_json(event->answer),
                               "rule", json_lossy(event->rule));

    if (event->question && event->question->id) /* of which several may be open */
        json_object_update_new(fields, question_id(run, event->question));
    return fields;
}

static json_t *held_fields(const struct exec_run *run, const struct execution_event *event)
{
    const struct held_event *held = event->held;
    json_t *fields = json_pack("{s:I, s:b}", "heldMs", (json_int_t)(held->held_ns / 1000000),
                               "done", held->is_done);

    if (held->question->id)
        json_object_update_new(fields, question_id(run, held->question));
    return fields;
}

static json_t *denied_fields(const struct exec_run *run, const struct execution_event *event)
{
    const struct denials one = {.items = (struct denial *)event->denial, .len = 1};
    AUTO_JSON json_t *list = denials_to_json(&one);

    return json_pack("{s:O}", "denial", json_array_get(list, 0));
}

static json_t *retried_fields(const struct exec_run *run, const struct execution_event *event)
{
    return json_pack("{s:o}", "with", json_lossy(event->words));
}

void exec_event_step(struct exec_run *run, const struct execution_event *event)
{
    static const struct {
        const char *kind;
        json_t *(*fields)(const struct exec_run *run, const struct execution_event *event);
    } steps[] = {
        [EXECUTION_ASKED] = {"asked", asked_fields},
        [EXECUTION_ANSWERED] = {"answered", answered_fields},
        [EXECUTION_HELD] = {"held", held_fields},
        [EXECUTION_DENIED] = {"denied", denied_fields},
        [EXECUTION_RETRIED] = {"retried", retried_fields},
    };

    if (is_heard(run))
        event_send(run, steps[event->kind].kind, steps[event->kind].fields(run, event));
}

void exec_event_end(struct exec_run *run, const struct execution_result *result)
{
    event_send(run, "end", json_pack("{s:s}", "outcome", execution_outcome_name(result->outcome)));
}
