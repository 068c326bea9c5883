/* See config_files.h.
 *
 * Every line of the tables becomes a rule (scope, subpath, level): `"/srv" = "read"` is the scope
 * "/srv" with the subpath ".", and a table under "/srv" has one rule for each of its keys. Merging
 * is as for TOML tables, done with one sort:
 *
 *     the nearest level says    what lies further away
 *     scope = access            is gone for that scope
 *     [scope] sub = access      stays for other subpaths, back to where the scope is no table
 */
#include "policy/config/config_files.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "policy/config/config_chain.h"
#include "policy/glob.h"
#include "policy/profile_text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char depth_key[] = "glob_scan_max_depth";

enum rule_form { RULE_PLAIN /* scope = access */, RULE_SCOPED /* in a table under the scope */ };

struct rule {
    const char *scope;
    const char *sub;
    const struct toml_node *node; /* the access */
    size_t level;
    enum rule_form form;
};

struct rules {
    struct rule *items;
    size_t len;
    size_t cap;
};

static void rules_done(struct rules *rules)
{
    free(rules->items);
}

static void rules_add(struct rules *rules, const struct rule *rule)
{
    rules->items = alloc_grow(rules->items, rules->len, &rules->cap, sizeof *rules->items);
    rules->items[rules->len++] = *rule;
}

/* --- collecting --- */

/* Two names, one scope. */
static const char *scope_name(const char *key)
{
    return str_eq(key, ":project_roots") ? ":workspace_roots" : key;
}

static int check_scoped(const struct config *config, const struct toml_node *scope,
                        const struct toml_node *item, struct err *err)
{
    const char *name = scope_name(scope->key);

    if (profile_text_is_special(name) && !str_eq(name, ":workspace_roots"))
        return config_fail(config, scope, err, "\"%s\" takes an access, not a table", scope->key);
    if (!str_eq(item->key, ".") && !profile_subpath_is_valid(item->key))
        return config_fail(config, item, err,
                           "\"%s\" below \"%s\" should be \".\", or a relative path without \".\" "
                           "and \"..\"",
                           item->key, scope->key);
    return 0;
}

static int collect_key(const struct config_chain *chain, const struct toml_node *node, size_t level,
                       struct rules *rules, struct err *err)
{
    struct rule rule = {.scope = scope_name(node->key), .level = level};

    if (node->kind != TOML_TABLE) {
        rule.sub = ".";
        rule.node = node;
        rule.form = RULE_PLAIN;
        rules_add(rules, &rule);
        return 0;
    }
    for (size_t i = 0; i < node->len; i++) {
        if (check_scoped(chain->config, node, &node->items[i], err))
            return -1;
        rule.sub = node->items[i].key;
        rule.node = &node->items[i];
        rule.form = RULE_SCOPED;
        rules_add(rules, &rule);
    }
    return 0;
}

static int collect(const struct config_chain *chain, struct rules *rules, struct err *err)
{
    for (size_t level = 0; level < chain->len; level++) {
        const struct toml_node *files;

        if (config_item(chain->config, chain->levels[level], "filesystem", TOML_TABLE, &files, err))
            return -1;
        for (size_t i = 0; files && i < files->len; i++)
            if (!str_eq(files->items[i].key, depth_key) &&
                collect_key(chain, &files->items[i], level, rules, err))
                return -1;
    }
    return 0;
}

/* What a built-in parent would say in a table. It is the furthest level. */
static void collect_builtin(const struct config_chain *chain, struct rules *rules)
{
    static const struct toml_node read = {.kind = TOML_STRING, .string = (char *)"read"};
    static const struct toml_node write = {.kind = TOML_STRING, .string = (char *)"write"};
    const struct rule all[] = {
        {":root", ".", &read, chain->len, RULE_PLAIN},
        {":workspace_roots", ".", &write, chain->len, RULE_SCOPED},
        {":slash_tmp", ".", &write, chain->len, RULE_PLAIN},
        {":tmpdir", ".", &write, chain->len, RULE_PLAIN},
    };

    if (!chain->builtin)
        return;
    for (size_t i = 0; i < (str_eq(chain->builtin, ":workspace") ? 4 : 1); i++)
        rules_add(rules, &all[i]);
}

/* --- merging --- */

/* By scope, then nearest level first, then subpath. */
static int rule_compare_scope(const void *left, const void *right)
{
    const struct rule *a = left;
    const struct rule *b = right;
    int order = strcmp(a->scope, b->scope);

    if (order)
        return order;
    if (a->level != b->level)
        return a->level < b->level ? -1 : 1;
    return strcmp(a->sub, b->sub);
}

/* By scope, then subpath, then nearest level first. */
static int rule_compare_path(const void *left, const void *right)
{
    const struct rule *a = left;
    const struct rule *b = right;
    int order = strcmp(a->scope, b->scope);

    if (!order)
        order = strcmp(a->sub, b->sub);
    if (order)
        return order;
    return a->level < b->level ? -1 : a->level > b->level;
}

/* Drops what a nearer level replaces as a whole. A plain rule hides all levels behind it, and is
 * itself hidden by a table on a nearer level. */
static void drop_hidden(struct rules *rules)
{
    size_t kept = 0;
    const struct rule *nearest = NULL;
    bool is_closed = false;

    for (size_t i = 0; i < rules->len; i++) {
        struct rule rule = rules->items[i];

        if (!nearest || !str_eq(nearest->scope, rule.scope)) {
            rules->items[kept] = rule;
            nearest = &rules->items[kept++];
            is_closed = rule.form == RULE_PLAIN;
            continue;
        }
        is_closed |= rule.form == RULE_PLAIN;
        if (rule.level == nearest->level || !is_closed)
            rules->items[kept++] = rule;
    }
    rules->len = kept;
}

/* ":workspace_roots" and ":project_roots" can both be there on one level. */
static int check_twice(const struct config *config, const struct rule *a, const struct rule *b,
                       struct err *err)
{
    if (a->level != b->level)
        return 0;
    return config_fail(config, b->node, err, "\"%s\" below \"%s\" is given twice (also in line %u)",
                       a->sub, a->scope, a->node->line);
}

static int merge(const struct config *config, struct rules *rules, struct err *err)
{
    size_t kept = 0;

    if (!rules->len)
        return 0;
    qsort(rules->items, rules->len, sizeof *rules->items, rule_compare_scope);
    drop_hidden(rules);
    qsort(rules->items, rules->len, sizeof *rules->items, rule_compare_path);
    for (size_t i = 1; i < rules->len; i++) {
        const struct rule *last = &rules->items[kept];
        const struct rule *rule = &rules->items[i];

        if (!str_eq(last->scope, rule->scope) || !str_eq(last->sub, rule->sub))
            rules->items[++kept] = *rule;
        else if (check_twice(config, last, rule, err))
            return -1;
    }
    rules->len = kept + 1;
    return 0;
}

/* --- to entries --- */

static char *rule_origin(const struct config_chain *chain, const struct rule *rule)
{
    if (rule->level == chain->len)
        return alloc_strf("built-in %s", chain->builtin);
    return alloc_strf("%s:%u [permissions.%s.filesystem]", chain->config->file, rule->node->line,
                      chain->levels[rule->level]->key);
}

static int add_rule(const struct config_chain *chain, const struct rule *rule, const char *home,
                    struct profile *ret, struct err *err)
{
    AUTO_FREE char *origin = rule_origin(chain, rule);
    AUTO_FREE char *text = str_eq(rule->sub, ".") ? alloc_str(rule->scope)
                                                  : alloc_strf("%s/%s", rule->scope, rule->sub);
    struct profile_text options = {
        .text = text, .unknown = PROFILE_UNKNOWN_KEEP, .origin = origin, .home = home};

    if (config_want(chain->config, rule->node, TOML_STRING, err))
        return -1;
    if (!access_parse(rule->node->string, &options.access))
        return config_fail(chain->config, rule->node, err,
                           "\"%s\": \"%.40s\" is not one of \"read\", \"write\", \"deny\"",
                           rule->node->key, rule->node->string);
    if (profile_add_text(ret, &options, err))
        return config_fail_wrap(chain->config, rule->node, err);
    return 0;
}

static int read_depth(const struct config_chain *chain, unsigned *ret, struct err *err)
{
    const struct toml_node *node;

    if (config_chain_find(chain, "filesystem", depth_key, TOML_INTEGER, &node, err))
        return -1;
    if (!node)
        return 0;
    if (node->integer < 1 || node->integer > INT_MAX)
        return config_fail(chain->config, node, err, "%s should be at least 1", depth_key);
    *ret = (unsigned)node->integer;
    return 0;
}

int config_files(const struct config_chain *chain, const char *home, struct profile *ret,
                 struct err *err)
{
    AUTO(rules_done) struct rules rules = {0};

    if (collect(chain, &rules, err))
        return -1;
    collect_builtin(chain, &rules);
    if (merge(chain->config, &rules, err) || read_depth(chain, &ret->glob_scan_max_depth, err))
        return -1;
    for (size_t i = 0; i < rules.len; i++)
        if (add_rule(chain, &rules.items[i], home, ret, err))
            return -1;
    return 0;
}
