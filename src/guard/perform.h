/* Creation, renaming and linking on behalf of the caller. */
#pragma once

#include "guard/guard.h"

/* The answer to a call that may create a name; CONTINUE for what is not for us to do. */
struct answer perform(const struct request *request);

/* umask(2) was called, and will be done by the kernel. */
void perform_umask(const struct request *request);
