/* A path as the kernel would follow it: symlinks resolved one component at a time through a
 * host_view, and remembered. */
#pragma once

#include "base/err.h"
#include "policy/access.h"

#include <stddef.h>

struct host_view;

enum path_end {
    PATH_FOUND,   /* `path` is there */
    PATH_MISSING, /* `path` is where it would be; one or more of its last components do not exist */
    PATH_HIDDEN,  /* `path` is the last folder on the way that can be seen; it lets us look no
                     further (and so nobody with the same rights) */
    PATH_BLOCKED, /* `path` is something on the way that is no folder */
};

struct path_walk {
    char *path; /* clean and canonical */
    enum path_end end;
    enum access_kind kind;     /* of what is at `path` */
    struct access_link *links; /* symlinks that were followed, in order */
    size_t links_len;
    size_t links_cap;
    size_t name_link; /* 1 + index of the symlink that the whole path itself named, 0 for none */
};

void path_walk_done(struct path_walk *walk);

enum { PATH_WALK_LINKS_MAX = 40 /* as Linux has it */ };

/* Follows the clean path `path`. ERR_INVALID when there are too many symlinks, or one goes through
 * something that is missing and back again. */
int path_walk(const struct host_view *view, const char *path, struct path_walk *ret,
              struct err *err);
