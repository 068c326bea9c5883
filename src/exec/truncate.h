/* Cutting the middle out of a text for a model, in the forms that models know
 * (spec/unified-exec.md 11, "Truncation forms"). Texts are valid UTF-8. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define TRUNCATE_BYTES_PER_TOKEN 4

enum truncate_unit { TRUNCATE_TOKENS, TRUNCATE_BYTES };

struct truncate_budget {
    enum truncate_unit unit;
    uint64_t limit; /* in that unit */
};

uint64_t truncate_budget_bytes(struct truncate_budget budget);

/* The one that allows fewer bytes; the first when they allow the same. */
struct truncate_budget truncate_budget_min(struct truncate_budget a, struct truncate_budget b);

/* Tokens that so many bytes count for: a quarter, rounded up. */
uint64_t truncate_tokens(uint64_t bytes);

/* Appends the text, its middle cut out when it is longer than the budget: half of the budget (less
 * when it is odd) of its beginning and the rest of its end, both cut at characters, with
 * "…N tokens truncated…" or "…N chars truncated…" between them, which the budget does not count. An
 * empty budget gives the marker alone. false when the limit of `out` is passed. */
bool truncate_middle(const char *text, size_t len, struct truncate_budget budget, struct buf *out);

/* The same, and when something is cut a header before it:
 *
 *     Warning: truncated output (original token count: N)
 *     Total output lines: L
 *
 *     cut text
 *
 * When bytes were already left out (`omitted` > 0, `text` holds the marker of headtail.h) they
 * count into N, and the second line is that marker without its newlines, or missing if the cut text
 * still has it. */
bool truncate_formatted(const char *text, size_t len, uint64_t omitted,
                        struct truncate_budget budget, struct buf *out);
