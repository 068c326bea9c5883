/* How two texts differ, by lines. Pure. */
#pragma once

#include "base/err.h"
#include "patch/changes.h"

/* Appends a difference, which joins the last one when it touches it. */
void edits_add(struct edits *edits, struct edit edit);
void edits_done(struct edits *edits);

/* The one edit between two texts whose equal lines at both ends are left out. ERR_LIMIT for too
 * many lines. */
int edits_between(const struct content *before, const struct content *after, struct edits *ret,
                  struct err *err);
