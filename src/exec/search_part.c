/* See search_part.h. */
#include "exec/search_part.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { PART_CAP_MIN = 128 };

void search_part_done(struct search_part *part)
{
    free(part->text);
    *part = (struct search_part){0};
}

void search_part_add(struct search_part *part, const char *bytes, size_t len)
{
    size_t cap = part->cap ? part->cap : PART_CAP_MIN;

    while (cap < part->len + len)
        cap *= 2;
    if (cap != part->cap) {
        part->text = alloc_resize(part->text, cap, 1);
        part->cap = cap;
    }
    if (len)
        memcpy(part->text + part->len, bytes, len);
    part->len += len;
}

void search_part_set(struct search_part *part, const struct search_part *from, size_t max)
{
    part->len = 0;
    search_part_add(part, from->text, from->len < max ? from->len : max);
    part->number = from->number;
    part->offset = from->offset;
    part->cut = from->cut | (part->len < from->len ? SEARCH_CUT_END : 0);
}

void search_part_show(const struct search_part *part, size_t max, struct search_line *line)
{
    size_t lead = line->match_len < max ? (max - line->match_len) / 2 : 0;
    size_t len = part->len < max ? part->len : max;
    size_t from = 0;

    if (line->match_at + line->match_len > max)
        from = line->match_at > lead ? line->match_at - lead : 0;
    if (from > part->len - len)
        from = part->len - len;
    line->line = part->number;
    line->offset = part->offset + from;
    line->text = part->text + from;
    line->len = len;
    line->cut =
        part->cut | (from ? SEARCH_CUT_BEGIN : 0) | (from + len < part->len ? SEARCH_CUT_END : 0);
    line->match_at -= from;
    if (line->match_len > len - line->match_at)
        line->match_len = len - line->match_at;
}

void search_context_init(struct search_context *context, size_t cap)
{
    *context =
        (struct search_context){.parts = alloc_zero(cap, sizeof *context->parts), .cap = cap};
}

void search_context_done(struct search_context *context)
{
    for (size_t i = 0; i < context->cap; i++)
        search_part_done(&context->parts[i]);
    free(context->parts);
    *context = (struct search_context){0};
}

void search_context_push(struct search_context *context, const struct search_part *part, size_t max)
{
    if (!context->cap)
        return;
    search_part_set(&context->parts[context->next], part, max);
    context->next = (context->next + 1) % context->cap;
    if (context->len < context->cap)
        context->len++;
}

const struct search_part *search_context_pop(struct search_context *context)
{
    size_t at = context->next + context->cap - context->len;

    if (!context->len)
        return NULL;
    context->len--;
    return &context->parts[at % context->cap];
}
