/* See ansi_quote.h. Escapes of letters that have no meaning stay as they are, with the backslash.
 */
#include "rules/shell/ansi_quote.h"

#include <string.h>

/* Up to `max` digits of the base; their value is cut to what a character can be. */
static size_t read_digits(const char *text, size_t len, unsigned base, size_t max, unsigned *ret)
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;

    *ret = 0;
    for (; at < len && at < max; at++) {
        const char *digit = memchr(digits, text[at] | ' ', base);

        if (!digit)
            break;
        *ret = (*ret * base + (unsigned)(digit - digits)) & 0xffffff;
    }
    return at;
}

/* Bytes beyond ASCII are not spelled out: what is looked for is ASCII. */
static void put_value(struct buf *ret, unsigned value)
{
    char byte = value < 0x80 ? (char)value : '?';

    if (value)
        buf_append(ret, &byte, 1);
}

/* Behind a backslash; the bytes read. */
static size_t read_escape(const char *text, size_t len, struct buf *ret)
{
    static const char letters[] = "abefnrtvE\\'\"?";
    static const char values[] = "\a\b\033\f\n\r\t\v\033\\'\"?";
    const char *letter = memchr(letters, text[0], sizeof letters - 1);
    unsigned value;
    size_t digits;

    if (letter) {
        buf_append(ret, &values[letter - letters], 1);
        return 1;
    }
    digits = read_digits(text, len, 8, 3, &value);
    if (digits) {
        put_value(ret, value);
        return digits;
    }
    if (text[0] == 'x' || text[0] == 'u' || text[0] == 'U') {
        digits = read_digits(text + 1, len - 1, 16,
                             text[0] == 'x'   ? 2
                             : text[0] == 'u' ? 4
                                              : 8,
                             &value);
        put_value(ret, value);
        return 1 + digits;
    }
    if (text[0] == 'c' && len > 1)
        return 2; /* a control character */
    buf_append(ret, "\\", 1);
    buf_append(ret, text, 1);
    return 1;
}

size_t ansi_quote_read(const char *text, size_t len, struct buf *ret)
{
    size_t at = 0;

    while (at < len && text[at] != '\'') {
        if (text[at] == '\\' && at + 1 < len)
            at += 1 + read_escape(text + at + 1, len - at - 1, ret);
        else
            buf_append(ret, &text[at++], 1);
    }
    return at + (at < len);
}
