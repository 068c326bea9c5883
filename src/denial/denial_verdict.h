/* Asks the access map what it has to do with a refusal, and what would allow it. Internal to exec;
 * denial.h is the interface. Pure. */
#pragma once

#include "denial/denial.h"
#include "denial/denial_line.h"

/* What a line speaks of; false when it is not worth telling (weak words that the profile does not
 * bear out). `ret` is owned by the caller then: denial_done(). `access` may not be NULL. */
bool denial_verdict(const struct denial_clue *clue, const struct access_map *access,
                    const char *cwd, struct denial *ret);

/* The same for one path and a known operation, as a fact; false when the profile allows it. */
bool denial_verdict_path(enum denial_operation operation, const char *path, int error,
                         const struct access_map *access, const char *cwd, struct denial *ret);

void denial_done(struct denial *denial);
