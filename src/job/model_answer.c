/* The end of a call (model_call.h): its output is taken, its job stays or goes, and the
 * model's text is made. Everything is copied out of the call before it is freed and the answer is
 * given, so that whoever gets it may do whatever they like. */
#include "job/model_call.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/strv.h"
#include "output/headtail.h"
#include "output/model_cursor.h"

#include <string.h>

bool model_calls_has_call(const struct model_calls *calls, const struct job *job)
{
    for (const struct model_call *call = calls->waiting; call; call = call->next)
        if (call->job == job)
            return true;
    return false;
}

bool call_is_stored(const struct model_call *call)
{
    return job_table_find(call->calls->table, call->id) == call->job;
}

/* The table prefers to push out what has ended, and is told so only when it matters. */
static void mark_exited(const struct model_calls *calls)
{
    size_t len;
    AUTO_FREE int *ids = job_table_list(calls->table, 0, &len);

    for (size_t i = 0; i < len; i++)
        if (job_end(job_table_find(calls->table, ids[i])))
            job_table_mark_exited(calls->table, ids[i]);
}

void call_store(struct model_call *call)
{
    struct model_calls *calls = call->calls;
    struct job_table_pushed pushed;
    struct job_info info;
    struct err ignored; /* whoever has it then frees it, which kills, too */

    job_info(call->job, &info);
    if (job_table_count(calls->table) >= calls->options.capacity)
        mark_exited(calls);
    job_table_insert(
        calls->table,
        &(struct job_table_entry){
            .id = call->id, .job = call->job, .owner = info.owner, .used_ns = info.started_ns},
        &pushed);
    if (!pushed.job)
        return;
    job_terminate(pushed.job, 0, &ignored);
    model_calls_leave(calls, pushed.job);
}

void model_calls_leave(const struct model_calls *calls, struct job *job)
{
    if (calls->options.on_left)
        calls->options.on_left(calls->options.data, job);
    else
        job_free(job);
}

/* Where the job belongs now that the call is over. */
static void call_settle(struct model_call *call)
{
    struct job_table *table = call->calls->table;

    if (!job_end(call->job)) {
        if (!call_is_stored(call))
            call_store(call);
    } else if (call_is_stored(call)) {
        if (call->kind != MODEL_CALL_TERMINATE)
            job_table_remove(table, call->id, job_outcome(call->job));
    } else if (call->kind == MODEL_CALL_EXEC) {
        job_table_release(table, call->id);
    }
}

static void call_take(const struct model_call *call, struct headtail *ret)
{
    if (call->kind == MODEL_CALL_TERMINATE)
        headtail_init(ret, 0);
    else
        model_cursor_take(job_model_cursor(call->job), ret);
}

static void call_notes(const struct model_call *call, struct strv *ret)
{
    const struct process_end *end = job_end(call->job);

    if (call->yield_note)
        strv_push(ret, call->yield_note);
    if (call->note)
        strv_push(ret, call->note);
    if (end && end->drain_cut)
        strv_push(ret, "a process that the command left behind still holds its output open; what "
                       "it writes from now on is not read");
}

/* Wide enough for any output that is kept. */
#define TEXT_MAX (SIZE_MAX / 2)

static void format_text(const struct model_call *call, struct model_call_answer *response,
                        struct buf *out)
{
    const uint64_t *tokens = &call->max_tokens;
    struct model_response text = {
        .chunk_id = response->chunk_id,
        .wall_ns = response->wall_ns,
        .end = response->end ? MODEL_EXITED : MODEL_RUNNING,
        .number = response->end ? response->exit_code : call->id,
        .output = response->output,
        .asked_tokens = tokens,
        .policy = call->calls->options.policy,
        .notes = response->notes,
    };
    struct job_info info;

    job_info(call->job, &info);
    if (response->end && response->end->how == PROCESS_FAILED_TO_START)
        model_calls_format_error("exec_command", info.command, &response->end->failure, out);
    else
        model_text_format(&text, out);
    response->text = out->data ? out->data : "";
    response->text_len = out->len;
}

static void next_chunk_id(struct model_calls *calls, char ret_id[MODEL_CHUNK_ID_SIZE])
{
    struct err ignored; /* without randomness a number is as good */

    calls->chunks++;
    if (calls->options.ids == JOB_TABLE_IDS_IN_ORDER || model_chunk_id_random(ret_id, &ignored))
        model_chunk_id(calls->chunks, ret_id);
}

/* What is known of the end of a command, apart from the job that is about to be freed. */
struct ending {
    struct process_end end;
    struct resource_limits limits;
    struct resource_limits_report resource_limits_report;
    struct denials denials;
};

static void ending_done(struct ending *ending)
{
    denials_done(&ending->denials);
}

static void call_end(const struct model_call *call, struct ending *ending,
                     struct model_call_answer *response)
{
    const struct job *job = call->job;

    ending->limits = *job_resource_limits(job, &ending->resource_limits_report);
    response->limits = &ending->limits;
    response->resource_limits_report = &ending->resource_limits_report;
    response->denials = &ending->denials;
    if (!job_end(job))
        return;
    ending->end = *job_end(job);
    job_denials(job, &ending->denials);
    response->reason = MODEL_CALL_ENDED;
    response->end = &ending->end;
    response->exit_code = job_exit_code(job);
}

void call_finish(struct model_call *call)
{
    AUTO(ending_done) struct ending ending = {0};
    AUTO(headtail_done) struct headtail output;
    AUTO(strv_done) struct strv notes = {0};
    AUTO(buf_done) struct buf text;
    struct model_call_answer response = {.wall_ns = clock_now_ns() - call->start_ns};
    model_call_done_fn *on_done = call->on_done;
    void *data = call->data;

    buf_init(&text, TEXT_MAX);
    call_take(call, &output);
    call_notes(call, &notes);
    next_chunk_id(call->calls, response.chunk_id);
    response.reason = call->is_met ? MODEL_CALL_MET : MODEL_CALL_YIELDED;
    response.output = &output;
    response.notes = strv_view(&notes);
    call_end(call, &ending, &response);
    call_settle(call);
    response.session_id = call->id;
    format_text(call, &response, &text);
    call_free(call);
    on_done(data, &response);
}

/* spec/unified-exec.md 10: the tool, the command in backticks, the reason. */
void model_calls_format_refusal(const char *tool, const char *command, const char *reason,
                                struct buf *out)
{
    if (command)
        buf_appendf(out, "%s failed for `%s`: %s", tool, command, reason);
    else
        buf_appendf(out, "%s failed: %s", tool, reason);
}

void model_calls_format_error(const char *tool, const char *command, const struct err *failure,
                              struct buf *out)
{
    model_calls_format_refusal(tool, command, failure->msg, out);
}
