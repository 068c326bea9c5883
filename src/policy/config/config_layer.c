/* [undo] and [layers]: see config.h. Change layers of `cordon run`. */
#include "policy/config/config_reader.h"

const char *const config_undo_keys[] = {"default", NULL};
const char *const config_layers_keys[] = {"at_end", NULL};

/* The place of the word in `words`; `*ret` stays as it is when nothing is said. */
static int read_word(const struct config *config, const char *table_name, const char *key,
                     const char *const *words, unsigned *ret, struct err *err)
{
    const struct toml_node *table;
    const struct toml_node *node;

    if (config_item(config, config->root, table_name, TOML_TABLE, &table, err))
        return -1;
    node = table ? toml_find(table, key) : NULL;
    return node ? config_word(config, node, words, ret, err) : 0;
}

int config_read_layer(struct config *config, struct err *err)
{
    static const char *const undo[] = {"off", "layer", NULL};
    static const char *const ends[] = {"ask", "keep", "accept", "drop", NULL};
    unsigned end = 0;

    if (read_word(config, "undo", "default", undo, &config->undo, err) ||
        read_word(config, "layers", "at_end", ends, &end, err))
        return -1;
    if (toml_find(toml_find(config->root, "layers"), "at_end"))
        config->layer_end = end + 1;
    return 0;
}

bool config_undo_is_default(const struct config *config)
{
    return config && config->undo;
}

unsigned config_layer_end(const struct config *config)
{
    return config ? config->layer_end : 0;
}
