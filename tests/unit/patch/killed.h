/* A process that is killed with SIGKILL at a system call of its own (ptrace(2)). */
#pragma once

#include <stdbool.h>

/* What the file system can do. */
enum renames { RENAMES_ALL, RENAMES_PLAIN /* renameat2(2) knows no flags, as on NFS */ };

/* Runs `act` in a process of its own, which is killed before its `nth` system call is done, counted
 * from 1; 0: never. True when it came to its end, which has to be with what `act` returned 0. */
bool killed_run(int (*act)(const char *dir), const char *dir, enum renames renames, unsigned nth);
