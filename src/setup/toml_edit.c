/* See toml_edit.h. Lines are looked at as text, between two readings by the parser: whether the table is there and whose it
 * is, the tree of the text says; and what comes out is parsed, and its tree compared with the one before. Anything but
 * our table that differs is an error, so that lines like ours in a string of several lines, say, can do no harm. */
#include "setup/toml_edit.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "policy/config/toml.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static void tree_auto(struct toml_node **slot)
{
    toml_free(*slot);
}
#define AUTO_TREE __attribute__((cleanup(tree_auto)))

/* --- trees --- */

static const struct toml_node *find(const struct toml_node *root, const char *const *keys)
{
    for (; root && *keys; keys++)
        root = toml_find(root, *keys);
    return root;
}

/* Nothing is in it but what is on the way. */
static bool is_only_way(const struct toml_node *node, const char *const *keys)
{
    while (*keys && node->kind == TOML_TABLE && node->len == 1 &&
           str_eq(node->items[0].key, *keys)) {
        node = &node->items[0];
        keys++;
    }
    return !*keys || (node->kind == TOML_TABLE && !node->len);
}

static bool is_same(const struct toml_node *a, const struct toml_node *b, const char *const *keys);

/* What is on the way to our table: nothing need be there but that way. */
static bool is_same_way(const struct toml_node *a, const struct toml_node *b,
                        const char *const *keys)
{
    if (!*keys || (!a && !b))
        return true;
    if (a && b)
        return is_same(a, b, keys);
    return is_only_way(a ? a : b, keys);
}

/* But for what the keys name; NULL: but for nothing. Bounded by the depth of what the parser lets through. */
static bool is_same(const struct toml_node *a, const struct toml_node *b, const char *const *keys)
{
    const char *way = keys ? *keys : NULL;
    bool has_keys = a->kind == TOML_TABLE;
    size_t a_others = a->len - (way && toml_find(a, way));
    size_t b_others = b->len - (way && toml_find(b, way));

    if (a->kind != b->kind || a->integer != b->integer || a->boolean != b->boolean ||
        a_others != b_others || (a->kind == TOML_STRING && !str_eq(a->string, b->string)))
        return false;
    for (size_t i = 0; i < a->len; i++) {
        const struct toml_node *item = &a->items[i];
        const struct toml_node *other = has_keys ? toml_find(b, item->key) : &b->items[i];

        if (way && str_eq(item->key, way))
            continue;
        if (!other || !is_same(item, other, NULL))
            return false;
    }
    return !way || is_same_way(toml_find(a, way), toml_find(b, way), keys + 1);
}

/* --- lines --- */

/* Behind the line that `at` is in. */
static size_t line_end(const char *text, size_t len, size_t at)
{
    const char *end = memchr(text + at, '\n', len - at);

    return end ? (size_t)(end - text) + 1 : len;
}

/* The line, without what ends it. */
static bool is_line(const char *text, size_t len, size_t at, const char *wanted)
{
    size_t size = line_end(text, len, at) - at;

    while (size && strchr("\r\n \t", text[at + size - 1]))
        size--;
    return size == strlen(wanted) && !memcmp(text + at, wanted, size);
}

static bool begins(const char *text, size_t len, size_t at, const char *with)
{
    return len - at >= strlen(with) && !memcmp(text + at, with, strlen(with));
}

/* The end of the table whose header is the line at `at`. */
static size_t table_end(const char *text, size_t len, size_t at)
{
    do
        at = line_end(text, len, at);
    while (at < len && !strchr("#[\r\n", text[at]));
    return at;
}

/* Where the table's text is, with the mark before it; false: its line is no header of its own. */
static bool find_block(const char *text, size_t len, const struct toml_block *block,
                       const struct toml_node *table, size_t *ret_from, size_t *ret_to)
{
    AUTO_FREE char *header = alloc_strf("[%s]", block->table);
    size_t at = 0, before = 0;

    for (unsigned line = 1; line < table->line && at < len; line++) {
        before = at;
        at = line_end(text, len, at);
    }
    if (at >= len || !is_line(text, len, at, header))
        return false;
    *ret_from = at && is_line(text, len, before, block->mark) ? before : at;
    *ret_to = table_end(text, len, at);
    return true;
}

/* --- changes --- */

static const char *newline_of(const char *text, size_t len)
{
    const char *line = memchr(text, '\n', len);

    return line && line > text && line[-1] == '\r' ? "\r\n" : "\n";
}

static void write_block(const struct toml_block *block, const char *newline, bool has_end,
                        struct buf *ret)
{
    buf_appendf(ret, "%s%s[%s]", block->mark, newline, block->table);
    for (const char *at = block->body; *at;) {
        size_t len = strcspn(at, "\n");

        buf_append_str(ret, newline);
        buf_append(ret, at, len);
        at += len + 1;
    }
    if (has_end)
        buf_append_str(ret, newline);
}

/* What comes out says the same, but for our table, which is there or not. */
static int verify(const struct toml_node *before, const struct buf *text, size_t from,
                  const struct toml_block *block, bool is_there, struct err *err)
{
    struct err wrong;
    AUTO_TREE struct toml_node *after =
        toml_parse(text->data ? text->data + from : "", text->len - from, &wrong);

    if (!after)
        return err_set(err, ERR_FORBIDDEN, "it takes no table [%s] more (%.100s)", block->table,
                       wrong.msg);
    return is_same(before, after, block->keys) && !find(after, block->keys) == !is_there
               ? 0
               : err_set(err, ERR_FORBIDDEN, "the table [%s] is not as it was written",
                         block->table);
}

static int refuse(const struct toml_block *block, const struct toml_node *node, struct err *err)
{
    return err_set(err, ERR_FORBIDDEN, "line %u: [%s] is there and was not written by Cordon",
                   node->line, block->table);
}

int toml_edit_put(const char *text, size_t len, const struct toml_block *block, struct buf *ret,
                  struct err *err)
{
    AUTO_TREE struct toml_node *before = toml_parse(text, len, err);
    const struct toml_node *other = find(before, block->keys);
    const char *newline = newline_of(text, len);
    bool has_end = !len || text[len - 1] == '\n';
    size_t from = len, to = len, start = ret->len;

    if (!before)
        return -1;
    if (other && (!block->is_ours(other) || !find_block(text, len, block, other, &from, &to)))
        return refuse(block, other, err);
    if (other) {
        bool is_last = to == len && !has_end;

        buf_append(ret, text, from);
        write_block(block, newline, !is_last, ret);
        buf_append(ret, text + to, len - to);
        return verify(before, ret, start, block, true, err);
    }
    buf_append(ret, text, len);
    if (len)
        buf_appendf(ret, "%s%s", has_end ? "" : newline, newline);
    write_block(block, newline, has_end, ret);
    return verify(before, ret, start, block, true, err);
}

/* Tables below ours that stand elsewhere: what a client wrote about our tools. */
static void copy_without_below(const char *text, size_t len, const struct toml_block *block,
                               struct buf *ret)
{
    AUTO_FREE char *below = alloc_strf("[%s.", block->table);

    for (size_t at = 0, end; at < len; at = end) {
        bool is_below = begins(text, len, at, below);

        end = is_below ? table_end(text, len, at) : line_end(text, len, at);
        if (!is_below)
            buf_append(ret, text + at, end - at);
    }
}

/* How long the empty line before our table is, with the line feed that was put where the text had none at its end. */
static size_t gap_before(const char *text, size_t len, size_t from, size_t to, const char *newline)
{
    size_t step = strlen(newline);
    bool has_end = to < len || text[len - 1] == '\n';

    if (from < step || !begins(text, len, from - step, newline))
        return 0;
    if (!has_end)
        return from >= 2 * step && begins(text, len, from - 2 * step, newline) ? 2 * step : 0;
    return from == step || text[from - step - 1] == '\n' ? step : 0;
}

int toml_edit_remove(const char *text, size_t len, const struct toml_block *block, struct buf *ret,
                     struct err *err)
{
    AUTO_TREE struct toml_node *before = toml_parse(text, len, err);
    const struct toml_node *other = find(before, block->keys);
    size_t from = 0, to = 0, start = ret->len;
    const char *newline = newline_of(text, len);

    if (!before)
        return -1;
    if (!other) {
        buf_append(ret, text, len);
        return 0;
    }
    if (!block->is_ours(other) || !find_block(text, len, block, other, &from, &to))
        return refuse(block, other, err);
    from -= gap_before(text, len, from, to, newline);
    copy_without_below(text, from, block, ret);
    copy_without_below(text + to, len - to, block, ret);
    return verify(before, ret, start, block, false, err);
}
