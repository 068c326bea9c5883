/* A file as lines, what of a line counts at each of the four levels of matching, and where in a file
 * some lines are. */
#pragma once

#include "base/err.h"
#include "patch/patch.h"

#include <stdbool.h>
#include <stddef.h>

enum { LINES_MAX = 2 << 20 }; /* lines of one file */

enum line_end { LINE_NO_END, LINE_LF, LINE_CRLF };

struct line {
    struct span text; /* without its ending */
    enum line_end end;
};

/* A text that ends with a line feed has no empty line behind it; an empty text has no lines. */
struct lines {
    struct line *items;
    size_t len;
    size_t cap;
};

/* Borrows the text. ERR_LIMIT beyond LINES_MAX. */
int lines_split(const char *text, size_t len, struct lines *ret, struct err *err);
void lines_done(struct lines *lines);

/* "\n", "\r\n" or "" */
const char *line_end_text(enum line_end end);

/* How alike lines have to be, strictest first. */
enum line_level {
    LINE_EXACT,
    LINE_TRIM_END, /* but for white space at the end */
    LINE_TRIM,     /* ... at both ends */
    LINE_PLAIN,    /* ... and typographic dashes, quotes and spaces for those of ASCII */
    LINE_LEVELS,
};

/* What of the text counts at this level: a part of it, or for LINE_PLAIN what is written to
 * `scratch`, which has room for as many bytes. */
struct span line_key(enum line_level level, struct span text, char *scratch);

/* Without the white space (Unicode's White_Space) at both ends, or at the end only. */
struct span span_trim(struct span span);
struct span span_trim_end(struct span span);

/* --- where are these lines? ---
 *
 * An index per level of likeness: every line has a number, equal lines the same one, and every
 * number its positions in order. So a run of lines is looked for only where the rarest of them
 * stands, and a line that is nowhere ends the search at once. */

struct line_index;

/* Borrows the lines. */
struct line_index *line_index_new(const struct lines *lines);
void line_index_free(struct line_index *index);

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
