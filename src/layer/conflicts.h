/* Which changes of a list are conflicts. */
#pragma once

#include "base/err.h"
#include "layer/change.h"

/* Of the list, sorted and without renames: marks what conflict.h calls so, by what is real now and by what we left there
 * ourselves (known.h). */
int conflicts_mark(const struct layer *layer, struct changes *changes, struct err *err);
