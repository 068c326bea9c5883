/* Under which texts a yes for the session is remembered: spec/exec-core.md 4.7. Pure. */
#pragma once

#include "approval/approval_policy.h"

struct profile_overlay;
struct strv;

/* Nobody reads the names of more; and keys are compared with each other. */
enum { APPROVAL_FILES_MAX = 500 };

/* The command and what surrounds it. */
struct approval_call {
    char *const *argv;
    const char *cwd;
    enum sandbox_permissions permissions;
    const struct profile_overlay *additional; /* NULL: none */
    char *const *patched; /* NULL: it is a command. Else it is a patch of these files, absolute and
                             clean; none: it is not known of which */
};

/* The keys of the call, sorted: JSON texts. That of a command is equal for calls that are
 * the same: their command (a shell that runs a single plain command counts as that command; one
 * with any other script as that script, whichever shell it is), folder, and permissions. A patch
 * has one for each file, with the permissions, whatever it does to the file and wherever it is
 * applied; without a file, or with more than APPROVAL_FILES_MAX, it has none, so nothing is
 * remembered. `ret` is empty before. */
void approval_keys(const struct approval_call *call, struct strv *ret);
