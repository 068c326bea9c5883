/* Who decided that something was refused, and what would allow it. Internal to denial. Pure. */
#pragma once

#include "denial/denial.h"

#define DNS_PORT 53 /* RFC 1035, 4.2 */

/* Fills `source`, `origin` and `remedy` from what the map says about the rest. `entry` is the one that
 * is known to have decided; NULL: the map is asked. */
void denial_decide(struct denial *denial, const struct access_map *access,
                   const struct access_entry *entry);

/* What the map has to say of a path, for the operation to be allowed. */
enum access denial_needed(enum denial_operation operation);
