/* config.toml: loading, and every profile of the file. Beside memory errors: a profile that can be
 * read is one that JSON can carry. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/json.h"
#include "policy/config/config.h"
#include "policy/config/toml.h"
#include "policy/profile_json.h"

#include <stdlib.h>

static void check_profile(const struct config *config, const char *name)
{
    AUTO(config_profile_done) struct config_profile profile = {0};
    AUTO(profile_done) struct profile again = {0};
    AUTO_JSON json_t *json = NULL;
    struct err err;

    if (config_profile(config, name, "/home/u", &profile, &err))
        return;
    profile.profile.tmp = PROFILE_TMP_HOST; /* with all of its entries */
    json = profile_to_json(&profile.profile);
    if (!json || profile_from_json(json, NULL, &again, &err))
        abort();
    if (again.entries.len != profile.profile.entries.len)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct toml_node *root;
    const struct toml_node *permissions;
    struct config *config;
    struct err err;

    config = config_load((const char *)data, size, "config.toml", &err);
    if (!config)
        return 0;
    root = toml_parse((const char *)data, size, &err);
    permissions = toml_find(root, "permissions");
    for (size_t i = 0; permissions && i < permissions->len; i++)
        check_profile(config, permissions->items[i].key);
    toml_free(root);
    check_profile(config, "workspace-write");
    check_profile(config, NULL);
    config_free(config);
    return 0;
}
