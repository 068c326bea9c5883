/* What overlayfs has noted of what is in a step, in attributes. */
#pragma once

#include <stdbool.h>

/* A directory that hides all that older steps and the real files have there: that of the name in the directory `dir`, a
 * descriptor of any kind; NULL: `dir` itself. */
bool overlaid_is_opaque(int dir, const char *name);

/* -1 with errno. */
int overlaid_set_opaque(int dir, const char *name);
int overlaid_clear_opaque(int dir);

/* It came from an older step, or the real files. */
bool overlaid_is_copy(int dir, const char *name);
