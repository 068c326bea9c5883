/* Creation, renaming and linking on behalf of the caller. */
#pragma once

#include "guard/guard.h"

/* The answer to a call that may create a name; CONTINUE for what is not for us to do. */
struct answer perform(const struct request *request);
