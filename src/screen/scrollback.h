/* The lines that left a screen at its top: the newest of them, within bounds. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Zeroed but for its bounds it is empty. */
struct scrollback {
    size_t lines_max;
    size_t bytes_max; /* of text, with one byte more for each line */
    char **lines;     /* a ring of `cap` places */
    size_t cap;
    size_t first;
    size_t len; /* lines that are kept */
    size_t bytes;
    uint64_t total; /* lines that ever came */
};

void scrollback_done(struct scrollback *back);

/* Copies the text; the oldest lines make room for it. What does not fit alone is not kept. */
void scrollback_add(struct scrollback *back, const char *text, size_t len);
void scrollback_clear(struct scrollback *back);

/* Line `i` of `len`, 0 is the oldest; good until the next call. */
const char *scrollback_line(const struct scrollback *back, size_t i);
