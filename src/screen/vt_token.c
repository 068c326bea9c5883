/* See vt_token.h. A state machine after ECMA-48 and what xterm makes of it where that is silent:
 *
 *     text --ESC--> escape --[--> csi ----final--> text
 *                     |----]--> title --BEL, ESC \--> text
 *                     `-PX^_k-> string -----"-------> text
 *
 * CAN and SUB end everything, ESC begins anew from anywhere. Control characters inside a control
 * sequence are done at once, inside strings they are dropped.
 *
 * The controls of 0x80 to 0x9f are not known: in UTF-8 these bytes belong to characters, and the
 * characters U+0080 to U+009F have no place on a screen. They become U+FFFD. */
#include "screen/vt_token.h"

#include "base/utf8.h"

#include <string.h>

static const char unknown_character[] = "\xef\xbf\xbd"; /* U+FFFD */

enum { CAN = 0x18, SUB = 0x1a, ESC = 0x1b, BEL = 0x07, DEL = 0x7f };

static void give_text(struct vt_token *ret, const char *text, size_t len)
{
    ret->kind = VT_TEXT;
    ret->text = text;
    ret->len = len;
}

static void give_control(struct vt_token *ret, char c)
{
    ret->kind = VT_CONTROL;
    ret->final = c;
}

/* --- text --- */

/* One byte more of a character that is not ASCII. Returns 0 when the byte is not part of it. */
static size_t add_character_byte(struct vt *vt, char byte, struct vt_token *ret)
{
    size_t len;
    enum utf8_kind kind;

    vt->text[vt->text_len++] = byte;
    kind = utf8_next(vt->text, vt->text_len, &len);
    if (kind == UTF8_INCOMPLETE)
        return 1;
    if (kind == UTF8_VALID && !(vt->text[0] == '\xc2' && (unsigned char)vt->text[1] < 0xa0))
        give_text(ret, vt->text, len);
    else
        give_text(ret, unknown_character, sizeof unknown_character - 1);
    len = len == vt->text_len;
    vt->text_len = 0;
    return len;
}

static void escape_begin(struct vt *vt)
{
    vt->state = VT_IN_ESCAPE;
    vt->behind = VT_IN_TEXT;
    vt->text_len = 0;
    vt->token = (struct vt_token){.param_len = 1};
}

static size_t next_of_text(struct vt *vt, const char *bytes, size_t len, struct vt_token *ret)
{
    size_t ascii = 0;

    while (!vt->text_len && ascii < len && ascii < VT_TEXT_MAX && bytes[ascii] >= ' ' &&
           bytes[ascii] < DEL)
        ascii++;
    if (ascii)
        give_text(ret, bytes, ascii);
    else if (vt->text_len || (*bytes & 0x80))
        return add_character_byte(vt, *bytes, ret);
    else if (*bytes == ESC)
        escape_begin(vt);
    else if (*bytes != DEL)
        give_control(ret, *bytes);
    return ascii ? ascii : 1;
}

/* --- sequences --- */

static void give_sequence(struct vt *vt, enum vt_kind kind, char final, struct vt_token *ret)
{
    *ret = vt->token;
    ret->kind = kind;
    ret->final = final;
    vt->state = VT_IN_TEXT;
}

/* A second one is known to no reader of these tokens. */
static void add_intermediate(struct vt *vt, char c)
{
    vt->token.intermediate = vt->token.intermediate ? DEL : c;
}

static void step_escape(struct vt *vt, char c, struct vt_token *ret)
{
    if (c >= ' ' && c <= '/')
        add_intermediate(vt, c);
    else if (vt->token.intermediate)
        give_sequence(vt, VT_ESCAPE, c, ret);
    else if (c == '[')
        vt->state = VT_IN_CSI;
    else if (c == ']')
        vt->state = VT_IN_TITLE;
    else if (strchr("PX^_k", c)) /* DCS, SOS, PM, APC (ECMA-48 5.6); k is screen's title */
        vt->state = VT_IN_STRING;
    else
        give_sequence(vt, VT_ESCAPE, c, ret);
}

static void step_csi(struct vt *vt, char c, struct vt_token *ret)
{
    struct vt_token *token = &vt->token;

    if (c >= '0' && c <= '9') {
        if (token->param_len <= VT_PARAMS_MAX) {
            unsigned *param = &token->params[token->param_len - 1];
            unsigned number = *param * 10 + (unsigned)(c - '0');

            *param = number < VT_PARAM_LIMIT ? number : VT_PARAM_LIMIT;
        }
    } else if (c == ';') {
        token->param_len += token->param_len <= VT_PARAMS_MAX;
    } else if (c >= '<' && c <= '?' && !token->leader) {
        token->leader = c;
    } else if (c >= ' ' && c <= '/') {
        add_intermediate(vt, c);
    } else if (c >= '@') {
        if (token->param_len > VT_PARAMS_MAX)
            token->param_len = VT_PARAMS_MAX;
        give_sequence(vt, VT_CSI, c, ret);
    } else { /* a second leader, or ':' as in colours */
        vt->state = VT_IN_CSI_IGNORED;
    }
}

static void step_sequence(struct vt *vt, char c, struct vt_token *ret)
{
    if (c == ESC)
        escape_begin(vt);
    else if (c == CAN || c == SUB || (c & 0x80))
        vt->state = VT_IN_TEXT;
    else if (c < ' ')
        give_control(ret, c);
    else if (c == DEL)
        return;
    else if (vt->state == VT_IN_ESCAPE)
        step_escape(vt, c, ret);
    else if (vt->state == VT_IN_CSI)
        step_csi(vt, c, ret);
    else if (c >= '@')
        vt->state = VT_IN_TEXT;
}

/* --- strings --- */

static void end_string(struct vt *vt, struct vt_token *ret)
{
    bool is_title;

    vt->text_len -= utf8_torn_len(vt->text, vt->text_len); /* it was too long */
    is_title = vt->state == VT_IN_TITLE && vt->text_len >= 2 && vt->text[1] == ';' &&
               (vt->text[0] == '0' || vt->text[0] == '2') && utf8_is_valid(vt->text, vt->text_len);

    if (is_title) {
        ret->kind = VT_TITLE;
        ret->text = vt->text + 2;
        ret->len = vt->text_len - 2;
    }
    vt->state = VT_IN_TEXT;
    vt->text_len = 0;
}

static void step_string(struct vt *vt, char c, struct vt_token *ret)
{
    if (c == BEL)
        end_string(vt, ret);
    else if (c == CAN || c == SUB)
        vt->state = VT_IN_TEXT;
    else if (c == ESC)
        vt->behind = vt->state;
    else if (vt->state == VT_IN_TITLE && ((c & 0x80) || c >= ' ') && c != DEL &&
             vt->text_len < sizeof vt->text)
        vt->text[vt->text_len++] = c;
    if (vt->state == VT_IN_TEXT)
        vt->text_len = 0;
}

/* Behind an ESC in a string: its end, or something new. 0 when the byte is for the latter. */
static size_t step_behind(struct vt *vt, char c, struct vt_token *ret)
{
    vt->behind = VT_IN_TEXT;
    if (c == '\\') {
        end_string(vt, ret);
        return 1;
    }
    escape_begin(vt);
    return 0;
}

size_t vt_next(struct vt *vt, const char *bytes, size_t len, struct vt_token *ret)
{
    *ret = (struct vt_token){.kind = VT_NONE};
    if (vt->state == VT_IN_TEXT)
        return next_of_text(vt, bytes, len, ret);
    if (vt->behind != VT_IN_TEXT && step_behind(vt, *bytes, ret))
        return 1;
    if (vt->state == VT_IN_TITLE || vt->state == VT_IN_STRING)
        step_string(vt, *bytes, ret);
    else
        step_sequence(vt, *bytes, ret);
    return 1;
}
