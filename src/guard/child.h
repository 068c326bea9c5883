/* Children of the guard, for what takes long or needs another view of the file system. */
#pragma once

#include "guard/guard.h"

enum { CHILD_FDS_MAX = 6 };

/* As fork(2), -1 without a child. The child has nothing open but these descriptors (-1: none), and
 * dies with the guard. */
pid_t child_fork(const int *fds, size_t fds_len);

/* Makes calls that wait end with EINTR, again and again, until this is called with 0. */
void child_interrupt_every(long milliseconds);

/* The child works on for `request`, and answers it. false: too many do. */
bool child_remember(const struct request *request, pid_t child);
bool child_has_room(const struct request *request);

/* Ends all of them. */
void children_end(struct command *command);
