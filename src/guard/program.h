/* The program that an exec is about, and how it is called. */
#pragma once

#include "guard/guard.h"

/* A regular file that may be executed; in the view of the guard. */
bool program_is_executable(int dir, const char *name);

/* Its canonical path, as far as there is one, else the text; false when there is nothing that can be
 * executed. */
bool program_find(const struct request *request, char ret[PATH_MAX]);

/* Fills in the packet about it, which has the path already, all but kind and id; its length. `process`:
 * whose thread calls. */
size_t program_describe(const struct request *request, pid_t process, struct guard_fact *packet);
