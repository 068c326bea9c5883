/* See model_call.h. Whatever could make a call come back only starts its timer; the timer alone
 * looks and decides. So a call is never answered from inside somebody else's callback, and there is
 * one place that says when one is over:
 *
 *     end of the command        -> now
 *     new output                -> now, if that is what it waits for
 *     150 ms, still running     -> the job is stored
 *     quiet for long enough     -> now, or as much later as was written since
 *     deadline                  -> now
 *
 * A call that is cancelled has taken nothing, since output is taken when it is answered. */
#include "job/model_call.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "output/match.h"
#include "output/model_cursor.h"
#include "output/reader.h"

#include <stdlib.h>

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

static uint64_t call_quiet_ns(const struct model_call *call)
{
    return after_ms(call->news_ns, call->pace.number);
}

/* When to look next, if nothing comes. */
static uint64_t call_next_ns(const struct model_call *call)
{
    uint64_t next = call->deadline_ns;

    if (!call_is_stored(call) && call->start_ns + MODEL_CALL_EARLY_NS < next)
        next = call->start_ns + MODEL_CALL_EARLY_NS;
    if (call->pace.until == MODEL_UNTIL_QUIET && call_quiet_ns(call) < next)
        next = call_quiet_ns(call);
    return next;
}

static void call_sleep(struct model_call *call, uint64_t now)
{
    uint64_t next = call_next_ns(call);

    loop_timer_start(call->timer, next > now ? next - now : 0);
}

static void call_look(void *data)
{
    struct model_call *call = data;
    uint64_t now = clock_now_ns();

    if (call->pace.until == MODEL_UNTIL_QUIET && now >= call_quiet_ns(call))
        call->is_met = true;
    if (job_end(call->job) || call->is_met || now >= call->deadline_ns) {
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

static void on_session(struct job_watch *watch, enum job_event event)
{
    if (event == JOB_ENDED)
        call_wake((struct model_call *)watch);
}

static void on_output(struct output_watch *watch)
{
    void *whole = (char *)watch - offsetof(struct model_call, output_watch);
    struct model_call *call = whole;

    if (call->pace.until == MODEL_UNTIL_QUIET)
        call->news_ns = clock_now_ns();
    if (!call->is_met && call_has_news(call)) {
        call->is_met = true;
        call_wake(call);
    }
}

static void on_text(void *data, enum reader_event event)
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
        .offset = offset, .unit = OUTPUT_BY_RUN, .on_event = on_text, .data = call};

    call->job_watch.on_event = on_session;
    job_watch(call->job, &call->job_watch);
    call->output_watch.on_new = on_output;
    output_watch(output, &call->output_watch);
    if (call->match) {
        call->reader = reader_new(output, &reader);
        on_text(call, READER_READY);
    }
}

static void call_link(struct model_call *call)
{
    call->next = call->calls->waiting;
    if (call->next)
        call->next->previous = call;
    call->calls->waiting = call;
}

static void call_unlink(struct model_call *call)
{
    if (call->next)
        call->next->previous = call->previous;
    if (call->previous)
        call->previous->next = call->next;
    else
        call->calls->waiting = call->next;
}

/* The text is short enough: that was checked before anything was started. */
static struct match *call_match(const struct model_pace *pace)
{
    struct err ignored;

    return pace->until == MODEL_UNTIL_TEXT ? match_new(pace->text, pace->text_len, &ignored) : NULL;
}

struct model_call *call_new(struct model_calls *calls, const struct call_options *options)
{
    const struct model_pace *pace = options->pace;
    struct model_call *call = alloc_zero(1, sizeof *call);

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
    call->match = call_match(pace);
    call->note = options->note;
    call->on_done = options->on_done;
    call->data = options->data;
    call->timer = loop_timer_new(calls->options.loop, call_look, call);
    call_link(call);
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

void call_free(struct model_call *call)
{
    struct job *job = call->job;
    struct model_calls *calls = call->calls;
    bool is_kept = call_is_stored(call);

    call_unlink(call);
    reader_free(call->reader);
    output_unwatch(job_output(job), &call->output_watch);
    job_unwatch(job, &call->job_watch);
    loop_timer_free(call->timer);
    match_free(call->match);
    free(call->yield_note);
    free(call);
    if (!is_kept && !model_calls_has_call(calls, job))
        model_calls_leave(calls, job);
}
