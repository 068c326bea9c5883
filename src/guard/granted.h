/* What somebody said yes to, done on behalf of the caller. */
#pragma once

#include "guard/object.h"

/* What the call does with its `objects` (one or two, as judge.c found them) can be done by us: nothing
 * but regular files is opened, no privilege is given, nothing is moved that an entry is about. */
bool granted_can(const struct request *request, struct object *const objects[2]);

/* Does it, in the directories as the host has them. CONTINUE: it could not be done. */
struct answer granted_do(const struct request *request, struct object *const objects[2]);
