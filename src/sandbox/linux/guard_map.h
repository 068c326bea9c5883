/* What the guard (src/guard) is told of a sandbox: the access map, with the names that may not come
 * to be and the directories in which the kernel leaves all creation to it. Pure. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"
#include "guard/guard_format.h"
#include "policy/access.h"

/* The flags (enum guard_entry_flag) of every entry of a sorted map, by index; the caller frees.
 * `is_alone`: nothing is mounted, so names that are there are held, too. */
uint16_t *guard_map_entry_flags(const struct access_map *map, bool is_alone);

/* Some name is to be held, or some directory is guarded: calls that create have to be asked
 * about. */
bool guard_map_has_names(const struct access_map *map, bool is_alone);

/* Writes the map in the guard's format, with `flags` (enum guard_map_flag) beside
 * GUARD_MAP_RESTRICTED, which follows from the map, the paths that belong to Cordon (own_paths.h) and
 * the protected names.
 * The caller frees `ret` with buf_done(). ERR_LIMIT when it is too large for the guard. */
int guard_map_encode(const struct access_map *map, const struct strv *own_paths, uint32_t flags,
                     struct buf *ret, struct err *err);
