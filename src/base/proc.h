/* What the kernel tells of other processes in /proc, proc(5). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* 0: it is the first process here, or its parent is in another pid namespace; -1: it has ended, or
 * cannot be seen. */
pid_t proc_parent(pid_t pid);

/* Its argv[0] is exactly `name` (at most 63 bytes). False also when it cannot be seen. */
bool proc_is_named(pid_t pid, const char *name);
