/* One file's chunks, put into its text, and how two texts differ, by lines. Pure. */
#pragma once

#include "base/err.h"
#include "patch/changes.h"

/* What `file`, an update, makes of the text `before`: `ret` gets it, and `ret_edits` how it
 * differs; both the caller's to free (edits_done()). ERR_INVALID when a chunk has no place; the
 * message names line and file. */
int update_compute(const struct patch *patch, const struct patch_file *file,
                   const struct content *before, struct content *ret, struct edits *ret_edits,
                   struct err *err);

void edits_done(struct edits *edits);

/* The one edit between two texts whose equal lines at both ends are left out. ERR_LIMIT for too
 * many lines. */
int edits_between(const struct content *before, const struct content *after, struct edits *ret,
                  struct err *err);
