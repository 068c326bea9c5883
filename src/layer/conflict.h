/* Whether accepting a path would overwrite what somebody else did meanwhile. Pure. */
#pragma once

#include "layer/change.h"

#include <stdbool.h>
#include <stdint.h>

enum conflict_why {
    CONFLICT_NONE,
    CONFLICT_CHANGED, /* the real one is newer than the step's begin */
    CONFLICT_GONE,    /* the layer has a changed copy of one that is not there any more */
    CONFLICT_MOVED,   /* a folder on the way was put there since */
};

struct conflict_look {
    int64_t base_ns;  /* begin of the first step that touched the path, since the epoch */
    int64_t moved_ns; /* conflict_folder() of the folders on the way, the newest; 0: none */
    const struct change_stamp *layer; /* mode 0: deleted there */
    const struct change_stamp *real;  /* mode 0: missing */
    const struct change_stamp *known; /* what we left there ourselves (known.h); NULL: nothing */
    bool
        is_copy; /* of a real one that was there: of struct change, but not of what was moved there */
};

/* Not before the step began, as far as clocks can say. */
bool conflict_is_since(int64_t ns, int64_t base_ns);

enum conflict_why conflict_of(const struct conflict_look *look);

/* A folder on the way to a path, the root among them: its ctime when it may have been put there by a rename,
 * else 0. `known` as above. */
int64_t conflict_folder(const struct change_stamp *folder, int64_t mtime_ns,
                        const struct change_stamp *known);
