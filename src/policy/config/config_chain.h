/* For config_profile.c and config_network.c: a [permissions.NAME] table and all that it extends, nearest first. */
#pragma once

#include "base/err.h"
#include "policy/config/toml.h"

#include <stddef.h>

struct config;

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

/* --- rules: what the levels say about a key --- */

enum rule_form { RULE_PLAIN /* scope = access */, RULE_SCOPED /* in a table under the scope */ };

struct config_rule {
    const char *scope; /* the key */
    const char *sub;   /* the key in the table under the scope */
    const struct toml_node *node;
    size_t level; /* how far away: 0 is the table that was asked for */
    enum rule_form form;
};

struct config_rules {
    struct config_rule *items;
    size_t len;
    size_t cap;
};

void config_rules_done(struct config_rules *rules);
void config_rules_add(struct config_rules *rules, const struct config_rule *rule);

/* For qsort(): by scope, then subpath, then nearest level first. */
int config_rule_compare(const void *left, const void *right);

/* The items of the table `table`.`inner` (`inner` may be NULL) on all levels: for every key the
 * nearest, ordered by key. Something else than a table there is an error. */
int config_chain_merge(const struct config_chain *chain, const char *table, const char *inner,
                       struct config_rules *ret, struct err *err);
