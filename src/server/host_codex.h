/* Where Codex keeps its files on this host. */
#pragma once

#include "base/err.h"

#define HOST_CODEX_SYSTEM "/etc/codex" /* for all users */

/* $CODEX_HOME, or .codex in the user's home folder; clean. Caller frees. */
char *host_codex_home(void);

/* As host_codex_home(), but one that $CODEX_HOME names has to be a folder, and comes without links.
 * NULL on failure. */
char *host_codex_find(struct err *err);
