/* Which rules count for commands that are started in a directory: those of the user, of the project
 * when the user's configuration trusts it, and of the administrator. */
#pragma once

#include "rules/rules_disk.h"

struct config;
struct network_policy;
struct rules;

/* Whose configuration says so; borrowed. Each may be NULL. */
struct rule_owner {
    const struct config *config; /* NULL: no project is trusted */
    const char *dir;             /* the config directory */
    const char *home;            /* for "~/" in rules */
};

/* `*ret_project` is what `ret->project` points to, freed by the caller; the rest is borrowed from
 * the owner. */
void rule_layers_find(const struct rule_owner *owner, const char *dir, struct rules_dirs *ret,
                      char **ret_project);

/* All of them, sealed: read anew for each command, since a person may have written one since. */
struct rules *rule_layers_load(const struct rule_owner *owner, const char *dir);

/* What they say of hosts (network_rule), added to `policy`. A file that cannot be read, or a host that has no one
 * meaning, is an error: it could deny what others allow. */
int rule_layers_add_hosts(const struct rule_owner *owner, const char *dir,
                          struct network_policy *policy, struct err *err);

/* The file that new rules go to; caller frees. NULL when the config directory is not known. */
char *rule_layers_file(const struct rule_owner *owner);
