/* config_profile() of config.h: one profile, with everything it extends, from the loaded file. */
#include "policy/config/config.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/config/config_chain.h"
#include "policy/config/config_files.h"
#include "policy/config/config_network.h"
#include "policy/config/config_reader.h"

#include <stdlib.h>

void config_profile_done(struct config_profile *profile)
{
    profile_done(&profile->profile);
    strv_done(&profile->workspace_roots);
    network_settings_done(&profile->network);
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

static int read_workspace_roots_list(const struct config *config, const struct toml_node *table,
                                     const char *home, struct strv *roots, struct err *err)
{
    const struct toml_node *list;

    if (config_item(config, table, "writable_roots", TOML_ARRAY, &list, err))
        return -1;
    for (size_t i = 0; list && i < list->len; i++)
        if (read_extra_root(config, &list->items[i], home, roots, err))
            return -1;
    return 0;
}

/* Sandbox mode "workspace-write" with [sandbox_workspace_write]. */
static int mode_workspace_write(const struct config *config, const char *home, struct profile *ret,
                                struct err *err)
{
    const struct toml_node *table = toml_find(config->root, "sandbox_workspace_write");
    AUTO(strv_done) struct strv roots = {0};
    AUTO_FREE char *origin = NULL;
    struct profile_workspace options = {0};
    bool network = false;
    bool no_tmpdir = false;
    bool no_slash_tmp = false;

    if (read_workspace_roots_list(config, table, home, &roots, err) ||
        config_bool(config, table, "network_access", &network, err) ||
        config_bool(config, table, "exclude_tmpdir_env_var", &no_tmpdir, err) ||
        config_bool(config, table, "exclude_slash_tmp", &no_slash_tmp, err))
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
    ret->id = alloc_str("workspace-write");
    return 0;
}

static int builtin(const struct config *config, const char *name, const char *home,
                   struct profile *ret, struct err *err)
{
    if (config && str_eq(name, "workspace-write"))
        return mode_workspace_write(config, home, ret, err);
    if (profile_init_builtin(ret, name))
        return 0;
    if (name[0] == ':')
        return err_set(
            err, ERR_NOT_FOUND,
            "there is no profile \"%s\"; built in are \":read-only\", \":workspace\" and "
            "\":danger-full-access\"",
            name);
    return err_set(err, ERR_NOT_FOUND,
                   "there is no profile \"%s\": neither [permissions.%s] in %s, nor one of "
                   "\"read-only\", \"workspace-write\", \"danger-full-access\"",
                   name, name, config ? config->file : "a configuration file");
}

/* --- [permissions.NAME] --- */

static int read_roots(const struct config_chain *chain, const char *home, struct strv *ret,
                      struct err *err)
{
    AUTO(config_items_done) struct config_items items = {0};

    if (config_chain_merge(chain, "workspace_roots", NULL, &items, err))
        return -1;
    for (size_t i = 0; i < items.len; i++) {
        const struct toml_node *node = items.items[i].node;
        struct toml_node path = {.kind = TOML_STRING, .line = node->line, .string = node->key};

        if (config_want(chain->config, node, TOML_BOOLEAN, err))
            return -1;
        if (node->boolean && read_extra_root(chain->config, &path, home, ret, err))
            return -1;
    }
    return 0;
}

static int read_nested(const struct config_chain *chain, bool *ret, struct err *err)
{
    const struct toml_node *node;

    if (config_chain_find(chain, NULL, "allow_nested_namespaces", TOML_BOOLEAN, &node, err))
        return -1;
    *ret = node && node->boolean;
    return 0;
}

static int read_table(const struct config *config, const struct toml_node *node, const char *home,
                      struct config_profile *ret, struct err *err)
{
    struct profile *profile = &ret->profile;
    struct config_chain chain;

    if (config_chain_open(config, node, &chain, err) || config_files(&chain, home, profile, err) ||
        read_roots(&chain, home, &ret->workspace_roots, err) ||
        config_network(&chain, &ret->network, &profile->network, err) ||
        read_nested(&chain, &profile->allow_nested_namespaces, err))
        return -1;
    profile->id = alloc_str(node->key);
    profile->extends = alloc_str(chain.len > 1 ? chain.levels[1]->key : chain.builtin);
    return 0;
}

int config_profile(const struct config *config, const char *name, const char *home,
                   struct config_profile *ret, struct err *err)
{
    AUTO(config_profile_done) struct config_profile profile = {0};
    const struct toml_node *node = NULL;
    int status;

    /* a sandbox mode is never the name of a table */
    if (name || (config && !config->sandbox_mode)) {
        name = name ? name : config->default_permissions;
        node = config && name ? toml_find(toml_find(config->root, "permissions"), name) : NULL;
    } else if (config) {
        name = config->sandbox_mode;
    }
    if (!name)
        return err_set(err, ERR_INVALID, "no profile was named, and no default is configured");
    if (node && name[0] != ':')
        status = read_table(config, node, home, &profile, err);
    else
        status = builtin(config, name, home, &profile.profile, err);
    if (status)
        return -1;
    *ret = profile;
    profile = (struct config_profile){0};
    return 0;
}
