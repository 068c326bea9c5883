/* A child process by a vfork-style clone: it runs in our memory, on a stack of its own, while we wait
 * until it executes something or exits. So it costs the same from a caller of 5 or 500 MiB, and what
 * fails in it is simply written to the caller's memory.
 *
 * It uses system calls only, and touches nothing but its argument. All signals are to be blocked
 * around it: a handler of the caller's must not run in it. */
#pragma once

#include <sys/types.h>

/* What runs on a stack that AddressSanitizer does not know as one. */
#define ON_OWN_STACK __attribute__((no_sanitize_address))

/* Runs `child` (ON_OWN_STACK), with CLONE_* `flags`. The process has no exit signal, so that a host's
 * SIGCHLD handling never sees it: wait with __WALL. -1 with errno. */
pid_t clone_child(int (*child)(void *), void *argument, unsigned flags, int *ret_pidfd);

/* The same from within such a child, on what is left of its stack. */
pid_t clone_grandchild(int (*child)(void *), void *argument, unsigned flags, int *ret_pidfd);

/* The same, but we go on, with `meanwhile`, until the child has ended, and wait for that: it has to wait for us as long as that
 * takes, because even errno is one for both. -1 with errno when there is no child. */
int clone_child_beside(int (*child)(void *), void *argument, unsigned flags,
                       void (*meanwhile)(void *argument, pid_t child));
