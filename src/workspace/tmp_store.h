/* Where the private temporary folders of workspaces are kept: for each workspace a folder with "tmp"
 * and "var-tmp" in it, below ~/.cache/cordon/tmp, which no command sees but as its own /tmp and /var/tmp.
 *
 *     tmp_store_open()      the folders of one workspace, made when they are missing; kept by a lock
 *     tmp_store_make_dir()  a directory in them, for $TMPDIR
 *     tmp_store_close()
 *     tmp_store_empty()     removes what is old, in those of workspaces that nobody has open
 *
 * docs/decisions/0031-private-tmp.md says why it is as it is. */
#pragma once

#include "base/err.h"
#include "policy/host_view.h"

#include <stdbool.h>
#include <time.h>

struct tmp_store {
    char *base;   /* canonical: the folder of all workspaces; NULL: there is none */
    char *folder; /* in there, of this one; NULL: it cannot be had: `why` */
    struct path_walk
        walk; /* to the folder that `base` is made in: what links lead there, if there are any */
    int lock; /* descriptor of `folder`, locked (shared) while it is in use; -1 */
    struct err why;
};

/* `root` is what the workspace is known by, a clean path; NULL: by nothing, so that nothing is kept. Overwrites
 * `ret`; without a folder it still tells `base`, if that is there. Where links lead to the folder of caches, nothing is
 * made until it is called with `trusts_links`: their places have to be looked at (`walk`). */
void tmp_store_open(const char *root, bool trusts_links, struct tmp_store *ret);
void tmp_store_close(struct tmp_store *store);

/* Makes the directory that `path` (clean, in /tmp or /var/tmp) is inside. False when it cannot be had. */
bool tmp_store_make_dir(const struct tmp_store *store, const char *path);

/* A day has gone since they were emptied; `base` may be NULL. */
bool tmp_store_is_due(const char *base, time_t now);

/* What nobody has used for ten days in "tmp" and for thirty in "var-tmp" goes, a part of it at a time: `steps`
 * names are looked at. Follows no link, and leaves folders alone that are open anywhere. */
void tmp_store_empty(const char *base, time_t now, int steps);
