/* Where the launcher program is. */
#pragma once

#include "base/err.h"

/* $CORDON_LINUX_SANDBOX_EXE, then beside the running program (and in the build tree), then the
 * libexec folder, then the running program itself if it is `cordon`. Absolute; the caller frees.
 * NULL when there is none. */
char *launcher_path(struct err *err);
