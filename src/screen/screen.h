/* What a terminal would show of what a program writes to it: rows of text, the cursor, the title.
 * It only looks on: it answers no questions of the program, and knows no colours.
 *
 *     screen_new()
 *       screen_feed() all that the program writes, screen_resize() when its terminal is
 *       screen_info(), screen_row(), screen_line()
 *     screen_free()
 */
#pragma once

#include "process/pty.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct screen;

/* Sizes are brought within these bounds: what a few bytes can set in motion grows with them, and
 * libvterm loses lines of a single row. */
enum {
    SCREEN_ROWS_MIN = 2,
    SCREEN_ROWS_MAX = 300,
    SCREEN_COLUMNS_MIN = 8,
    SCREEN_COLUMNS_MAX = 500,
};

struct screen_limits {
    size_t lines_max; /* of scrollback; 0: none */
    size_t bytes_max; /* of its text */
};

struct screen_options {
    struct pty_size size;
    struct screen_limits limits;
};

/* Takes about 75 KiB at 24x80, as much again once a program asks for the alternate screen. */
struct screen *screen_new(const struct screen_options *options);
void screen_free(struct screen *screen);

/* Shows the next bytes; any will do. Takes as many as cost some 10 ms at most, at least one of
 * `len` (> 0), and says how many. */
size_t screen_feed(struct screen *screen, const char *bytes, size_t len);

/* Text stays where it is; what is cut off at the right or below is lost, rows above the cursor go
 * to the scrollback. Ends scrolling regions. */
void screen_resize(struct screen *screen, struct pty_size size);

struct screen_info {
    unsigned rows;
    unsigned columns;
    unsigned cursor_row; /* from 0 */
    unsigned cursor_column;
    bool is_cursor_visible;
    bool is_alternate; /* without scrollback; editors, pagers */
    const char *title; /* UTF-8, "" when none was set; good until the next screen_feed() */
    size_t lines;      /* of scrollback that are kept */
    uint64_t lines_total;
};

void screen_info(const struct screen *screen, struct screen_info *ret);

/* Appends a row, 0 is the top, without blanks at its end, as valid UTF-8. false when it does not
 * fit; nothing is appended then. A row beyond the last is empty. */
bool screen_row(const struct screen *screen, unsigned row, struct buf *ret);

/* A line of the scrollback, 0 is the oldest; good until the next screen_feed(). */
const char *screen_line(const struct screen *screen, size_t i);
