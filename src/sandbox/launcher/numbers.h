/* The numbers of processes in the new pid namespace. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* They begin somewhere else in each pid namespace: those in files that an earlier command has left
 * (postmaster.pid, a swap file of vim) would all name living ones. Where the kernel does not let us they
 * begin at 2. */
bool numbers_begin(unsigned first, unsigned range);

/* As many processes and threads as the namespace has numbers for, of root's, too. They begin above those that
 * the kernel gives out once only, or none of these would count; the init has its own. Whether the setting is
 * the namespace's, and not the host's, is known to who made the plan. */
int numbers_limit(uint64_t processes, struct err *err);
