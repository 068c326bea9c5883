/* What a command must not change whatever its profile says, because Cordon runs or believes it later,
 * outside of every sandbox. Looks at the host's files. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "policy/access.h"

/* Makes the running program, every one that it starts and each of `paths`, and what they lead to, read-only
 * where the sorted map makes it writable. All of them are added to the map's `own`: what
 * no yes opens later, wherever it lies. What cannot be seen makes the directory read-only that hides
 * it; -1 when it cannot be told what is there.
 *
 * At last an entry narrower than write, for a name that is missing together with its directory,
 * becomes one for the topmost missing name, which can be kept from being made, and
 * the directory of such a name has an entry. */
int own_paths_protect(struct access_map *map, const struct strv *paths, struct err *err);
