/* [permissions.NAME.network], with all that the profile extends.
 *
 * In [permissions.NAME.network] Codex takes `enabled = true` as an open network, and rules on
 * domains count only when a feature is switched on elsewhere; so a list of allowed domains may
 * silently allow everything. Here such rules always count: with any of them, the proxy is the only way
 * out, and there is one unless `enabled = false`; in a file of Codex's, if `enabled = true`.
 *
 * What a hook says (mitm.hooks) is put together as the JSON of network_hook.h, which knows what is right; the actions that it
 * names are part of it. */
#include "policy/config/config_network.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "policy/config/config_chain.h"
#include "policy/config/config_reader.h"
#include "policy/network_hook.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* --- rules, ports and settings --- */

static int read_domains(const struct config_chain *chain, struct network_policy *ret,
                        struct err *err)
{
    AUTO(config_rules_done) struct config_rules items = {0};
    unsigned word;

    if (config_chain_merge(chain, "network", "domains", &items, err))
        return -1;
    for (size_t i = 0; i < items.len; i++) {
        const struct toml_node *node = items.items[i].node;
        AUTO_FREE char *origin =
            alloc_strf("%s:%u [permissions.%s.network.domains]", chain->config->file, node->line,
                       chain->levels[items.items[i].level]->key);
        struct err why;

        if (config_word(chain->config, node, network_verdict_words, &word, err))
            return -1;
        if (network_policy_add_text(ret, node->key, (enum network_verdict)word, origin, &why))
            return config_fail(chain->config, node, err, "\"%.80s\": %s", node->key, why.msg);
    }
    return 0;
}

/* The sockets that are allowed; `*ret_len` is the number of all rules. One that is denied is so anyway; it takes back what a profile that
 * this one extends allows. */
static int read_sockets(const struct config_chain *chain, const char *home, struct profile *ret,
                        size_t *ret_len, struct err *err)
{
    static const char *const words[] = {"allow", "deny", NULL};
    AUTO(config_rules_done) struct config_rules items = {0};
    unsigned word;

    if (config_chain_merge(chain, "network", "unix_sockets", &items, err))
        return -1;
    for (size_t i = 0; i < items.len; i++) {
        const struct toml_node *node = items.items[i].node;
        AUTO_FREE char *origin =
            alloc_strf("%s:%u [permissions.%s.network.unix_sockets]", chain->config->file,
                       node->line, chain->levels[items.items[i].level]->key);
        const struct profile_text options = {.text = node->key, .origin = origin, .home = home};

        if (config_word(chain->config, node, words, &word, err))
            return -1;
        if (word == 0 && profile_add_socket(ret, &options, err))
            return err_wrap(err, "%s:%u", chain->config->file, node->line);
    }
    *ret_len = items.len;
    return 0;
}

/* Settings of the proxy. Those behind the first two are Codex's alone: what they say is right in a file of it, and elsewhere
 * if it is what is done here anyway. */
static const struct {
    const char *key;
    enum toml_kind kind;
    bool is_so;         /* what is done here */
    const char *remedy; /* for who wants something else */
} proxy_settings[] = {
    {"allow_local_binding", TOML_BOOLEAN, false, NULL},
    {"allow_upstream_proxy", TOML_BOOLEAN, false, NULL},
    {"enable_socks5", TOML_BOOLEAN, true, "SOCKS5 opens no more than any connection does"},
    {"enable_socks5_udp", TOML_BOOLEAN, false, "of UDP there is DNS alone"},
    {"dangerously_allow_non_loopback_proxy", TOML_BOOLEAN, false,
     "the proxy listens in the command's own network alone"},
    {"dangerously_allow_all_unix_sockets", TOML_BOOLEAN, false,
     "name them in unix_sockets, or say --network host"},
    {"proxy_url", TOML_STRING, false, "the proxy listens in the command's own network alone"},
    {"socks_url", TOML_STRING, false, "the proxy listens in the command's own network alone"},
};

static int read_host_ports(const struct config_chain *chain, struct network_policy *ret,
                           struct err *err)
{
    const struct toml_node *list;

    if (config_chain_find(chain, "network", "host_ports", TOML_ARRAY, &list, err))
        return -1;
    for (size_t i = 0; list && i < list->len; i++) {
        const struct toml_node *item = &list->items[i];
        struct err why;

        if (config_want(chain->config, item, TOML_INTEGER, err))
            return -1;
        if (item->integer < 1 || item->integer > UINT16_MAX)
            return config_fail(chain->config, item, err, "host_ports: a port is 1 to 65535");
        if (network_policy_add_host_port(ret, (uint16_t)item->integer, &why))
            return config_fail(chain->config, item, err, "host_ports: %s", why.msg);
    }
    return 0;
}

static int read_publications(const struct config_chain *chain, struct network_policy *ret,
                             struct err *err)
{
    const struct toml_node *list;

    if (config_chain_find(chain, "network", "publish", TOML_ARRAY, &list, err))
        return -1;
    for (size_t i = 0; list && i < list->len; i++) {
        const struct toml_node *item = &list->items[i];
        struct publication publication;
        struct err why;

        if (config_want(chain->config, item, TOML_STRING, err))
            return -1;
        if (publication_parse(item->string, &publication, &why) ||
            publications_add(&ret->publications, &publication, &why))
            return config_fail(chain->config, item, err, "publish: %s", why.msg);
    }
    return 0;
}

/* `*ret_last` is one that is given; NULL: none is. */
static int read_settings(const struct config_chain *chain, struct network_policy *ret,
                         const struct toml_node **ret_last, struct err *err)
{
    const struct toml_node *mode;
    unsigned mode_word = NETWORK_MODE_FULL;

    if (config_chain_find(chain, "network", "mode", TOML_STRING, &mode, err) ||
        (mode && config_word(chain->config, mode, network_mode_words, &mode_word, err)))
        return -1;
    ret->mode = (enum network_mode)mode_word;
    for (size_t i = 0; i < sizeof proxy_settings / sizeof *proxy_settings; i++) {
        const struct toml_node *node;

        if (config_chain_find(chain, "network", proxy_settings[i].key, proxy_settings[i].kind,
                              &node, err))
            return -1;
        *ret_last = node ? node : *ret_last;
        if (node && proxy_settings[i].remedy && !chain->config->is_codexs &&
            (node->kind == TOML_STRING || node->boolean != proxy_settings[i].is_so))
            return config_fail(chain->config, node, err, "%s has no effect here: %s; leave it out",
                               node->key, proxy_settings[i].remedy);
        if (node && i == 0)
            ret->allow_local_binding = node->boolean;
        if (node && i == 1)
            ret->no_upstream_proxy = !node->boolean;
    }
    return 0;
}

/* --- hooks and credentials --- */

static const char *const lists[] = {"strip_request_headers", "inject_request_headers"};

static json_t *to_json(const struct toml_node *node)
{
    json_t *value;

    switch (node->kind) {
    case TOML_STRING:
        return json_lossy(node->string);
    case TOML_INTEGER:
        return json_integer(node->integer);
    case TOML_BOOLEAN:
        return json_boolean(node->boolean);
    case TOML_ARRAY:
        value = json_array();
        for (size_t i = 0; i < node->len; i++)
            json_array_append_new(value, to_json(&node->items[i]));
        return value;
    case TOML_TABLE:
        value = json_object();
        for (size_t i = 0; i < node->len; i++)
            json_object_set_new(value, node->items[i].key, to_json(&node->items[i]));
        return value;
    case TOML_OTHER:
        break;
    }
    return json_real(0); /* what no key of a hook takes; null would be one that is left out */
}

/* network.mitm.PART of a level, or network.PART; NULL: there is none. */
static int find_table(const struct config_chain *chain, size_t level, const char *part,
                      bool is_mitm, const struct toml_node **ret, struct err *err)
{
    const struct toml_node *at = toml_find(chain->levels[level], "network");
    const struct toml_node *mitm = is_mitm ? toml_find(at, "mitm") : at;

    *ret = NULL;
    if (!mitm || (is_mitm && mitm->kind == TOML_BOOLEAN && !mitm->boolean))
        return 0;
    return config_want(chain->config, mitm, TOML_TABLE, err) ||
                   config_item(chain->config, mitm, part, TOML_TABLE, ret, err)
               ? -1
               : 0;
}

/* The nearest one of this name. */
static int find_action(const struct config_chain *chain, const char *name,
                       const struct toml_node **ret, struct err *err)
{
    *ret = NULL;
    for (size_t i = 0; i < chain->len && !*ret; i++) {
        const struct toml_node *actions;

        if (find_table(chain, i, "actions", true, &actions, err))
            return -1;
        *ret = toml_find(actions, name);
    }
    return *ret ? config_want(chain->config, *ret, TOML_TABLE, err) : 0;
}

static int add_action(const struct config_chain *chain, const struct toml_node *hook,
                      const char *name, json_t *value, struct err *err)
{
    const struct toml_node *action;

    if (find_action(chain, name, &action, err))
        return -1;
    if (!action)
        return config_fail(chain->config, hook, err,
                           "action: there is no [permissions.NAME.network.mitm.actions.%s]", name);
    for (size_t i = 0; i < action->len; i++) {
        const struct toml_node *item = &action->items[i];
        AUTO_JSON json_t *more = to_json(item);
        size_t which = 0;

        while (which < 2 && !str_eq(item->key, lists[which]))
            which++;
        if (which == 2)
            return config_fail(chain->config, item, err, "%s: there is no such key of an action",
                               item->key);
        if (config_want(chain->config, item, TOML_ARRAY, err))
            return -1;
        if (!json_object_get(value, lists[which]))
            json_object_set_new(value, lists[which], json_array());
        json_array_extend(json_object_get(value, lists[which]), more);
    }
    return 0;
}

static int add_hook(const struct config_chain *chain, const struct toml_node *node,
                    struct network_hooks *ret, struct err *err)
{
    AUTO(network_hooks_done) struct network_hooks hooks = {0};
    AUTO_FREE char *origin =
        alloc_strf("%s:%u mitm.hooks.%s", chain->config->file, node->line, node->key);
    AUTO_JSON json_t *whole = json_object();
    const struct toml_node *actions;
    json_t *value;
    struct json_at at;
    struct err why;

    if (config_want(chain->config, node, TOML_TABLE, err) ||
        config_item(chain->config, node, "action", TOML_ARRAY, &actions, err))
        return -1;
    value = to_json(node);
    json_object_set_new(whole, "hooks", json_pack("[o]", value));
    json_object_del(value, "action");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (json_object_get(value, lists[i]))
            return config_fail(chain->config, node, err,
                               "%s belongs to an action, whose name the hook has", lists[i]);
    for (size_t i = 0; actions && i < actions->len; i++)
        if (config_want(chain->config, &actions->items[i], TOML_STRING, err) ||
            add_action(chain, node, actions->items[i].string, value, err))
            return -1;
    json_object_set_new(value, "origin", json_lossy(origin));
    at = json_at_root(whole);
    if (network_hooks_from_json(&at, &hooks, &why))
        return config_fail(chain->config, node, err, "mitm.hooks.%s: %s", node->key, why.msg);
    network_hooks_add(ret, &hooks);
    return 0;
}

/* Whether a nearer level has it, too. */
static bool is_hidden(const struct config_chain *chain, size_t level, const char *part,
                      bool is_mitm, const char *key)
{
    const struct toml_node *table;
    struct err ignored;

    for (size_t i = 0; i < level; i++)
        if (find_table(chain, i, part, is_mitm, &table, &ignored) == 0 && toml_find(table, key))
            return true;
    return false;
}

static int read_hooks(const struct config_chain *chain, struct network_policy *ret, struct err *err)
{
    for (size_t level = 0; level < chain->len; level++) {
        const struct toml_node *table;

        if (find_table(chain, level, "hooks", true, &table, err))
            return -1;
        for (size_t i = 0; table && i < table->len; i++) {
            if (is_hidden(chain, level, "hooks", true, table->items[i].key))
                continue;
            if (!ret->hooks)
                ret->hooks = alloc_zero(1, sizeof *ret->hooks);
            if (add_hook(chain, &table->items[i], ret->hooks, err))
                return -1;
        }
    }
    return 0;
}

static int add_credential(const struct config_chain *chain, const struct toml_node *node,
                          struct network_policy *ret, struct err *err)
{
    AUTO_FREE char *origin =
        alloc_strf("%s:%u network.credentials.%s", chain->config->file, node->line, node->key);
    AUTO(strv_done) struct strv hosts = {0};
    struct err why;

    if (config_want(chain->config, node, TOML_ARRAY, err))
        return -1;
    for (size_t i = 0; i < node->len; i++) {
        if (config_want(chain->config, &node->items[i], TOML_STRING, err))
            return -1;
        strv_push(&hosts, node->items[i].string);
    }
    if (network_policy_add_credential(ret, node->key, strv_view(&hosts), origin, &why))
        return config_fail(chain->config, node, err, "%s", why.msg);
    return 0;
}

static int read_credentials(const struct config_chain *chain, struct network_policy *ret,
                            struct err *err)
{
    for (size_t level = 0; level < chain->len; level++) {
        const struct toml_node *table;

        if (find_table(chain, level, "credentials", false, &table, err))
            return -1;
        for (size_t i = 0; table && i < table->len; i++)
            if (!is_hidden(chain, level, "credentials", false, table->items[i].key) &&
                add_credential(chain, &table->items[i], ret, err))
                return -1;
    }
    return 0;
}

/* --- all of it --- */

int config_network_read(const struct config_chain *chain, const char *home, struct profile *ret,
                        struct err *err)
{
    struct network_policy *policy = &ret->network_policy;
    const struct toml_node *enabled;
    const struct toml_node *setting = NULL;
    size_t sockets = 0;
    bool has_rules;

    if (config_chain_find(chain, "network", "enabled", TOML_BOOLEAN, &enabled, err) ||
        read_settings(chain, policy, &setting, err) || read_domains(chain, policy, err) ||
        read_host_ports(chain, policy, err) || read_publications(chain, policy, err) ||
        read_credentials(chain, policy, err) || read_hooks(chain, policy, err) ||
        read_sockets(chain, home, ret, &sockets, err))
        return -1;
    has_rules = policy->rules_len || policy->host_ports_len || policy->hooks ||
                policy->mode != NETWORK_MODE_FULL;
    if (!enabled)
        ret->network =
            has_rules && !chain->config->is_codexs ? NETWORK_PROXIED : NETWORK_RESTRICTED;
    else if (!enabled->boolean)
        ret->network = NETWORK_RESTRICTED;
    else
        ret->network =
            has_rules || (sockets && chain->config->is_codexs) ? NETWORK_PROXIED : NETWORK_ENABLED;
    if (setting && ret->network != NETWORK_PROXIED && !chain->config->is_codexs)
        return config_fail(
            chain->config, setting, err,
            "%s is about the proxy, and has no effect without rules for it (domains)",
            setting->key);
    return 0;
}
