/* Which project the user trusts: [projects."/path"] trust_level = "trusted", as Codex writes it.
 * The nearest folder that is listed decides, so that a part of a trusted project can be excepted; a
 * word that is not known trusts nobody. */
#include "policy/config/config.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/config/config_reader.h"

#include <stdlib.h>

char *config_trusted_project(const struct config *config, const char *folder)
{
    const struct toml_node *projects = config ? toml_find(config->root, "projects") : NULL;
    AUTO_FREE char *at = alloc_str(folder);

    for (;;) {
        const struct toml_node *level = toml_find(toml_find(projects, at), "trust_level");
        char *parent;

        if (level)
            return level->kind == TOML_STRING && str_eq(level->string, "trusted") ? TAKE_PTR(at)
                                                                                  : NULL;
        if (str_eq(at, "/"))
            return NULL;
        parent = path_parent(at);
        free(at);
        at = parent;
    }
}
