/* See config_chain.h. The levels are merged by sorting all their items once, not by looking each
 * one up in the others. */
#include "policy/config/config_chain.h"

#include "base/alloc.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static int chain_builtin(struct config_chain *chain, const struct toml_node *extends,
                         struct err *err)
{
    static const char *const parents[] = {":read-only", ":workspace", NULL};

    for (size_t i = 0; parents[i]; i++) {
        if (str_eq(parents[i], extends->string)) {
            chain->builtin = parents[i];
            return 0;
        }
    }
    return config_fail(chain->config, extends, err,
                       "extends: \"%s\" cannot be a parent; \":read-only\" and \":workspace\" can",
                       extends->string);
}

static int chain_parent(const struct config_chain *chain, const struct toml_node *extends,
                        const struct toml_node **ret, struct err *err)
{
    const struct toml_node *permissions = toml_find(chain->config->root, "permissions");

    *ret = toml_find(permissions, extends->string);
    if (!*ret)
        return config_fail(chain->config, extends, err,
                           "extends: there is no [permissions.%s] in this file", extends->string);
    for (size_t i = 0; i < chain->len; i++)
        if (chain->levels[i] == *ret)
            return config_fail(chain->config, extends, err,
                               "extends: [permissions.%s] would extend itself", extends->string);
    if (chain->len == CONFIG_CHAIN_MAX)
        return config_fail(chain->config, extends, err, "extends: more than %d levels",
                           CONFIG_CHAIN_MAX);
    return 0;
}

int config_chain_open(const struct config *config, const struct toml_node *profile,
                      struct config_chain *ret, struct err *err)
{
    struct config_chain chain = {.config = config};
    const struct toml_node *next = profile;

    while (next) {
        const struct toml_node *extends;

        if (config_want(config, next, TOML_TABLE, err) ||
            config_item(config, next, "extends", TOML_STRING, &extends, err))
            return -1;
        chain.levels[chain.len++] = next;
        next = NULL;
        if (extends && extends->string[0] == ':') {
            if (chain_builtin(&chain, extends, err))
                return -1;
        } else if (extends && chain_parent(&chain, extends, &next, err)) {
            return -1;
        }
    }
    *ret = chain;
    return 0;
}

int config_chain_find(const struct config_chain *chain, const char *table, const char *key,
                      enum toml_kind kind, const struct toml_node **ret, struct err *err)
{
    *ret = NULL;
    for (size_t i = 0; i < chain->len && !*ret; i++) {
        const struct toml_node *at = chain->levels[i];

        if (table && config_item(chain->config, at, table, TOML_TABLE, &at, err))
            return -1;
        if (config_item(chain->config, at, key, kind, ret, err))
            return -1;
    }
    return 0;
}

void config_items_done(struct config_items *items)
{
    free(items->items);
    *items = (struct config_items){0};
}

static int item_compare(const void *left, const void *right)
{
    const struct config_item *a = left;
    const struct config_item *b = right;
    int order = strcmp(a->node->key, b->node->key);

    if (order)
        return order;
    return a->level < b->level ? -1 : 1;
}

static void items_keep_nearest(struct config_items *list)
{
    size_t kept = 0;

    if (!list->len)
        return;
    qsort(list->items, list->len, sizeof *list->items, item_compare);
    for (size_t i = 1; i < list->len; i++)
        if (!str_eq(list->items[i].node->key, list->items[kept].node->key))
            list->items[++kept] = list->items[i];
    list->len = kept + 1;
}

int config_chain_merge(const struct config_chain *chain, const char *table, const char *inner,
                       struct config_items *ret, struct err *err)
{
    for (size_t level = 0; level < chain->len; level++) {
        const struct toml_node *at = chain->levels[level];

        if (config_item(chain->config, at, table, TOML_TABLE, &at, err))
            return -1;
        if (inner && config_item(chain->config, at, inner, TOML_TABLE, &at, err))
            return -1;
        for (size_t i = 0; at && i < at->len; i++) {
            ret->items = alloc_grow(ret->items, ret->len, &ret->cap, sizeof *ret->items);
            ret->items[ret->len++] = (struct config_item){.node = &at->items[i], .level = level};
        }
    }
    items_keep_nearest(ret);
    return 0;
}
