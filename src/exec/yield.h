/* How long a call waits before it returns (spec/unified-exec.md 1). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define YIELD_MIN_MS 250
#define YIELD_MAX_MS 30000
#define YIELD_POLL_MIN_MS 5000
#define YIELD_POLL_MAX_DEFAULT_MS 300000

enum yield_call {
    YIELD_EXEC,  /* exec_command; 10 s unless asked otherwise */
    YIELD_WRITE, /* write_stdin with something to write; 250 ms */
    YIELD_POLL,  /* write_stdin with nothing to write; 250 ms, raised to 5 s */
};

struct yield {
    uint64_t ms;
    bool was_clamped; /* something else was asked for; a default that is raised does not count */
};

/* `asked_ms` NULL: the default of the call. `poll_max_ms` counts for YIELD_POLL only, 0 is the
 * default; below YIELD_POLL_MIN_MS it is raised to that. */
struct yield yield_clamp(enum yield_call call, const uint64_t *asked_ms, uint64_t poll_max_ms);
