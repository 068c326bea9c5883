/* Reads the part of Starlark that rules need: statements at the top, literals, nothing that runs.
 *
 *     statement   NAME = value  |  NAME(argument, ...)  |  STRING        (the last says nothing)
 *     argument    value  |  NAME = value
 *     value       term + term + ...
 *     term        STRING  |  NAME  |  [value, ...]  |  (value)
 *
 * A name stands for a literal from above it and cannot be set twice. It is replaced by a copy of its
 * literal, so that nothing is shared and nothing changes later; what copies cost is counted
 * (RULE_MEMORY_MAX), because `B = A + A` doubles with every line. Whatever else Starlark has (def,
 * for, if, load, numbers, dicts, methods) is refused by name, because a rule that is not understood
 * must not be skipped. Recursion is bounded by RULE_DEPTH_MAX.
 *
 * Functions that read a value write it to `ret`, which is zeroed before and freed by the caller,
 * also when they fail. */
#include "rules/file/rule_parse.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "rules/file/rule_token.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* --- values; they nest at most RULE_DEPTH_MAX deep --- */

static void value_done(struct rule_value *value)
{
    for (size_t i = 0; i < value->len; i++)
        value_done(&value->items[i]);
    free(value->items);
    free(value->text);
    *value = (struct rule_value){.text = NULL};
}

/* A new last item; zeroed. */
static struct rule_value *value_add(struct rule_value *list)
{
    list->items = alloc_grow(list->items, list->len, &list->cap, sizeof *list->items);
    list->items[list->len] = (struct rule_value){.text = NULL};
    return &list->items[list->len++];
}

static struct rule_value value_copy(const struct rule_value *value)
{
    struct rule_value copy = {
        .kind = value->kind, .place = value->place, .text = alloc_str(value->text)};

    for (size_t i = 0; i < value->len; i++)
        *value_add(&copy) = value_copy(&value->items[i]);
    return copy;
}

/* Bytes that a copy takes, about. */
static size_t value_size(const struct rule_value *value)
{
    size_t size = sizeof *value + (value->text ? strlen(value->text) : 0);

    for (size_t i = 0; i < value->len; i++)
        size += value_size(&value->items[i]);
    return size;
}

/* --- the parser --- */

struct binding {
    char *name;
    struct rule_value value;
};

struct parser {
    const struct rule_parse *parse;
    struct rule_lexer lexer;
    struct binding *bindings; /* names that were set */
    size_t len;
    size_t cap;
    unsigned depth; /* of brackets */
    size_t memory;  /* that values took so far */
};

static void parser_done(struct parser *parser)
{
    for (size_t i = 0; i < parser->len; i++) {
        free(parser->bindings[i].name);
        value_done(&parser->bindings[i].value);
    }
    free(parser->bindings);
    rule_lexer_done(&parser->lexer);
}

/* At the current token; -1. */
static int fail_here(struct parser *parser, struct err *err, const char *text)
{
    return rule_fail(parser->parse->file, parser->lexer.token.place, err, "%s", text);
}

/* The same: "<the token> is not expected here; <advice>". */
static int fail_token(struct parser *parser, struct err *err, const char *advice)
{
    AUTO_FREE char *text = rule_token_text(&parser->lexer.token);

    return rule_fail(parser->parse->file, parser->lexer.token.place, err,
                     "%s is not expected here; %s", text, advice);
}

static int next(struct parser *parser, struct err *err)
{
    return rule_lexer_next(&parser->lexer, err);
}

static bool at_kind(const struct parser *parser, enum rule_token_kind kind)
{
    return parser->lexer.token.kind == kind;
}

static bool at_sign(const struct parser *parser, char sign)
{
    return at_kind(parser, RULE_TOKEN_SIGN) && parser->lexer.token.sign == sign;
}

static bool at_string(const struct parser *parser)
{
    return at_kind(parser, RULE_TOKEN_STRING) || at_kind(parser, RULE_TOKEN_FORMAT);
}

/* Takes the name that is the current token, and goes on. Caller frees, also on failure. */
static int take_name(struct parser *parser, char **ret, struct err *err)
{
    *ret = alloc_str(parser->lexer.token.text.data);
    return next(parser, err);
}

/* What the name stands for; NULL when it was not set. */
static const struct rule_value *find_name(const struct parser *parser, const char *name)
{
    for (size_t i = 0; i < parser->len; i++)
        if (str_eq(parser->bindings[i].name, name))
            return &parser->bindings[i].value;
    return NULL;
}

static int count_memory(struct parser *parser, const struct rule_value *value, struct err *err)
{
    parser->memory += value_size(value);
    if (parser->memory > RULE_MEMORY_MAX)
        return fail_here(parser, err, "the values up to here are too large; write smaller lists");
    return 0;
}

/* Behind an item of a list that ends with `closer`: takes the comma, if there is one. */
static int end_item(struct parser *parser, char closer, const char *advice, struct err *err)
{
    if (at_sign(parser, ','))
        return next(parser, err);
    return at_sign(parser, closer) ? 0 : fail_token(parser, err, advice);
}

/* --- terms --- */

static int parse_value(struct parser *parser, struct rule_value *ret, struct err *err);

/* A copy of what the name stands for; errors point to where the name is used. */
static int copy_name(struct parser *parser, const char *name, struct rule_place place,
                     struct rule_value *ret, struct err *err)
{
    const struct rule_value *value = find_name(parser, name);

    if (str_eq(name, "None") || str_eq(name, "True") || str_eq(name, "False"))
        return rule_fail(parser->parse->file, place, err,
                         "%s is not a value here; rules hold strings and lists of strings", name);
    if (!value)
        return rule_fail(parser->parse->file, place, err,
                         "there is no name \"%.60s\" above; a string stands in quotes", name);
    if (count_memory(parser, value, err))
        return -1;
    *ret = value_copy(value);
    ret->place = place;
    return 0;
}

static int parse_name(struct parser *parser, struct rule_value *ret, struct err *err)
{
    struct rule_place place = parser->lexer.token.place;
    AUTO_FREE char *name = NULL;

    return take_name(parser, &name, err) ? -1 : copy_name(parser, name, place, ret, err);
}

/* One "{NAME}" of an f-string; `*at` is behind the brace. */
static int format_name(struct parser *parser, const char **at, struct buf *ret, struct err *err)
{
    size_t len = strcspn(*at, "{}");
    AUTO_FREE char *name = alloc_strn(*at, len);
    const struct rule_value *value = find_name(parser, name);

    if ((*at)[len] != '}')
        return fail_here(parser, err,
                         "a \"{\" in an f-string needs its \"}\"; a brace is written {{");
    if (!value || value->kind != RULE_VALUE_STRING)
        return rule_fail(parser->parse->file, parser->lexer.token.place, err,
                         "{%.60s} in an f-string is not the name of a string above", name);
    *at += len + 1;
    if (count_memory(parser, value, err))
        return -1;
    buf_append_str(ret, value->text);
    return 0;
}

/* What the f-string that is the current token means; caller frees. NULL on failure. */
static char *format_text(struct parser *parser, struct err *err)
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
            fail_here(parser, err, "a single \"}\" in an f-string; a brace is written }}");
            return NULL;
        } else if (*at && (at++, format_name(parser, &at, &text, err))) {
            return NULL;
        }
    }
    return buf_take(&text);
}

static int parse_string(struct parser *parser, struct rule_value *ret, struct err *err)
{
    ret->place = parser->lexer.token.place;
    ret->text = at_kind(parser, RULE_TOKEN_STRING) ? alloc_str(parser->lexer.token.text.data)
                                                   : format_text(parser, err);
    if (!ret->text || count_memory(parser, ret, err) || next(parser, err))
        return -1;
    if (at_string(parser))
        return fail_token(parser, err, "write + between two strings, or a comma");
    return 0;
}

/* At the bracket. */
static int parse_list(struct parser *parser, struct rule_value *ret, struct err *err)
{
    *ret = (struct rule_value){.kind = RULE_VALUE_LIST, .place = parser->lexer.token.place};
    if (next(parser, err))
        return -1;
    while (!at_sign(parser, ']'))
        if (parse_value(parser, value_add(ret), err) ||
            end_item(parser, ']', "a list goes on with a comma or ends with ]", err))
            return -1;
    return count_memory(parser, ret, err) || next(parser, err) ? -1 : 0;
}

/* At the bracket. */
static int parse_group(struct parser *parser, struct rule_value *ret, struct err *err)
{
    if (next(parser, err) || parse_value(parser, ret, err))
        return -1;
    if (at_sign(parser, ','))
        return fail_token(parser, err, "tuples are not read; write a list: [...]");
    if (!at_sign(parser, ')'))
        return fail_token(parser, err, "close the bracket with )");
    return next(parser, err);
}

static int parse_term(struct parser *parser, struct rule_value *ret, struct err *err)
{
    int status;

    if (at_string(parser))
        return parse_string(parser, ret, err);
    if (at_kind(parser, RULE_TOKEN_NAME))
        return parse_name(parser, ret, err);
    if (!at_sign(parser, '[') && !at_sign(parser, '('))
        return fail_token(parser, err, "a value is a \"string\" or a [list]");
    if (parser->depth == RULE_DEPTH_MAX)
        return fail_here(parser, err, "brackets are nested too deep; patterns need two levels");
    parser->depth++;
    status = at_sign(parser, '[') ? parse_list(parser, ret, err) : parse_group(parser, ret, err);
    parser->depth--;
    return status;
}

/* --- sums --- */

/* Appends `more`, which is emptied. */
static int concatenate(struct parser *parser, struct rule_value *value, struct rule_value *more,
                       struct err *err)
{
    if (value->kind != more->kind)
        return rule_fail(parser->parse->file, more->place, err,
                         "+ joins two strings or two lists, not one of each");
    if (value->kind == RULE_VALUE_STRING) {
        char *text = alloc_strf("%s%s", value->text, more->text);

        free(value->text);
        value->text = text;
        return count_memory(parser, value, err);
    }
    for (size_t i = 0; i < more->len; i++)
        *value_add(value) = more->items[i];
    more->len = 0;
    return 0;
}

/* Adds what stands behind the first term of a value. */
static int parse_sum(struct parser *parser, struct rule_value *value, struct err *err)
{
    while (at_sign(parser, '+')) {
        AUTO(value_done) struct rule_value more = {.text = NULL};

        if (next(parser, err) || parse_term(parser, &more, err) ||
            concatenate(parser, value, &more, err))
            return -1;
    }
    return 0;
}

/* A value that begins at the current token. */
static int parse_value(struct parser *parser, struct rule_value *ret, struct err *err)
{
    return parse_term(parser, ret, err) || parse_sum(parser, ret, err) ? -1 : 0;
}

/* --- calls --- */

static void call_done(struct rule_call *call)
{
    for (size_t i = 0; i < call->len; i++) {
        free(call->arguments[i].name);
        value_done(&call->arguments[i].value);
    }
    free(call->name);
}

/* An argument that begins with a name: NAME = value, or the value of the name. It is the last of
 * the call. */
static int parse_named(struct parser *parser, struct rule_call *call, struct err *err)
{
    struct rule_argument *argument = &call->arguments[call->len - 1];
    AUTO_FREE char *name = NULL;

    if (take_name(parser, &name, err))
        return -1;
    if (!at_sign(parser, '='))
        return copy_name(parser, name, argument->place, &argument->value, err) ||
                       parse_sum(parser, &argument->value, err)
                   ? -1
                   : 0;
    for (size_t i = 0; i + 1 < call->len; i++)
        if (call->arguments[i].name && str_eq(call->arguments[i].name, name))
            return rule_fail(parser->parse->file, argument->place, err,
                             "%.60s is given twice; give it once", name);
    argument->name = TAKE_PTR(name);
    return next(parser, err) || parse_value(parser, &argument->value, err) ? -1 : 0;
}

static int parse_argument(struct parser *parser, struct rule_call *call, struct err *err)
{
    struct rule_argument *argument = &call->arguments[call->len];
    bool is_behind_name = call->len && argument[-1].name;

    if (call->len == RULE_ARGUMENTS_MAX)
        return fail_here(parser, err, "there are too many arguments; no function takes that many");
    *argument = (struct rule_argument){.place = parser->lexer.token.place};
    call->len++;
    if (at_kind(parser, RULE_TOKEN_NAME) ? parse_named(parser, call, err)
                                         : parse_value(parser, &argument->value, err))
        return -1;
    if (is_behind_name && !argument->name)
        return rule_fail(
            parser->parse->file, argument->place, err,
            "a value without a name stands behind one with a name; write NAME = value");
    return 0;
}

/* At the bracket. */
static int parse_call(struct parser *parser, struct rule_call *call, struct err *err)
{
    if (next(parser, err))
        return -1;
    while (!at_sign(parser, ')'))
        if (parse_argument(parser, call, err) ||
            end_item(parser, ')', "arguments go on with a comma or end with )", err))
            return -1;
    return next(parser, err) ? -1 : parser->parse->on_call(parser->parse->data, call, err);
}

/* --- statements --- */

/* At the "=". */
static int parse_binding(struct parser *parser, const struct rule_call *head, struct err *err)
{
    AUTO(value_done) struct rule_value value = {.text = NULL};

    if (find_name(parser, head->name))
        return rule_fail(parser->parse->file, head->place, err,
                         "%.60s is set above already; use another name", head->name);
    if (parser->len == RULE_NAMES_MAX)
        return fail_here(parser, err, "there are too many names; write lists in place");
    if (next(parser, err) || parse_value(parser, &value, err))
        return -1;
    parser->bindings =
        alloc_grow(parser->bindings, parser->len, &parser->cap, sizeof *parser->bindings);
    parser->bindings[parser->len++] =
        (struct binding){.name = alloc_str(head->name), .value = value};
    value = (struct rule_value){.text = NULL};
    return 0;
}

static int parse_named_statement(struct parser *parser, struct err *err)
{
    static const char *const refused[] = {"def",    "for",  "if",     "elif", "else",   "load",
                                          "return", "pass", "lambda", "not",  "import", NULL};
    AUTO(call_done) struct rule_call head = {.place = parser->lexer.token.place};

    for (size_t i = 0; refused[i]; i++)
        if (str_eq(parser->lexer.token.text.data, refused[i]))
            return fail_token(
                parser, err, "a rules file holds only rules and NAME = value; write each rule out");
    if (take_name(parser, &head.name, err))
        return -1;
    if (at_sign(parser, '('))
        return parse_call(parser, &head, err);
    if (at_sign(parser, '='))
        return parse_binding(parser, &head, err);
    return fail_token(parser, err, "behind a name comes = and a value, or ( and arguments");
}

static int parse_statement(struct parser *parser, struct err *err)
{
    AUTO(value_done) struct rule_value ignored = {.text = NULL};

    if (at_kind(parser, RULE_TOKEN_NAME)     ? parse_named_statement(parser, err)
        : at_kind(parser, RULE_TOKEN_STRING) ? parse_value(parser, &ignored, err)
                                             : fail_token(parser, err,
                                                          "a line begins with prefix_rule(, "
                                                          "host_executable(, network_rule( or a "
                                                          "name"))
        return -1;
    if (!at_kind(parser, RULE_TOKEN_LINE) && !at_kind(parser, RULE_TOKEN_END))
        return fail_token(parser, err, "a statement ends with its line");
    return 0;
}

/* Statements may stand on one line with ";" between, but none may be indented. */
static int parse_statements(struct parser *parser, struct err *err)
{
    bool is_line_start = true;

    while (!at_kind(parser, RULE_TOKEN_END)) {
        if (at_kind(parser, RULE_TOKEN_LINE)) {
            is_line_start = parser->lexer.token.sign == '\n';
            if (next(parser, err))
                return -1;
            continue;
        }
        if (is_line_start && parser->lexer.token.place.column > 1)
            return fail_here(parser, err, "this line is indented; statements begin in column 1");
        if (parse_statement(parser, err))
            return -1;
    }
    return 0;
}

int rule_parse(const struct rule_parse *parse, struct err *err)
{
    AUTO(parser_done) struct parser parser = {.parse = parse};

    if (rule_lexer_init(&parser.lexer, parse->file, parse->text, parse->len, err))
        return -1;
    return parse_statements(&parser, err);
}
