/* The folders of the platform: what programs need to be started at all. */
#pragma once

#include "base/err.h"
#include "policy/access.h"

struct host_view;

/* Adds the ones that exist, for reading, where no entry of the sorted `map` says anything, and the
 * symlinks that lead to them. The map is sorted again afterwards. ERR_FORBIDDEN as in
 * protect_check_links(). */
int platform_add_roots(struct access_map *map, const struct host_view *view, const char *origin,
                       struct err *err);
