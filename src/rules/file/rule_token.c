/* The words of a `.rules` file: Starlark's, as far as its literals go.
 *
 *     "a" 'a' """a""" '''a'''    with escapes; r before them: without; f: with {NAME}
 *     # to the end of the line   \ at its end: the line goes on
 *
 * Line feeds inside of brackets mean nothing, outside they end a statement. Strings become what
 * they mean here; rule_string.c reads them. Everything is checked for UTF-8 once, at the start, and
 * NUL bytes are refused in every form, because no argument of a command can hold one. Source: the
 * Starlark specification, "Lexical elements". */
#include "rules/file/rule_token.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/utf8.h"
#include "rules/file/rule_string.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

/* Of where the lexer is. No character is counted twice, however long a line is. */
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

static int read_name(struct rule_lexer *lexer)
{
    const char *start = lexer->at;

    while (is_name_byte(peek(lexer, 0)))
        lexer->at++;
    lexer->token.kind = *start >= '0' && *start <= '9' ? RULE_TOKEN_NUMBER : RULE_TOKEN_NAME;
    buf_append(&lexer->token.text, start, (size_t)(lexer->at - start));
    return 0;
}

static int read_string(struct rule_lexer *lexer, struct err *err)
{
    struct rule_string string = {.at = lexer->at, .end = lexer->end};
    const char *start = lexer->at;
    const char *problem = rule_string_read(&string, &lexer->token.text);

    for (; start < string.at; start++)
        if (*start == '\n') {
            lexer->at = start + 1;
            end_line(lexer);
        }
    lexer->at = string.at;
    lexer->token.kind = string.is_format ? RULE_TOKEN_FORMAT : RULE_TOKEN_STRING;
    if (!problem)
        return 0;
    return rule_fail(lexer->file, string.is_open ? lexer->token.place : place_here(lexer), err,
                     "%s", problem);
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
    if (rule_string_is_start(lexer->at, lexer->end))
        return read_string(lexer, err);
    if (is_name_byte(*lexer->at))
        return read_name(lexer);
    return read_sign(lexer, err);
}

bool rule_lexer_is(const struct rule_lexer *lexer, char sign)
{
    return lexer->token.kind == RULE_TOKEN_SIGN && lexer->token.sign == sign;
}

/* The place behind `len` bytes of the text that the lexer is at the start of. */
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
