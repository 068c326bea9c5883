/* config.toml: loading, and every profile of the file. Beside memory errors: a profile that can be
 * read is one that JSON can carry. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/json.h"
#include "base/strv.h"
#include "policy/config/config.h"
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
    json = profile_to_json(&profile.profile);
    if (!json || profile_from_json(json, NULL, &again, &err))
        abort();
    if (again.entries.len != profile.profile.entries.len)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(strv_done) struct strv names = {0};
    struct config *config;
    struct err err;

    config = config_load((const char *)data, size, "config.toml", &err);
    if (!config)
        return 0;
    config_profile_names(config, &names);
    for (size_t i = 0; i < names.len; i++)
        check_profile(config, names.items[i]);
    check_profile(config, "workspace-write");
    check_profile(config, NULL);
    config_free(config);
    return 0;
}
