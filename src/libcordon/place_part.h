/* What place.c and place_list.c share. */
#pragma once

#include "libcordon/place.h"

#include <stdbool.h>

/* Without a key, and in no list. NULL on failure. */
struct place *place_make_of(struct cordon_engine *engine, const struct cordon_policy *policy,
                            const char *workspace, struct err *err);

/* The policy still means on this host what the place was made for. Also false when that cannot be
 * told any more: making it anew then says why. */
bool place_is_current(const struct place *place);
