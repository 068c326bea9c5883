/* What git writes in a repository that the profile opens for commits (GUARD_ENTRY_GIT), done on behalf: the
 * kernel refuses all of it. */
#pragma once

#include "guard/object.h"

/* The entry that decides about the path is such a repository. */
bool git_has(const struct command *command, const char *path);

/* The profile allows it, and yet the kernel refuses it, so that it is done here: writing where a repository may
 * come to be, and removing a linked worktree. `entry` of the object has been found. */
bool git_is_left(const struct request *request, const struct object *object);

/* What the call does with its `objects` (judge.c) is what git does there, or touches nothing there that is
 * denied. */
bool git_allows(const struct request *request, struct object *const objects[2]);

/* Does it. CONTINUE: it was not done. */
struct answer git_do(const struct request *request, struct object *const objects[2]);

void git_end(struct command *command);
