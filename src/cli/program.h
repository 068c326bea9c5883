/* Programs of ours that are not on the user's PATH. */
#pragma once

#include "base/err.h"

/* Executes the program of this name, with these arguments: the one beside the running program, or
 * the one in the libexec folder. Returns -1 when that fails, and else never. */
int program_exec(const char *name, char *const *argv, struct err *err);
