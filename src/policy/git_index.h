/* Which directories of a repository are submodules, from git's index: not from `.gitmodules`, which
 * the command may change. Pure. */
#pragma once

#include "base/err.h"
#include "base/strv.h"

#include <stddef.h>

/* Adds the paths (relative to the work tree) of all entries of mode 160000 to `ret`.
 * Source: git's Documentation/gitformat-index.txt, versions 2 to 4. ERR_INVALID for anything else.
 */
int git_index_submodules(const char *bytes, size_t len, struct strv *ret, struct err *err);
