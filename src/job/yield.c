/* See yield.h. One row per kind of call; values of docs/model-calls.md. A default is within its
 * limits, so only what was asked for can be clamped. */
#include "job/yield.h"

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
