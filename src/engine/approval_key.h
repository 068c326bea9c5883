/* Under which text a yes for the session is remembered: spec/exec-core.md 4.7. Pure. */
#pragma once

#include "engine/approval_policy.h"

struct profile_overlay;

/* The command and what surrounds it. */
struct approval_call {
    char *const *argv;
    const char *cwd;
    enum sandbox_permissions permissions;
    const struct profile_overlay *additional; /* NULL: none */
};

/* JSON text, equal for calls that are the same: their command (a shell that runs a single plain
 * command counts as that command; one with any other script as that script, whichever shell it is),
 * folder, and permissions. Caller frees. */
char *approval_key(const struct approval_call *call);
