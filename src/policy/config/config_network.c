/* See config_network.h. Keys and defaults: spec/network-proxy.md A2.
 *
 * In Codex, `enabled = true` opens the network, and rules on domains count only when a feature is
 * switched on elsewhere; so a list of allowed domains may silently allow everything. Here such
 * rules always count: with any of them, the managed proxy is the only way out. */
#include "policy/config/config_network.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "policy/config/config_chain.h"

#include <stdlib.h>

void network_settings_done(struct network_settings *settings)
{
    struct network_rules *lists[] = {&settings->domains, &settings->unix_sockets};

    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < lists[i]->len; j++) {
            free(lists[i]->items[j].pattern);
            free(lists[i]->items[j].origin);
        }
        free(lists[i]->items);
    }
    free(settings->proxy_url);
    free(settings->socks_url);
    *settings = (struct network_settings){0};
}

static int read_rules(const struct config_chain *chain, const char *table,
                      struct network_rules *ret, struct err *err)
{
    static const char *const words[] = {"allow", "deny", NULL};
    AUTO(config_items_done) struct config_items items = {0};

    if (config_chain_merge(chain, "network", table, &items, err))
        return -1;
    for (size_t i = 0; i < items.len; i++) {
        const struct toml_node *node = items.items[i].node;
        unsigned word = 0;

        if (config_word(chain->config, node, words, &word, err))
            return -1;
        ret->items = alloc_grow(ret->items, ret->len, &ret->cap, sizeof *ret->items);
        ret->items[ret->len++] = (struct network_rule){
            .pattern = alloc_str(node->key),
            .verdict = word ? NETWORK_DENY : NETWORK_ALLOW,
            .origin = alloc_strf("%s:%u", chain->config->file, node->line),
        };
    }
    return 0;
}

static int read_flags(const struct config_chain *chain, unsigned *ret, struct err *err)
{
    static const struct {
        const char *key;
        enum network_flag flag;
    } keys[] = {
        {"enable_socks5", NETWORK_SOCKS5},
        {"enable_socks5_udp", NETWORK_SOCKS5_UDP},
        {"allow_upstream_proxy", NETWORK_UPSTREAM_PROXY},
        {"allow_local_binding", NETWORK_LOCAL_BINDING},
        {"dangerously_allow_non_loopback_proxy", NETWORK_NON_LOOPBACK_PROXY},
        {"dangerously_allow_all_unix_sockets", NETWORK_ALL_UNIX_SOCKETS},
    };

    *ret = NETWORK_SOCKS5 | NETWORK_SOCKS5_UDP | NETWORK_UPSTREAM_PROXY;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct toml_node *node;

        if (config_chain_find(chain, "network", keys[i].key, TOML_BOOLEAN, &node, err))
            return -1;
        if (node)
            *ret = node->boolean ? *ret | keys[i].flag : *ret & ~(unsigned)keys[i].flag;
    }
    return 0;
}

static int read_text(const struct config_chain *chain, const char *key, char **ret, struct err *err)
{
    const struct toml_node *node;

    if (config_chain_find(chain, "network", key, TOML_STRING, &node, err))
        return -1;
    if (node)
        *ret = alloc_str(node->string);
    return 0;
}

static int read_mode(const struct config_chain *chain, enum network_mode *ret, struct err *err)
{
    static const char *const words[] = {"full", "limited", NULL};
    const struct toml_node *node;
    unsigned word = 0;

    if (config_chain_find(chain, "network", "mode", TOML_STRING, &node, err))
        return -1;
    if (node && config_word(chain->config, node, words, &word, err))
        return -1;
    *ret = word ? NETWORK_MODE_LIMITED : NETWORK_MODE_FULL;
    return 0;
}

/* An empty table, or `mitm = false`, asks for nothing. */
static int refuse_mitm(const struct config_chain *chain, struct err *err)
{
    for (size_t i = 0; i < chain->len; i++) {
        const struct toml_node *node = toml_find(toml_find(chain->levels[i], "network"), "mitm");

        if (node && (node->kind == TOML_BOOLEAN ? node->boolean : node->len > 0)) {
            config_fail(chain->config, node, err,
                        "mitm: rules on the content of connections are not supported");
            err->code = ERR_UNSUPPORTED;
            return -1;
        }
    }
    return 0;
}

int config_network(const struct config_chain *chain, struct network_settings *ret,
                   enum network_access *ret_access, struct err *err)
{
    const struct toml_node *enabled;

    if (config_chain_find(chain, "network", "enabled", TOML_BOOLEAN, &enabled, err) ||
        read_mode(chain, &ret->mode, err) || read_flags(chain, &ret->flags, err) ||
        read_rules(chain, "domains", &ret->domains, err) ||
        read_rules(chain, "unix_sockets", &ret->unix_sockets, err) ||
        read_text(chain, "proxy_url", &ret->proxy_url, err) ||
        read_text(chain, "socks_url", &ret->socks_url, err) || refuse_mitm(chain, err))
        return -1;
    if (!enabled || !enabled->boolean)
        *ret_access = NETWORK_RESTRICTED;
    else if (ret->domains.len || ret->unix_sockets.len || ret->mode == NETWORK_MODE_LIMITED)
        *ret_access = NETWORK_PROXIED;
    else
        *ret_access = NETWORK_ENABLED;
    return 0;
}
