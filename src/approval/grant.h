/* The smallest widening of a profile that would have let a refused command pass. Pure but for
 * looking whether paths are there. */
#pragma once

#include "base/strv.h"
#include "policy/profile.h"

#include <stdbool.h>

struct access_map;
struct denials;

enum { GRANT_PATHS_MAX = 4 };

struct grant {
    struct profile_overlay overlay;
    char *words; /* "writing /x/y and the network" */
};

void grant_done(struct grant *grant);

struct grant_bounds {
    const struct access_map *access; /* of the attempt that was refused */
    char *const *own_paths;          /* canonical: what no yes opens; may be NULL */
    const char *home;                /* of the user; NULL: not known */
};

/* What an overlay allows: "writing /x/y and the network"; caller frees. */
char *overlay_words(const struct profile_overlay *overlay);

/* Makes of every literal path what it leads to now, since that is what a yes opens and has to be
 * shown. ERR_FORBIDDEN for the root directory, and for what belongs to Cordon (`own_paths`: canonical;
 * may be NULL). */
int overlay_settle(struct profile_overlay *overlay, char *const *own_paths, struct err *err);

/* What the denials that the sandbox is the cause of, and that are facts, would have needed (what only the
 * output says was refused gives nothing: a command prints what it likes): of a file that is there the
 * file alone, of one that is not its directory; for a host, the network as a whole (a sandbox without
 * a proxy knows no single hosts). False, `ret` untouched, when there is no such widening: nothing
 * says what was refused, it was not the profile, it needs more than GRANT_PATHS_MAX paths, or a
 * path is denied by an entry that was written to deny it, is protected or believed, or belongs to Cordon
 * (that is for a person to take back, not for a yes in passing). Paths are granted as what they lead to. */
bool grant_find(const struct denials *denials, const struct grant_bounds *bounds,
                struct grant *ret);
