/* struct cordon_screen of cordon.h: a copy of what a session's terminal shows, so that the host may
 * keep it as long as it likes. */
#include "libcordon/engine.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "screen/screen.h"

#include <stdlib.h>

struct view {
    struct cordon_screen screen; /* first, so that one is the other */
    char *title;
    char *text;
    char *scrollback;
};

const struct screen_limits *view_limits(unsigned flags)
{
    static const struct screen_limits limits = {.lines_max = 1000, .bytes_max = 1 << 18};

    return flags & CORDON_SCREEN ? &limits : NULL;
}

static void fill_text(struct view *view, const struct screen *screen, unsigned rows)
{
    struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    for (unsigned row = 0; row < rows; row++) {
        screen_row(screen, row, &text);
        buf_append(&text, "\n", 1);
    }
    view->screen.text_len = text.len;
    view->screen.text = view->text = buf_take(&text);
}

static void fill_scrollback(struct view *view, const struct screen *screen, size_t lines)
{
    struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    for (size_t i = 0; i < lines; i++)
        buf_appendf(&text, "%s\n", screen_line(screen, i));
    view->screen.scrollback_len = text.len;
    view->screen.scrollback = view->scrollback = buf_take(&text);
}

struct cordon_screen *view_new(const struct screen *screen, struct err *err)
{
    struct screen_info info;
    struct view *view;

    if (!screen) {
        err_set(err, ERR_INVALID, "the session was started without CORDON_TTY | CORDON_SCREEN");
        return NULL;
    }
    screen_info(screen, &info);
    view = alloc_zero(1, sizeof *view);
    view->screen = (struct cordon_screen){
        .rows = info.rows,
        .columns = info.columns,
        .cursor_row = info.cursor_row,
        .cursor_column = info.cursor_column,
        .cursor_visible = info.is_cursor_visible,
        .alternate = info.is_alternate,
    };
    view->screen.title = view->title = alloc_str(info.title);
    fill_text(view, screen, info.rows);
    fill_scrollback(view, screen, info.lines);
    return &view->screen;
}

void cordon_screen_free(struct cordon_screen *screen)
{
    struct view *view = (struct view *)screen;

    if (!view)
        return;
    free(view->title);
    free(view->text);
    free(view->scrollback);
    free(view);
}
