/* Which rules count for commands that are started in a folder: those of the user, of the project
 * when the user trusts it, and of the administrator. */
#pragma once

#include "rules/rules_disk.h"

struct config_file;
struct rules;

/* Borrows from `file`; `*ret_project` is what `ret->project` points to, freed by the caller. */
void rules_layers_find(const struct config_file *file, const char *folder, struct rules_places *ret,
                       char **ret_project);

/* All of them, sealed. */
struct rules *rules_layers_load(const struct config_file *file, const char *folder);
