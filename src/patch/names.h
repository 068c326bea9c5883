/* The names in a patch, as paths below one folder. Pure. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

/* What the files begin with that an apply makes beside the others; no patch may name such. */
#define NAMES_OWN ".cordon-patch"

/* `path` as spelled in a patch, relative to `root` (clean, absolute) and clean: "a/b". Absolute
 * paths have to lie below `root`. ERR_FORBIDDEN for ".." anywhere, for what lies elsewhere, and for
 * names of our own; ERR_INVALID for what cannot be a file. NULL on failure; caller frees. */
char *names_below(const char *root, const char *path, struct err *err);

/* Relative and clean, as names_below() makes them. */
bool names_are_clean(const char *path);

/* Both relative and clean: `path` is `folder` or lies below it. */
bool names_within(const char *path, const char *folder);
