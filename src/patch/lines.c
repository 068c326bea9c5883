/* See lines.h. White space is what Unicode calls so (PropList.txt, White_Space), because the
 * matching has to agree with programs that ask Unicode; ill-formed UTF-8 is no white space. */
#include "patch/lines.h"

#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct line line_of(const char *start, size_t len, enum line_end end)
{
    if (end == LINE_LF && len && start[len - 1] == '\r') {
        end = LINE_CRLF;
        len--;
    }
    return (struct line){.text = {start, len}, .end = end};
}

int lines_split(const char *text, size_t len, struct lines *ret, struct err *err)
{
    struct lines lines = {.items = NULL};

    while (len) {
        const char *feed = memchr(text, '\n', len);
        size_t part = feed ? (size_t)(feed - text) : len;

        if (lines.len == LINES_MAX) {
            lines_done(&lines);
            return err_set(err, ERR_LIMIT, "it has more than %d lines", LINES_MAX);
        }
        lines.items = alloc_grow(lines.items, lines.len, &lines.cap, sizeof *lines.items);
        lines.items[lines.len++] = line_of(text, part, feed ? LINE_LF : LINE_NO_END);
        part += feed != NULL;
        text += part;
        len -= part;
    }
    *ret = lines;
    return 0;
}

void lines_done(struct lines *lines)
{
    free(lines->items);
    *lines = (struct lines){.items = NULL};
}

const char *line_end_text(enum line_end end)
{
    static const char *const texts[] = {[LINE_NO_END] = "", [LINE_LF] = "\n", [LINE_CRLF] = "\r\n"};

    return texts[end];
}

/* --- characters --- */

/* The character of three bytes, or of two, that the text begins with; 0 when it begins with no
 * such, or ends before. Nothing beyond U+FFFF matters here. */
static uint32_t character(const char *text, size_t len, size_t *ret_len)
{
    const unsigned char *byte = (const unsigned char *)text;

    if (len >= 2 && (byte[0] & 0xe0) == 0xc0 && (byte[1] & 0xc0) == 0x80) {
        *ret_len = 2;
        return (byte[0] & 0x1fU) << 6 | (byte[1] & 0x3fU);
    }
    if (len >= 3 && (byte[0] & 0xf0) == 0xe0 && (byte[1] & 0xc0) == 0x80 &&
        (byte[2] & 0xc0) == 0x80) {
        *ret_len = 3;
        return (byte[0] & 0x0fU) << 12 | (byte[1] & 0x3fU) << 6 | (byte[2] & 0x3fU);
    }
    return 0;
}

static bool is_white_ascii(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_white(uint32_t c)
{
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* Bytes of the white space character at the beginning; 0: there is none. */
static size_t white_at_start(struct span span)
{
    size_t len = 0;

    if (span.len && is_white_ascii(span.text[0]))
        return 1;
    return is_white(character(span.text, span.len, &len)) ? len : 0;
}

static size_t white_at_end(struct span span)
{
    if (span.len && is_white_ascii(span.text[span.len - 1]))
        return 1;
    for (size_t want = 2; want <= 3 && want <= span.len; want++) {
        size_t len = 0;

        if (is_white(character(span.text + span.len - want, want, &len)) && len == want)
            return want;
    }
    return 0;
}

static struct span trim_end(struct span span)
{
    for (size_t len; (len = white_at_end(span));)
        span.len -= len;
    return span;
}

struct span span_trim(struct span span)
{
    span = trim_end(span);
    for (size_t len; (len = white_at_start(span));) {
        span.text += len;
        span.len -= len;
    }
    return span;
}

/* The ASCII that a typographic character stands for (spec/exec-core.md 8.2: dashes, quotes and odd
 * spaces); 0 when it stands for itself. */
static char plain_character(uint32_t c)
{
    if ((c >= 0x2010 && c <= 0x2015) || c == 0x2212)
        return '-';
    if (c >= 0x2018 && c <= 0x201b)
        return '\'';
    if (c >= 0x201c && c <= 0x201f)
        return '"';
    if (c == 0xa0 || (c >= 0x2002 && c <= 0x200a) || c == 0x202f || c == 0x205f || c == 0x3000)
        return ' ';
    return 0;
}

static struct span make_plain(struct span span, char *scratch)
{
    size_t out = 0;

    for (size_t i = 0; i < span.len;) {
        size_t len = 1;
        char plain = plain_character(character(span.text + i, span.len - i, &len));

        if (plain) {
            scratch[out++] = plain;
            i += len;
        } else {
            scratch[out++] = span.text[i++];
        }
    }
    return (struct span){scratch, out};
}

struct span line_key(enum line_level level, struct span text, char *scratch)
{
    switch (level) {
    case LINE_TRIM_END:
        return trim_end(text);
    case LINE_TRIM:
        return span_trim(text);
    case LINE_PLAIN:
        return make_plain(span_trim(text), scratch);
    case LINE_EXACT:
    case LINE_LEVELS:
        break;
    }
    return text;
}
