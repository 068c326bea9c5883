/* Where in a file are these lines? An index per level of likeness: every line has a number, equal
 * lines the same one, and every number its positions in order. So a run of lines is looked for
 * only where the rarest of them stands, and a line that is nowhere ends the search at once. */
#pragma once

#include "base/err.h"
#include "patch/lines.h"

#include <stdbool.h>
#include <stddef.h>

struct line_index;

/* Borrows the lines. */
struct line_index *line_index_new(const struct lines *lines);
void line_index_free(struct line_index *index);

static inline void line_index_auto(struct line_index **slot)
{
    line_index_free(*slot);
}

struct line_search {
    const struct span *wanted;
    size_t len;     /* at least 1 */
    size_t start;   /* the first position that counts */
    bool is_at_end; /* only the last position where they would fit counts */
};

/* The first position, from 0, of the wanted lines at the strictest level at which there is one.
 * `*ret_found` tells whether there is; ERR_LIMIT when the file is so much like itself that looking
 * takes too long. */
int line_index_find(struct line_index *index, const struct line_search *search, bool *ret_found,
                    size_t *ret_at, struct err *err);
