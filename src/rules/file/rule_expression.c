/* Values of a `.rules` file: literals, names that stand for one, and sums of them.
 *
 *     value    term + term + ...
 *     term     STRING  |  NAME  |  [value, ...]  |  (value)
 *
 * A name is replaced by a copy of its literal, so that nothing is shared and nothing changes later;
 * what copies cost is counted (RULE_MEMORY_MAX), because `B = A + A` doubles with every line. */
#include "rules/file/rule_parser.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

int rule_parser_fail(struct rule_parser *parser, struct err *err, const char *text)
{
    return rule_fail(parser->parse->file, parser->lexer.token.place, err, "%s", text);
}

int rule_parser_fail_token(struct rule_parser *parser, struct err *err, const char *advice)
{
    AUTO_FREE char *text = rule_token_text(&parser->lexer.token);

    return rule_fail(parser->parse->file, parser->lexer.token.place, err,
                     "%s is not expected here; %s", text, advice);
}

int rule_parser_next(struct rule_parser *parser, struct err *err)
{
    return rule_lexer_next(&parser->lexer, err);
}

bool rule_parser_is(const struct rule_parser *parser, enum rule_token_kind kind)
{
    return parser->lexer.token.kind == kind;
}

const struct rule_value *rule_parser_find(const struct rule_parser *parser, const char *name)
{
    for (size_t i = 0; i < parser->len; i++)
        if (str_eq(parser->bindings[i].name, name))
            return &parser->bindings[i].value;
    return NULL;
}

static int take_memory(struct rule_parser *parser, const struct rule_value *value, struct err *err)
{
    parser->memory += rule_value_size(value);
    if (parser->memory > RULE_MEMORY_MAX)
        return rule_parser_fail(parser, err,
                                "the values up to here are too large; write smaller lists");
    return 0;
}

/* --- values --- */

static struct rule_value string_value(struct rule_place place, const char *text)
{
    return (struct rule_value){.kind = RULE_VALUE_STRING, .place = place, .text = alloc_str(text)};
}

/* A copy of what the name stands for; errors point to where the name is used. */
static int copy_name(struct rule_parser *parser, const char *name, struct rule_place place,
                     struct rule_value *ret, struct err *err)
{
    const struct rule_value *value = rule_parser_find(parser, name);

    if (str_eq(name, "None") || str_eq(name, "True") || str_eq(name, "False"))
        return rule_fail(parser->parse->file, place, err,
                         "%s is not a value here; rules hold strings and lists of strings", name);
    if (!value)
        return rule_fail(parser->parse->file, place, err,
                         "there is no name \"%.60s\" above; a string stands in quotes", name);
    if (take_memory(parser, value, err))
        return -1;
    *ret = rule_value_copy(value);
    ret->place = place;
    return 0;
}

int rule_parser_take_name(struct rule_parser *parser, char **ret, struct err *err)
{
    *ret = alloc_str(parser->lexer.token.text.data);
    return rule_parser_next(parser, err);
}

static int parse_name(struct rule_parser *parser, struct rule_value *ret, struct err *err)
{
    struct rule_place place = parser->lexer.token.place;
    AUTO_FREE char *name = NULL;

    return rule_parser_take_name(parser, &name, err) ? -1
                                                     : copy_name(parser, name, place, ret, err);
}

/* One "{NAME}" of an f-string; `*at` is behind the brace. */
static int format_name(struct rule_parser *parser, const char **at, struct buf *ret,
                       struct err *err)
{
    size_t len = strcspn(*at, "{}");
    AUTO_FREE char *name = alloc_strn(*at, len);
    const struct rule_value *value = rule_parser_find(parser, name);

    if ((*at)[len] != '}')
        return rule_parser_fail(parser, err,
                                "a \"{\" in an f-string needs its \"}\"; a brace is written {{");
    if (!value || value->kind != RULE_VALUE_STRING)
        return rule_fail(parser->parse->file, parser->lexer.token.place, err,
                         "{%.60s} in an f-string is not the name of a string above", name);
    *at += len + 1;
    if (take_memory(parser, value, err))
        return -1;
    buf_append_str(ret, value->text);
    return 0;
}

static int parse_format(struct rule_parser *parser, struct rule_value *ret, struct err *err)
{
    AUTO(buf_done) struct buf text;
    const char *at = parser->lexer.token.text.data;

    buf_init(&text, RULE_MEMORY_MAX * 2UL);
    buf_append_str(&text, "");
    while (*at) {
        size_t len = strcspn(at, "{}");

        buf_append(&text, at, len);
        at += len;
        if (*at && at[1] == *at) {
            buf_append(&text, at, 1);
            at += 2;
        } else if (*at == '}') {
            return rule_parser_fail(parser, err,
                                    "a single \"}\" in an f-string; a brace is written }}");
        } else if (*at && (at++, format_name(parser, &at, &text, err))) {
            return -1;
        }
    }
    *ret = string_value(parser->lexer.token.place, text.data);
    return 0;
}

static int parse_string(struct rule_parser *parser, struct rule_value *ret, struct err *err)
{
    AUTO(rule_value_done) struct rule_value value = {.kind = RULE_VALUE_STRING};

    if (rule_parser_is(parser, RULE_TOKEN_STRING))
        value = string_value(parser->lexer.token.place, parser->lexer.token.text.data);
    else if (parse_format(parser, &value, err))
        return -1;
    if (take_memory(parser, &value, err) || rule_parser_next(parser, err))
        return -1;
    if (rule_parser_is(parser, RULE_TOKEN_STRING) || rule_parser_is(parser, RULE_TOKEN_FORMAT))
        return rule_parser_fail_token(parser, err, "write + between two strings, or a comma");
    *ret = value;
    value = (struct rule_value){.kind = RULE_VALUE_STRING};
    return 0;
}

/* The lexer is at the bracket. */
static int parse_list(struct rule_parser *parser, struct rule_value *ret, struct err *err)
{
    AUTO(rule_value_done)
    struct rule_value list = {.kind = RULE_VALUE_LIST, .place = parser->lexer.token.place};

    if (rule_parser_next(parser, err))
        return -1;
    while (!rule_lexer_is(&parser->lexer, ']')) {
        struct rule_value item;

        if (rule_expression(parser, &item, err))
            return -1;
        rule_value_push(&list, item);
        if (rule_lexer_is(&parser->lexer, ',')) {
            if (rule_parser_next(parser, err))
                return -1;
        } else if (!rule_lexer_is(&parser->lexer, ']')) {
            return rule_parser_fail_token(parser, err,
                                          "a list goes on with a comma or ends with ]");
        }
    }
    if (take_memory(parser, &list, err) || rule_parser_next(parser, err))
        return -1;
    *ret = list;
    list = (struct rule_value){.kind = RULE_VALUE_STRING};
    return 0;
}

static int parse_group(struct rule_parser *parser, struct rule_value *ret, struct err *err)
{
    AUTO(rule_value_done) struct rule_value value = {.kind = RULE_VALUE_STRING};

    if (rule_parser_next(parser, err) || rule_expression(parser, &value, err))
        return -1;
    if (rule_lexer_is(&parser->lexer, ','))
        return rule_parser_fail_token(parser, err, "tuples are not read; write a list: [...]");
    if (!rule_lexer_is(&parser->lexer, ')'))
        return rule_parser_fail_token(parser, err, "close the bracket with )");
    if (rule_parser_next(parser, err))
        return -1;
    *ret = value;
    value = (struct rule_value){.kind = RULE_VALUE_STRING};
    return 0;
}

static int parse_term(struct rule_parser *parser, struct rule_value *ret, struct err *err)
{
    int status;

    if (rule_parser_is(parser, RULE_TOKEN_STRING) || rule_parser_is(parser, RULE_TOKEN_FORMAT))
        return parse_string(parser, ret, err);
    if (rule_parser_is(parser, RULE_TOKEN_NAME))
        return parse_name(parser, ret, err);
    if (!rule_lexer_is(&parser->lexer, '[') && !rule_lexer_is(&parser->lexer, '('))
        return rule_parser_fail_token(parser, err, "a value is a \"string\" or a [list]");
    if (parser->depth == RULE_DEPTH_MAX)
        return rule_parser_fail(parser, err,
                                "brackets are nested too deep; patterns need two levels");
    parser->depth++;
    status = rule_lexer_is(&parser->lexer, '[') ? parse_list(parser, ret, err)
                                                : parse_group(parser, ret, err);
    parser->depth--;
    return status;
}

/* Appends `more`, which is emptied. */
static int concatenate(struct rule_parser *parser, struct rule_value *value,
                       struct rule_value *more, struct err *err)
{
    if (value->kind != more->kind)
        return rule_fail(parser->parse->file, more->place, err,
                         "+ joins two strings or two lists, not one of each");
    if (value->kind == RULE_VALUE_STRING) {
        char *text = alloc_strf("%s%s", value->text, more->text);

        free(value->text);
        value->text = text;
        return take_memory(parser, value, err);
    }
    for (size_t i = 0; i < more->len; i++)
        rule_value_push(value, more->items[i]);
    more->len = 0;
    return 0;
}

/* Adds what stands behind the first term of a value. */
static int parse_sum(struct rule_parser *parser, struct rule_value *value, struct err *err)
{
    while (rule_lexer_is(&parser->lexer, '+')) {
        AUTO(rule_value_done) struct rule_value more = {.kind = RULE_VALUE_STRING};

        if (rule_parser_next(parser, err) || parse_term(parser, &more, err) ||
            concatenate(parser, value, &more, err))
            return -1;
    }
    return 0;
}

int rule_expression(struct rule_parser *parser, struct rule_value *ret, struct err *err)
{
    AUTO(rule_value_done) struct rule_value value = {.kind = RULE_VALUE_STRING};

    if (parse_term(parser, &value, err) || parse_sum(parser, &value, err))
        return -1;
    *ret = value;
    value = (struct rule_value){.kind = RULE_VALUE_STRING};
    return 0;
}

int rule_expression_named(struct rule_parser *parser, const char *name, struct rule_place place,
                          struct rule_value *ret, struct err *err)
{
    AUTO(rule_value_done) struct rule_value value = {.kind = RULE_VALUE_STRING};

    if (copy_name(parser, name, place, &value, err) || parse_sum(parser, &value, err))
        return -1;
    *ret = value;
    value = (struct rule_value){.kind = RULE_VALUE_STRING};
    return 0;
}
