/* See model_call.h. Whatever could make a call come back only starts its timer; the timer alone
 * looks and decides. So a call is never answered from inside another callback, and there is
 * one place that says when one is over:
 *
 *     end of the command        -> now
 *     new output                -> now, if that is what it waits for
 *     150 ms, still running     -> the job is stored
 *     quiet for long enough     -> now, or as much later as was written since
 *     deadline                  -> now
 *     somebody is being asked   -> not before the answer, by time
 *
 * A call that is cancelled has taken nothing, since output is taken when it is answered.
 *
 * When it is answered its output is taken, its job stays or goes, and the model's text is made.
 * Everything is copied out of the call before it is freed and the answer is given, so that the
 * caller may do what it likes in on_done. */
#include "job/model_call.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/strv.h"
#include "denial/denial.h"
#include "job/result_json.h"
#include "loop/loop.h"
#include "output/headtail.h"
#include "output/match.h"
#include "output/model_cursor.h"
#include "output/reader.h"

#include <stdlib.h>
#include <string.h>

/* --- the job --- */

bool model_calls_has_call(const struct model_calls *calls, const struct job *job)
{
    const struct model_call *call;

    list_for_each(call, &calls->waiting, in_waiting)
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

/* Hands the job over (model_calls_options.on_left), or frees it. */
static void model_calls_leave(const struct model_calls *calls, struct job *job)
{
    if (calls->options.on_left)
        calls->options.on_left(calls->options.data, job);
    else
        job_free(job);
}

void call_store(struct model_call *call)
{
    struct model_calls *calls = call->calls;
    struct job_table_pushed pushed;
    struct job_info info;
    struct err ignored; /* the new owner frees it, which kills, too */

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

void call_free(struct model_call *call)
{
    struct job *job = call->job;
    struct model_calls *calls = call->calls;
    bool is_kept = call_is_stored(call);

    list_remove(&call->in_waiting);
    reader_free(call->reader);
    output_unwatch(&call->output_watch);
    job_unwatch(&call->job_watch);
    loop_timer_free(call->timer);
    match_free(call->match);
    free(call->yield_note);
    free(call);
    if (!is_kept && !model_calls_has_call(calls, job))
        model_calls_leave(calls, job);
}

/* --- the answer --- */

/* The form that models know: the tool, the command in backticks, the reason. */
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

/* Where the job belongs now that the call is over. */
static void call_keep_job(struct model_call *call)
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

/* A program that was refused a host often says no more than that its network is broken; and it may do so long after the
 * call that started it. */
static void host_notes(const struct denials *denials, struct strv *ret)
{
    enum { HOSTS_MAX = 4 };
    int left = HOSTS_MAX;

    for (size_t i = 0; i < denials->len && left; i++) {
        const struct denial *denial = &denials->items[i];
        AUTO_FREE char *words = NULL;
        const bool has_failed = denial->flags & DENIAL_FAILED;

        if (denial->flags & (DENIAL_VARIABLE | DENIAL_LAYER))
            strv_pushf(ret, "%s. %s", denial->reason, denial->remedy);
        if (!denial->reason || (!denial_matters(denial) && !has_failed))
            continue;
        words = denial_words(denial);
        if (has_failed)
            strv_pushf(ret, "%s failed: %s", words, denial->reason);
        else
            strv_pushf(ret, "the sandbox refused %s: %s", words, denial->remedy);
        left--;
    }
}

static void format_text(const struct model_call *call, struct model_call_answer *response,
                        struct buf *out)
{
    struct model_response text = {
        .chunk_id = response->chunk_id,
        .wall_ns = response->wall_ns,
        .end = response->end ? MODEL_EXITED : MODEL_RUNNING,
        .number = response->end ? response->exit_code : call->id,
        .output = response->output,
        .asked_tokens = &call->max_tokens,
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

/* What is known of the end of a command, apart from the job that is about to be freed. */
struct ending {
    struct process_end end;
    struct resource_limits limits;
    struct resource_limits_report resource_limits_report;
    struct denials denials;
    struct denials fresh; /* of them, those that no call has told of */
    char *events;         /* or NULL */
};

static void call_end(const struct model_call *call, struct ending *ending,
                     struct model_call_answer *response)
{
    struct job *job = call->job;

    ending->limits = job_limits(job, &ending->resource_limits_report)->asked;
    response->reason = call->is_met ? MODEL_CALL_MET : MODEL_CALL_YIELDED;
    response->limits = &ending->limits;
    response->resource_limits_report = &ending->resource_limits_report;
    job_new_denials(job, &ending->fresh);
    response->denials = job_end(job) ? &ending->denials : &ending->fresh;
    if (!job_end(job))
        return;
    ending->end = *job_end(job);
    job_denials(job, &ending->denials);
    if (call->calls->options.has_events)
        response->events = ending->events = events_to_text(job);
    response->reason = MODEL_CALL_ENDED;
    response->end = &ending->end;
    response->exit_code = job_exit_code(job);
}

/* Answers the call and frees it. Nothing of it is touched behind on_done. */
static void call_finish(struct model_call *call)
{
    struct ending ending = {0};
    AUTO(headtail_done) struct headtail output;
    AUTO(strv_done) struct strv notes = {0};
    AUTO(strv_done) struct strv warnings = {0};
    AUTO(buf_done) struct buf text;
    struct model_call_answer response = {.wall_ns = clock_now_ns() - call->start_ns};
    model_call_done_fn *on_done = call->on_done;
    void *data = call->data;
    struct err ignored; /* without randomness a number is as good */

    buf_init(&text, SIZE_MAX / 2);
    call_end(call, &ending, &response);
    if (call->kind == MODEL_CALL_TERMINATE)
        headtail_init(&output, 0);
    else
        model_cursor_take(job_model_cursor(call->job), &output);
    call_notes(call, &notes);
    host_notes(&ending.fresh, &notes);
    call->calls->chunks++;
    if (call->calls->options.ids == JOB_TABLE_IDS_IN_ORDER ||
        model_chunk_id_random(response.chunk_id, &ignored))
        model_chunk_id(call->calls->chunks, response.chunk_id);
    response.output = &output;
    response.notes = strv_view(&notes);
    if (call->kind == MODEL_CALL_EXEC)
        resource_limits_warn(job_limits(call->job, NULL), &warnings);
    response.warnings = strv_view(&warnings);
    call_keep_job(call);
    response.session_id = call->id;
    format_text(call, &response, &text);
    call_free(call);
    on_done(data, &response);
    denials_done(&ending.denials);
    denials_done(&ending.fresh);
    free(ending.events);
}

/* --- waiting --- */

static bool call_has_news(const struct model_call *call)
{
    return call->pace.until == MODEL_UNTIL_BYTES &&
           model_cursor_len(job_model_cursor(call->job)) >= call->pace.number;
}

static uint64_t after_ms(uint64_t now_ns, uint64_t ms)
{
    return ms > UINT64_MAX / CLOCK_NS_PER_MS ? UINT64_MAX
                                             : clock_after(now_ns, ms * CLOCK_NS_PER_MS);
}

/* When it has been quiet for long enough. */
static uint64_t call_quiet_ns(const struct model_call *call)
{
    return after_ms(call->news_ns, call->pace.number);
}

/* Until the next check, if nothing comes. */
static void call_sleep(const struct model_call *call, uint64_t now)
{
    uint64_t next = call->held_since_ns ? UINT64_MAX : call->deadline_ns;

    if (!call_is_stored(call) && call->start_ns + MODEL_CALL_EARLY_NS < next)
        next = call->start_ns + MODEL_CALL_EARLY_NS;
    if (call->pace.until == MODEL_UNTIL_QUIET && !call->held_since_ns && call_quiet_ns(call) < next)
        next = call_quiet_ns(call);
    loop_timer_start(call->timer, next > now ? next - now : 0);
}

static void call_check(void *data)
{
    struct model_call *call = data;
    uint64_t now = clock_now_ns();
    bool has_clock = !call->held_since_ns;

    if (call->pace.until == MODEL_UNTIL_QUIET && has_clock && now >= call_quiet_ns(call))
        call->is_met = true;
    if (job_end(call->job) || call->is_met || (has_clock && now >= call->deadline_ns)) {
        call_finish(call);
        return;
    }
    if (!call_is_stored(call) && now >= call->start_ns + MODEL_CALL_EARLY_NS)
        call_store(call);
    call_sleep(call, now);
}

static void call_wake(struct model_call *call)
{
    loop_timer_start(call->timer, 0);
}

/* --- what wakes it --- */

static void call_release(struct model_call *call)
{
    uint64_t span = clock_now_ns() - call->held_since_ns;

    call->held_since_ns = 0;
    call->deadline_ns = clock_after(call->deadline_ns, span);
    call->news_ns = clock_after(call->news_ns, span);
}

static void on_job(struct job_watch *watch, enum job_event event)
{
    struct model_call *call = container_of(watch, struct model_call, job_watch);

    if (event == JOB_HELD)
        call->held_since_ns = clock_now_ns();
    else if (event == JOB_RELEASED)
        call_release(call);
    if (event == JOB_ENDED || event == JOB_RELEASED)
        call_wake(call);
}

static void on_output(struct output_watch *watch)
{
    struct model_call *call = container_of(watch, struct model_call, output_watch);

    if (call->pace.until == MODEL_UNTIL_QUIET)
        call->news_ns = clock_now_ns();
    if (!call->is_met && call_has_news(call)) {
        call->is_met = true;
        call_wake(call);
    }
}

static void on_text(void *data)
{
    struct model_call *call = data;
    struct output_record record = {.kind = OUTPUT_BYTES};
    char piece[4096];

    while (!call->is_met && (record.kind == OUTPUT_BYTES || record.kind == OUTPUT_GAP)) {
        reader_read(call->reader, piece, sizeof piece, &record);
        if (record.kind == OUTPUT_GAP)
            match_reset(call->match);
        else if (record.kind == OUTPUT_BYTES)
            call->is_met = match_feed(call->match, record.stream, piece, (size_t)record.len, NULL);
    }
    if (call->is_met)
        call_wake(call);
}

/* --- life --- */

/* wait_for comes back by itself, so it may be as short as a write and as long as a poll. */
static struct yield call_yield(const struct model_calls *calls, const struct call_options *options)
{
    const uint64_t *asked = options->pace->yield_ms;
    struct yield yield = yield_clamp(options->yield, asked, calls->options.poll_max_ms);

    if (options->kind != MODEL_CALL_WAIT)
        return yield;
    yield.min_ms = yield_clamp(YIELD_WRITE, NULL, 0).min_ms;
    if (!asked) {
        yield.ms = yield.max_ms;
    } else if (*asked < yield.max_ms) {
        yield.ms = *asked < yield.min_ms ? yield.min_ms : *asked;
        yield.was_clamped = yield.ms != *asked;
    }
    return yield;
}

static void call_listen(struct model_call *call, uint64_t offset)
{
    struct output *output = job_output(call->job);
    const struct reader_options reader = {
        .offset = offset, .unit = OUTPUT_BY_RUN, .on_ready = on_text, .data = call};

    call->job_watch.on_event = on_job;
    job_watch(call->job, &call->job_watch);
    call->output_watch.on_new = on_output;
    output_watch(output, &call->output_watch);
    if (call->match) {
        call->reader = reader_new(output, &reader);
        on_text(call);
    }
}

struct model_call *call_new(struct model_calls *calls, const struct call_options *options)
{
    const struct model_pace *pace = options->pace;
    struct model_call *call = alloc_zero(1, sizeof *call);
    struct err ignored; /* the text is short enough: that was checked before anything was started */

    call->calls = calls;
    call->kind = options->kind;
    call->job = options->job;
    call->id = options->id;
    call->pace = *pace;
    call->max_tokens = pace->max_tokens ? *pace->max_tokens : MODEL_TOKENS_DEFAULT;
    call->yield = call_yield(calls, options);
    call->yield_note = model_note_yield(&call->yield, pace->yield_ms);
    call->start_ns = call->news_ns = clock_now_ns();
    call->deadline_ns =
        call->kind == MODEL_CALL_TERMINATE ? UINT64_MAX : after_ms(call->start_ns, call->yield.ms);
    if (pace->until == MODEL_UNTIL_TEXT)
        call->match = match_new(pace->text, pace->text_len, &ignored);
    call->note = options->note;
    call->on_done = options->on_done;
    call->data = options->data;
    if (job_is_held(call->job))
        call->held_since_ns = call->start_ns;
    call->timer = loop_timer_new(calls->options.loop, call_check, call);
    list_add(&calls->waiting, &call->in_waiting);
    call_sleep(call, call->start_ns);
    call_listen(call, options->offset);
    call->is_met |= call_has_news(call);
    if (call->is_met || job_end(call->job))
        call_wake(call);
    return call;
}

int model_call_id(const struct model_call *call)
{
    return call->id;
}
