/* A process whose program runs outside of the sandbox in its place: it becomes a stub, which passes on
 * the signals that it gets and ends as that one does. */
#pragma once

#include "guard/guard.h"

/* Signals that the stub passes on; a message of it is one of them, as an int. The guard's only message
 * is the wait status. */
enum { OUTSIDE_SIGNALS_MAX = 32 };

/* What the caller is to execute instead, as an open descriptor; -1 with errno. It stays the guard's. */
int outside_program(void);

/* Has the caller repeat its call as one that executes its descriptor `program`. In a child, which ends
 * with 0 or an errno; in that case the caller has had its answer. -1: none could be made. */
pid_t outside_move(const struct request *request, int program);

/* The caller repeats it. */
bool outside_is_move(const struct request *request, int program);

/* The caller is the stub, and asks for its socket. */
bool outside_is_stub(const struct request *request);

/* What the stub does. */
int outside_main(void);
