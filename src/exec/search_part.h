/* A line of a search, or a part of one, and a circle of those that came last. Internal to
 * search.h. */
#pragma once

#include "exec/search.h"

struct search_part {
    char *text; /* never NULL after the first search_part_add() */
    size_t len;
    size_t cap;
    uint64_t number;
    uint64_t offset; /* of text[0] */
    unsigned cut;    /* SEARCH_CUT_* */
};

void search_part_done(struct search_part *part);
void search_part_add(struct search_part *part, const char *bytes, size_t len);

/* Copies the first `max` bytes of `from`, and says so if that is not all. */
void search_part_set(struct search_part *part, const struct search_part *from, size_t max);

/* Completes a line whose kind and match (in the part) are set: at most `max` bytes of the part,
 * those around the match if there is one. The text stays the part's. */
void search_part_show(const struct search_part *part, size_t max, struct search_line *line);

struct search_context {
    struct search_part *parts;
    size_t cap;
    size_t next;
    size_t len;
};

void search_context_init(struct search_context *context, size_t cap);
void search_context_done(struct search_context *context);
void search_context_push(struct search_context *context, const struct search_part *part,
                         size_t max);

/* The oldest, taken out; NULL when there is none. Valid until the next push. */
const struct search_part *search_context_pop(struct search_context *context);
