/* A policy of the host that outlives the call which it came with. */
#pragma once

#include "base/strv.h"
#include "cordon.h"

/* Zeroed is valid. */
struct policy_copy {
    struct cordon_policy policy; /* borrows from the rest */
    char *profile;
    char *workspace;
    struct strv writable;
    struct strv readable;
    struct strv deny;
};

/* `from` as options_read() gave it; `workspace` in place of its own. */
void policy_copy_init(struct policy_copy *ret, const struct cordon_policy *from,
                      const char *workspace);
void policy_copy_done(struct policy_copy *copy);
