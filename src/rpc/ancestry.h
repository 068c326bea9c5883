/* Where a process comes from. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* This process started `pid`, or what started that, at any depth; `pid` as seen from here. true
 * also when that cannot be found out: it has ended, or is not to be seen. */
bool ancestry_is_ours(pid_t pid);
