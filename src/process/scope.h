/* A scope of systemd's around one command, by the helper cordon-scope, which alone knows D-Bus: what
 * talks to it takes longer to load than a command to start. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

struct cgroup_limits;

#define SCOPE_NAME "cordon-%d.scope" /* by the pid of the helper */

struct scope {
    pid_t pid; /* of the helper, which is in the scope, too; 0: none */
    int held;  /* what it waits for the end of; -1 */
};

/* Waits until systemd has moved `launcher` and the helper into a new scope with these limits; for two
 * seconds at most. scope_end() also after a failure. */
int scope_start(struct scope *scope, pid_t launcher, const struct cgroup_limits *limits,
                struct err *err);

/* The helper leaves, and with the last process the scope goes. */
void scope_end(struct scope *scope);
