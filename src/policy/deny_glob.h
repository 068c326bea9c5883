/* The glob entries of a profile at work: what they match on a host becomes denied entries. */
#pragma once

#include "base/err.h"
#include "policy/access.h"

#include <stddef.h>

struct glob;
struct host_view;

struct deny_glob {
    struct glob *glob;
    char *pattern;
    char *origin;
};

struct deny_globs {
    struct deny_glob *items;
    size_t len;
    size_t cap;
};

void deny_globs_done(struct deny_globs *globs);

/* Adds an absolute pattern. ERR_INVALID for a bad one. */
int deny_globs_add(struct deny_globs *globs, const char *pattern, const char *origin,
                   struct err *err);

enum {
    DENY_GLOB_MATCHES_MAX = 8192,   /* of all patterns together; spec/sandboxing.md 3.5 */
    DENY_GLOB_VISITS_MAX = 2000000, /* directory entries looked at, for each pattern */
};

/* Denies in the sorted `map`, and leaves it sorted, what the patterns match down to `max_depth`
 * levels (0: no limit) below their fixed parts; of a matched symlink, what it leads to.
 *
 * ERR_LIMIT for too many matches. ERR_FORBIDDEN, with both paths, when the fixed part leads through
 * a symlink that the command could replace, or a matched symlink is one, and what it leads to is
 * not denied by itself: the next run would not find it any more. */
int deny_globs_apply(const struct deny_globs *globs, const struct host_view *view,
                     unsigned max_depth, struct access_map *map, struct err *err);
