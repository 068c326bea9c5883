/* See config_values.h. The default of a key is said in one place, here, in the words of the file; a test
 * holds this list against the keys that config.c knows. */
#include "policy/config/config_values.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "policy/config/config_reader.h"

#include <stdint.h>
#include <string.h>

/* The keys of ours, in the order in which they are told. */
static const struct {
    const char *key;
    const char *value; /* JSON; NULL: nothing is said, which means something of its own: `words` */
    const char *words;
} defaults[] = {
    {"sandbox_mode", "\"workspace-write\"", NULL},
    {"default_permissions", NULL, "the profile is that of sandbox_mode"},
    {"approval_policy", NULL, "nobody is asked, and of the rules those that forbid count"},
    {"yes_means_unsandboxed", "false", NULL},
    {"protect", "[\"git\", \"agents\", \"editors\"]", NULL},
    {"sandbox_workspace_write.writable_roots", "[]", NULL},
    {"sandbox_workspace_write.network_access", "false", NULL},
    {"sandbox_workspace_write.exclude_tmpdir_env_var", "false", NULL},
    {"sandbox_workspace_write.exclude_slash_tmp", "false", NULL},
    {"shell_environment_policy.inherit", "\"all\"", NULL},
    {"shell_environment_policy.ignore_default_excludes", "false", NULL},
    {"shell_environment_policy.exclude", "[]", NULL},
    {"shell_environment_policy.include_only", "[]", NULL},
    {"shell_environment_policy.set", NULL, "no variable"},
    {"shell_environment_policy.filters", NULL, "no pattern"},
    {"limits.memory", "\"none\"", NULL},
    {"limits.cpu_time", "\"none\"", NULL},
    {"limits.pids", "4096", NULL},
    {"limits.file_size", "\"16G\"", NULL},
    {"limits.files", "65536", NULL},
    {"limits.address_space", "\"none\"", NULL},
    {"audit.trace", "[]", NULL},
    {"layers.at_end", NULL, "you are asked at the terminal; without one they are kept"},
    {"mcp.approvals", "\"profile\"", NULL},
    {"mcp.at_end", "\"keep\"", NULL},
    {"mcp.client_sandbox", "\"narrow\"", NULL},
    {"mcp.layer", "\"off\"", NULL},
    {"mcp.on_cancel", "\"interrupt\"", NULL},
    {"mcp.roots", "\"ignore\"", NULL},
    {"mcp.yield_max_ms", "50000", NULL},
    {"sandbox", "\"auto\"", NULL},
    {"undo.default", "\"off\"", NULL},
    {"ws_auth", NULL, "user-token"},
    {"permissions", NULL, "no profile of your own"},
    {"projects", NULL, "no project is trusted"},
};

enum { DEFAULTS = sizeof defaults / sizeof *defaults };

static json_t *node_to_json(const struct toml_node *node)
{
    json_t *list;

    switch (node->kind) {
    case TOML_STRING:
        return json_string(node->string);
    case TOML_INTEGER:
        return json_integer(node->integer);
    case TOML_BOOLEAN:
        return json_boolean(node->boolean);
    case TOML_ARRAY:
        list = json_array();
        for (size_t i = 0; i < node->len; i++) /* of a list only its own values are of use here */
            if (node->items[i].kind != TOML_ARRAY && node->items[i].kind != TOML_TABLE)
                json_array_append_new(list, node_to_json(&node->items[i]));
        return list;
    case TOML_TABLE:
    case TOML_OTHER:
        break;
    }
    return json_null();
}

static bool is_bare_key(const char *key)
{
    return *key && !key[strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789_-")];
}

char *config_key_text(const char *key)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    if (is_bare_key(key))
        return alloc_str(key);
    buf_append_str(&text, "\"");
    for (const unsigned char *c = (const unsigned char *)key; *c; c++) {
        if (*c == '"' || *c == '\\')
            buf_appendf(&text, "\\%c", *c);
        else if (*c < ' ' || *c == 0x7f)
            buf_appendf(&text, "\\u%04X", *c);
        else
            buf_append(&text, c, 1);
    }
    buf_append_str(&text, "\"");
    return buf_take(&text);
}

/* What a walk of the tree has in hand; its depth is bounded by the parser's. */
struct walk {
    const struct config *config;
    json_t *list;
};

static void walk_node(const struct walk *walk, const struct toml_node *node, const char *key,
                      int depth)
{
    if (node->kind != TOML_TABLE || depth > TOML_DEPTH_MAX + TOML_KEY_PARTS_MAX) {
        json_array_append_new(
            walk->list, json_pack("{s:s, s:o, s:o}", "key", key, "value", node_to_json(node),
                                  "from", json_sprintf("%s:%u", walk->config->file, node->line)));
        return;
    }
    for (size_t i = 0; i < node->len; i++) {
        AUTO_FREE char *part = config_key_text(node->items[i].key);
        AUTO_FREE char *below = alloc_strf("%s.%s", key, part);

        walk_node(walk, &node->items[i], below, depth + 1);
    }
}

static const struct toml_node *find_dotted(const struct config *config, const char *key)
{
    const char *dot = strchr(key, '.');
    AUTO_FREE char *table = dot ? alloc_strn(key, (size_t)(dot - key)) : NULL;

    if (!config)
        return NULL;
    return dot ? toml_find(toml_find(config->root, table), dot + 1) : toml_find(config->root, key);
}

json_t *config_values(const struct config *config)
{
    const struct walk walk = {.config = config, .list = json_array()};
    const bool has_default = config && config->default_permissions && !config->sandbox_mode;

    for (size_t i = 0; i < DEFAULTS; i++) {
        const struct toml_node *node = find_dotted(config, defaults[i].key);
        const char *value = defaults[i].value;
        struct err ignored;

        if (node)
            walk_node(&walk, node, defaults[i].key, 0);
        else if (!(has_default && str_eq(defaults[i].key, "sandbox_mode")))
            json_array_append_new(
                walk.list,
                json_pack("{s:s, s:o, s:n, s:s*}", "key", defaults[i].key, "value",
                          value ? json_parse(value, strlen(value), &ignored) : json_null(), "from",
                          "means", defaults[i].words));
    }
    return walk.list;
}

void config_profile_names(const struct config *config, struct strv *ret)
{
    const struct toml_node *permissions = config ? toml_find(config->root, "permissions") : NULL;

    for (size_t i = 0; permissions && i < permissions->len; i++)
        if (permissions->items[i].kind == TOML_TABLE)
            strv_push(ret, permissions->items[i].key);
}
