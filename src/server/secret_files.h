/* Files that clients' tokens are made of. Who can read one can be a client, and a client needs no
 * sandbox; so no sandbox shows them, whatever its profile says. */
#pragma once

#include "base/strv.h"
#include "policy/access.h"

/* How many are there: one may be removed once it has been read. */
size_t secret_files_count(const struct strv *files);

/* Denies those that are there; nothing in a map that restricts nothing. */
void secret_files_hide(const struct strv *files, struct access_map *map);
