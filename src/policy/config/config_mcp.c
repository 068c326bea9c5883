/* [mcp]: see config.h. Only a file of the user's is ever read: what a project could write would be decided by what runs in it. */
#include "policy/config/config_reader.h"

#include "base/str.h"

enum { YIELD_MIN_MS = 250, YIELD_MAX_MS = 300000 };

const char *const config_mcp_keys[] = {"approvals", "at_end", "client_sandbox", "layer",
                                       "on_cancel", "roots",  "yield_max_ms",   NULL};

/* `*ret` stays as it is when nothing is said. */
static int read_word(const struct config *config, const struct toml_node *table, const char *key,
                     const char *const *words, unsigned *ret, struct err *err)
{
    const struct toml_node *node = toml_find(table, key);

    return node ? config_word(config, node, words, ret, err) : 0;
}

static int read_yield(struct config *config, const struct toml_node *table, struct err *err)
{
    const struct toml_node *node;

    if (config_item(config, table, "yield_max_ms", TOML_INTEGER, &node, err))
        return -1;
    if (node && (node->integer < YIELD_MIN_MS || node->integer > YIELD_MAX_MS))
        return config_fail(config, node, err, "yield_max_ms should be between %d and %d",
                           YIELD_MIN_MS, YIELD_MAX_MS);
    if (node)
        config->mcp.yield_max_ms = (uint64_t)node->integer;
    return 0;
}

/* Names are judged where a layer is made. */
static int read_layer(struct config *config, const struct toml_node *table, struct err *err)
{
    const struct toml_node *node;

    if (config_item(config, table, "layer", TOML_STRING, &node, err))
        return -1;
    if (node && !*node->string)
        return config_fail(config, node, err,
                           "layer should be \"off\", \"new\", or the name of a layer");
    config->mcp.layer = node && !str_eq(node->string, "off") ? node->string : NULL;
    return 0;
}

int config_read_mcp(struct config *config, struct err *err)
{
    static const char *const roots[] = {"ignore", "narrow", "trust", NULL};
    static const char *const cancels[] = {"interrupt", "leave", "terminate", NULL};
    static const char *const approvals[] = {"profile", "ask", "never", NULL};
    static const char *const sandboxes[] = {"narrow", "ignore", NULL};
    static const char *const ends[] = {"keep", "accept", "drop", NULL};
    const struct toml_node *table;
    unsigned words[5] = {0};

    if (config_item(config, config->root, "mcp", TOML_TABLE, &table, err))
        return -1;
    if (!table)
        return 0;
    if (read_word(config, table, "roots", roots, &words[0], err) ||
        read_word(config, table, "on_cancel", cancels, &words[1], err) ||
        read_word(config, table, "approvals", approvals, &words[2], err) ||
        read_word(config, table, "client_sandbox", sandboxes, &words[3], err) ||
        read_word(config, table, "at_end", ends, &words[4], err) || read_layer(config, table, err))
        return -1;
    config->mcp.roots = (enum config_mcp_roots)words[0];
    config->mcp.on_cancel = (enum config_mcp_cancel)words[1];
    config->mcp.approvals = (enum config_mcp_approvals)words[2];
    config->mcp.sandbox = (enum config_mcp_sandbox)words[3];
    config->mcp.at_end = (enum config_mcp_at_end)words[4];
    return read_yield(config, table, err);
}

const struct config_mcp *config_mcp(const struct config *config)
{
    static const struct config_mcp nothing;

    return config ? &config->mcp : &nothing;
}
