/* Whether what a profile means on this host has changed under a sandbox that stands. */
#pragma once

#include <stdbool.h>

struct access_map;

/* `new` asks for no other sandbox than `old`, which one was made for. Both sorted. */
bool map_is_same(const struct access_map *old, const struct access_map *new);
