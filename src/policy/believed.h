/* What other programs run or believe, outside of every sandbox. Nobody is asked about it in passing, no hint proposes
 * it, and no profile that is learnt has it: who wants it opened has to say so. Pure. */
#pragma once

#include <stdbool.h>

/* A protected name (of a `.git` hooks and settings), hooks, or, in `home` (NULL: not known), what shells, sessions,
 * git and tools read, and where programs are found; or such a thing is below it. */
bool place_is_believed(const char *path, const char *home);

/* It is not believed, nor one of the system's programs and of what logins, shells and timers read, nor is
 * one of these below it. */
bool place_may_be_opened(const char *path, const char *home);
