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
 * A sequence that is not named in the table does not exist; what is named was read in libvterm
 * 0.1.4's source, and is harmless with any numbers. Colours and other looks are left out as well:
 * no caller reads them, and most sequences are of them.
 */
#include "screen/screen.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "screen/scrollback.h"
#include "screen/vt_token.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vterm.h>

enum { WORK_MAX = 4 << 20 }; /* of one screen_feed() */
enum { COMBINING_MAX = 16 }; /* characters in a row that do not move the cursor */

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

/* --- what libvterm is told --- */

static VTermPos screen_cursor(const struct screen *screen)
{
    VTermPos pos;

    vterm_state_get_cursorpos(vterm_obtain_state(screen->vterm), &pos);
    return pos;
}

static void screen_put(struct screen *screen, const char *bytes)
{
    vterm_input_write(screen->vterm, bytes, strlen(bytes));
}

static void work_add(struct screen *screen, size_t cells)
{
    screen->work += cells;
}

static void work_add_screen(struct screen *screen)
{
    work_add(screen, (size_t)screen->rows * screen->columns);
}

/* Characters that do not move the cursor may be combining ones, which libvterm gathers. Any that
 * moves it begins a new cell; so does ASCII. */
static void put_text(struct screen *screen, const char *text, size_t len)
{
    VTermPos before = screen_cursor(screen);
    VTermPos after;

    work_add(screen, len * (screen->is_inserting ? screen->columns : 1) + screen->columns);
    if (!(*text & 0x80)) {
        screen->combining = 0;
        vterm_input_write(screen->vterm, text, len);
        return;
    }
    if (screen->combining == COMBINING_MAX)
        return;
    vterm_input_write(screen->vterm, text, len);
    after = screen_cursor(screen);
    if (before.row != after.row || before.col != after.col)
        screen->combining = 0;
    else
        screen->combining++;
}

static void put_csi(struct screen *screen, const char *leader, const unsigned *params, char final)
{
    char text[40];
    char numbers[2][12] = {"", ""};

    for (size_t i = 0; i < 2; i++)
        if (params[i])
            snprintf(numbers[i], sizeof numbers[i], "%u", params[i]);
    snprintf(text, sizeof text, "\033[%s%s%s%s%c", leader, numbers[0], params[1] ? ";" : "",
             numbers[1], final);
    screen_put(screen, text);
}

static void screen_put_position(struct screen *screen, VTermPos pos)
{
    put_csi(screen, "", (unsigned[]){(unsigned)pos.row + 1, (unsigned)pos.col + 1}, 'H');
}

static void screen_save_cursor(struct screen *screen)
{
    screen->saved = screen_cursor(screen);
    screen_put(screen, "\0337");
}

/* --- tokens --- */

static void show_control(struct screen *screen, char c)
{
    const char text[] = {c, '\0'};

    if (c < '\b' || c > '\017') /* BS HT LF VT FF CR SO SI */
        return;
    if (c == '\n' || c == '\v' || c == '\f')
        work_add_screen(screen);
    screen_put(screen, text);
}

static void show_escape(struct screen *screen, const struct vt_token *token)
{
    char text[] = {'\033', token->final, '\0', '\0'};

    work_add_screen(screen);
    if (token->intermediate == '(' || token->intermediate == ')') {
        if (!strchr("0AB", token->final)) /* line drawing, British, ASCII */
            return;
        text[1] = token->intermediate;
        text[2] = token->final;
        screen_put(screen, text);
    } else if (token->intermediate == '#' && token->final == '8') {
        work_add(screen, (size_t)4 * screen->rows * screen->columns);
        screen_put(screen, "\033#8"); /* DECALN */
    } else if (token->intermediate) {
        return;
    } else if (token->final == '7') {
        screen_save_cursor(screen);
    } else if (token->final == 'c') {
        screen_put(screen, "\033[?1047l\033c"); /* RIS alone leaves the alternate screen up */
        screen->is_inserting = false;
    } else if (strchr("8DEHM", token->final)) { /* DECRC IND NEL HTS RI */
        screen_put(screen, text);
    }
}

static void show_private_mode(struct screen *screen, unsigned mode, char final)
{
    switch (mode) {
    case 6:  /* origin */
    case 7:  /* wrap */
    case 25: /* cursor */
        put_csi(screen, "?", (unsigned[]){mode, 0}, final);
        break;
    case 1048:
        if (final == 'h')
            screen_save_cursor(screen);
        else
            screen_put(screen, "\0338");
        break;
    case 47:
    case 1047:
    case 1049:
        work_add_screen(screen);
        vterm_screen_enable_altscreen(screen->cells, 1);
        if (final == 'h' && mode == 1049)
            screen->saved = screen_cursor(screen);
        put_csi(screen, "?", (unsigned[]){mode == 47 ? 1047 : mode, 0}, final);
        break;
    default: /* mice, pasting, colours, double width, margins */
        break;
    }
}

static void show_modes(struct screen *screen, const struct vt_token *token)
{
    for (size_t i = 0; i < token->param_len; i++) {
        unsigned mode = token->params[i];

        if (token->leader == '?') {
            show_private_mode(screen, mode, token->final);
        } else if (!token->leader && (mode == 4 || mode == 20)) {
            if (mode == 4)
                screen->is_inserting = token->final == 'h';
            put_csi(screen, "", (unsigned[]){mode, 0}, token->final);
        }
    }
}

/* ICH CUU CUD CUF CUB CNL CPL CHA CUP CHT ED EL IL DL DCH SU SD ECH CBT HPA HPR VPA VPR HVP TBC
 * HPB VPB DECSTBM */
static const char harmless[] = "@ABCDEFGHIJKLMPSTXZ`adefgjkr";

static void show_plain_csi(struct screen *screen, const struct vt_token *token)
{
    if (strchr("@JLMPST", token->final))
        work_add_screen(screen);
    if (token->final == 'b')
        for (unsigned i = 0; screen->last_len && i < (token->params[0] ? token->params[0] : 1); i++)
            put_text(screen, screen->last, screen->last_len);
    else if (token->final == 'J' && token->params[0] == 3)
        scrollback_clear(&screen->back);
    else if (token->final == 's')
        screen_save_cursor(screen);
    else if (token->final == 'u')
        screen_put(screen, "\0338");
    else if (strchr(harmless, token->final))
        put_csi(screen, "", token->params, token->final);
}

static void show_csi(struct screen *screen, const struct vt_token *token)
{
    if (token->intermediate == '!' && token->final == 'p') { /* DECSTR */
        screen->is_inserting = false;
        screen_put(screen, "\033[4l\033[?6l\033[?7h\033[?25h");
    } else if (token->intermediate) {
        return;
    } else if (token->final == 'h' || token->final == 'l') {
        show_modes(screen, token);
    } else if (!token->leader) {
        show_plain_csi(screen, token);
    }
}

static void screen_show(struct screen *screen, const struct vt_token *token)
{
    switch (token->kind) {
    case VT_NONE:
        break;
    case VT_TEXT:
        put_text(screen, token->text, token->len);
        screen->last_len = token->text[0] & 0x80 ? token->len : 1;
        memcpy(screen->last, token->text + token->len - screen->last_len, screen->last_len);
        break;
    case VT_CONTROL:
        show_control(screen, token->final);
        break;
    case VT_ESCAPE:
        show_escape(screen, token);
        break;
    case VT_CSI:
        show_csi(screen, token);
        break;
    case VT_TITLE:
        memcpy(screen->title, token->text, token->len);
        screen->title[token->len] = '\0';
        break;
    }
}

/* --- cells to text --- */

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
        utf8_append_character(ret, cell->chars[i]);
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
