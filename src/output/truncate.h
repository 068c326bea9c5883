/* Cutting the middle out of a text for a model, in the forms that models know
 * (docs/model-calls.md). Texts are valid UTF-8. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum truncate_unit {
    TRUNCATE_TOKENS, /* of four bytes */
    TRUNCATE_BYTES,
};

struct truncate_budget {
    enum truncate_unit unit;
    uint64_t limit; /* in that unit; UINT64_MAX: none */
};

uint64_t truncate_budget_bytes(struct truncate_budget budget);

/* The one that allows fewer bytes; the first when both allow the same. */
struct truncate_budget truncate_budget_min(struct truncate_budget a, struct truncate_budget b);

/* Tokens that so many bytes count for: a quarter, rounded up. */
uint64_t truncate_tokens(uint64_t bytes);

/* Appends the text; when it is longer than the budget, half of the budget (rounded down) of its
 * beginning and the rest of its end, trimmed to whole characters, and "…N tokens truncated…" or
 * "…N chars truncated…" between them, which the budget does not count. An empty budget gives the
 * marker alone. false when the limit of `out` is passed; it may hold a part of it then. */
bool truncate_middle(const char *text, size_t len, struct truncate_budget budget, struct buf *out);

/* A text out of which something may be missing already. */
struct truncate_source {
    const char *text;
    size_t len;
    uint64_t total;   /* bytes that it stands for */
    uint64_t omitted; /* 0, or the number in the marker of headtail.h that it holds */
};

/* As truncate_middle(), with lines before the text when something is cut:
 *
 *     Warning: truncated output (original token count: N)
 *     Total output lines: L           or, when something is missing already and the cut text has no
 *                                     marker for it any more: ... N bytes omitted ...
 *     (an empty line)
 */
bool truncate_formatted(const struct truncate_source *source, struct truncate_budget budget,
                        struct buf *out);
