/* Writing to a pipe without a reader raises SIGPIPE, whose disposition belongs to the host
 * program. Between these two it is held back, and taken away when it was ours. */
#pragma once

#include <signal.h>
#include <stdbool.h>

struct quiet {
    sigset_t before;
    bool was_pending;
};

void quiet_begin(struct quiet *quiet);
void quiet_end(const struct quiet *quiet); /* keeps errno */
