/* The values that decide who is asked before a command runs: the approval policy, what holds the
 * command, and what its caller wants beyond that. Source of words and meanings: spec/exec-core.md
 * 4.3 to 4.8. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct access_map;
struct profile;

/* --- who wants to be asked --- */

enum approval_mode {
    APPROVAL_ON_REQUEST, /* only when a command wants out of its sandbox; the default */
    APPROVAL_UNTRUSTED,  /* always, except for what is known to be harmless */
    APPROVAL_GRANULAR,   /* as on-request, but kinds of questions are switched off */
    APPROVAL_NEVER,      /* what would have to be asked is refused */
};

/* The questions that granular may have; the wire names are in the comments. */
enum approval_question {
    APPROVAL_QUESTION_SANDBOX = 1 << 0,     /* sandbox_approval */
    APPROVAL_QUESTION_RULES = 1 << 1,       /* rules */
    APPROVAL_QUESTION_SKILLS = 1 << 2,      /* skill_approval */
    APPROVAL_QUESTION_PERMISSIONS = 1 << 3, /* request_permissions */
    APPROVAL_QUESTION_MCP = 1 << 4,         /* mcp_elicitations */
    APPROVAL_QUESTIONS_ALL = (1 << 5) - 1,
};

struct approval_policy {
    enum approval_mode mode;
    unsigned questions; /* of enum approval_question; only read when granular */
};

/* "untrusted", "on-request", "never", "granular" (with every question), and "on-failure", which
 * means on-request. ERR_INVALID lists the words. */
int approval_policy_parse(const char *word, struct approval_policy *ret, struct err *err);
const char *approval_mode_name(enum approval_mode mode);

/* --- what holds the command --- */

enum confinement {
    CONFINEMENT_SANDBOX,      /* a restricted profile, and a sandbox that keeps it */
    CONFINEMENT_DENIED_READS, /* the same with paths that must not be read: only the sandbox keeps
                                 them secret, so nothing ever runs without it */
    CONFINEMENT_NONE,         /* the profile does not restrict files */
    CONFINEMENT_EXTERNAL,     /* somebody else isolates the files */
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
