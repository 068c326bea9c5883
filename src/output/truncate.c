/* See truncate.h. Everything follows from where the kept beginning ends and the kept end begins. */
#include "output/truncate.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "output/headtail.h"

#include <inttypes.h>
#include <string.h>

enum { BYTES_PER_TOKEN = 4 };

#define ELLIPSIS "\xe2\x80\xa6"

uint64_t truncate_tokens(uint64_t bytes)
{
    return bytes / BYTES_PER_TOKEN + (bytes % BYTES_PER_TOKEN != 0);
}

uint64_t truncate_budget_bytes(struct truncate_budget budget)
{
    if (budget.unit == TRUNCATE_BYTES)
        return budget.limit;
    return budget.limit > UINT64_MAX / BYTES_PER_TOKEN ? UINT64_MAX
                                                       : budget.limit * BYTES_PER_TOKEN;
}

struct truncate_budget truncate_budget_min(struct truncate_budget a, struct truncate_budget b)
{
    return truncate_budget_bytes(b) < truncate_budget_bytes(a) ? b : a;
}

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

bool truncate_middle(const char *text, size_t len, struct truncate_budget budget, struct buf *out)
{
    uint64_t bytes = truncate_budget_bytes(budget);
    size_t left;
    size_t right;
    uint64_t characters = 0;

    if (len <= bytes)
        return buf_append(out, text, len);
    left = utf8_cut(text, len, (size_t)bytes / 2);
    right = len - (size_t)(bytes - bytes / 2);
    while (right < len && is_continuation(text[right]))
        right++;
    for (size_t i = left; i < right; i++)
        characters += !is_continuation(text[i]);
    return buf_append(out, text, left) &&
           buf_appendf(out, ELLIPSIS "%" PRIu64 " %s truncated" ELLIPSIS,
                       budget.unit == TRUNCATE_TOKENS ? truncate_tokens(len - bytes) : characters,
                       budget.unit == TRUNCATE_TOKENS ? "tokens" : "chars") &&
           buf_append(out, text + right, len - right);
}

/* The line behind the warning, or none. `cut` is what is left of the text. */
static bool append_second_line(const struct truncate_source *source, const struct buf *cut,
                               struct buf *out)
{
    AUTO_FREE char *marker = NULL;
    size_t lines = source->len && source->text[source->len - 1] != '\n';

    if (!source->omitted) {
        for (size_t i = 0; i < source->len; i++)
            lines += source->text[i] == '\n';
        return buf_appendf(out, "Total output lines: %zu\n", lines);
    }
    marker = alloc_strf(HEADTAIL_MARKER, source->omitted);
    return memmem(cut->data, cut->len, marker, strlen(marker)) || buf_appendf(out, "%s\n", marker);
}

bool truncate_formatted(const struct truncate_source *source, struct truncate_budget budget,
                        struct buf *out)
{
    AUTO(buf_done) struct buf cut;

    buf_init(&cut, SIZE_MAX / 2);
    if (source->len <= truncate_budget_bytes(budget))
        return buf_append(out, source->text, source->len);
    return truncate_middle(source->text, source->len, budget, &cut) &&
           buf_appendf(out, "Warning: truncated output (original token count: %" PRIu64 ")\n",
                       truncate_tokens(source->total)) &&
           append_second_line(source, &cut, out) && buf_append_str(out, "\n") &&
           buf_append(out, cut.data, cut.len);
}
