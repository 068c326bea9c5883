/* See config.h: loading, and the general keys. Profiles are in config_profile.c, network settings
 * in config_network.c, warnings in config_keys.c. */
#include "policy/config/config.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "policy/config/config_approval.h"
#include "policy/config/config_keys.h"
#include "policy/config/config_reader.h"
#include "policy/config/toml.h"

#include <stdlib.h>
#include <string.h>

void config_free(struct config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < config->warnings_len; i++) {
        free(config->warnings[i].file);
        free(config->warnings[i].key);
        free(config->warnings[i].text);
    }
    free(config->warnings);
    environment_policy_done(&config->environment);
    toml_free(config->root);
    free(config->file);
    free(config);
}

static void config_free_slot(struct config **slot)
{
    config_free(*slot);
}

/* --- [shell_environment_policy] --- */

static int read_patterns(const struct config *config, const struct toml_node *table,
                         const char *key, struct strv *ret, struct err *err)
{
    const struct toml_node *list;

    if (config_item(config, table, key, TOML_ARRAY, &list, err))
        return -1;
    for (size_t i = 0; list && i < list->len; i++) {
        if (config_want(config, &list->items[i], TOML_STRING, err))
            return -1;
        strv_push(ret, list->items[i].string);
    }
    return 0;
}

static int read_set(const struct config *config, const struct toml_node *table, struct strv *ret,
                    struct err *err)
{
    const struct toml_node *set;

    if (config_item(config, table, "set", TOML_TABLE, &set, err))
        return -1;
    for (size_t i = 0; set && i < set->len; i++) {
        const struct toml_node *item = &set->items[i];

        if (config_want(config, item, TOML_STRING, err))
            return -1;
        if (!item->key[0] || strchr(item->key, '='))
            return config_fail(config, item, err, "\"%s\" is no name for a variable", item->key);
        strv_pushf(ret, "%s=%s", item->key, item->string);
    }
    return 0;
}

/* The newer spelling of the two lists: pattern = "include" or "exclude". */
static int read_filters(const struct config *config, const struct toml_node *table,
                        struct environment_policy *policy, struct err *err)
{
    static const char *const words[] = {"include", "exclude", NULL};
    const struct toml_node *filters;

    if (config_item(config, table, "filters", TOML_TABLE, &filters, err))
        return -1;
    for (size_t i = 0; filters && i < filters->len; i++) {
        const struct toml_node *item = &filters->items[i];
        unsigned word = 0;

        if (config_word(config, item, words, &word, err))
            return -1;
        strv_push(word ? &policy->exclude : &policy->include_only, item->key);
    }
    return 0;
}

static int read_environment(struct config *config, struct err *err)
{
    static const char *const inherit_words[] = {"all", "core", "none", NULL};
    static const enum environment_inherit inherit_values[] = {ENVIRONMENT_ALL, ENVIRONMENT_CORE,
                                                              ENVIRONMENT_NONE};
    struct environment_policy *policy = &config->environment;
    const struct toml_node *table;
    const struct toml_node *inherit_node;
    unsigned inherit = 0;
    bool ignore = false;

    if (config_item(config, config->root, "shell_environment_policy", TOML_TABLE, &table, err))
        return -1;
    if (!table)
        return 0;
    inherit_node = toml_find(table, "inherit");
    if (inherit_node && config_word(config, inherit_node, inherit_words, &inherit, err))
        return -1;
    if (config_bool(config, table, "ignore_default_excludes", &ignore, err) ||
        read_patterns(config, table, "exclude", &policy->exclude, err) ||
        read_patterns(config, table, "include_only", &policy->include_only, err) ||
        read_filters(config, table, policy, err) || read_set(config, table, &policy->set, err))
        return -1;
    policy->inherit = inherit_values[inherit];
    policy->defaults = ignore ? ENVIRONMENT_DEFAULTS_OFF : ENVIRONMENT_DEFAULTS_ON;
    return 0;
}

/* --- loading --- */

static int read_sandbox_mode(struct config *config, struct err *err)
{
    static const char *const modes[] = {"read-only", "workspace-write", "danger-full-access", NULL};
    const struct toml_node *node = toml_find(config->root, "sandbox_mode");
    unsigned mode = 3;

    if (node && config_word(config, node, modes, &mode, err))
        return -1;
    config->sandbox_mode = modes[mode];
    return 0;
}

static int read_general(struct config *config, struct err *err)
{
    const struct toml_node *unused;

    if (read_sandbox_mode(config, err) || config_read_approval(config, err) ||
        read_environment(config, err) ||
        config_string(config, config->root, "default_permissions", &config->default_permissions,
                      err) ||
        config_item(config, config->root, "permissions", TOML_TABLE, &unused, err))
        return -1;
    return config_item(config, config->root, "sandbox_workspace_write", TOML_TABLE, &unused, err);
}

struct config *config_load(const char *text, size_t len, const char *file, struct err *err)
{
    AUTO(config_free_slot) struct config *config = NULL;
    struct err why;

    if (len > CONFIG_SIZE_MAX) {
        err_set(err, ERR_LIMIT, "%s: longer than %d bytes", file, CONFIG_SIZE_MAX);
        return NULL;
    }
    config = alloc_zero(1, sizeof *config);
    config->file = alloc_str(file);
    config->root = toml_parse(text, len, &why);
    if (!config->root) {
        err_set(err, why.code, "%s:%s", file, why.msg); /* why.msg starts with "LINE: " */
        return NULL;
    }
    if (read_general(config, err))
        return NULL;
    config_warn_keys(config);
    return TAKE_PTR(config);
}

const struct config_warning *config_warnings(const struct config *config, size_t *ret_len)
{
    *ret_len = config->warnings_len;
    return config->warnings;
}

const struct environment_policy *config_environment(const struct config *config)
{
    return &config->environment;
}

void config_profile_names(const struct config *config, struct strv *ret)
{
    const struct toml_node *permissions = toml_find(config->root, "permissions");

    for (size_t i = 0; permissions && i < permissions->len; i++)
        strv_push(ret, permissions->items[i].key);
}

const char *config_default_profile(const struct config *config)
{
    return config->sandbox_mode ? config->sandbox_mode : config->default_permissions;
}
