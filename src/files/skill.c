/* See skill.h. Many skills are written by people who never met YAML, so a front matter that is not
 * valid gets a second chance: values that were meant as prose ("description: Build for AWS: ECS", or
 * one that begins with "@") are quoted, line by line, and all is parsed again.
 *
 * A wrong type anywhere in the metadata makes the whole file wrong; a tool without a type or value,
 * and other texts that are too long, are left out. All of that, and which lines are quoted, is what
 * Codex 0.169.0 does (tests/cases/discovery).
 *
 * A stranger wrote these documents. libyaml builds the tree and bounds its depth; nothing here walks
 * it, so that aliases, which can make a small document a huge or endless one, are followed once at
 * most. What a scalar is follows YAML's core schema where it is plain; a quoted one is always text. */
#include "files/skill.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* --- documents --- */

struct document {
    yaml_document_t tree;
    bool is_loaded;
};

static int fail_yaml(const yaml_parser_t *parser, struct err *err)
{
    return err_set(err, ERR_INVALID, "line %zu, column %zu: %s", parser->problem_mark.line + 1,
                   parser->problem_mark.column + 1,
                   parser->problem ? parser->problem : "this is not YAML");
}

/* 0 when nothing comes behind the document. */
static int check_end(yaml_parser_t *parser, struct err *err)
{
    yaml_document_t next;
    bool is_end;

    if (!yaml_parser_load(parser, &next))
        return fail_yaml(parser, err);
    is_end = !yaml_document_get_root_node(&next);
    yaml_document_delete(&next);
    return is_end ? 0 : err_set(err, ERR_INVALID, "it has more than one document");
}

static void document_done(struct document *document)
{
    if (document->is_loaded)
        yaml_document_delete(&document->tree);
    document->is_loaded = false;
}

/* A stream of at most one document; an empty one has no root. */
static int document_load(struct document *ret, const char *text, size_t len, struct err *err)
{
    struct document document = {0};
    yaml_parser_t parser;
    int status;

    if (!yaml_parser_initialize(&parser))
        return err_set(err, ERR_LIMIT, "there is no memory for a YAML parser");
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    if (yaml_parser_load(&parser, &document.tree)) {
        document.is_loaded = true;
        status = yaml_document_get_root_node(&document.tree) ? check_end(&parser, err) : 0;
    } else {
        status = fail_yaml(&parser, err);
    }
    yaml_parser_delete(&parser);
    if (status)
        document_done(&document);
    else
        *ret = document;
    return status;
}

/* --- scalars --- */

static const char *scalar_text(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

static bool is_plain(const yaml_node_t *node, const char *const *words)
{
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (; *words; words++)
        if (str_eq(*words, scalar_text(node)))
            return true;
    return false;
}

/* Null is a value here. */
static int document_find(struct document *document, const yaml_node_t *map, const char *key,
                         const yaml_node_t **ret, struct err *err)
{
    const yaml_node_t *found = NULL;

    if (map && map->type != YAML_MAPPING_NODE)
        return err_set(err, ERR_INVALID, "line %zu: should be a mapping", map->start_mark.line + 1);
    for (const yaml_node_pair_t *pair = map ? map->data.mapping.pairs.start : NULL;
         map && pair < map->data.mapping.pairs.top; pair++) {
        const yaml_node_t *at = yaml_document_get_node(&document->tree, pair->key);

        if (!at || at->type != YAML_SCALAR_NODE || !str_eq(scalar_text(at), key))
            continue;
        if (found)
            return err_set(err, ERR_INVALID, "line %zu: %s is there twice",
                           found->start_mark.line + 1, key);
        found = yaml_document_get_node(&document->tree, pair->value);
    }
    *ret = found;
    return 0;
}

/* The value of a key; `*ret` is NULL when it is missing or null. Fails when `map` is not NULL and
 * no mapping, or has the key twice. */
static int document_field(struct document *document, const yaml_node_t *map, const char *key,
                          const yaml_node_t **ret, struct err *err)
{
    if (document_find(document, map, key, ret, err))
        return -1;
    if (*ret && is_plain(*ret, (const char *const[]){"", "~", "null", "Null", "NULL", NULL}))
        *ret = NULL;
    return 0;
}

/* A sequence; NULL when the key is missing, but null is none. */
static int document_list(struct document *document, const yaml_node_t *map, const char *key,
                         const yaml_node_t **ret, struct err *err)
{
    if (document_find(document, map, key, ret, err))
        return -1;
    return !*ret || (*ret)->type == YAML_SEQUENCE_NODE
               ? 0
               : err_set(err, ERR_INVALID, "line %zu: %s should be a list",
                         (*ret)->start_mark.line + 1, key);
}

/* `*ret` stays NULL when there is none. */
static int document_scalar(struct document *document, const yaml_node_t *map, const char *key,
                           const yaml_node_t **ret, struct err *err)
{
    if (document_field(document, map, key, ret, err))
        return -1;
    if (*ret && ((*ret)->type != YAML_SCALAR_NODE ||
                 strlen(scalar_text(*ret)) != (*ret)->data.scalar.length))
        return err_set(err, ERR_INVALID, "line %zu: %s should be text", (*ret)->start_mark.line + 1,
                       key);
    return 0;
}

/* As document_field() for a scalar's text; borrowed. */
static int document_text(struct document *document, const yaml_node_t *map, const char *key,
                         const char **ret, struct err *err)
{
    const yaml_node_t *node = NULL;

    if (document_scalar(document, map, key, &node, err))
        return -1;
    *ret = node ? scalar_text(node) : NULL;
    return 0;
}

/* 1, 0, or -1: missing. */
static int document_flag(struct document *document, const yaml_node_t *map, const char *key,
                         int *ret, struct err *err)
{
    const yaml_node_t *node = NULL;

    if (document_scalar(document, map, key, &node, err))
        return -1;
    if (!node)
        *ret = -1;
    else if (is_plain(node, (const char *const[]){"true", "True", "TRUE", NULL}))
        *ret = 1;
    else if (is_plain(node, (const char *const[]){"false", "False", "FALSE", NULL}))
        *ret = 0;
    else
        return err_set(err, ERR_INVALID, "line %zu: %s should be true or false",
                       node->start_mark.line + 1, key);
    return 0;
}

/* An integer from 0 to 65535; -1: missing. */
static int document_port(struct document *document, const yaml_node_t *map, const char *key,
                         int *ret, struct err *err)
{
    const yaml_node_t *node = NULL;
    const char *text;
    char *end = NULL;
    unsigned long value;

    if (document_scalar(document, map, key, &node, err))
        return -1;
    *ret = -1;
    if (!node)
        return 0;
    text = scalar_text(node);
    value = strtoul(text, &end, str_starts(text, "0x") ? 16 : 10);
    if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE || *text < '0' || *text > '9' || *end ||
        value > UINT16_MAX)
        return err_set(err, ERR_INVALID, "line %zu: %s should be a number up to 65535",
                       node->start_mark.line + 1, key);
    *ret = (int)value;
    return 0;
}

/* --- one line --- */

/* Characters with the property White_Space (Unicode, PropList.txt). */
static bool is_space(const char *text, size_t len)
{
    static const char *const spaces[] = {"\xc2\x85", "\u00a0", "\u1680", "\u2000", "\u2001",
                                         "\u2002",   "\u2003", "\u2004", "\u2005", "\u2006",
                                         "\u2007",   "\u2008", "\u2009", "\u200a", "\u2028",
                                         "\u2029",   "\u202f", "\u205f", "\u3000"};

    if (len == 1)
        return *text == ' ' || (*text >= '\t' && *text <= '\r');
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (len == strlen(spaces[i]) && memcmp(text, spaces[i], len) == 0)
            return true;
    return false;
}

char *text_one_line(const char *text)
{
    struct buf line;
    bool is_apart = false;
    size_t len;

    if (!text)
        return NULL;
    buf_init(&line, strlen(text));
    for (; *text; text += len) {
        utf8_next(text, strnlen(text, 4), &len);
        if (is_space(text, len)) {
            is_apart = line.len > 0;
            continue;
        }
        if (is_apart)
            buf_append(&line, " ", 1);
        is_apart = false;
        buf_append(&line, text, len);
    }
    return buf_take(&line);
}

size_t text_characters(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

/* --- SKILL.md --- */

enum { REPAIRED_MAX = 4 << 20 };

struct line {
    const char *text;
    size_t len; /* without the line feed */
};

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

static struct line line_trim(struct line line)
{
    while (line.len > 0 && is_blank(line.text[line.len - 1]))
        line.len--;
    while (line.len > 0 && is_blank(*line.text)) {
        line.text++;
        line.len--;
    }
    return line;
}

static bool is_fence(struct line line)
{
    struct line bare = line_trim(line);

    return bare.len == 3 && memcmp(bare.text, "---", 3) == 0;
}

/* Takes the next line off `*text`; false when there is none. */
static bool next_line(struct line *text, struct line *ret)
{
    const char *end = text->len ? memchr(text->text, '\n', text->len) : NULL;

    if (text->len == 0)
        return false;
    *ret = (struct line){.text = text->text, .len = end ? (size_t)(end - text->text) : text->len};
    text->len -= ret->len + (end ? 1 : 0);
    text->text += ret->len + (end ? 1 : 0);
    return true;
}

/* What is between the fences. */
static int find_front(struct line text, struct line *ret, struct err *err)
{
    struct line line;
    const char *begin;

    if (next_line(&text, &line) && is_fence(line)) {
        begin = text.text;
        while (next_line(&text, &line))
            if (is_fence(line) && line.text > begin) {
                *ret = (struct line){.text = begin, .len = (size_t)(line.text - begin)};
                return 0;
            } else if (is_fence(line)) {
                break;
            }
    }
    return err_set(err, ERR_INVALID, "it does not begin with YAML between two lines \"---\"");
}

/* --- the second chance --- */

/* It has a colon as of a mapping, or begins as no plain text may and is nothing else either. */
static bool needs_quotes(struct line value)
{
    AUTO(document_done) struct document alone = {0};
    struct err err;

    for (size_t i = 0; i + 1 < value.len; i++)
        if (value.text[i] == ':' && is_blank(value.text[i + 1]))
            return true;
    return memchr("[{@`", *value.text, 4) && document_load(&alone, value.text, value.len, &err);
}

static void append_quoted(struct buf *ret, struct line value)
{
    buf_append(ret, "'", 1);
    for (size_t i = 0; i < value.len; i++)
        buf_append(ret, value.text[i] == '\'' ? "''" : value.text + i,
                   value.text[i] == '\'' ? 2 : 1);
    buf_append(ret, "'", 1);
}

struct repair {
    struct buf text;
    bool is_changed;
    bool is_in_block;    /* the text of a "key: |" goes on below */
    size_t block_indent; /* of its key */
};

/* The value of a "key: value" line, without its comment; nothing when it is not one. */
static struct line line_value(struct line line)
{
    const char *colon = memchr(line.text, ':', line.len);
    struct line value = {.text = colon ? colon + 1 : line.text};
    struct line key = {.text = line.text, .len = colon ? (size_t)(colon - line.text) : 0};

    if (!colon || line_trim(key).len == 0)
        return value;
    value.len = line.len - key.len - 1;
    if (value.len > 0 && !is_blank(*value.text))
        value.len = 0;
    for (size_t i = 0; i < value.len; i++)
        if (value.text[i] == '#' && (i == 0 || is_blank(value.text[i - 1])))
            value.len = i;
    return line_trim(value);
}

static void repair_line(struct repair *repair, struct line line)
{
    struct line value = line_value(line);
    size_t indent = 0;
    size_t before = (size_t)(value.text - line.text);

    while (indent < line.len && line.text[indent] == ' ')
        indent++;
    repair->is_in_block &= line_trim(line).len == 0 || indent > repair->block_indent;
    if (!repair->is_in_block && value.len && (*value.text == '|' || *value.text == '>')) {
        repair->is_in_block = true;
        repair->block_indent = indent;
    } else if (!repair->is_in_block && value.len && !memchr("'\"", *value.text, 2) &&
               needs_quotes(value)) {
        repair->is_changed = true;
        buf_append(&repair->text, line.text, before);
        append_quoted(&repair->text, value);
        buf_append(&repair->text, value.text + value.len, line.len - before - value.len);
        buf_append(&repair->text, "\n", 1);
        return;
    }
    buf_append(&repair->text, line.text, line.len);
    buf_append(&repair->text, "\n", 1);
}

/* --- the parts --- */

/* One line of text, or NULL for an empty one. */
static char *part(const char *text)
{
    char *line = text_one_line(text);

    if (line && *line)
        return line;
    free(line);
    return NULL;
}

static int read_parts(struct line yaml, struct skill_text *ret, struct err *err)
{
    AUTO(document_done) struct document document = {0};
    const char *name = NULL;
    const char *description = NULL;
    const char *brief = NULL;
    const yaml_node_t *root;
    const yaml_node_t *metadata = NULL;

    if (document_load(&document, yaml.text, yaml.len, err))
        return -1;
    root = yaml_document_get_root_node(&document.tree);
    if (document_text(&document, root, "name", &name, err) ||
        document_text(&document, root, "description", &description, err) ||
        document_field(&document, root, "metadata", &metadata, err) ||
        document_text(&document, metadata, "short-description", &brief, err))
        return -1;
    *ret = (struct skill_text){
        .name = part(name), .description = part(description), .short_description = part(brief)};
    return 0;
}

static int read_front(struct line front, struct skill_text *ret, struct err *err)
{
    struct repair repair = {0};
    struct line line;
    struct err ignored;
    int status;

    if (read_parts(front, ret, err) == 0)
        return 0;
    buf_init(&repair.text, REPAIRED_MAX);
    while (next_line(&front, &line))
        repair_line(&repair, line);
    line = (struct line){.text = repair.text.data, .len = repair.text.len};
    status = repair.is_changed ? read_parts(line, ret, &ignored) : -1;
    buf_done(&repair.text);
    return status;
}

int skill_text_parse(const char *text, size_t len, struct skill_text *ret, struct err *err)
{
    AUTO(skill_text_done) struct skill_text skill = {0};
    struct line front = {0};

    if (find_front((struct line){.text = text, .len = len}, &front, err) ||
        read_front(front, &skill, err))
        return -1;
    if (!skill.description)
        return err_set(err, ERR_INVALID, "it has no description");
    if (skill.name && text_characters(skill.name) > SKILL_NAME_MAX)
        return err_set(err, ERR_INVALID, "its name has more than %d characters", SKILL_NAME_MAX);
    *ret = skill;
    skill = (struct skill_text){0};
    return 0;
}

void skill_text_done(struct skill_text *skill)
{
    free(skill->name);
    free(skill->description);
    free(skill->short_description);
}

/* --- agents/openai.yaml --- */

enum { WORD_MAX = 64, TEXT_MAX = 1024 }; /* characters */

/* One line of text; null when it is empty or longer than `max`. */
static json_t *text_to_json(const char *text, size_t max)
{
    AUTO_FREE char *line = text_one_line(text);

    return line && *line && text_characters(line) <= max ? json_string(line) : json_null();
}

static int add_tool(struct document *document, const yaml_node_t *tool, json_t *tools,
                    struct err *err)
{
    static const struct {
        const char *name;
        size_t max;
    } parts[] = {{"type", WORD_MAX},      {"value", TEXT_MAX},   {"description", TEXT_MAX},
                 {"transport", WORD_MAX}, {"command", TEXT_MAX}, {"url", TEXT_MAX}};
    AUTO_JSON json_t *made = json_object();
    const yaml_node_t *oauth = NULL;
    int port = -1;

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *text = NULL;

        if (document_text(document, tool, parts[i].name, &text, err))
            return -1;
        json_object_set_new(made, parts[i].name, text_to_json(text, parts[i].max));
    }
    if (document_field(document, tool, "oauth", &oauth, err) ||
        document_port(document, oauth, "callbackPort", &port, err) ||
        (port < 0 && document_port(document, oauth, "callback_port", &port, err)))
        return -1;
    json_object_set_new(made, "oauthCallbackPort", port < 0 ? json_null() : json_integer(port));
    if (json_is_string(json_object_get(made, "type")) &&
        json_is_string(json_object_get(made, "value")))
        json_array_append(tools, made);
    return 0;
}

/* `*ret` is a new reference: null, or {"tools"}. */
static int read_dependencies(struct document *document, const yaml_node_t *root, json_t **ret,
                             struct err *err)
{
    AUTO_JSON json_t *tools = json_array();
    const yaml_node_t *map = NULL;
    const yaml_node_t *list = NULL;

    if (document_field(document, root, "dependencies", &map, err) ||
        document_list(document, map, "tools", &list, err))
        return -1;
    for (const int *item = list ? list->data.sequence.items.start : NULL;
         list && item < list->data.sequence.items.top; item++)
        if (add_tool(document, yaml_document_get_node(&document->tree, *item), tools, err))
            return -1;
    *ret = json_array_size(tools) ? json_pack("{s:O}", "tools", tools) : json_null();
    return 0;
}

static int add_product(const yaml_node_t *node, json_t *products, struct err *err)
{
    static const char *const names[][2] = {
        {"codex", "CODEX"}, {"chatgpt", "CHATGPT"}, {"atlas", "ATLAS"}};
    const char *text =
        node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : "a list";

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eq(text, names[i][0]) || str_eq(text, names[i][1])) {
            json_array_append_new(products, json_string(names[i][0]));
            return 0;
        }
    return err_set(err, ERR_INVALID,
                   "line %zu: no product is named so; there are codex, chatgpt "
                   "and atlas",
                   node->start_mark.line + 1);
}

/* `*ret` is a new reference. */
static int read_policy(struct document *document, const yaml_node_t *root, json_t **ret,
                       struct err *err)
{
    AUTO_JSON json_t *products = json_array();
    const yaml_node_t *map = NULL;
    const yaml_node_t *list = NULL;
    int allows = -1;

    if (document_field(document, root, "policy", &map, err) ||
        document_flag(document, map, "allow_implicit_invocation", &allows, err) ||
        document_list(document, map, "products", &list, err))
        return -1;
    for (const int *item = list ? list->data.sequence.items.start : NULL;
         list && item < list->data.sequence.items.top; item++)
        if (add_product(yaml_document_get_node(&document->tree, *item), products, err))
            return -1;
    *ret = map ? json_pack("{s:o, s:O}", "allowImplicitInvocation",
                           allows < 0 ? json_null() : json_boolean(allows), "products", products)
               : json_null();
    return 0;
}

/* It is for people to look at and not passed on, but a wrong one makes the file wrong. */
static int check_interface(struct document *document, const yaml_node_t *root, struct err *err)
{
    static const char *const parts[] = {"display_name", "short_description", "icon_small",
                                        "icon_large",   "brand_color",       "default_prompt"};
    const yaml_node_t *map = NULL;
    const char *text = NULL;

    if (document_field(document, root, "interface", &map, err))
        return -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (document_text(document, map, parts[i], &text, err))
            return -1;
    return 0;
}

void skill_metadata_none(json_t *skill)
{
    json_object_set_new(skill, "dependencies", json_null());
    json_object_set_new(skill, "policy", json_null());
}

int skill_metadata_add(json_t *skill, const char *text, size_t len, struct err *err)
{
    AUTO(document_done) struct document document = {0};
    AUTO_JSON json_t *dependencies = NULL;
    AUTO_JSON json_t *policy = NULL;
    const yaml_node_t *root;

    skill_metadata_none(skill);
    if (document_load(&document, text, len, err))
        return -1;
    root = yaml_document_get_root_node(&document.tree);
    if (check_interface(&document, root, err) ||
        read_dependencies(&document, root, &dependencies, err) ||
        read_policy(&document, root, &policy, err))
        return -1;
    json_object_set(skill, "dependencies", dependencies);
    json_object_set(skill, "policy", policy);
    return 0;
}
