/* [limits] and [permissions.NAME.limits]: see config.h. */
#include "policy/config/config_reader.h"

#include <inttypes.h>
#include <stdio.h>

const char *const config_limit_keys[LIMIT_COUNT + 1] = {
    [LIMIT_MEMORY] = "memory",
    [LIMIT_CPU_TIME] = "cpu_time",
    [LIMIT_PIDS] = "pids",
    [LIMIT_FILE_SIZE] = "file_size",
    [LIMIT_FILES] = "files",
    [LIMIT_ADDRESS_SPACE] = "address_space",
    NULL,
};

/* A text with a unit, or a number: bytes, seconds, a count. */
static int read_limit(const struct config *config, const struct toml_node *node,
                      enum resource_limit limit, uint64_t *ret, struct err *err)
{
    char text[32];
    struct err why;

    if (node->kind == TOML_INTEGER)
        snprintf(text, sizeof text, "%" PRId64, node->integer);
    else if (config_want(config, node, TOML_STRING, err))
        return -1;
    if (resource_limit_parse(limit, node->kind == TOML_INTEGER ? text : node->string, ret, &why))
        return config_fail(config, node, err, "%s: %s", node->key, why.msg);
    return 0;
}

int config_read_limits(const struct config *config, const struct toml_node *table,
                       struct resource_limits *ret, struct err *err)
{
    const struct toml_node *limits;

    if (config_item(config, table, "limits", TOML_TABLE, &limits, err))
        return -1;
    for (int i = 0; limits && i < LIMIT_COUNT; i++) {
        const struct toml_node *node = toml_find(limits, config_limit_keys[i]);

        if (node && read_limit(config, node, (enum resource_limit)i, &ret->of[i], err))
            return -1;
    }
    return 0;
}

const struct resource_limits *config_limits(const struct config *config)
{
    return config ? &config->limits : NULL;
}
