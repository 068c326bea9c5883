/* The values that decide who is asked before a command runs, besides the approval policy itself
 * (policy/config/approval.h): what holds the command, and what its caller wants beyond that. The
 * words and their meanings are those of Codex. */
#pragma once

#include "base/err.h"
#include "policy/config/approval.h"

#include <stdbool.h>

struct access_map;
struct profile;

/* --- what holds the command --- */

enum confinement {
    CONFINEMENT_SANDBOX,      /* a restricted profile, and a sandbox that keeps it */
    CONFINEMENT_DENIED_READS, /* the same with paths that must not be read: only the sandbox keeps
                                 them secret, so nothing ever runs without it */
    CONFINEMENT_NONE,         /* the profile does not restrict files */
    CONFINEMENT_EXTERNAL,     /* the files are isolated from outside */
    CONFINEMENT_MISSING,      /* a restricted profile, but no sandbox can be made on this host */
    CONFINEMENT_MISSING_DENIED_READS,
};

/* What the profile and its access map come to; `has_sandbox`: one can be made here. */
enum confinement confinement_of(const struct profile *profile, const struct access_map *access,
                                bool has_sandbox);

bool confinement_denies_reads(enum confinement confinement);

/* What the caller of a command wants beyond its profile; wire names in the comments. */
enum sandbox_permissions {
    SANDBOX_USE_DEFAULT,     /* use_default */
    SANDBOX_ESCALATED,       /* require_escalated: no sandbox */
    SANDBOX_WITH_ADDITIONAL, /* with_additional_permissions: in the sandbox, widened */
};

int sandbox_permissions_parse(const char *word, enum sandbox_permissions *ret, struct err *err);
const char *sandbox_permissions_name(enum sandbox_permissions permissions);
