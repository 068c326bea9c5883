/* Private temporary folders in an access map: /tmp and /var/tmp that are not those of the host. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct access_entry;
struct access_map;
struct profile;
struct resolve_context;

/* Adds them to the sorted `map`, for a profile that has them. They only fill gaps: an entry that says just
 * "/tmp" means the host's. The workspace roots are seen in them as they are seen by other entries. */
int tmp_folders_add(const struct profile *profile, const struct resolve_context *context,
                    struct access_map *map, struct err *err);

/* For access_map_drop(): an entry that would only hide what a private folder hides anyway. Its path may come to
 * be there: it is not the one that the entry means. */
bool tmp_folders_hide(const struct access_map *before, const struct access_entry *entry);
