/* See rules_layers.h. The project is the folder that the config file says is trusted; without that
 * word, what a repository brings along rules nothing. */
#include "cli/rules_layers.h"

#include "base/auto.h"
#include "cli/config_file.h"
#include "policy/config.h"
#include "rules/rules.h"

#include <stdlib.h>

void rules_layers_find(const struct config_file *file, const char *folder, struct rules_places *ret,
                       char **ret_project)
{
    *ret_project = config_trusted_project(file->config, folder);
    *ret = (struct rules_places){
        .user = file->folder,
        .project = *ret_project,
        .administrator = RULES_ADMINISTRATOR,
        .home = file->home,
    };
}

struct rules *rules_layers_load(const struct config_file *file, const char *folder)
{
    struct rules *rules = rules_new();
    AUTO_FREE char *project = NULL;
    struct rules_places places;

    rules_layers_find(file, folder, &places, &project);
    rules_load_layers(rules, &places);
    rules_seal(rules);
    return rules;
}
