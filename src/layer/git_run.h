/* git, as the user has it, run for us and waited for. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

#include <stdbool.h>

struct git_call {
    const char *git_dir;     /* absolute */
    const char *const *argv; /* behind "git" and what is always said; NULL-terminated */
    bool is_ours; /* a repository of our own making: nobody's configuration counts but its own */
};

/* Whatever the repository says, no hook is run, nothing is tidied up in the background, no submodule is entered and no
 * object is replaced. `ret` gets what it says on stdout. ERR_FORBIDDEN with git's own words when it refuses;
 * ERR_NOT_FOUND when there is no git. */
int git_run(const struct git_call *call, struct buf *ret, struct err *err);
