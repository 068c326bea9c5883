/* Parts of a TOML document, written as a new one (environmentConfig/read): it is TOML again, and
 * says the same of every key that was asked for. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "policy/config/toml.h"
#include "server/toml_text.h"

#include <stdlib.h>
#include <string.h>

static void tree_auto(struct toml_node **slot)
{
    toml_free(*slot);
}

/* Bounded by the depth that the parser lets through. */
static bool is_same(const struct toml_node *a, const struct toml_node *b, unsigned depth)
{
    if (a->kind != b->kind || a->len != b->len || a->integer != b->integer ||
        a->boolean != b->boolean || depth > 1000)
        return false;
    if (a->kind == TOML_STRING && !str_eq(a->string, b->string))
        return false;
    for (size_t i = 0; i < a->len; i++) {
        const struct toml_node *other =
            a->items[i].key ? toml_find(b, a->items[i].key) : &b->items[i];

        if (!other || !is_same(&a->items[i], other, depth + 1))
            return false;
    }
    return true;
}

/* A path per key of the root; twice, and once more with a key behind it, which changes nothing. */
static json_t *paths_of(const struct toml_node *root)
{
    json_t *paths = json_array();

    for (size_t i = 0; i < root->len; i++) {
        const char *key = root->items[i].key;

        if (key) {
            json_t *text = json_string(key);

            if (!text) /* keys are UTF-8 in what clients ask for */
                continue;
            json_array_append_new(paths, json_pack("[O]", text));
            json_array_append_new(paths, json_pack("[O]", text));
            json_array_append_new(paths, json_pack("[o, s]", text, "x"));
        }
    }
    return paths;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(tree_auto) struct toml_node *tree = NULL;
    AUTO(tree_auto) struct toml_node *again = NULL;
    AUTO(buf_done) struct buf text;
    AUTO_JSON json_t *paths = NULL;
    struct err err;

    buf_init(&text, 1 << 20);
    tree = toml_parse((const char *)data, size, &err);
    if (!tree)
        return 0;
    paths = paths_of(tree);
    if (toml_text_select(tree, paths, &text, &err))
        return 0;
    again = toml_parse(text.data ? text.data : "", text.len, &err);
    if (!again && strstr(err.msg, "nested deeper")) /* dotted keys have become tables in tables */
        return 0;
    if (!again)
        abort();
    for (size_t i = 0; i < json_array_size(paths); i++) {
        const json_t *path = json_array_get(paths, i);
        const char *key = json_string_value(json_array_get(path, 0));

        if (!toml_find(again, key) || !is_same(toml_find(tree, key), toml_find(again, key), 0))
            abort();
    }
    return 0;
}
