/* See screen.h. libvterm 0.1.4 keeps the cells; but the bytes come out of a sandbox, and it was not
 * written for such: among others, seventeen parameters of one sequence overwrite its memory, REP
 * behind nothing never ends, U+0080 moves the cursor out of the screen, a character cut in two at
 * the end of a write passes the end of an array, and combining characters use memory without bound.
 * So not one byte reaches it unseen:
 *
 *     bytes --vt_next()--> whole tokens --a table of the harmless ones--> written anew --> libvterm
 *
 * Invariants that the library's soundness rests on:
 * - Every write to it is one whole token: its parser is always at the beginning.
 * - Text is ASCII alone, or one other character of valid UTF-8 from U+00A0 on.
 * - Sequences have at most two parameters of at most VT_PARAM_LIMIT, none of them strings.
 * - There are no lines of double width, no left and right margins, so many columns that whatever is
 * printed at the margin moves the cursor, at the next wrap at the latest.
 * - The place that DECSC saved and the scrolling region lie on the screen, also after a resize.
 *
 * Colours and other looks are left out as well: nobody reads them, and most sequences are of them.
 */
#include "screen/screen.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "screen/screen_part.h"

#include <stdlib.h>

enum { WORK_MAX = 4 << 20 }; /* of one screen_feed() */

/* --- cells to text --- */

static void append_code_point(struct buf *ret, uint32_t c)
{
    const char bytes[] = {(char)(c < 0x80      ? c
                                 : c < 0x800   ? 0xc0 | c >> 6
                                 : c < 0x10000 ? 0xe0 | c >> 12
                                               : 0xf0 | c >> 18),
                          (char)(0x80 | (c >> 12 & 0x3f)), (char)(0x80 | (c >> 6 & 0x3f)),
                          (char)(0x80 | (c & 0x3f))};
    size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

    buf_append(ret, bytes, 1);
    buf_append(ret, bytes + 4 - more, more);
}

/* The second half of a wide character is (uint32_t)-1; it stays behind when the first is written
 * over. */
static void append_cell(struct buf *ret, const VTermScreenCell *cell, bool *is_wide)
{
    uint32_t first = cell->chars[0];

    if (first == (uint32_t)-1) {
        if (!*is_wide)
            buf_append(ret, " ", 1);
        *is_wide = false;
        return;
    }
    if (!first)
        buf_append(ret, " ", 1);
    for (size_t i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell->chars[i]; i++)
        append_code_point(ret, cell->chars[i]);
    *is_wide = cell->width == 2 && first >= 0x300; /* no wide character is below */
}

static void trim(struct buf *buf)
{
    while (buf->len && buf->data[buf->len - 1] == ' ')
        buf->data[--buf->len] = '\0';
}

bool screen_row(const struct screen *screen, unsigned row, struct buf *ret)
{
    AUTO(buf_done) struct buf text = {0};
    VTermPos pos = {.row = (int)row};
    VTermScreenCell cell;
    bool is_wide = false;

    if (row >= screen->rows)
        return true;
    buf_init(&text, SIZE_MAX / 2);
    for (; pos.col < (int)screen->columns; pos.col++) {
        vterm_screen_get_cell(screen->cells, pos, &cell);
        append_cell(&text, &cell, &is_wide);
    }
    trim(&text);
    return buf_append(ret, text.data, text.len);
}

/* --- what libvterm tells --- */

static int on_line(int columns, const VTermScreenCell *cells, void *data)
{
    struct screen *screen = data;
    bool is_wide = false;

    buf_clear(&screen->line);
    for (int i = 0; i < columns; i++)
        append_cell(&screen->line, &cells[i], &is_wide);
    trim(&screen->line);
    scrollback_add(&screen->back, screen->line.data, screen->line.len);
    return 1;
}

static int on_property(VTermProp property, VTermValue *value, void *data)
{
    struct screen *screen = data;

    if (property == VTERM_PROP_CURSORVISIBLE)
        screen->is_cursor_visible = value->boolean;
    else if (property == VTERM_PROP_ALTSCREEN)
        screen->is_alternate = value->boolean;
    return 1;
}

static const VTermScreenCallbacks with_scrollback = {.settermprop = on_property,
                                                     .sb_pushline = on_line};
static const VTermScreenCallbacks without_scrollback = {.settermprop = on_property};

/* --- bytes --- */

size_t screen_feed(struct screen *screen, const char *bytes, size_t len)
{
    struct vt_token token;
    size_t taken = 0;

    screen->work = 0;
    while (taken < len && screen->work < WORK_MAX) {
        taken += vt_next(&screen->vt, bytes + taken, len - taken, &token);
        screen_show(screen, &token);
        screen->work++;
    }
    return taken;
}

/* --- life --- */

/* libvterm wants its memory zeroed. */
static void *vterm_alloc(size_t size, void *data)
{
    return alloc_zero(1, size);
}

static void vterm_release(void *block, void *data)
{
    free(block);
}

static VTermAllocatorFunctions allocator = {.malloc = vterm_alloc, .free = vterm_release};

static unsigned bounded(unsigned number, unsigned otherwise, unsigned min, unsigned max)
{
    if (!number)
        return otherwise;
    return number < min ? min : number > max ? max : number;
}

static void set_size(struct screen *screen, struct pty_size size)
{
    screen->rows = bounded(size.rows, PTY_DEFAULT_ROWS, SCREEN_ROWS_MIN, SCREEN_ROWS_MAX);
    screen->columns =
        bounded(size.columns, PTY_DEFAULT_COLUMNS, SCREEN_COLUMNS_MIN, SCREEN_COLUMNS_MAX);
}

struct screen *screen_new(const struct screen_options *options)
{
    struct screen *screen = alloc_zero(1, sizeof *screen);

    set_size(screen, options->size);
    screen->back.lines_max = options->limits.lines_max;
    screen->back.bytes_max = options->limits.bytes_max;
    buf_init(&screen->line, SIZE_MAX / 2);
    screen->vterm =
        vterm_new_with_allocator((int)screen->rows, (int)screen->columns, &allocator, NULL);
    vterm_set_utf8(screen->vterm, 1);
    screen->cells = vterm_obtain_screen(screen->vterm);
    vterm_screen_set_callbacks(
        screen->cells, options->limits.lines_max ? &with_scrollback : &without_scrollback, screen);
    vterm_screen_set_damage_merge(screen->cells, VTERM_DAMAGE_SCREEN); /* we do not listen to it */
    vterm_screen_reset(screen->cells, 1);
    screen_save_cursor(screen); /* DECRC before any DECSC would hide the cursor */
    return screen;
}

void screen_free(struct screen *screen)
{
    if (!screen)
        return;
    vterm_free(screen->vterm);
    scrollback_done(&screen->back);
    buf_done(&screen->line);
    free(screen);
}

/* DECRC does not look where it goes: a saved place that is no longer there has to be replaced. */
static void bound_saved(struct screen *screen)
{
    VTermPos pos = screen_cursor(screen);
    VTermPos saved = screen->saved;

    if (saved.row < (int)screen->rows && saved.col < (int)screen->columns)
        return;
    screen_put_position(screen, saved); /* as near as there is */
    screen_save_cursor(screen);
    screen_put_position(screen, pos);
}

void screen_resize(struct screen *screen, struct pty_size size)
{
    VTermPos pos = screen_cursor(screen);

    screen_put(screen,
               "\033[?6l\033[r"); /* a region is not bounded by the new size, and goes home */
    screen_put_position(screen, pos);
    set_size(screen, size);
    vterm_set_size(screen->vterm, (int)screen->rows, (int)screen->columns);
    pos = screen_cursor(screen); /* above the screen, if rows of text below it made others leave */
    screen_put_position(screen, (VTermPos){.row = pos.row < 0 ? 0 : pos.row, .col = pos.col});
    bound_saved(screen);
}

/* --- what is shown --- */

void screen_info(const struct screen *screen, struct screen_info *ret)
{
    VTermPos pos = screen_cursor(screen);

    *ret = (struct screen_info){
        .rows = screen->rows,
        .columns = screen->columns,
        .cursor_row = (unsigned)pos.row,
        .cursor_column = (unsigned)pos.col,
        .is_cursor_visible = screen->is_cursor_visible,
        .is_alternate = screen->is_alternate,
        .title = screen->title,
        .lines = screen->back.len,
        .lines_total = screen->back.total,
    };
}

const char *screen_line(const struct screen *screen, size_t i)
{
    return i < screen->back.len ? scrollback_line(&screen->back, i) : "";
}
