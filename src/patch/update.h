/* One file's chunks, put into its text. Pure. */
#pragma once

#include "base/err.h"
#include "patch/changes.h"

/* What `file`, an update, makes of the text `before`: `ret` gets it, and `ret_edits` how it
 * differs; both the caller's to free (edits_done()). ERR_INVALID when a chunk has no place; the
 * message names line and file. */
int update_compute(const struct patch *patch, const struct patch_file *file,
                   const struct content *before, struct content *ret, struct edits *ret_edits,
                   struct err *err);
