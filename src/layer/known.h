/* The stamps that accepting, and taking that back, has left on real paths: whoever finds one unchanged knows that nobody
 * else was there. In the layer's folder, as "known". */
#pragma once

#include "base/err.h"
#include "layer/change.h"

#include <stddef.h>

struct known;

/* Never NULL; of a layer that has none, and on failure, it is empty: then there are more conflicts, not less. */
struct known *known_load(const struct layer *layer);
void known_free(struct known *known);

/* Borrowed, until known_note(); NULL: nothing was left there. Mode 0: we removed it. */
const struct change_stamp *known_find(const struct known *known, size_t root, const char *path);

/* Replaces what was noted of the path. */
void known_note(struct known *known, size_t root, const char *path,
                const struct change_stamp *stamp);

/* As one file, whole or not at all. */
int known_save(struct known *known, const struct layer *layer, struct err *err);
