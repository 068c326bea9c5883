/* `error.data` of a call that would have gone beyond a limit, for programs: {"reason", ...}. What
 * clients of the original read, code and message, stays as it is. The reasons are listed in
 * schema/intro.md, "Limits". */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct job;

/* {"reason": R, "limit": N}, to which others may be added; new reference. */
json_t *limit_data(const char *reason, size_t limit);

/* {"reason": "input-full", "limit", "pendingBytes"}: a write that is larger than the rest is taken
 * once the command has read. New reference. */
json_t *limit_data_of_input(const struct job *job);

/* {"reason": R, "errno": "EMFILE"} of what the system has run out of; NULL for any other error of
 * its. New reference. */
json_t *limit_data_of_errno(int error);
