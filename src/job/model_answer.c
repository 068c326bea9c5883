/* The end of a call (unified_call.h): its output is taken, its session stays or goes, and the
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

bool unified_has_call(const struct unified *unified, const struct session *session)
{
    for (const struct unified_call *call = unified->calls; call; call = call->next)
        if (call->session == session)
            return true;
    return false;
}

bool call_is_stored(const struct unified_call *call)
{
    return store_find(call->unified->store, call->id) == call->session;
}

/* The store prefers to push out what has ended, and is told so only when it matters. */
static void mark_exited(const struct unified *unified)
{
    size_t len;
    AUTO_FREE int *ids = store_list(unified->store, 0, &len);

    for (size_t i = 0; i < len; i++)
        if (session_end(store_find(unified->store, ids[i])))
            store_mark_exited(unified->store, ids[i]);
}

void call_store(struct unified_call *call)
{
    struct unified *unified = call->unified;
    struct store_pushed pushed;
    struct session_info info;
    struct err ignored; /* whoever has it then frees it, which kills, too */

    session_info(call->session, &info);
    if (store_count(unified->store) >= unified->options.capacity)
        mark_exited(unified);
    store_insert(unified->store,
                 &(struct store_entry){.id = call->id,
                                       .session = call->session,
                                       .owner = info.owner,
                                       .used_ns = info.started_ns},
                 &pushed);
    if (!pushed.session)
        return;
    session_terminate(pushed.session, 0, &ignored);
    unified_leave(unified, pushed.session);
}

void unified_leave(const struct unified *unified, struct session *session)
{
    if (unified->options.on_left)
        unified->options.on_left(unified->options.data, session);
    else
        session_free(session);
}

/* Where the session belongs now that the call is over. */
static void call_settle(struct unified_call *call)
{
    struct store *store = call->unified->store;

    if (!session_end(call->session)) {
        if (!call_is_stored(call))
            call_store(call);
    } else if (call_is_stored(call)) {
        if (call->kind != UNIFIED_TERMINATE)
            store_remove(store, call->id, session_store_end(call->session));
    } else if (call->kind == UNIFIED_EXEC) {
        store_release(store, call->id);
    }
}

static void call_take(const struct unified_call *call, struct headtail *ret)
{
    if (call->kind == UNIFIED_TERMINATE)
        headtail_init(ret, 0);
    else
        unread_take(session_unread(call->session), ret);
}

static void call_notes(const struct unified_call *call, struct strv *ret)
{
    const struct process_end *end = session_end(call->session);

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

static void format_text(const struct unified_call *call, struct unified_response *response,
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
        .policy = call->unified->options.policy,
        .notes = response->notes,
    };
    struct session_info info;

    session_info(call->session, &info);
    if (response->end && response->end->how == PROCESS_FAILED_TO_START)
        unified_format_error("exec_command", info.command, &response->end->failure, out);
    else
        model_text_format(&text, out);
    response->text = out->data ? out->data : "";
    response->text_len = out->len;
}

static void next_chunk_id(struct unified *unified, char ret_id[MODEL_CHUNK_ID_SIZE])
{
    struct err ignored; /* without randomness a number is as good */

    unified->chunks++;
    if (unified->options.ids == STORE_IDS_IN_ORDER || model_chunk_id_random(ret_id, &ignored))
        model_chunk_id(unified->chunks, ret_id);
}

/* What is known of the end of a command, apart from the session that is about to be freed. */
struct ending {
    struct process_end end;
    struct limits limits;
    struct limits_report limits_report;
    struct denials denials;
};

static void ending_done(struct ending *ending)
{
    denials_done(&ending->denials);
}

static void call_end(const struct unified_call *call, struct ending *ending,
                     struct unified_response *response)
{
    const struct session *session = call->session;

    ending->limits = *session_limits(session, &ending->limits_report);
    response->limits = &ending->limits;
    response->limits_report = &ending->limits_report;
    response->denials = &ending->denials;
    if (!session_end(session))
        return;
    ending->end = *session_end(session);
    session_denials(session, &ending->denials);
    response->reason = UNIFIED_ENDED;
    response->end = &ending->end;
    response->exit_code = session_exit_code(session);
}

void call_finish(struct unified_call *call)
{
    AUTO(ending_done) struct ending ending = {0};
    AUTO(headtail_done) struct headtail output;
    AUTO(strv_done) struct strv notes = {0};
    AUTO(buf_done) struct buf text;
    struct unified_response response = {.wall_ns = clock_now_ns() - call->start_ns};
    unified_done_fn *on_done = call->on_done;
    void *data = call->data;

    buf_init(&text, TEXT_MAX);
    call_take(call, &output);
    call_notes(call, &notes);
    next_chunk_id(call->unified, response.chunk_id);
    response.reason = call->is_met ? UNIFIED_MET : UNIFIED_YIELDED;
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
void unified_format_refusal(const char *tool, const char *command, const char *reason,
                            struct buf *out)
{
    if (command)
        buf_appendf(out, "%s failed for `%s`: %s", tool, command, reason);
    else
        buf_appendf(out, "%s failed: %s", tool, reason);
}

void unified_format_error(const char *tool, const char *command, const struct err *failure,
                          struct buf *out)
{
    unified_format_refusal(tool, command, failure->msg, out);
}
