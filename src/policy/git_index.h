/* Which directories of a repository are submodules, from git's index: not from `.gitmodules`, which
 * the command may change. Pure. */
#pragma once

#include "base/err.h"
#include "base/strv.h"

#include <stddef.h>

/* Adds the paths (relative to the work tree) of all entries of mode 160000 to `ret`. Of a split index
 * (core.splitIndex) `*ret_shared` is the name of the file beside it that has the other entries; the
 * caller frees it; else NULL. ERR_INVALID for one whose own entries take the place of a submodule's,
 * which they do without saying its path.
 * Source: git's Documentation/gitformat-index.txt, versions 2 to 4. ERR_INVALID for anything else.
 */
int git_index_submodules(const char *bytes, size_t len, struct strv *ret, char **ret_shared,
                         struct err *err);
