/* After a denial, as Codex decides it: under on-request a command is not run again by itself, since its
 * caller may ask for more, knowing what it wants; a patch is. Only who has asked for yes_means_unsandboxed
 * gets this (executor/execution_decision.c). */
#include "approval/requirement.h"

static bool may_leave_sandbox(const struct retry_request *request)
{
    switch (request->policy.mode) {
    case APPROVAL_UNTRUSTED:
        return true;
    case APPROVAL_ON_REQUEST:
        return request->tool == RETRY_PATCH;
    case APPROVAL_GRANULAR:
        return request->policy.questions & APPROVAL_QUESTION_SANDBOX;
    case APPROVAL_NEVER:
    default:
        return false;
    }
}

enum retry_outcome requirement_retry(const struct retry_request *request)
{
    if (!may_leave_sandbox(request) || confinement_denies_reads(request->confinement))
        return RETRY_NO;
    return request->was_approved ? RETRY_YES : RETRY_ASK;
}
