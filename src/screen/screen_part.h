/* The inside of a screen, for screen.c and screen_show.c only. */
#pragma once

#include "base/buf.h"
#include "screen/scrollback.h"
#include "screen/vt_token.h"

#include <stdbool.h>
#include <stddef.h>
#include <vterm.h>

struct screen {
    VTerm *vterm;
    VTermScreen *cells;
    struct vt vt;
    unsigned rows;
    unsigned columns;
    VTermPos saved; /* what DECRC would go to */
    bool is_cursor_visible;
    bool is_alternate;
    bool is_inserting;
    char title[VT_TITLE_MAX + 1];
    char last[4]; /* for REP */
    size_t last_len;
    unsigned combining;
    size_t work; /* of this screen_feed(), in cells that are moved or erased */
    struct scrollback back;
    struct buf line; /* the text of one row that leaves */
};

/* Passes on what the token means; what is not known to be harmless is left out. */
void screen_show(struct screen *screen, const struct vt_token *token);

/* May be above the screen behind vterm_set_size(). */
VTermPos screen_cursor(const struct screen *screen);

/* Complete sequences only. */
void screen_put(struct screen *screen, const char *bytes);
void screen_put_position(struct screen *screen, VTermPos pos);
void screen_save_cursor(struct screen *screen); /* DECSC */
