/* The access map of a sandbox as the guard gets it: read in place, never copied. Pure. */
#pragma once

#include "guard/guard_format.h"

#include <stdbool.h>
#include <stddef.h>

struct map {
    const struct guard_map *header;
    const struct guard_entry *entries;
    const uint32_t *own;
    const char *strings;
};

/* Checks all of the `size` bytes, which stay where they are. false: they are no map. */
bool map_init(struct map *ret, const void *bytes, size_t size);

const char *map_path(const struct map *map, int entry);

/* The entry that decides about a clean absolute path; GUARD_NO_ENTRY. */
int map_find(const struct map *map, const char *path);

/* Below /proc, /sys or /dev, whose files are made for each command: what is refused there is refused
 * everywhere. */
bool map_is_ours(const char *path);

/* The name is one that other programs run or believe, wherever it is. */
bool map_is_believed(const struct map *map, const char *name, size_t len);

/* The path belongs to Cordon. */
bool map_is_own(const struct map *map, const char *path);

/* An entry, or a path of Cordon's, lies below the path. */
bool map_has_below(const struct map *map, const char *path);

/* The verdict of that entry, or what holds without one. */
enum guard_access map_access(const struct map *map, int entry);

/* `path` is `root` or lies below it; both clean. */
bool map_is_within(const char *path, const char *root);
