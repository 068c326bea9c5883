/* Which of the files that are gone are the ones that are new. */
#pragma once

#include "base/strv.h"
#include "layer/change.h"

/* Of the sorted list: an A and a D with the same contents, or with much the same lines, become one R. */
void changes_pair(const struct layer *layer, const struct strv *protected_names,
                  struct changes *changes);
