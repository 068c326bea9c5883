/* config_profile() of config.h: one profile, with everything it extends, from the loaded file.
 *
 * In [permissions.NAME.filesystem] every line becomes a rule (scope, subpath, level):
 * `"/srv" = "read"` is the scope "/srv" with the subpath ".", and a table under "/srv" has one rule
 * for each of its keys:
 *
 *     the nearest level says    what lies further away
 *     scope = access            is gone for that scope
 *     [scope] sub = access      stays for other subpaths, back to where the scope is no table */
#include "policy/config/config.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/config/config_chain.h"
#include "policy/config/config_network.h"
#include "policy/config/config_reader.h"
#include "policy/config/config_values.h"
#include "policy/glob.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* --- [permissions.NAME.filesystem] --- */

static const char depth_key[] = "glob_scan_max_depth";

static int collect_key(const struct config_chain *chain, const struct toml_node *node, size_t level,
                       struct config_rules *rules, struct err *err)
{
    /* two names, one scope */
    const char *scope = str_eq(node->key, ":project_roots") ? ":workspace_roots" : node->key;

    if (node->kind != TOML_TABLE) {
        config_rules_add(rules, &(struct config_rule){scope, ".", node, level, RULE_PLAIN});
        return 0;
    }
    for (size_t i = 0; i < node->len; i++) {
        const struct toml_node *item = &node->items[i];

        if (profile_text_is_special(scope) && !str_eq(scope, ":workspace_roots"))
            return config_fail(chain->config, node, err, "\"%s\" takes an access, not a table",
                               node->key);
        if (!str_eq(item->key, ".") && !profile_subpath_is_valid(item->key))
            return config_fail(chain->config, item, err,
                               "\"%s\" below \"%s\" should be \".\", or a relative path without "
                               "\".\" and \"..\"",
                               item->key, node->key);
        config_rules_add(rules, &(struct config_rule){scope, item->key, item, level, RULE_SCOPED});
    }
    return 0;
}

/* What a built-in parent would say in a table. It is the furthest level. */
static void collect_builtin(const struct config_chain *chain, struct config_rules *rules)
{
    static const struct toml_node read = {.kind = TOML_STRING, .string = (char *)"read"};
    static const struct toml_node write = {.kind = TOML_STRING, .string = (char *)"write"};
    const struct config_rule all[] = {
        {":root", ".", &read, chain->len, RULE_PLAIN},
        {":workspace_roots", ".", &write, chain->len, RULE_SCOPED},
        {":slash_tmp", ".", &write, chain->len, RULE_PLAIN},
        {":tmpdir", ".", &write, chain->len, RULE_PLAIN},
    };

    if (!chain->builtin)
        return;
    for (size_t i = 0; i < (str_eq(chain->builtin, ":workspace") ? 4 : 1); i++)
        config_rules_add(rules, &all[i]);
}

/* Drops what a nearer level replaces as a whole. A plain rule hides all levels behind it, and is
 * itself hidden by a table on a nearer level. */
static void drop_hidden(struct config_rules *rules)
{
    size_t kept = 0;
    const struct config_rule *nearest = NULL;
    bool is_closed = false;

    for (size_t i = 0; i < rules->len; i++) {
        struct config_rule rule = rules->items[i];

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

/* By scope, then nearest level first, then subpath. */
static int rule_compare_scope(const void *left, const void *right)
{
    const struct config_rule *a = left;
    const struct config_rule *b = right;
    int order = strcmp(a->scope, b->scope);

    if (order)
        return order;
    if (a->level != b->level)
        return a->level < b->level ? -1 : 1;
    return strcmp(a->sub, b->sub);
}

static int rules_merge(const struct config *config, struct config_rules *rules, struct err *err)
{
    size_t kept = 0;

    if (!rules->len)
        return 0;
    qsort(rules->items, rules->len, sizeof *rules->items, rule_compare_scope);
    drop_hidden(rules);
    qsort(rules->items, rules->len, sizeof *rules->items, config_rule_compare);
    for (size_t i = 1; i < rules->len; i++) {
        const struct config_rule *last = &rules->items[kept];
        const struct config_rule *rule = &rules->items[i];

        if (!str_eq(last->scope, rule->scope) || !str_eq(last->sub, rule->sub))
            rules->items[++kept] = *rule;
        else if (last->level == rule->level) /* ":workspace_roots" and ":project_roots" */
            return config_fail(config, rule->node, err,
                               "\"%s\" below \"%s\" is given twice (also in line %u)", last->sub,
                               last->scope, last->node->line);
    }
    rules->len = kept + 1;
    return 0;
}

static int add_rule(const struct config_chain *chain, const struct config_rule *rule,
                    const char *home, struct profile *ret, struct err *err)
{
    AUTO_FREE char *origin =
        rule->level == chain->len
            ? alloc_strf("built-in %s", chain->builtin)
            : alloc_strf("%s:%u [permissions.%s.filesystem]", chain->config->file, rule->node->line,
                         chain->levels[rule->level]->key);
    AUTO_FREE char *text = str_eq(rule->sub, ".") ? alloc_str(rule->scope)
                                                  : alloc_strf("%s/%s", rule->scope, rule->sub);
    struct profile_text options = {
        .text = text, .unknown = PROFILE_UNKNOWN_KEEP, .origin = origin, .home = home};

    if (config_want(chain->config, rule->node, TOML_STRING, err))
        return -1;
    options.asks = str_eq(rule->node->string, "ask"); /* and denied until then */
    if (!options.asks && !access_parse(rule->node->string, &options.access))
        return config_fail(chain->config, rule->node, err,
                           "\"%s\": \"%.40s\" is not one of \"read\", \"write\", \"deny\", \"ask\"",
                           rule->node->key, rule->node->string);
    if (profile_add_text(ret, &options, err))
        return err_wrap(err, "%s:%u", chain->config->file, rule->node->line);
    ret->entries.items[ret->entries.len - 1].is_of_host_tmp =
        rule->level == chain->len &&
        (str_eq(rule->scope, ":slash_tmp") || str_eq(rule->scope, ":tmpdir"));
    return 0;
}

/* Adds an entry for every key of the merged tables to `ret`. `home` as in config_profile(). */
static int read_files(const struct config_chain *chain, const char *home, struct profile *ret,
                      struct err *err)
{
    AUTO(config_rules_done) struct config_rules rules = {0};
    const struct toml_node *depth;

    for (size_t level = 0; level < chain->len; level++) {
        const struct toml_node *files;

        if (config_item(chain->config, chain->levels[level], "filesystem", TOML_TABLE, &files, err))
            return -1;
        for (size_t i = 0; files && i < files->len; i++)
            if (!str_eq(files->items[i].key, depth_key) &&
                collect_key(chain, &files->items[i], level, &rules, err))
                return -1;
    }
    collect_builtin(chain, &rules);
    if (rules_merge(chain->config, &rules, err) ||
        config_chain_find(chain, "filesystem", depth_key, TOML_INTEGER, &depth, err))
        return -1;
    if (depth && (depth->integer < 1 || depth->integer > INT_MAX))
        return config_fail(chain->config, depth, err, "%s should be at least 1", depth_key);
    ret->glob_scan_max_depth = depth ? (unsigned)depth->integer : 0;
    for (size_t i = 0; i < rules.len; i++)
        if (add_rule(chain, &rules.items[i], home, ret, err))
            return -1;
    return 0;
}

void config_profile_done(struct config_profile *profile)
{
    profile_done(&profile->profile);
    strv_done(&profile->workspace_roots);
    strv_done(&profile->presets);
    free(profile->presets_from);
}

/* --- built-in ones --- */

static int read_extra_root(const struct config *config, const struct toml_node *node,
                           const char *home, struct strv *roots, struct err *err)
{
    const char *text;

    if (config_want(config, node, TOML_STRING, err))
        return -1;
    text = node->string;
    if (text[0] == '~' && text[1] == '/' && home)
        strv_push_take(roots, path_clean(home, text + 2));
    else if (text[0] == '/')
        strv_push_take(roots, path_clean("/", text));
    else
        return config_fail(config, node, err, "\"%s\" should be an absolute path or \"~/...\"",
                           text);
    return 0;
}

/* Sandbox mode "workspace-write" with [sandbox_workspace_write]. */
static int mode_workspace_write(const struct config *config, const char *home, struct profile *ret,
                                struct err *err)
{
    const struct toml_node *table = toml_find(config->root, "sandbox_workspace_write");
    const struct toml_node *list;
    AUTO(strv_done) struct strv roots = {0};
    AUTO_FREE char *origin = NULL;
    struct profile_workspace options = {0};
    bool network = false;
    bool no_tmpdir = false;
    bool no_slash_tmp = false;

    if (config_item(config, table, "writable_roots", TOML_ARRAY, &list, err) ||
        config_bool(config, table, "network_access", &network, err) ||
        config_bool(config, table, "exclude_tmpdir_env_var", &no_tmpdir, err) ||
        config_bool(config, table, "exclude_slash_tmp", &no_slash_tmp, err))
        return -1;
    for (size_t i = 0; list && i < list->len; i++)
        if (read_extra_root(config, &list->items[i], home, &roots, err))
            return -1;
    if (table)
        origin = alloc_strf("%s:%u [sandbox_workspace_write]", config->file, table->line);
    options = (struct profile_workspace){
        .network = network ? NETWORK_ENABLED : NETWORK_RESTRICTED,
        .exclude = (no_tmpdir ? (unsigned)PROFILE_EXCLUDE_TMPDIR : 0) |
                   (no_slash_tmp ? (unsigned)PROFILE_EXCLUDE_SLASH_TMP : 0),
        .extra_roots = strv_view(&roots),
        .origin = origin,
    };
    profile_init_workspace_write(ret, &options);
    ret->tmp = PROFILE_TMP_PRIVATE;
    ret->id = alloc_str("workspace-write");
    return 0;
}

/* --- [permissions.NAME] --- */

/* The nearest list counts; whether there are such presets is seen where they are loaded. */
static int read_presets(const struct config_chain *chain, struct config_profile *ret,
                        struct err *err)
{
    const struct toml_node *list;

    if (config_chain_find(chain, NULL, "with", TOML_ARRAY, &list, err))
        return -1;
    for (size_t i = 0; list && i < list->len; i++) {
        if (config_want(chain->config, &list->items[i], TOML_STRING, err))
            return -1;
        strv_push(&ret->presets, list->items[i].string);
    }
    if (ret->presets.len)
        ret->presets_from = alloc_strf("%s:%u: with", chain->config->file, list->line);
    return 0;
}

/* The nearest word counts; `ret` stays as it is where there is none. */
static int chain_word(const struct config_chain *chain, const char *key, const char *const *words,
                      unsigned *ret, struct err *err)
{
    const struct toml_node *node;

    return config_chain_find(chain, NULL, key, TOML_STRING, &node, err) ||
                   (node && config_word(chain->config, node, words, ret, err))
               ? -1
               : 0;
}

/* What a table says beside its paths and its network. */
static int read_choices(const struct config_chain *chain, struct profile *ret, struct err *err)
{
    const struct toml_node *nested;
    const struct toml_node *gpu;
    unsigned watch = PROFILE_WATCH_FACTS;
    unsigned judge = PROFILE_JUDGE_COMMAND;
    unsigned tmp = PROFILE_TMP_PRIVATE;
    unsigned git = PROFILE_GIT_READ;

    if (config_chain_find(chain, NULL, "allow_nested_namespaces", TOML_BOOLEAN, &nested, err) ||
        chain_word(chain, "watch", profile_watch_words, &watch, err) ||
        chain_word(chain, "judge", profile_judge_words, &judge, err) ||
        chain_word(chain, "tmp", profile_tmp_words, &tmp, err) ||
        chain_word(chain, "git", profile_git_words, &git, err) ||
        config_chain_find(chain, NULL, "gpu", TOML_BOOLEAN, &gpu, err))
        return -1;
    for (size_t i = chain->len; i-- > 0;) /* the nearest level counts */
        if (config_read_limits(chain->config, chain->levels[i], &ret->limits, err))
            return -1;
    if (gpu && gpu->boolean) {
        AUTO_FREE char *origin = alloc_strf("%s:%u [permissions.%s] gpu", chain->config->file,
                                            gpu->line, chain->levels[0]->key);

        profile_entries_add(&ret->entries, &(struct profile_entry){.path_kind = PROFILE_PATH_GPU,
                                                                   .access = ACCESS_WRITE,
                                                                   .origin = origin});
    }
    ret->watch = (enum profile_watch)watch;
    ret->judge = (enum profile_judge)judge;
    ret->tmp = (enum profile_tmp)tmp;
    ret->git = (enum profile_git)git;
    ret->allow_nested_namespaces = nested && nested->boolean;
    return 0;
}

static int read_table(const struct config *config, const struct toml_node *node, const char *home,
                      struct config_profile *ret, struct err *err)
{
    AUTO(config_rules_done) struct config_rules roots = {0};
    struct profile *profile = &ret->profile;
    struct config_chain chain;

    if (config_chain_open(config, node, &chain, err) || read_files(&chain, home, profile, err) ||
        read_presets(&chain, ret, err) ||
        config_chain_merge(&chain, "workspace_roots", NULL, &roots, err))
        return -1;
    for (size_t i = 0; i < roots.len; i++) {
        const struct toml_node *root = roots.items[i].node;
        struct toml_node path = {.kind = TOML_STRING, .line = root->line, .string = root->key};

        if (config_want(config, root, TOML_BOOLEAN, err))
            return -1;
        if (root->boolean && read_extra_root(config, &path, home, &ret->workspace_roots, err))
            return -1;
    }
    if (config_network_read(&chain, home, profile, err) || read_choices(&chain, profile, err))
        return -1;
    profile->id = alloc_str(node->key);
    profile->extends = alloc_str(chain.len > 1 ? chain.levels[1]->key : chain.builtin);
    return 0;
}

static int no_profile(const struct config *config, const char *name, struct err *err)
{
    AUTO(strv_done) struct strv names = {0};
    const char *nearest;

    strv_push(&names, "read-only");
    strv_push(&names, "workspace-write");
    strv_push(&names, "danger-full-access");
    config_profile_names(config, &names);
    nearest = str_nearest(name + (name[0] == ':'), (const char *const *)strv_view(&names));
    if (nearest)
        return err_set(err, ERR_NOT_FOUND, "there is no profile \"%s\"; did you mean \"%s\"?", name,
                       nearest);
    if (name[0] == ':')
        return err_set(
            err, ERR_NOT_FOUND,
            "there is no profile \"%s\"; built in are \"read-only\", \"workspace-write\" and "
            "\"danger-full-access\"",
            name);
    return err_set(err, ERR_NOT_FOUND,
                   "there is no profile \"%s\": neither [permissions.%s] in %s, nor one of "
                   "\"read-only\", \"workspace-write\", \"danger-full-access\"",
                   name, name, config ? config->file : "a configuration file");
}

int config_profile(const struct config *config, const char *name, const char *home,
                   struct config_profile *ret, struct err *err)
{
    AUTO(config_profile_done) struct config_profile profile = {0};
    const struct toml_node *node = NULL;

    /* a sandbox mode is never the name of a table */
    if (name || (config && !config->sandbox_mode)) {
        name = name ? name : config->default_permissions;
        node = config && name ? toml_find(toml_find(config->root, "permissions"), name) : NULL;
    } else if (config) {
        name = config->sandbox_mode;
    }
    if (!name)
        return err_set(err, ERR_INVALID, "no profile was named, and no default is configured");
    /* the other name of the same; in a file of Codex's it is what it is there, the mode without its table */
    if (name[0] == ':' && profile_builtin_name(name) && !(config && config->is_codexs)) {
        name = profile_builtin_name(name);
        node = NULL;
    }
    if (node && name[0] != ':') {
        if (read_table(config, node, home, &profile, err))
            return -1;
    } else if (config && str_eq(name, "workspace-write")) {
        if (mode_workspace_write(config, home, &profile.profile, err))
            return -1;
    } else if (!profile_init_builtin(&profile.profile, name)) {
        return no_profile(config, name, err);
    }
    *ret = profile;
    profile = (struct config_profile){0};
    return 0;
}
