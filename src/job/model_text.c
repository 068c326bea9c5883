/* See model_text.h. */
#include "job/model_text.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "output/headtail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

void model_chunk_id(uint32_t number, char ret_id[MODEL_CHUNK_ID_SIZE])
{
    snprintf(ret_id, MODEL_CHUNK_ID_SIZE, "%06" PRIx32, number & 0xffffff);
}

int model_chunk_id_random(char ret_id[MODEL_CHUNK_ID_SIZE], struct err *err)
{
    uint32_t number;

    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return err_sys(err, "asking for a random number");
    model_chunk_id(number, ret_id);
    return 0;
}

/* Everything before the text. The time is rounded as a double, since that is how it was always
 * made. */
static bool append_header(const struct model_response *response, struct buf *out)
{
    uint64_t ns = response->wall_ns;
    double seconds =
        (double)(ns / CLOCK_NS_PER_S) + (double)(ns % CLOCK_NS_PER_S) / (double)CLOCK_NS_PER_S;
    bool fits = !response->chunk_id || !*response->chunk_id ||
                buf_appendf(out, "Chunk ID: %s\n", response->chunk_id);

    fits = fits && buf_appendf(out, "Wall time: %.4f seconds\n", seconds);
    if (response->end == MODEL_EXITED)
        fits = fits && buf_appendf(out, "Process exited with code %d\n", response->number);
    else if (response->end == MODEL_RUNNING)
        fits = fits && buf_appendf(out, "Process running with session ID %d\n", response->number);
    fits = fits && buf_appendf(out, "Original token count: %" PRIu64 "\n",
                               truncate_tokens(headtail_total(response->output)));
    for (char *const *note = response->notes; note && *note; note++)
        fits = fits && buf_appendf(out, "Note: %s\n", *note);
    return fits && buf_append_str(out, "Output:\n");
}

/* A budget that is smaller by at least `bytes`, if it can be. */
static struct truncate_budget budget_less(struct truncate_budget budget, uint64_t bytes)
{
    uint64_t units = budget.unit == TRUNCATE_TOKENS ? truncate_tokens(bytes) : bytes;

    budget.limit = units < budget.limit ? budget.limit - units : 0;
    return budget;
}

/* Cuts until what is cut, which brings lines of its own, fits into `max` bytes. */
static bool append_text(const struct truncate_source *source, struct truncate_budget budget,
                        uint64_t max, struct buf *out)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    truncate_formatted(source, budget, &text);
    while (text.len > max && budget.limit) {
        uint64_t bytes = truncate_budget_bytes(budget);

        /* one that allows more than there is would first have to shrink to that */
        if (bytes > source->len)
            budget = budget_less(budget, bytes - source->len);
        budget = budget_less(budget, text.len - max);
        buf_clear(&text);
        truncate_formatted(source, budget, &text);
    }
    return buf_append(out, text.data, text.len);
}

bool model_text_format(const struct model_response *response, struct buf *out)
{
    const struct truncate_budget asked = {
        .unit = TRUNCATE_TOKENS,
        .limit = response->asked_tokens ? *response->asked_tokens : MODEL_TOKENS_DEFAULT,
    };
    struct truncate_source source = {.total = headtail_total(response->output)};
    uint64_t allowed = truncate_budget_bytes(response->policy);
    /* 1.2 times as many bytes as the policy allows */
    uint64_t max = allowed > UINT64_MAX - allowed / 5 ? UINT64_MAX : allowed + allowed / 5;
    AUTO(buf_done) struct buf header;
    AUTO(buf_done) struct buf text;

    buf_init(&header, SIZE_MAX / 2);
    buf_init(&text, SIZE_MAX / 2);
    if (!append_header(response, &header) ||
        !headtail_render(response->output, &text, &source.omitted))
        return false;
    source.text = text.data ? text.data : "";
    source.len = text.len;
    return buf_append(out, header.data, header.len) &&
           append_text(&source, truncate_budget_min(asked, response->policy),
                       max > header.len ? max - header.len : 0, out);
}

/* One row per kind of call; values of docs/model-calls.md. A default is within its limits, so only
 * what was asked for can be clamped. */
struct yield yield_clamp(enum yield_call call, const uint64_t *asked_ms, uint64_t poll_max_ms)
{
    static const struct yield calls[] = {
        [YIELD_EXEC] = {.ms = 10000, .min_ms = 250, .max_ms = 30000},
        [YIELD_WRITE] = {.ms = 250, .min_ms = 250, .max_ms = 30000},
        [YIELD_POLL] = {.ms = 5000, .min_ms = 5000, .max_ms = YIELD_POLL_MAX_DEFAULT_MS},
    };
    struct yield yield = calls[call];

    if (call == YIELD_POLL && poll_max_ms)
        yield.max_ms = poll_max_ms > yield.min_ms ? poll_max_ms : yield.min_ms;
    if (!asked_ms)
        return yield;
    yield.ms = *asked_ms < yield.min_ms   ? yield.min_ms
               : *asked_ms > yield.max_ms ? yield.max_ms
                                          : *asked_ms;
    yield.was_clamped = yield.ms != *asked_ms;
    return yield;
}

char *model_note_yield(const struct yield *yield, const uint64_t *asked_ms)
{
    if (!yield->was_clamped)
        return NULL;
    return alloc_strf("yield_time_ms: %" PRIu64 " was asked for, %" PRIu64 " was used (%" PRIu64
                      " to %" PRIu64 " is possible)",
                      *asked_ms, yield->ms, yield->min_ms, yield->max_ms);
}
