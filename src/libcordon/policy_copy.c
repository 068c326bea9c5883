/* See policy_copy.h. */
#include "libcordon/policy_copy.h"

#include "base/alloc.h"

#include <stdlib.h>

static const char *const *copy_paths(const char *const *from, struct strv *ret)
{
    for (; from && *from; from++)
        strv_push(ret, *from);
    return (const char *const *)strv_view(ret);
}

void policy_copy_init(struct policy_copy *ret, const struct cordon_policy *from,
                      const char *workspace)
{
    *ret = (struct policy_copy){.policy = *from};
    ret->policy.size = sizeof ret->policy;
    ret->policy.profile = ret->profile = alloc_str(from->profile);
    ret->policy.workspace = ret->workspace = alloc_str(workspace);
    ret->policy.writable = copy_paths(from->writable, &ret->writable);
    ret->policy.readable = copy_paths(from->readable, &ret->readable);
    ret->policy.deny = copy_paths(from->deny, &ret->deny);
}

void policy_copy_done(struct policy_copy *copy)
{
    free(copy->profile);
    free(copy->workspace);
    strv_done(&copy->writable);
    strv_done(&copy->readable);
    strv_done(&copy->deny);
}
