/* See config_hooks.h. What a hook says is put together as the JSON of network_hook.h, which knows what is right; the
 * actions that it names are part of it. */
#include "policy/config/config_hooks.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "policy/config/config_reader.h"
#include "policy/network_hook.h"

#include <jansson.h>
#include <string.h>

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
    return json_null();
}

/* network.mitm.PART of a level, or network.PART; NULL: there is none. */
static int find_table(const struct config_levels *levels, size_t level, const char *part,
                      bool is_mitm, const struct toml_node **ret, struct err *err)
{
    const struct toml_node *at = toml_find(levels->items[level], "network");
    const struct toml_node *mitm = is_mitm ? toml_find(at, "mitm") : at;

    *ret = NULL;
    if (!mitm || (is_mitm && mitm->kind == TOML_BOOLEAN && !mitm->boolean))
        return 0;
    return config_want(levels->config, mitm, TOML_TABLE, err) ||
                   config_item(levels->config, mitm, part, TOML_TABLE, ret, err)
               ? -1
               : 0;
}

/* The nearest one of this name. */
static int find_action(const struct config_levels *levels, const char *name,
                       const struct toml_node **ret, struct err *err)
{
    *ret = NULL;
    for (size_t i = 0; i < levels->len && !*ret; i++) {
        const struct toml_node *actions;

        if (find_table(levels, i, "actions", true, &actions, err))
            return -1;
        *ret = toml_find(actions, name);
    }
    return *ret ? config_want(levels->config, *ret, TOML_TABLE, err) : 0;
}

static int add_action(const struct config_levels *levels, const struct toml_node *hook,
                      const char *name, json_t *value, struct err *err)
{
    const struct toml_node *action;

    if (find_action(levels, name, &action, err))
        return -1;
    if (!action)
        return config_fail(levels->config, hook, err,
                           "action: there is no [permissions.NAME.network.mitm.actions.%s]", name);
    for (size_t i = 0; i < action->len; i++) {
        const struct toml_node *item = &action->items[i];
        AUTO_JSON json_t *more = to_json(item);
        size_t which = 0;

        while (which < 2 && !str_eq(item->key, lists[which]))
            which++;
        if (which == 2)
            return config_fail(levels->config, item, err, "%s: there is no such key of an action",
                               item->key);
        if (config_want(levels->config, item, TOML_ARRAY, err))
            return -1;
        if (!json_object_get(value, lists[which]))
            json_object_set_new(value, lists[which], json_array());
        json_array_extend(json_object_get(value, lists[which]), more);
    }
    return 0;
}

static int add_hook(const struct config_levels *levels, const struct toml_node *node,
                    struct network_hooks *ret, struct err *err)
{
    AUTO(network_hooks_done) struct network_hooks hooks = {0};
    AUTO_JSON json_t *whole = json_object();
    const struct toml_node *actions;
    json_t *value;
    struct json_at at;
    struct err why;

    if (config_want(levels->config, node, TOML_TABLE, err) ||
        config_item(levels->config, node, "action", TOML_ARRAY, &actions, err))
        return -1;
    value = to_json(node);
    json_object_set_new(whole, "hooks", json_pack("[o]", value));
    json_object_del(value, "action");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (json_object_get(value, lists[i]))
            return config_fail(levels->config, node, err,
                               "%s belongs to an action, whose name the hook has", lists[i]);
    for (size_t i = 0; actions && i < actions->len; i++)
        if (config_want(levels->config, &actions->items[i], TOML_STRING, err) ||
            add_action(levels, node, actions->items[i].string, value, err))
            return -1;
    json_object_set_new(
        value, "origin",
        json_sprintf("%s:%u mitm.hooks.%s", levels->config->file, node->line, node->key));
    at = json_at_root(whole);
    if (network_hooks_from_json(&at, &hooks, &why))
        return config_fail(levels->config, node, err, "mitm.hooks.%s: %s", node->key, why.msg);
    network_hooks_add(ret, &hooks);
    return 0;
}

/* Whether a nearer level has it, too. */
static bool is_hidden(const struct config_levels *levels, size_t level, const char *part,
                      bool is_mitm, const char *key)
{
    const struct toml_node *table;
    struct err ignored;

    for (size_t i = 0; i < level; i++)
        if (find_table(levels, i, part, is_mitm, &table, &ignored) == 0 && toml_find(table, key))
            return true;
    return false;
}

static int read_hooks(const struct config_levels *levels, struct network_policy *ret,
                      struct err *err)
{
    for (size_t level = 0; level < levels->len; level++) {
        const struct toml_node *table;

        if (find_table(levels, level, "hooks", true, &table, err))
            return -1;
        for (size_t i = 0; table && i < table->len; i++) {
            if (is_hidden(levels, level, "hooks", true, table->items[i].key))
                continue;
            if (!ret->hooks)
                ret->hooks = alloc_zero(1, sizeof *ret->hooks);
            if (add_hook(levels, &table->items[i], ret->hooks, err))
                return -1;
        }
    }
    return 0;
}

static int add_credential(const struct config_levels *levels, const struct toml_node *node,
                          struct network_policy *ret, struct err *err)
{
    AUTO_FREE char *origin =
        alloc_strf("%s:%u network.credentials.%s", levels->config->file, node->line, node->key);
    AUTO(strv_done) struct strv hosts = {0};
    struct err why;

    if (config_want(levels->config, node, TOML_ARRAY, err))
        return -1;
    for (size_t i = 0; i < node->len; i++) {
        if (config_want(levels->config, &node->items[i], TOML_STRING, err))
            return -1;
        strv_push(&hosts, node->items[i].string);
    }
    if (network_policy_add_credential(ret, node->key, strv_view(&hosts), origin, &why))
        return config_fail(levels->config, node, err, "%s", why.msg);
    return 0;
}

int config_read_hooks(const struct config_levels *levels, struct network_policy *ret,
                      struct err *err)
{
    for (size_t level = 0; level < levels->len; level++) {
        const struct toml_node *table;

        if (find_table(levels, level, "credentials", false, &table, err))
            return -1;
        for (size_t i = 0; table && i < table->len; i++)
            if (!is_hidden(levels, level, "credentials", false, table->items[i].key) &&
                add_credential(levels, &table->items[i], ret, err))
                return -1;
    }
    return read_hooks(levels, ret, err);
}
