/* A [permissions.NAME] table with everything that it extends, nearest first. */
#pragma once

#include "base/err.h"
#include "policy/config/config_reader.h"
#include "policy/config/toml.h"

#include <stddef.h>

enum { CONFIG_CHAIN_MAX = 32 };

struct config_chain {
    const struct config *config;
    const struct toml_node *levels[CONFIG_CHAIN_MAX]; /* 0 is the table that was asked for */
    size_t len;
    const char *builtin; /* ":read-only" or ":workspace" behind the last level; NULL for none */
};

/* ERR_INVALID for an unknown parent, one that cannot be a parent, a cycle, or too long a chain. */
int config_chain_open(const struct config *config, const struct toml_node *profile,
                      struct config_chain *ret, struct err *err);

/* The nearest item `key`, inside of the sub-table `table` (NULL: of the profile itself); it has to
 * be of that kind. NULL in `*ret` when no level has one. */
int config_chain_find(const struct config_chain *chain, const char *table, const char *key,
                      enum toml_kind kind, const struct toml_node **ret, struct err *err);

/* One item of a table, and how far away the level is that it comes from. */
struct config_item {
    const struct toml_node *node;
    size_t level;
};

struct config_items {
    struct config_item *items;
    size_t len;
    size_t cap;
};

void config_items_done(struct config_items *items);

/* The items of the table `table`.`inner` (`inner` may be NULL) on all levels: for every key the
 * nearest, ordered by key. Something else than a table there is an error. */
int config_chain_merge(const struct config_chain *chain, const char *table, const char *inner,
                       struct config_items *ret, struct err *err);
