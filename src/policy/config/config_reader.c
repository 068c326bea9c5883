/* See config_reader.h. */
#include "policy/config/config_reader.h"

#include "base/auto.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>

int config_fail(const struct config *config, const struct toml_node *node, struct err *err,
                const char *fmt, ...)
{
    AUTO_FREE char *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    err_set(err, ERR_INVALID, "%s:%u: %s", config->file, node->line, text ? text : fmt);
    return -1;
}

int config_fail_wrap(const struct config *config, const struct toml_node *node, struct err *err)
{
    return err_wrap(err, "%s:%u", config->file, node->line);
}

int config_want(const struct config *config, const struct toml_node *node, enum toml_kind kind,
                struct err *err)
{
    if (node->kind == kind)
        return 0;
    return config_fail(config, node, err, "%s should be %s, and is %s",
                       node->key ? node->key : "this", toml_kind_name(kind),
                       toml_kind_name(node->kind));
}

int config_item(const struct config *config, const struct toml_node *table, const char *key,
                enum toml_kind kind, const struct toml_node **ret, struct err *err)
{
    const struct toml_node *node = toml_find(table, key);

    if (node && config_want(config, node, kind, err))
        return -1;
    *ret = node;
    return 0;
}

int config_string(const struct config *config, const struct toml_node *table, const char *key,
                  const char **ret, struct err *err)
{
    const struct toml_node *node;

    if (config_item(config, table, key, TOML_STRING, &node, err))
        return -1;
    if (node)
        *ret = node->string;
    return 0;
}

int config_bool(const struct config *config, const struct toml_node *table, const char *key,
                bool *ret, struct err *err)
{
    const struct toml_node *node;

    if (config_item(config, table, key, TOML_BOOLEAN, &node, err))
        return -1;
    if (node)
        *ret = node->boolean;
    return 0;
}

int config_word(const struct config *config, const struct toml_node *node, const char *const *words,
                unsigned *ret, struct err *err)
{
    const char *nearest;

    if (config_want(config, node, TOML_STRING, err))
        return -1;
    for (unsigned i = 0; words[i]; i++) {
        if (str_eq(words[i], node->string)) {
            *ret = i;
            return 0;
        }
    }
    nearest = str_nearest(node->string, words);
    return config_fail(config, node, err, "%s: \"%.60s\" is not known%s%s%s",
                       node->key ? node->key : "this", node->string,
                       nearest ? ", did you mean \"" : "", nearest ? nearest : "",
                       nearest ? "\"?" : "");
}
