/* Which paths a glob matches on a host, found by walking the tree below its fixed part. */
#pragma once

#include "base/err.h"
#include "policy/host_view.h"

#include <stddef.h>

struct glob;

struct glob_hit {
    char *path;
    enum host_kind kind; /* never missing */
};

struct glob_hits {
    struct glob_hit *items;
    size_t len;
    size_t cap;
};

void glob_hits_done(struct glob_hits *hits);

struct glob_walk {
    const struct host_view *view;
    const char *root;   /* canonical path of glob_prefix() */
    unsigned max_depth; /* levels below `root`, 0 for no limit */
    size_t matches_max; /* ERR_LIMIT when `hits` would pass it */
    size_t visits_max;  /* ERR_LIMIT when more directory entries than this would be looked at */
};

/* Appends the matches to `hits`, which belongs to the caller also on failure. What lies below a
 * match is not looked at, symlinks are hits but are never followed, and a folder on the way that
 * cannot be read is a hit itself, because what it holds cannot be told apart. */
int glob_expand(const struct glob *glob, const struct glob_walk *walk, struct glob_hits *hits,
                struct err *err);
