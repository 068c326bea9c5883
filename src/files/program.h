/* Where the helper programs are. */
#pragma once

#include "base/err.h"

/* `name` ("cordon-files", "cordon-http") beside the running program (and in the build tree), then
 * in the libexec folder. Absolute; the caller frees. NULL when there is none. */
char *libexec_program(const char *name, struct err *err);
