/* Additional permissions for one command, laid over a profile: spec/sandboxing.md 1.2 and 2.4. */
#pragma once

#include "base/err.h"
#include "policy/profile.h"

#include <stdbool.h>

enum overlay_network { OVERLAY_NETWORK_UNSET, OVERLAY_NETWORK_ENABLED, OVERLAY_NETWORK_DISABLED };

/* A zeroed one asks for nothing. */
struct profile_overlay {
    enum overlay_network network;
    struct profile_entries entries;
    unsigned glob_scan_max_depth; /* 0: not given */
};

void profile_overlay_done(struct profile_overlay *overlay);
bool profile_overlay_is_empty(const struct profile_overlay *overlay);

/* Cleans literal paths lexically (symlinks stay), drops repeated entries; a glob with an access
 * other than deny is ERR_INVALID. */
int profile_overlay_normalise(struct profile_overlay *overlay, struct err *err);

/* Both: network enabled if either enables it, entries united, the larger scan depth. */
void profile_overlay_merge(const struct profile_overlay *a, const struct profile_overlay *b,
                           struct profile_overlay *ret);

/* What was asked for and granted: entries that stand in both, network only if both enable it. */
void profile_overlay_intersect(const struct profile_overlay *requested,
                               const struct profile_overlay *granted, struct profile_overlay *ret);

/* The effect on a profile: entries appended to a restricted one, and a restricted network enabled
 * when the overlay enables it. An overlay never narrows, and never lifts the managed proxy. */
void profile_overlay_apply(struct profile *profile, const struct profile_overlay *overlay);
