/* What may be offered after a sandbox has denied something: spec/exec-core.md 4.2, steps 6 to 8,
 * and 4.4. Under on-request a command is not run again by itself: its caller may ask for more,
 * knowing what it wants; a patch is. */
#include "approval/requirement.h"

/* Table 4.4. */
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

/* A host can be asked about under on-request, too, when anything would be. */
static bool may_open_network(const struct retry_request *request)
{
    return request->flags & RETRY_NETWORK && request->policy.mode == APPROVAL_ON_REQUEST &&
           requirement_default(&request->policy, request->confinement) == REQUIREMENT_ASK;
}

enum retry_outcome requirement_retry(const struct retry_request *request,
                                     enum requirement_place *ret_place)
{
    bool keeps_sandbox = confinement_denies_reads(request->confinement);
    bool is_network = request->flags & RETRY_NETWORK;

    if (!may_leave_sandbox(request) && !may_open_network(request))
        return RETRY_NO;
    if (keeps_sandbox && !is_network)
        return RETRY_NO;
    *ret_place = keeps_sandbox ? REQUIREMENT_SANDBOXED : REQUIREMENT_UNCONFINED;
    return request->flags & RETRY_APPROVED && !is_network ? RETRY_YES : RETRY_ASK;
}
