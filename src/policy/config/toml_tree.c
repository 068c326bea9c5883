/* The tree of toml.h, as far as it needs no C++. */
#include "policy/config/toml.h"

#include "base/str.h"

#include <stdlib.h>

/* The recursion is bounded: toml_check_depth() came before. */
static void toml_node_done(struct toml_node *node)
{
    for (size_t i = 0; i < node->len; i++)
        toml_node_done(&node->items[i]);
    free(node->items);
    free(node->key);
    free(node->string);
}

void toml_free(struct toml_node *root)
{
    if (!root)
        return;
    toml_node_done(root);
    free(root);
}

const struct toml_node *toml_find(const struct toml_node *table, const char *key)
{
    if (!table || table->kind != TOML_TABLE)
        return NULL;
    for (size_t i = 0; i < table->len; i++)
        if (str_eq(table->items[i].key, key))
            return &table->items[i];
    return NULL;
}

const char *toml_kind_name(enum toml_kind kind)
{
    static const char *const names[] = {
        [TOML_TABLE] = "a table",         [TOML_ARRAY] = "an array",
        [TOML_STRING] = "a string",       [TOML_INTEGER] = "a whole number",
        [TOML_BOOLEAN] = "true or false", [TOML_OTHER] = "a fraction, date or time",
    };

    return names[kind];
}
