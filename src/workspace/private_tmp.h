/* What private temporary folders (tmp_store.h) are to a workspace: which are its own (by its first root: what else
 * is writable in it, and by which profile, differs between commands that belong together), that it does not see
 * those of others, and that its $TMPDIR is there. */
#pragma once

#include <stdbool.h>

struct access_map;
struct tmp_store;
struct workspace;

/* `ret` is overwritten where there is something to open: for a profile that restricts files. */
void private_tmp_open(const struct workspace *workspace, bool trusts_links, struct tmp_store *ret);

/* What is kept for all workspaces is not seen, but as the /tmp of this one. */
void private_tmp_hide(const struct tmp_store *tmp, struct access_map *map);

/* In the environment of its commands: an inherited $TMPDIR that is not there, or not writable, is /tmp. */
void private_tmp_settle_variable(struct workspace *workspace);
