/* Where nothing is mounted (GUARD_MAP_ALONE): the kernel lets nobody write in a directory above something that is
 * narrower, and changes no mode, owner or time anywhere. What the profile allows of that is done here. */
#pragma once

#include "guard/place.h"

static inline bool alone_is(const struct request *request)
{
    return request->command->map.header->flags & GUARD_MAP_ALONE;
}

/* After perform(), of what that leaves to the kernel. */
struct answer alone_do(const struct request *request);

/* The name may go, move, or come to be by a move: it is no entry of the profile's, none lies below it, and it may be
 * written to. */
bool alone_may_move(const struct request *request, struct place *place);

/* What is open (by its path alone, too) has been found by a name that may be written to. */
bool alone_may_link(const struct request *request, int fd);
