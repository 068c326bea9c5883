/* See edits.h. Where a patch says itself what it changes, its edits are taken from there; the one
 * edit between two texts is for what several of its sections came to together. */
#include "patch/edits.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "patch/lines.h"

#include <stdlib.h>

void edits_done(struct edits *edits)
{
    free(edits->items);
    *edits = (struct edits){.items = NULL};
}

void edits_add(struct edits *edits, struct edit edit)
{
    struct edit *last = edits->len ? &edits->items[edits->len - 1] : NULL;

    if (last && last->old_at + last->old_len == edit.old_at &&
        last->new_at + last->new_len == edit.new_at) {
        last->old_len += edit.old_len;
        last->new_len += edit.new_len;
        return;
    }
    edits->items = alloc_grow(edits->items, edits->len, &edits->cap, sizeof *edits->items);
    edits->items[edits->len++] = edit;
}

static bool line_eq(const struct line *a, const struct line *b)
{
    return a->end == b->end && span_eq(a->text, b->text);
}

static void edits_trimmed(const struct lines *old, const struct lines *new, struct edits *ret)
{
    size_t most = old->len < new->len ? old->len : new->len;
    size_t head = 0;
    size_t tail = 0;

    while (head < most && line_eq(&old->items[head], &new->items[head]))
        head++;
    while (tail < most - head &&
           line_eq(&old->items[old->len - 1 - tail], &new->items[new->len - 1 - tail]))
        tail++;
    if (old->len - head - tail || new->len - head - tail)
        edits_add(ret, (struct edit){.old_at = head,
                                     .old_len = old->len - head - tail,
                                     .new_at = head,
                                     .new_len = new->len - head - tail});
}

int edits_between(const struct content *before, const struct content *after, struct edits *ret,
                  struct err *err)
{
    AUTO(lines_done) struct lines old = {.items = NULL};
    AUTO(lines_done) struct lines new = {.items = NULL};

    if (lines_split(before->text, before->len, &old, err) ||
        lines_split(after->text, after->len, &new, err))
        return -1;
    *ret = (struct edits){.items = NULL};
    edits_trimmed(&old, &new, ret);
    return 0;
}
