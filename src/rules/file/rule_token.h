/* The tokens of a `.rules` file. Internal to rules. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "rules/file/rule.h"

#include <stddef.h>

enum rule_token_kind {
    RULE_TOKEN_END,    /* of the file */
    RULE_TOKEN_LINE,   /* of a statement: line feed or ";" outside of brackets */
    RULE_TOKEN_NAME,   /* `text` */
    RULE_TOKEN_STRING, /* `text`: what it means */
    RULE_TOKEN_FORMAT, /* an f-string; `text` is what stands between the quotes, unescaped but for
                          its braces */
    RULE_TOKEN_NUMBER,
    RULE_TOKEN_SIGN, /* `sign` */
};

struct rule_token {
    enum rule_token_kind kind;
    struct rule_place place;
    char sign;
    struct buf text; /* never holds a NUL byte */
};

struct rule_lexer {
    const char *file; /* in messages; a long name loses its beginning there */
    const char *at;
    const char *end;
    unsigned line;
    const char *counted;     /* on the line: up to here its characters are counted */
    unsigned column;         /* ... so many, and one */
    unsigned brackets;       /* open ones: line feeds inside mean nothing */
    struct rule_token token; /* the current one */
};

/* `text` outlives the lexer. ERR_INVALID when it is not UTF-8 or holds a NUL byte. Reads the first
 * token, too. */
int rule_lexer_init(struct rule_lexer *lexer, const char *file, const char *text, size_t len,
                    struct err *err);
void rule_lexer_done(struct rule_lexer *lexer);

/* Goes on to the next token. */
int rule_lexer_next(struct rule_lexer *lexer, struct err *err);

/* For people: `the name "x"`, `a string`, `")"`, `the end of the line`. Caller frees. */
char *rule_token_text(const struct rule_token *token);

/* ERR_INVALID with "FILE:LINE:COLUMN: " in front; returns -1. */
int rule_fail(const char *file, struct rule_place place, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
