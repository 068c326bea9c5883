/* The part of a screen that decides what libvterm gets to see, and writes it anew: see screen.c for
 * why. A sequence that is not named here does not exist; what is named was read in libvterm 0.1.4's
 * source, and is harmless with any numbers. */
#include "screen/screen_part.h"

#include <stdio.h>
#include <string.h>

enum { COMBINING_MAX = 16 }; /* characters in a row that do not move the cursor */

/* --- what libvterm is told --- */

VTermPos screen_cursor(const struct screen *screen)
{
    VTermPos pos;

    vterm_state_get_cursorpos(vterm_obtain_state(screen->vterm), &pos);
    return pos;
}

void screen_put(struct screen *screen, const char *bytes)
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

void screen_put_position(struct screen *screen, VTermPos pos)
{
    put_csi(screen, "", (unsigned[]){(unsigned)pos.row + 1, (unsigned)pos.col + 1}, 'H');
}

void screen_save_cursor(struct screen *screen)
{
    screen->saved = screen_cursor(screen);
    screen_put(screen, "\0337");
}

/* --- tokens --- */

static void show_text(struct screen *screen, const struct vt_token *token)
{
    size_t last = token->text[0] & 0x80 ? token->len : 1;

    put_text(screen, token->text, token->len);
    memcpy(screen->last, token->text + token->len - last, last);
    screen->last_len = last;
}

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

static void show_alternate(struct screen *screen, unsigned mode, char final)
{
    work_add_screen(screen);
    vterm_screen_enable_altscreen(screen->cells, 1);
    if (final == 'h' && mode == 1049)
        screen->saved = screen_cursor(screen);
    put_csi(screen, "?", (unsigned[]){mode == 47 ? 1047 : mode, 0}, final);
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
        show_alternate(screen, mode, final);
        break;
    default: /* mice, pasting, colours, double width, margins */
        break;
    }
}

static void show_mode(struct screen *screen, unsigned mode, char final)
{
    if (mode == 4)
        screen->is_inserting = final == 'h';
    if (mode == 4 || mode == 20)
        put_csi(screen, "", (unsigned[]){mode, 0}, final);
}

static void show_modes(struct screen *screen, const struct vt_token *token)
{
    for (size_t i = 0; i < token->param_len; i++)
        if (token->leader == '?')
            show_private_mode(screen, token->params[i], token->final);
        else if (!token->leader)
            show_mode(screen, token->params[i], token->final);
}

static void show_repeated(struct screen *screen, unsigned times)
{
    for (unsigned i = 0; screen->last_len && i < (times ? times : 1); i++)
        put_text(screen, screen->last, screen->last_len);
}

/* ICH CUU CUD CUF CUB CNL CPL CHA CUP CHT ED EL IL DL DCH SU SD ECH CBT HPA HPR VPA VPR HVP TBC
 * HPB VPB DECSTBM */
static const char harmless[] = "@ABCDEFGHIJKLMPSTXZ`adefgjkr";

static void show_plain_csi(struct screen *screen, const struct vt_token *token)
{
    if (strchr("@JLMPST", token->final))
        work_add_screen(screen);
    if (token->final == 'b')
        show_repeated(screen, token->params[0]);
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

void screen_show(struct screen *screen, const struct vt_token *token)
{
    switch (token->kind) {
    case VT_NONE:
        break;
    case VT_TEXT:
        show_text(screen, token);
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
