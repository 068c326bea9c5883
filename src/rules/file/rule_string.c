/* String literals: quotes of four kinds, and the escapes of the Starlark specification ("String
 * literals").
 *
 *     \a \b \f \n \r \t \v \\ \' \"    \ooo \xhh    up to 7f: what is beyond is no text by itself
 *     \uhhhh \Uhhhhhhhh                a character   \ before a line feed: both vanish
 *
 * An escape that is not among these is an error, and so is every way to write NUL. */
#include "rules/file/rule_string.h"

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NO_NUL "a NUL cannot be part of a command; leave it out"

/* Bytes of a prefix, when a quote follows; else -1. */
static int prefix_len(const char *at, const char *end)
{
    int len = 0;

    while (len < 2 && at + len < end && strchr("rRbBfF", at[len]))
        len++;
    return at + len < end && (at[len] == '"' || at[len] == '\'') ? len : -1;
}

bool rule_string_is_start(const char *at, const char *end)
{
    return prefix_len(at, end) >= 0;
}

static size_t left(const struct rule_string *string)
{
    return (size_t)(string->end - string->at);
}

/* Reads up to `max` digits; the number of those that there were. */
static unsigned read_digits(struct rule_string *string, unsigned base, unsigned max, uint32_t *ret)
{
    unsigned count = 0;

    for (*ret = 0; count < max && left(string); count++, string->at++) {
        char c = *string->at;
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                : base;

        if (digit >= base)
            break;
        *ret = *ret * base + digit;
    }
    return count;
}

static void append_character(struct buf *ret, uint32_t c)
{
    char bytes[4] = {(char)c};
    size_t len = 1;

    if (c >= 0x10000) {
        bytes[0] = (char)(0xf0 | c >> 18);
        bytes[1] = (char)(0x80 | (c >> 12 & 0x3f));
        len = 4;
    } else if (c >= 0x800) {
        bytes[0] = (char)(0xe0 | c >> 12);
        len = 3;
    } else if (c >= 0x80) {
        bytes[0] = (char)(0xc0 | c >> 6);
        len = 2;
    }
    if (len >= 3)
        bytes[len - 2] = (char)(0x80 | (c >> 6 & 0x3f));
    if (len >= 2)
        bytes[len - 1] = (char)(0x80 | (c & 0x3f));
    buf_append(ret, bytes, len);
}

/* Behind \x, \u, \U or, with `base` 8, the backslash. */
static const char *read_code(struct rule_string *string, unsigned base, unsigned digits,
                             struct buf *ret)
{
    uint32_t c;
    unsigned count = read_digits(string, base, digits, &c);

    if (base == 16 && count < digits)
        return digits == 2   ? "\\x is followed by two hexadecimal digits"
               : digits == 4 ? "\\u is followed by four hexadecimal digits"
                             : "\\U is followed by eight hexadecimal digits";
    if (c == 0)
        return NO_NUL;
    if (digits < 4 && c > 0x7f)
        return "\\x and octal escapes go up to 7f (177 octal); for a character use \\u";
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return "there is no such character; \\u and \\U take a Unicode scalar value";
    append_character(ret, c);
    return NULL;
}

/* `at` is behind the backslash, and there is something. */
static const char *read_escape(struct rule_string *string, struct buf *ret)
{
    static const char names[] = "abfnrtv\\'\"";
    static const char meanings[] = "\a\b\f\n\r\t\v\\'\"";
    char c = *string->at;
    const char *name = strchr(names, c);

    if (c >= '0' && c <= '7')
        return read_code(string, 8, 3, ret);
    if (c != 'x' && c != 'u' && c != 'U' && c != '\n' && !name)
        return "no such escape; a backslash by itself is written \\\\, or the string r\"...\"";
    string->at++;
    if (name)
        buf_append(ret, &meanings[name - names], 1);
    else if (c != '\n')
        return read_code(string, 16, c == 'x' ? 2 : c == 'u' ? 4 : 8, ret);
    return NULL;
}

struct quote {
    char sign;
    size_t len; /* 1 or 3 */
    bool is_raw;
};

/* A line feed for every kind of line end. */
static const char *read_line_end(struct rule_string *string, const struct quote *quote,
                                 struct buf *ret)
{
    if (quote->len == 1) {
        string->is_open = true;
        return "this string does not end on its line; close it, or use three quotes";
    }
    buf_append(ret, "\n", 1);
    string->at++;
    return NULL;
}

static const char *read_raw_escape(struct rule_string *string, struct buf *ret)
{
    buf_append(ret, string->at, 2); /* in a raw string it only keeps a quote from ending it */
    string->at += 2;
    return NULL;
}

/* The character that `at` is at, and those behind it that mean themselves. */
static void read_plain(struct rule_string *string, const struct quote *quote, struct buf *ret)
{
    const char *start = string->at++;

    while (string->at < string->end && *string->at != quote->sign && *string->at != '\\' &&
           *string->at != '\n' && *string->at != '\r')
        string->at++;
    buf_append(ret, start, (size_t)(string->at - start));
}

/* An escape, a line end, or plain characters; the end was looked for before. */
static const char *read_item(struct rule_string *string, const struct quote *quote, struct buf *ret)
{
    char c = *string->at;

    if (c == '\r' && left(string) > 1 && string->at[1] == '\n')
        c = *++string->at;
    if (c == '\n')
        return read_line_end(string, quote, ret);
    if (c == '\\' && left(string) > 1) {
        if (quote->is_raw)
            return read_raw_escape(string, ret);
        string->at++;
        if (*string->at == '\r' && left(string) > 1 && string->at[1] == '\n')
            string->at++;
        return read_escape(string, ret);
    }
    read_plain(string, quote, ret);
    return NULL;
}

static bool is_end(const struct rule_string *string, const struct quote *quote)
{
    for (size_t i = 0; i < quote->len; i++)
        if (left(string) <= i || string->at[i] != quote->sign)
            return false;
    return true;
}

/* Reads prefixes and the opening quote. */
static const char *read_start(struct rule_string *string, struct quote *ret)
{
    int len = prefix_len(string->at, string->end);
    bool is_bytes = false;

    for (int i = 0; i < len; i++) {
        char c = (char)(string->at[i] | 0x20);

        ret->is_raw |= c == 'r';
        string->is_format |= c == 'f';
        is_bytes |= c == 'b';
    }
    if (is_bytes)
        return "bytes are no text; write the string without the b";
    string->at += len;
    *ret = (struct quote){.sign = *string->at, .len = 3, .is_raw = ret->is_raw};
    if (!is_end(string, ret))
        ret->len = 1;
    string->at += ret->len;
    return NULL;
}

const char *rule_string_read(struct rule_string *string, struct buf *ret)
{
    struct quote quote = {0};
    const char *problem = read_start(string, &quote);

    while (!problem && left(string)) {
        if (is_end(string, &quote)) {
            string->at += quote.len;
            return NULL;
        }
        problem = read_item(string, &quote, ret);
    }
    if (problem)
        return problem;
    string->is_open = true;
    return "this string never ends; close it with the quotes that it begins with";
}
