/* See config_chain.h. Levels are merged as TOML tables are, by sorting all their items once, not by looking each one up in the
 * others. */
#include "policy/config/config_chain.h"

#include "base/alloc.h"
#include "base/str.h"
#include "policy/config/config_reader.h"

#include <stdlib.h>
#include <string.h>

int config_chain_open(const struct config *config, const struct toml_node *profile,
                      struct config_chain *ret, struct err *err)
{
    struct config_chain chain = {.config = config};
    const struct toml_node *next = profile;

    for (;;) {
        const struct toml_node *extends;

        if (config_want(config, next, TOML_TABLE, err) ||
            config_item(config, next, "extends", TOML_STRING, &extends, err))
            return -1;
        chain.levels[chain.len++] = next;
        if (!extends)
            break;
        if (extends->string[0] == ':') {
            chain.builtin = extends->string;
            if (str_eq(chain.builtin, ":read-only") || str_eq(chain.builtin, ":workspace"))
                break;
            return config_fail(config, extends, err,
                               "extends: \"%s\" cannot be a parent; \":read-only\" and "
                               "\":workspace\" can",
                               chain.builtin);
        }
        next = toml_find(toml_find(config->root, "permissions"), extends->string);
        if (!next)
            return config_fail(config, extends, err,
                               "extends: there is no [permissions.%s] in this file",
                               extends->string);
        for (size_t i = 0; i < chain.len; i++)
            if (chain.levels[i] == next)
                return config_fail(config, extends, err,
                                   "extends: [permissions.%s] would extend itself",
                                   extends->string);
        if (chain.len == CONFIG_CHAIN_MAX)
            return config_fail(config, extends, err, "extends: more than %d levels",
                               CONFIG_CHAIN_MAX);
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

/* --- rules --- */

void config_rules_done(struct config_rules *rules)
{
    free(rules->items);
}

void config_rules_add(struct config_rules *rules, const struct config_rule *rule)
{
    rules->items = alloc_grow(rules->items, rules->len, &rules->cap, sizeof *rules->items);
    rules->items[rules->len++] = *rule;
}

int config_rule_compare(const void *left, const void *right)
{
    const struct config_rule *a = left;
    const struct config_rule *b = right;
    int order = strcmp(a->scope, b->scope);

    if (!order)
        order = strcmp(a->sub, b->sub);
    if (order)
        return order;
    return a->level < b->level ? -1 : a->level > b->level;
}

int config_chain_merge(const struct config_chain *chain, const char *table, const char *inner,
                       struct config_rules *ret, struct err *err)
{
    size_t kept = 0;

    for (size_t level = 0; level < chain->len; level++) {
        const struct toml_node *at = chain->levels[level];

        if (config_item(chain->config, at, table, TOML_TABLE, &at, err))
            return -1;
        if (inner && config_item(chain->config, at, inner, TOML_TABLE, &at, err))
            return -1;
        for (size_t i = 0; at && i < at->len; i++)
            config_rules_add(ret, &(struct config_rule){.scope = at->items[i].key,
                                                        .sub = "",
                                                        .node = &at->items[i],
                                                        .level = level});
    }
    if (!ret->len)
        return 0;
    qsort(ret->items, ret->len, sizeof *ret->items, config_rule_compare);
    for (size_t i = 1; i < ret->len; i++)
        if (!str_eq(ret->items[i].scope, ret->items[kept].scope))
            ret->items[++kept] = ret->items[i];
    ret->len = kept + 1;
    return 0;
}
