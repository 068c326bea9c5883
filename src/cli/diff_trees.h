/* The two sides of changes as trees on the disk, for programs that compare such. */
#pragma once

#include "layer/change.h"
#include "layer/layer.h"

/* Runs git diff with these options on what changed; an exit status. Changes come without renames: git finds its own. */
int diff_by_git(const struct layer *layer, const struct changes *changes, char *const *options);
