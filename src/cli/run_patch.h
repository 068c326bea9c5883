/* A command of `cordon run` that is a patch (patch/call.h): applied by the inner half of `cordon
 * patch`, in the sandbox of the run, with an empty environment. */
#pragma once

#include "base/err.h"
#include "patch/call.h"

#include <limits.h>
#include <stdbool.h>

struct execution_options;
struct oneshot_options;
struct oneshot_result;

enum { RUN_PATCH_WORDS = 4 };

/* Zeroed it is none. */
struct run_patch {
    struct patch_call call;
    char *cwd; /* where it is applied: absolute */
    char *helper[RUN_PATCH_WORDS];
    char program[PATH_MAX];
};

/* Looks at the command, which is to be run in `folder`. ERR_INVALID for a patch without the word
 * apply_patch, and for a `cd` to a folder that is not there. */
int run_patch_init(struct run_patch *patch, char *const *argv, const char *folder, struct err *err);
void run_patch_done(struct run_patch *patch);

static inline bool run_patch_is_one(const struct run_patch *patch)
{
    return patch->call.kind == PATCH_CALL_PATCH;
}

/* Has the helper run in place of the command, and feeds it; nothing when it is no patch. */
void run_patch_fill(struct run_patch *patch, struct execution_options *execution,
                    struct oneshot_options *job);

/* Says what is to be done when the helper was ended on its way. */
void run_patch_report(const struct run_patch *patch, const struct oneshot_result *result);
