/* What the halves of the parser share: rule_parse.c reads statements, rule_expression.c values.
 * Internal to both. */
#pragma once

#include "base/err.h"
#include "rules/file/rule_parse.h"
#include "rules/file/rule_token.h"

#include <stdbool.h>
#include <stddef.h>

struct rule_binding {
    char *name;
    struct rule_value value;
};

struct rule_parser {
    const struct rule_parse *parse;
    struct rule_lexer lexer;
    struct rule_binding *bindings; /* names that were set */
    size_t len;
    size_t cap;
    unsigned depth; /* of brackets */
    size_t memory;  /* that values took so far */
};

/* ERR_INVALID at the current token; returns -1. */
int rule_parser_fail(struct rule_parser *parser, struct err *err, const char *text);

/* The same: "<the token> is not expected here; <advice>". */
int rule_parser_fail_token(struct rule_parser *parser, struct err *err, const char *advice);

int rule_parser_next(struct rule_parser *parser, struct err *err);
bool rule_parser_is(const struct rule_parser *parser, enum rule_token_kind kind);

/* Takes the name that is the current token, and goes on. Caller frees. */
int rule_parser_take_name(struct rule_parser *parser, char **ret, struct err *err);

/* What the name stands for; NULL when it was not set. */
const struct rule_value *rule_parser_find(const struct rule_parser *parser, const char *name);

/* A value that begins at the current token; rule_value_done() by the caller. */
int rule_expression(struct rule_parser *parser, struct rule_value *ret, struct err *err);

/* The same when its first token, a name at `place`, was taken already. */
int rule_expression_named(struct rule_parser *parser, const char *name, struct rule_place place,
                          struct rule_value *ret, struct err *err);
