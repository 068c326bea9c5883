/* How long a call waits before it returns (docs/model-calls.md). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum yield_call {
    YIELD_EXEC,  /* exec_command: 10 s, 250 ms to 30 s */
    YIELD_WRITE, /* write_stdin with something to write: 250 ms, 250 ms to 30 s */
    YIELD_POLL,  /* write_stdin with nothing to write: 5 s, 5 s to the configured maximum */
};

#define YIELD_POLL_MAX_DEFAULT_MS UINT64_C(300000)

struct yield {
    uint64_t ms;
    uint64_t min_ms;
    uint64_t max_ms;
    bool was_clamped; /* something else was asked for */
};

/* `asked_ms` NULL: the default of the call. `poll_max_ms` is the configured maximum of YIELD_POLL,
 * 0 for its default; one below 5 s counts as 5 s. */
struct yield yield_clamp(enum yield_call call, const uint64_t *asked_ms, uint64_t poll_max_ms);
