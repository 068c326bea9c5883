/* Where a process comes from. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* `pid` (as seen from here) is a command of Cordon's, or was started by one at any depth: this
 * process is above it, or a launcher is, whoever's. true also when that cannot be found out: it has
 * ended, or is not to be seen. What is above this process itself does not count. */
bool ancestry_is_command(pid_t pid);
