/* See rule_layers.h. The project is the directory that the user's own configuration says is trusted;
 * without that word, what a repository brings along rules nothing. */
#include "workspace/rule_layers.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "policy/config/config.h"
#include "rules/rules.h"

#include <stdlib.h>

void rule_layers_find(const struct rule_owner *owner, const char *dir, struct rules_dirs *ret,
                      char **ret_project)
{
    *ret_project = config_trusted_project(owner->config, dir);
    *ret = (struct rules_dirs){
        .user = owner->dir,
        .project = *ret_project,
        .administrator = RULES_ADMINISTRATOR,
        .home = owner->home,
    };
}

struct rules *rule_layers_load(const struct rule_owner *owner, const char *dir)
{
    struct rules *rules = rules_new();
    AUTO_FREE char *project = NULL;
    struct rules_dirs places;

    rule_layers_find(owner, dir, &places, &project);
    rules_load_layers(rules, &places);
    rules_seal(rules);
    return rules;
}

char *rule_layers_file(const struct rule_owner *owner)
{
    return owner->dir ? alloc_strf("%s/" RULES_DIR "/" RULES_DEFAULT, owner->dir) : NULL;
}
