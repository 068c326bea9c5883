/* See preset.h.
 *
 *     about = "npm and npx"                  what it is for
 *     why = "..."                            what is opened, what is not, and why
 *     per_workspace = true                   {cache} is not shared by all workspaces
 *     hosts = ["registry.example.org"]       servers, which a network that is proxied may reach
 *     hosts_from = ["~/.toolrc registry"]    and those that the tool's own configuration names
 *     write = ["~/.cache/x"]                 directories that are opened as they are
 *     [env]                                  NAME = "text"
 *     [offline_env]                          the same, for commands without a network
 *     [outside."~/.x/cache"]                 the same, where that directory is there; read-only
 *
 * A preset says where a tool keeps things, and no more: it opens nothing but directories below the
 * home directory, none that holds or is one that shells, logins, agents or Cordon go by, and sets no
 * variable that decides which program a name leads to, since rules judge by that. */
#include "policy/config/preset.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/config/config_reader.h"
#include "policy/environment.h"
#include "policy/host.h"
#include "policy/profile.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_LEN = 64 };

static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789";
static const char name_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

void preset_done(struct preset *preset)
{
    free(preset->about);
    free(preset->why);
    strv_done(&preset->hosts);
    strv_done(&preset->hosts_from);
    strv_done(&preset->write);
    strv_done(&preset->env);
    strv_done(&preset->offline_env);
    for (size_t i = 0; i < preset->outside_len; i++) {
        free(preset->outside[i].path);
        strv_done(&preset->outside[i].env);
    }
    free(preset->outside);
    *preset = (struct preset){0};
}

bool preset_name_is_valid(const char *name)
{
    const size_t len = strlen(name);

    return len && len <= NAME_MAX_LEN && strspn(name, lower) && name[len - 1] != '.' &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-")] == '\0';
}

/* --- texts with something in braces --- */

/* The end of what begins with a brace, behind the closing one; NULL: nothing that we know. */
static const char *placeholder_end(const char *at)
{
    static const char variable[] = "{env.";
    size_t len;

    if (str_starts(at, "{cache}"))
        return at + strlen("{cache}");
    if (str_starts(at, "{home}"))
        return at + strlen("{home}");
    if (!str_starts(at, variable))
        return NULL;
    at += strlen(variable);
    len = strspn(at, name_letters);
    return len && at[len] == '}' ? at + len + 1 : NULL;
}

static const char *variable_value(char *const *env, const char *name, size_t len)
{
    for (; env && *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return "";
}

static void append_value(const char *text, const struct preset_places *places, struct buf *ret)
{
    while (*text) {
        const char *end = *text == '{' ? placeholder_end(text) : NULL;

        if (!end)
            (void)buf_append(ret, text++, 1);
        else if (str_starts(text, "{cache}"))
            buf_append_str(ret, places->cache);
        else if (str_starts(text, "{home}"))
            buf_append_str(ret, places->home);
        else
            buf_append_str(ret, variable_value(places->env, text + strlen("{env."),
                                               (size_t)(end - text) - strlen("{env.}")));
        text = end ? end : text;
    }
}

char *preset_expand(const char *variable, const struct preset_places *places)
{
    const size_t name_len = strcspn(variable, "=") + 1;
    AUTO(buf_done) struct buf value = {.max = SIZE_MAX / 2};
    const char *begin;
    size_t len;

    append_value(variable + name_len, places, &value);
    begin = value.data ? value.data + strspn(value.data, " ") : "";
    for (len = strlen(begin); len && begin[len - 1] == ' ';)
        len--;
    return alloc_strf("%.*s%.*s", (int)name_len, variable, (int)len, begin);
}

/* --- reading --- */

static int check_keys(const struct config *file, const struct toml_node *table,
                      const char *const *known, struct err *err)
{
    for (size_t i = 0; i < table->len; i++) {
        const char *key = table->items[i].key;
        const char *nearest;
        size_t at = 0;

        while (known[at] && !str_eq(known[at], key))
            at++;
        if (known[at])
            continue;
        nearest = str_nearest(key, known);
        return config_fail(file, &table->items[i], err, "unknown key \"%.60s\"%s%s%s", key,
                           nearest ? ", did you mean \"" : "", nearest ? nearest : "",
                           nearest ? "\"?" : "");
    }
    return 0;
}

static int read_text(const struct config *file, const char *key, char **ret, struct err *err)
{
    const struct toml_node *node;

    if (config_item(file, file->root, key, TOML_STRING, &node, err))
        return -1;
    if (node && !node->string[strspn(node->string, " \n")])
        return config_fail(file, node, err, "%s is empty", key);
    *ret = node ? alloc_str(node->string) : NULL;
    return 0;
}

static int read_list(const struct config *file, const char *key, const struct toml_node **ret,
                     struct err *err)
{
    if (config_item(file, file->root, key, TOML_ARRAY, ret, err))
        return -1;
    for (size_t i = 0; *ret && i < (*ret)->len; i++)
        if (config_want(file, &(*ret)->items[i], TOML_STRING, err))
            return -1;
    return 0;
}

static int read_hosts(const struct config *file, struct strv *ret, struct err *err)
{
    const struct toml_node *list;

    if (read_list(file, "hosts", &list, err))
        return -1;
    for (size_t i = 0; list && i < list->len; i++) {
        const char *host = list->items[i].string;
        struct host_pattern pattern;
        uint16_t port;
        struct err why;

        if (host_pattern_parse(host, &pattern, &port, &why))
            return config_fail(file, &list->items[i], err, "hosts: \"%.60s\": %s", host, why.msg);
        strv_push(ret, host);
    }
    return 0;
}

/* "~/PATH KEY" */
static int read_hosts_from(const struct config *file, struct strv *ret, struct err *err)
{
    const struct toml_node *list;

    if (read_list(file, "hosts_from", &list, err))
        return -1;
    for (size_t i = 0; list && i < list->len; i++) {
        const char *text = list->items[i].string;
        const char *key = strchr(text, ' ');
        AUTO_FREE char *path =
            key && str_starts(text, "~/") ? alloc_strn(text + 2, (size_t)(key - text - 2)) : NULL;

        if (!path || !profile_subpath_is_valid(path) || !key[1] ||
            key[1 + strcspn(key + 1, " =:\t\n")])
            return config_fail(file, &list->items[i], err,
                               "hosts_from: \"%.60s\" should be \"~/PATH KEY\"", text);
        strv_push(ret, text + 2);
    }
    return 0;
}

static char *host_of_url(const char *url)
{
    const char *at = strstr(url, "://");
    size_t len;
    const char *user;
    AUTO_FREE char *text = NULL;
    struct net_host host;
    uint16_t port;
    struct err ignored;

    if (!at)
        return NULL;
    at += strlen("://");
    len = strcspn(at, "/?#\"' \t\r");
    user = memrchr(at, '@', len);
    if (user) {
        len -= (size_t)(user + 1 - at);
        at = user + 1;
    }
    text = alloc_strn(at, len);
    return net_host_parse_port(text, &host, &port, &ignored) ? NULL
                                                             : net_host_format(host.text, port);
}

void preset_read_hosts(const char *text, const char *key, struct strv *ret)
{
    const size_t key_len = strlen(key);

    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        AUTO_FREE char *whole = alloc_strn(line, strcspn(line, "\n"));
        const char *name = whole + strspn(whole, " \t");
        const char *equals = strchr(name, '=');
        size_t len = equals ? (size_t)(equals - name) : 0;
        AUTO_FREE char *host = NULL;

        while (len && strchr(" \t", name[len - 1]))
            len--;
        if (len < key_len || memcmp(name + len - key_len, key, key_len) != 0 ||
            (len > key_len && name[len - key_len - 1] != ':') || strchr("#;", *name))
            continue;
        host = host_of_url(equals);
        if (host && !strv_has(ret, host))
            strv_push(ret, host);
    }
}

/* Nothing that a command could then change what is run or believed outside by. */
static int check_place(const struct config *file, const struct toml_node *node, const char *path,
                       struct err *err)
{
    AUTO(strv_done) struct strv held = {0};
    AUTO_FREE char *clean = path_clean("/", path);

    protect_home_names(&held);
    strv_push(&held, ".config/cordon");
    strv_push(&held, ".cache/cordon");
    strv_push(&held, ".local/state/cordon");
    for (size_t i = 0; i < held.len; i++) {
        AUTO_FREE char *name = path_clean("/", held.items[i]);

        if (path_is_within(name, clean) || path_is_within(clean, name))
            return config_fail(file, node, err,
                               "\"~/%.80s\" cannot be opened by a preset: ~/%s is run or believed "
                               "outside of the sandbox",
                               path, held.items[i]);
    }
    for (const char *at = path; *at; at += strspn(at, "/")) {
        size_t len = strcspn(at, "/");

        if (protect_has_name(at, len))
            return config_fail(file, node, err,
                               "\"~/%.80s\" cannot be opened by a preset: %.*s is protected", path,
                               (int)len, at);
        at += len;
    }
    return 0;
}

/* What follows "~/"; NULL: it is no path below the home directory. */
static const char *below_home(const char *text)
{
    return str_starts(text, "~/") && profile_subpath_is_valid(text + 2) ? text + 2 : NULL;
}

static const char bad_place[] =
    "\"%.80s\" should be a directory below your home directory, as \"~/.cache/NAME\"";

static int read_write(const struct config *file, struct strv *ret, struct err *err)
{
    const struct toml_node *list;

    if (read_list(file, "write", &list, err))
        return -1;
    for (size_t i = 0; list && i < list->len; i++) {
        const struct toml_node *node = &list->items[i];
        const char *path = below_home(node->string);

        if (!path)
            return config_fail(file, node, err, bad_place, node->string);
        if (check_place(file, node, path, err))
            return -1;
        strv_push(ret, path);
    }
    return 0;
}

/* What decides which program a name leads to, where things are, or what a command knows of Cordon. */
static bool is_not_settable(const char *name)
{
    static const char *const names[] = {"PATH", "HOME", "SHELL",    "TMPDIR", "TMP", "TEMP",
                                        "USER", "ENV",  "BASH_ENV", "IFS",    NULL};

    for (size_t i = 0; names[i]; i++)
        if (str_eq(names[i], name))
            return true;
    return environment_is_reserved(name) || str_starts(name, "CORDON_") ||
           str_starts(name, "CODEX_") || str_starts(name, "LD_");
}

static int check_variable(const struct config *file, const struct toml_node *node, struct err *err)
{
    const char *name = node->key;

    if (config_want(file, node, TOML_STRING, err))
        return -1;
    if (!*name || name[strspn(name, name_letters)] || (*name >= '0' && *name <= '9'))
        return config_fail(file, node, err, "\"%.60s\" is no name for a variable", name);
    if (is_not_settable(name))
        return config_fail(file, node, err, "%s is not for a preset to set; --env can", name);
    for (const char *at = strchr(node->string, '{'); at; at = strchr(at + 1, '{'))
        if (!placeholder_end(at))
            return config_fail(file, node, err,
                               "%s: \"%.30s\" is not known; {cache}, {home} and {env.NAME} are",
                               name, at);
    return 0;
}

static int read_variables(const struct config *file, const struct toml_node *table,
                          struct strv *ret, struct err *err)
{
    for (size_t i = 0; table && i < table->len; i++) {
        if (check_variable(file, &table->items[i], err))
            return -1;
        strv_pushf(ret, "%s=%s", table->items[i].key, table->items[i].string);
    }
    return 0;
}

static int read_outside(const struct config *file, struct preset *ret, struct err *err)
{
    const struct toml_node *all;

    if (config_item(file, file->root, "outside", TOML_TABLE, &all, err))
        return -1;
    for (size_t i = 0; all && i < all->len; i++) {
        const struct toml_node *node = &all->items[i];
        const char *path = below_home(node->key);
        struct preset_outside *outside;

        if (!path)
            return config_fail(file, node, err, bad_place, node->key);
        if (config_want(file, node, TOML_TABLE, err))
            return -1;
        ret->outside =
            alloc_grow(ret->outside, ret->outside_len, &ret->outside_cap, sizeof *ret->outside);
        outside = &ret->outside[ret->outside_len++];
        *outside = (struct preset_outside){.path = alloc_str(path)};
        if (read_variables(file, node, &outside->env, err))
            return -1;
    }
    return 0;
}

static int read_all(const struct config *file, struct preset *ret, struct err *err)
{
    static const char *const keys[] = {"about", "why", "per_workspace", "hosts",   "hosts_from",
                                       "write", "env", "offline_env",   "outside", NULL};
    const struct toml_node *env;
    const struct toml_node *offline_env;

    if (check_keys(file, file->root, keys, err) || read_text(file, "about", &ret->about, err) ||
        read_text(file, "why", &ret->why, err) ||
        config_bool(file, file->root, "per_workspace", &ret->per_workspace, err) ||
        read_hosts(file, &ret->hosts, err) || read_hosts_from(file, &ret->hosts_from, err) ||
        read_write(file, &ret->write, err) ||
        config_item(file, file->root, "env", TOML_TABLE, &env, err) ||
        config_item(file, file->root, "offline_env", TOML_TABLE, &offline_env, err) ||
        read_variables(file, env, &ret->env, err) ||
        read_variables(file, offline_env, &ret->offline_env, err) || read_outside(file, ret, err))
        return -1;
    if (!ret->about || strchr(ret->about, '\n'))
        return err_set(err, ERR_INVALID,
                       "%s:1: a preset says in one line what it is for: about = \"...\"",
                       file->file);
    return 0;
}

int preset_parse(const char *text, size_t len, const char *file, struct preset *ret,
                 struct err *err)
{
    struct config reader = {.file = (char *)file}; /* what the readers of config.toml go by */
    AUTO(preset_done) struct preset preset = {0};
    struct err why;
    int status;

    if (len > PRESET_SIZE_MAX)
        return err_set(err, ERR_LIMIT, "%s:1: longer than %d bytes", file, PRESET_SIZE_MAX);
    reader.root = toml_parse(text, len, &why);
    if (!reader.root)
        return err_set(err, why.code, "%s:%s", file, why.msg); /* it starts with "LINE:COLUMN: " */
    status = read_all(&reader, &preset, err);
    toml_free(reader.root);
    if (status)
        return -1;
    *ret = preset;
    preset = (struct preset){0};
    return 0;
}
