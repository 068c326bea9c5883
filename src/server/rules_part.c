/* See rules_part.h. The project counts when the user's configuration trusts it, whatever a client
 * says. */
#include "server/rules_part.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "policy/config.h"
#include "rules/rules.h"
#include "server/server.h"

#include <stdlib.h>

void rules_part_places(const struct server *server, const char *folder, struct rules_places *ret,
                       char **ret_project)
{
    *ret_project = config_trusted_project(server->config.file, folder);
    *ret = (struct rules_places){
        .user = server->config.folder,
        .project = *ret_project,
        .administrator = RULES_ADMINISTRATOR,
        .home = server->config.home,
    };
}

struct rules *rules_part_load(const struct server *server, const char *folder)
{
    struct rules *rules = rules_new();
    AUTO_FREE char *project = NULL;
    struct rules_places places;

    rules_part_places(server, folder, &places, &project);
    rules_load_layers(rules, &places);
    rules_seal(rules);
    return rules;
}

char *rules_part_file(const struct server *server)
{
    const char *folder = server->config.folder;

    return folder ? alloc_strf("%s/" RULES_FOLDER "/" RULES_DEFAULT, folder) : NULL;
}
