/* A file as lines, and what of a line counts at each of the four levels of matching
 * (spec/exec-core.md 8.2). */
#pragma once

#include "base/err.h"
#include "patch/patch.h"

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

/* Without the white space (Unicode's White_Space) at both ends. */
struct span span_trim(struct span span);
