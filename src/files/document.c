/* See document.h. libyaml builds the tree and bounds its depth; nothing here walks it, so that
 * aliases, which can make a small document a huge or endless one, are followed once at most. */
#include "files/document.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static int fail(const yaml_parser_t *parser, struct err *err)
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
        return fail(parser, err);
    is_end = !yaml_document_get_root_node(&next);
    yaml_document_delete(&next);
    return is_end ? 0 : err_set(err, ERR_INVALID, "it has more than one document");
}

int document_load(struct document *ret, const char *text, size_t len, struct err *err)
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
        status = document_root(&document) ? check_end(&parser, err) : 0;
    } else {
        status = fail(&parser, err);
    }
    yaml_parser_delete(&parser);
    if (status)
        document_done(&document);
    else
        *ret = document;
    return status;
}

void document_done(struct document *document)
{
    if (document->is_loaded)
        yaml_document_delete(&document->tree);
    document->is_loaded = false;
}

const yaml_node_t *document_root(struct document *document)
{
    return yaml_document_get_root_node(&document->tree);
}

const yaml_node_t *document_node(struct document *document, int index)
{
    return yaml_document_get_node(&document->tree, index);
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

static bool is_null(const yaml_node_t *node)
{
    return is_plain(node, (const char *const[]){"", "~", "null", "Null", "NULL", NULL});
}

static bool is_key(const yaml_node_t *node, const char *key)
{
    return node && node->type == YAML_SCALAR_NODE && str_eq(scalar_text(node), key);
}

/* Null is a value here. */
static int find(struct document *document, const yaml_node_t *map, const char *key,
                const yaml_node_t **ret, struct err *err)
{
    const yaml_node_t *found = NULL;

    if (map && map->type != YAML_MAPPING_NODE)
        return err_set(err, ERR_INVALID, "line %zu: should be a mapping", map->start_mark.line + 1);
    for (const yaml_node_pair_t *pair = map ? map->data.mapping.pairs.start : NULL;
         map && pair < map->data.mapping.pairs.top; pair++) {
        if (!is_key(document_node(document, pair->key), key))
            continue;
        if (found)
            return err_set(err, ERR_INVALID, "line %zu: %s is there twice",
                           found->start_mark.line + 1, key);
        found = document_node(document, pair->value);
    }
    *ret = found;
    return 0;
}

int document_field(struct document *document, const yaml_node_t *map, const char *key,
                   const yaml_node_t **ret, struct err *err)
{
    if (find(document, map, key, ret, err))
        return -1;
    if (*ret && is_null(*ret))
        *ret = NULL;
    return 0;
}

int document_list(struct document *document, const yaml_node_t *map, const char *key,
                  const yaml_node_t **ret, struct err *err)
{
    if (find(document, map, key, ret, err))
        return -1;
    return !*ret || (*ret)->type == YAML_SEQUENCE_NODE
               ? 0
               : err_set(err, ERR_INVALID, "line %zu: %s should be a list",
                         (*ret)->start_mark.line + 1, key);
}

/* `*ret` stays NULL when there is none. */
static int find_scalar(struct document *document, const yaml_node_t *map, const char *key,
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

int document_text(struct document *document, const yaml_node_t *map, const char *key,
                  const char **ret, struct err *err)
{
    const yaml_node_t *node = NULL;

    if (find_scalar(document, map, key, &node, err))
        return -1;
    *ret = node ? scalar_text(node) : NULL;
    return 0;
}

int document_flag(struct document *document, const yaml_node_t *map, const char *key, int *ret,
                  struct err *err)
{
    const yaml_node_t *node = NULL;

    if (find_scalar(document, map, key, &node, err))
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

int document_port(struct document *document, const yaml_node_t *map, const char *key, int *ret,
                  struct err *err)
{
    const yaml_node_t *node = NULL;
    const char *text;
    char *end = NULL;
    unsigned long value;

    if (find_scalar(document, map, key, &node, err))
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

/* Characters with the property White_Space (Unicode, PropList.txt) beyond ASCII. */
static bool is_wide_space(const char *text, size_t len)
{
    static const char *const spaces[] = {"\xc2\x85", "\u00a0", "\u1680", "\u2000", "\u2001",
                                         "\u2002",   "\u2003", "\u2004", "\u2005", "\u2006",
                                         "\u2007",   "\u2008", "\u2009", "\u200a", "\u2028",
                                         "\u2029",   "\u202f", "\u205f", "\u3000"};

    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (len == strlen(spaces[i]) && memcmp(text, spaces[i], len) == 0)
            return true;
    return false;
}

static bool is_space(const char *text, size_t len)
{
    return len == 1 ? *text == ' ' || (*text >= '\t' && *text <= '\r') : is_wide_space(text, len);
}

char *document_one_line(const char *text)
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

size_t document_characters(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}
