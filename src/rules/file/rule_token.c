/* The tokens of a `.rules` file: Starlark's, as far as its literals go.
 *
 *     "a" 'a' """a""" '''a'''    with escapes; r before them: without; f: with {NAME}
 *     # to the end of the line   \ at its end: the line goes on
 *
 * Line feeds inside of brackets mean nothing, outside they end a statement. Strings become what
 * they mean here:
 *
 *     \a \b \f \n \r \t \v \\ \' \"    \ooo \xhh    up to 7f: what is beyond is no text by itself
 *     \uhhhh \Uhhhhhhhh                a character   \ before a line feed: both vanish
 *
 * An escape that is not among these is an error. Everything is checked for UTF-8 once, at the start,
 * and NUL bytes are refused in every form, because no argument of a command can hold one. Source:
 * the Starlark specification, "Lexical elements" and "String literals". */
#include "rules/file/rule_token.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NO_NUL "a NUL cannot be part of a command; leave it out"

enum { FILE_SHOWN = 90 /* bytes of a file's name in a message, so that the message fits, too */ };

int rule_fail(const char *file, struct rule_place place, struct err *err, const char *fmt, ...)
{
    size_t len = strlen(file);
    va_list args;
    char text[sizeof err->msg];

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return err_set(err, ERR_INVALID, "%s%s:%u:%u: %s", len > FILE_SHOWN ? "..." : "",
                   len > FILE_SHOWN ? file + len - FILE_SHOWN : file, place.line, place.column,
                   text);
}

/* The position of the lexer. No character is counted twice, however long a line is. */
static struct rule_place place_here(struct rule_lexer *lexer)
{
    for (; lexer->counted < lexer->at; lexer->counted++)
        lexer->column += ((unsigned char)*lexer->counted & 0xc0) != 0x80;
    return (struct rule_place){.line = lexer->line, .column = lexer->column};
}

/* The next byte, or NUL at the end: the text holds none. */
static char peek(const struct rule_lexer *lexer, size_t ahead)
{
    return (size_t)(lexer->end - lexer->at) > ahead ? lexer->at[ahead] : '\0';
}

static void end_line(struct rule_lexer *lexer)
{
    lexer->line++;
    lexer->counted = lexer->at;
    lexer->column = 1;
}

/* --- strings: these return NULL, or what is wrong (static) --- */

struct quote {
    char sign;
    size_t len; /* 1 or 3 */
    bool is_raw;
    bool is_open; /* the problem is that the string never ends */
};

/* Bytes of a prefix (r, b, f, rb, rf in any case and order), when a quote follows; else -1. */
static int prefix_len(const struct rule_lexer *lexer)
{
    int len = 0;

    while (len < 2 && peek(lexer, (size_t)len) && strchr("rRbBfF", peek(lexer, (size_t)len)))
        len++;
    return peek(lexer, (size_t)len) == '"' || peek(lexer, (size_t)len) == '\'' ? len : -1;
}

static bool is_quote(const struct rule_lexer *lexer, const struct quote *quote)
{
    for (size_t i = 0; i < quote->len; i++)
        if (peek(lexer, i) != quote->sign)
            return false;
    return true;
}

/* Behind \x, \u, \U or, with `base` 8, the backslash. */
static const char *read_code(struct rule_lexer *lexer, unsigned base, unsigned digits)
{
    static const char alphabet[] = "0123456789abcdef";
    uint32_t c = 0;
    unsigned count = 0;

    for (; count < digits; count++, lexer->at++) {
        char byte = peek(lexer, 0);
        const char *digit = memchr(alphabet, byte >= 'A' && byte <= 'F' ? byte | 0x20 : byte, base);

        if (!digit)
            break;
        c = c * base + (uint32_t)(digit - alphabet);
    }
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
    utf8_append_character(&lexer->token.text, c);
    return NULL;
}

/* At a backslash that something follows. */
static const char *read_escape(struct rule_lexer *lexer, const struct quote *quote)
{
    static const char names[] = "abfnrtv\\'\"";
    static const char meanings[] = "\a\b\f\n\r\t\v\\'\"";
    const char *name;
    char c;

    if (quote->is_raw) { /* there it only keeps a quote from ending the string */
        buf_append(&lexer->token.text, lexer->at, 2);
        lexer->at += 2;
        return NULL;
    }
    lexer->at += peek(lexer, 1) == '\r' && peek(lexer, 2) == '\n' ? 2 : 1;
    c = *lexer->at;
    name = strchr(names, c);
    if (c >= '0' && c <= '7')
        return read_code(lexer, 8, 3);
    if (c != 'x' && c != 'u' && c != 'U' && c != '\n' && !name)
        return "no such escape; a backslash by itself is written \\\\, or the string r\"...\"";
    lexer->at++;
    if (name)
        buf_append(&lexer->token.text, &meanings[name - names], 1);
    else if (c != '\n')
        return read_code(lexer, 16, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    return NULL;
}

/* An escape, a line end (a line feed for every kind of them), or plain characters; the end was
 * looked for before. */
static const char *read_item(struct rule_lexer *lexer, struct quote *quote)
{
    const char *start;

    if (peek(lexer, 0) == '\r' && peek(lexer, 1) == '\n')
        lexer->at++;
    if (*lexer->at == '\\' && peek(lexer, 1))
        return read_escape(lexer, quote);
    if (*lexer->at == '\n' && quote->len == 1) {
        quote->is_open = true;
        return "this string does not end on its line; close it, or use three quotes";
    }
    start = lexer->at++;
    while (lexer->at < lexer->end && *lexer->at != quote->sign && *lexer->at != '\\' &&
           *lexer->at != '\n' && *lexer->at != '\r')
        lexer->at++;
    buf_append(&lexer->token.text, start, (size_t)(lexer->at - start));
    return NULL;
}

static const char *read_quoted(struct rule_lexer *lexer, struct quote *quote)
{
    int len = prefix_len(lexer);
    const char *problem = NULL;

    lexer->token.kind = RULE_TOKEN_STRING;
    for (int i = 0; i < len; i++) {
        char c = (char)(lexer->at[i] | 0x20);

        if (c == 'b')
            return "bytes are no text; write the string without the b";
        quote->is_raw |= c == 'r';
        if (c == 'f')
            lexer->token.kind = RULE_TOKEN_FORMAT;
    }
    lexer->at += len;
    quote->sign = *lexer->at;
    quote->len = 3;
    if (!is_quote(lexer, quote))
        quote->len = 1;
    for (lexer->at += quote->len; !problem && lexer->at < lexer->end;) {
        if (is_quote(lexer, quote)) {
            lexer->at += quote->len;
            return NULL;
        }
        problem = read_item(lexer, quote);
    }
    if (problem)
        return problem;
    quote->is_open = true;
    return "this string never ends; close it with the quotes that it begins with";
}

static int read_string(struct rule_lexer *lexer, struct err *err)
{
    struct quote quote = {.sign = '\0'};
    const char *start = lexer->at;
    const char *problem = read_quoted(lexer, &quote);
    const char *end = lexer->at;

    for (; start < end; start++)
        if (*start == '\n') {
            lexer->at = start + 1;
            end_line(lexer);
        }
    lexer->at = end;
    if (!problem)
        return 0;
    return rule_fail(lexer->file, quote.is_open ? lexer->token.place : place_here(lexer), err, "%s",
                     problem);
}

/* Blanks, comments, joined lines, and inside of brackets line feeds. */
static void skip_blanks(struct rule_lexer *lexer)
{
    for (;;) {
        char c = peek(lexer, 0);

        if (c == '#') {
            while (lexer->at < lexer->end && *lexer->at != '\n')
                lexer->at++;
        } else if (c == '\\' &&
                   (peek(lexer, 1) == '\n' || (peek(lexer, 1) == '\r' && peek(lexer, 2) == '\n'))) {
            lexer->at += peek(lexer, 1) == '\n' ? 2 : 3;
            end_line(lexer);
        } else if (c == ' ' || c == '\t' || c == '\r') {
            lexer->at++;
        } else if (c == '\n' && lexer->brackets) {
            lexer->at++;
            end_line(lexer);
        } else {
            return;
        }
    }
}

static bool is_name_byte(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static int read_sign(struct rule_lexer *lexer, struct err *err)
{
    char c = *lexer->at;
    size_t len = 0;

    if (!strchr("()[]{},=+;.:-*/%<>|&!~@", c) && c != '\n') {
        utf8_next(lexer->at, (size_t)(lexer->end - lexer->at), &len);
        return rule_fail(lexer->file, lexer->token.place, err,
                         "\"%.*s\" has no meaning here; strings stand in quotes", (int)len,
                         (unsigned char)c < ' ' ? "?" : lexer->at);
    }
    lexer->at++;
    lexer->token.kind = c == '\n' || c == ';' ? RULE_TOKEN_LINE : RULE_TOKEN_SIGN;
    lexer->token.sign = c;
    if (c == '(' || c == '[' || c == '{')
        lexer->brackets++;
    else if ((c == ')' || c == ']' || c == '}') && lexer->brackets)
        lexer->brackets--;
    else if (c == '\n')
        end_line(lexer);
    return 0;
}

int rule_lexer_next(struct rule_lexer *lexer, struct err *err)
{
    skip_blanks(lexer);
    lexer->token.place = place_here(lexer);
    buf_clear(&lexer->token.text);
    if (lexer->at == lexer->end) {
        lexer->token.kind = RULE_TOKEN_END;
        return 0;
    }
    if (prefix_len(lexer) >= 0)
        return read_string(lexer, err);
    if (is_name_byte(*lexer->at)) {
        const char *start = lexer->at;

        while (is_name_byte(peek(lexer, 0)))
            lexer->at++;
        lexer->token.kind = *start >= '0' && *start <= '9' ? RULE_TOKEN_NUMBER : RULE_TOKEN_NAME;
        buf_append(&lexer->token.text, start, (size_t)(lexer->at - start));
        return 0;
    }
    return read_sign(lexer, err);
}

/* The position behind `len` bytes of the text that the lexer is at the start of. */
static int fail_at(struct rule_lexer *lexer, size_t len, struct err *err, const char *problem)
{
    for (; len; len--)
        if (*lexer->at++ == '\n')
            end_line(lexer);
    return rule_fail(lexer->file, place_here(lexer), err, "%s", problem);
}

int rule_lexer_init(struct rule_lexer *lexer, const char *file, const char *text, size_t len,
                    struct err *err)
{
    const char *nul = len ? memchr(text, '\0', len) : NULL;
    size_t valid = utf8_valid_len(text, len, NULL);

    *lexer = (struct rule_lexer){
        .file = file, .at = text, .end = text + len, .line = 1, .counted = text, .column = 1};
    buf_init(&lexer->token.text, len + 1);
    buf_append(&lexer->token.text, "", 0); /* so that it is text from the start */
    if (valid < len)
        return fail_at(lexer, valid, err, "this byte is not UTF-8; the file has to be");
    if (nul)
        return fail_at(lexer, (size_t)(nul - text), err, "a NUL byte; the file has to be text");
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        lexer->at = lexer->counted = text + 3;
    return rule_lexer_next(lexer, err);
}

void rule_lexer_done(struct rule_lexer *lexer)
{
    buf_done(&lexer->token.text);
}

char *rule_token_text(const struct rule_token *token)
{
    switch (token->kind) {
    case RULE_TOKEN_NAME:
        return alloc_strf("the name \"%.60s\"", token->text.data);
    case RULE_TOKEN_NUMBER:
        return alloc_strf("the number %.60s", token->text.data);
    case RULE_TOKEN_STRING:
    case RULE_TOKEN_FORMAT:
        return alloc_str("a string");
    case RULE_TOKEN_SIGN:
        return alloc_strf("\"%c\"", token->sign);
    case RULE_TOKEN_LINE:
        return alloc_str(token->sign == ';' ? "\";\"" : "the end of the line");
    case RULE_TOKEN_END:
    default:
        return alloc_str("the end of the file");
    }
}
