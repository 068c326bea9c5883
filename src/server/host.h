/* This host: the directories of its user and of Codex, and what clients are told about it. */
#pragma once

#include "base/err.h"

#include <jansson.h>

/* $HOME, or what the account says, or "/"; clean. Caller frees. */
char *host_home(void);

#define HOST_CODEX_SYSTEM "/etc/codex" /* for all users */

/* $CODEX_HOME, or .codex in the user's home directory; clean. Caller frees. */
char *host_codex_home(void);

/* As host_codex_home(), but one that $CODEX_HOME names has to be a directory, and comes without
 * links. NULL on failure. */
char *host_codex_find(struct err *err);

/* The result of environment/info, which initialize gives, too: what a client has to know about this
 * host before it starts anything. A capability is true when the method or field behind it is there
 * and does what its name says; a client does without the others. New reference. */
json_t *host_info(void);
