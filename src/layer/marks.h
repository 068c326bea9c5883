/* Why somebody should look at a change before it is accepted: pure, but for nothing. */
#pragma once

#include "base/strv.h"
#include "layer/change.h"

/* Fills in `marks` and `run_by` of a change. `target` is what the layer's link says; NULL: it is none.
 * `is_protected`: marks_protected() of its path. */
void marks_of(struct change *change, const char *target, bool is_protected);

/* Whether one of the names in the path is in the sorted list, as protect_all_names() gives it. */
bool marks_protected(const char *path, const struct strv *names);
