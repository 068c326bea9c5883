/* The rules of this host's user, as commands that a client starts have to keep them. */
#pragma once

#include "rules/rules_disk.h"

struct rules;
struct server;

/* Which layers count for commands in a folder. Borrows from the server; `*ret_project` is what
 * `ret->project` points to, freed by the caller. */
void rules_part_places(const struct server *server, const char *folder, struct rules_places *ret,
                       char **ret_project);

/* All of them, sealed: read anew for each command, since a person may have written one since. */
struct rules *rules_part_load(const struct server *server, const char *folder);

/* The file that new rules go to; caller frees. NULL when the config folder is not known. */
char *rules_part_file(const struct server *server);
