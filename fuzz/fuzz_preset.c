/* A preset's file. Beside memory errors: what is opened lies below the home directory. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/path.h"
#include "policy/config/preset.h"

#include <stdlib.h>
#include <string.h>

static void check_place(const char *place)
{
    AUTO_FREE char *path = path_clean("/home/u", place);

    if (place[0] == '/' || strlen(path) <= strlen("/home/u") || !path_is_within(path, "/home/u"))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct preset_places places = {.cache = "/home/u/c", .home = "/home/u"};
    AUTO(preset_done) struct preset preset = {0};
    struct err err;

    if (preset_parse((const char *)data, size, "x.toml", &preset, &err))
        return 0;
    for (size_t i = 0; i < preset.write.len; i++)
        check_place(preset.write.items[i]);
    for (size_t i = 0; i < preset.outside_len; i++)
        check_place(preset.outside[i].path);
    for (size_t i = 0; i < preset.env.len; i++) {
        AUTO_FREE char *variable = preset_expand(preset.env.items[i], &places);

        if (!strchr(variable, '='))
            abort();
    }
    return 0;
}
