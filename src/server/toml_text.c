/* See toml_text.h. A selected value is written as one dotted key with everything below it inline,
 * which is TOML whatever it holds (TOML 1.0: dotted keys, inline tables, basic strings). When two
 * paths overlap, the longer one is left out. */
#include "server/toml_text.h"

#include "policy/config/toml.h"

#include <inttypes.h>
#include <stdbool.h>

static void add_quoted(struct buf *out, const char *text)
{
    buf_append_str(out, "\"");
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte == '"' || byte == '\\' || byte < 0x20 || byte == 0x7f)
            buf_appendf(out, "\\u%04x", byte);
        else
            buf_append(out, text, 1);
    }
    buf_append_str(out, "\"");
}

static int add_value(struct buf *out, const struct toml_node *node, unsigned depth,
                     struct err *err);

static int add_items(struct buf *out, const struct toml_node *node, unsigned depth, struct err *err)
{
    for (size_t i = 0; i < node->len; i++) {
        const struct toml_node *item = &node->items[i];

        buf_append_str(out, i ? ", " : "");
        if (item->key) {
            add_quoted(out, item->key);
            buf_append_str(out, " = ");
        }
        if (add_value(out, item, depth + 1, err))
            return -1;
    }
    return 0;
}

static int add_nested(struct buf *out, const struct toml_node *node, unsigned depth,
                      struct err *err)
{
    bool is_table = node->kind == TOML_TABLE;

    if (depth > 2 * TOML_DEPTH_MAX + TOML_KEY_PARTS_MAX)
        return err_set(err, ERR_LIMIT, "line %u: nested too deep", node->line);
    buf_append_str(out, is_table ? "{" : "[");
    if (add_items(out, node, depth, err))
        return -1;
    buf_append_str(out, is_table ? "}" : "]");
    return 0;
}

static int add_value(struct buf *out, const struct toml_node *node, unsigned depth, struct err *err)
{
    switch (node->kind) {
    case TOML_TABLE:
    case TOML_ARRAY:
        return add_nested(out, node, depth, err);
    case TOML_STRING:
        add_quoted(out, node->string);
        return 0;
    case TOML_INTEGER:
        buf_appendf(out, "%" PRId64, node->integer);
        return 0;
    case TOML_BOOLEAN:
        buf_append_str(out, node->boolean ? "true" : "false");
        return 0;
    case TOML_OTHER:
        break;
    }
    return err_set(err, ERR_UNSUPPORTED, "line %u: fractions, dates and times cannot be passed on",
                   node->line);
}

/* NULL when a key of the path is not there. */
static const struct toml_node *find(const struct toml_node *node, const json_t *path)
{
    for (size_t i = 0; node && i < json_array_size(path); i++)
        node = toml_find(node, json_string_value(json_array_get(path, i)));
    return node;
}

/* Another path that is asked for, or the same once more before it, holds this one. */
static bool is_covered(const json_t *paths, size_t index)
{
    const json_t *path = json_array_get(paths, index);

    for (size_t i = 0; i < json_array_size(paths); i++) {
        const json_t *other = json_array_get(paths, i);
        size_t len = json_array_size(other);
        bool is_prefix = i != index && len <= json_array_size(path);

        for (size_t k = 0; is_prefix && k < len; k++)
            is_prefix = json_equal(json_array_get(other, k), json_array_get(path, k));
        if (is_prefix && (len < json_array_size(path) || i < index))
            return true;
    }
    return false;
}

int toml_text_select(const struct toml_node *root, const json_t *paths, struct buf *ret,
                     struct err *err)
{
    for (size_t i = 0; i < json_array_size(paths); i++) {
        const json_t *path = json_array_get(paths, i);
        const struct toml_node *node = find(root, path);

        if (!node || is_covered(paths, i))
            continue;
        for (size_t k = 0; k < json_array_size(path); k++) {
            buf_append_str(ret, k ? "." : "");
            add_quoted(ret, json_string_value(json_array_get(path, k)));
        }
        buf_append_str(ret, " = ");
        if (add_value(ret, node, 0, err))
            return -1;
        if (!buf_append_str(ret, "\n"))
            return err_set(err, ERR_LIMIT, "more than %zu bytes were asked for", ret->max);
    }
    return 0;
}
