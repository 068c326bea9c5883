/* Reads the part of Starlark that rules need: statements at the top, literals, nothing that runs.
 *
 *     statement   NAME = value  |  NAME(argument, ...)  |  STRING        (the last says nothing)
 *     argument    value  |  NAME = value
 *
 * A name stands for a literal from above it and cannot be set twice. Whatever else Starlark has
 * (def, for, if, load, numbers, dicts, methods) is refused by name, because a rule that is not
 * understood must not be skipped. Recursion is bounded by RULE_DEPTH_MAX, memory by
 * RULE_MEMORY_MAX.
 */
#include "rules/file/rule_parse.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "rules/file/rule_parser.h"

#include <stdlib.h>
#include <string.h>

static void parser_done(struct rule_parser *parser)
{
    for (size_t i = 0; i < parser->len; i++) {
        free(parser->bindings[i].name);
        rule_value_done(&parser->bindings[i].value);
    }
    free(parser->bindings);
    rule_lexer_done(&parser->lexer);
}

static void call_done(struct rule_call *call)
{
    for (size_t i = 0; i < call->len; i++) {
        free(call->arguments[i].name);
        rule_value_done(&call->arguments[i].value);
    }
    free(call->name);
}

static bool is_word(const struct rule_parser *parser, const char *word)
{
    return rule_parser_is(parser, RULE_TOKEN_NAME) && str_eq(parser->lexer.token.text.data, word);
}

static bool has_argument(const struct rule_call *call, const char *name)
{
    for (size_t i = 0; i + 1 < call->len; i++)
        if (call->arguments[i].name && str_eq(call->arguments[i].name, name))
            return true;
    return false;
}

/* `argument` is the last of the call. */
static int parse_named(struct rule_parser *parser, struct rule_call *call,
                       struct rule_argument *argument, struct err *err)
{
    AUTO_FREE char *name = NULL;

    if (rule_parser_take_name(parser, &name, err))
        return -1;
    if (!rule_lexer_is(&parser->lexer, '='))
        return rule_expression_named(parser, name, argument->place, &argument->value, err);
    if (has_argument(call, name))
        return rule_fail(parser->parse->file, argument->place, err,
                         "%.60s is given twice; give it once", name);
    argument->name = TAKE_PTR(name);
    return rule_parser_next(parser, err) ? -1 : rule_expression(parser, &argument->value, err);
}

static int parse_argument(struct rule_parser *parser, struct rule_call *call, struct err *err)
{
    struct rule_argument *argument = &call->arguments[call->len];
    bool is_behind_name = call->len && argument[-1].name;

    if (call->len == RULE_ARGUMENTS_MAX)
        return rule_parser_fail(parser, err,
                                "there are too many arguments; no function takes that many");
    *argument = (struct rule_argument){.place = parser->lexer.token.place};
    call->len++;
    if (rule_parser_is(parser, RULE_TOKEN_NAME) ? parse_named(parser, call, argument, err)
                                                : rule_expression(parser, &argument->value, err))
        return -1;
    if (is_behind_name && !argument->name)
        return rule_fail(
            parser->parse->file, argument->place, err,
            "a value without a name stands behind one with a name; write NAME = value");
    return 0;
}

/* The lexer is at the bracket. */
static int parse_call(struct rule_parser *parser, struct rule_call *call, struct err *err)
{
    if (rule_parser_next(parser, err))
        return -1;
    while (!rule_lexer_is(&parser->lexer, ')')) {
        if (parse_argument(parser, call, err))
            return -1;
        if (rule_lexer_is(&parser->lexer, ',')) {
            if (rule_parser_next(parser, err))
                return -1;
        } else if (!rule_lexer_is(&parser->lexer, ')')) {
            return rule_parser_fail_token(parser, err,
                                          "arguments go on with a comma or end with )");
        }
    }
    return rule_parser_next(parser, err) ? -1
                                         : parser->parse->on_call(parser->parse->data, call, err);
}

/* The lexer is at the "=". */
static int parse_binding(struct rule_parser *parser, const struct rule_call *head, struct err *err)
{
    struct rule_value value;

    if (rule_parser_find(parser, head->name))
        return rule_fail(parser->parse->file, head->place, err,
                         "%.60s is set above already; use another name", head->name);
    if (parser->len == RULE_NAMES_MAX)
        return rule_parser_fail(parser, err, "there are too many names; write lists in place");
    if (rule_parser_next(parser, err) || rule_expression(parser, &value, err))
        return -1;
    parser->bindings =
        alloc_grow(parser->bindings, parser->len, &parser->cap, sizeof *parser->bindings);
    parser->bindings[parser->len++] =
        (struct rule_binding){.name = alloc_str(head->name), .value = value};
    return 0;
}

/* A statement of Starlark that is none of ours. */
static bool is_refused(const struct rule_parser *parser)
{
    static const char *const words[] = {"def",    "for",  "if",     "elif", "else",   "load",
                                        "return", "pass", "lambda", "not",  "import", NULL};

    for (size_t i = 0; words[i]; i++)
        if (is_word(parser, words[i]))
            return true;
    return false;
}

static int parse_named_statement(struct rule_parser *parser, struct err *err)
{
    AUTO(call_done) struct rule_call head = {.place = parser->lexer.token.place};

    if (is_refused(parser))
        return rule_parser_fail_token(
            parser, err, "a rules file holds only rules and NAME = value; write each rule out");
    if (rule_parser_take_name(parser, &head.name, err))
        return -1;
    if (rule_lexer_is(&parser->lexer, '('))
        return parse_call(parser, &head, err);
    if (rule_lexer_is(&parser->lexer, '='))
        return parse_binding(parser, &head, err);
    return rule_parser_fail_token(parser, err,
                                  "behind a name comes = and a value, or ( and arguments");
}

static int parse_statement(struct rule_parser *parser, struct err *err)
{
    AUTO(rule_value_done) struct rule_value ignored = {.kind = RULE_VALUE_STRING};

    if (rule_parser_is(parser, RULE_TOKEN_NAME) ? parse_named_statement(parser, err)
        : rule_parser_is(parser, RULE_TOKEN_STRING)
            ? rule_expression(parser, &ignored, err)
            : rule_parser_fail_token(parser, err,
                                     "a line begins with prefix_rule(, host_executable(, "
                                     "network_rule( or a name"))
        return -1;
    if (!rule_parser_is(parser, RULE_TOKEN_LINE) && !rule_parser_is(parser, RULE_TOKEN_END))
        return rule_parser_fail_token(parser, err, "a statement ends with its line");
    return 0;
}

/* Statements may stand on one line with ";" between, but none may be indented. */
static int parse_statements(struct rule_parser *parser, struct err *err)
{
    bool is_line_start = true;

    while (!rule_parser_is(parser, RULE_TOKEN_END)) {
        if (rule_parser_is(parser, RULE_TOKEN_LINE)) {
            is_line_start = parser->lexer.token.sign == '\n';
            if (rule_parser_next(parser, err))
                return -1;
            continue;
        }
        if (is_line_start && parser->lexer.token.place.column > 1)
            return rule_parser_fail(parser, err,
                                    "this line is indented; statements begin in column 1");
        if (parse_statement(parser, err))
            return -1;
    }
    return 0;
}

int rule_parse(const struct rule_parse *parse, struct err *err)
{
    AUTO(parser_done) struct rule_parser parser = {.parse = parse};

    if (rule_lexer_init(&parser.lexer, parse->file, parse->text, parse->len, err))
        return -1;
    return parse_statements(&parser, err);
}
