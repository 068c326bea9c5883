/* What session/exec executes when that is not the shell on the text of the call: the program that
 * applies a patch, or a shell that need not log in again. */
#pragma once

#include "base/strv.h"
#include "job/model_calls.h"
#include "patch/call.h"

#include <jansson.h>

struct call;
struct place;

enum { SESSION_HELPER_WORDS = 4 };

/* What the stand-in of an exec borrows from while it is started. Zeroed is valid. */
struct session_stand_in {
    struct patch_call patch;
    char *cwd; /* of the patch */
    char *helper[SESSION_HELPER_WORDS];
    struct strv argv;
    struct strv env;
    struct unified_stand_in unified;
};

/* Looks at the command of `exec` and changes what it runs, and with what. `base`: its environment
 * without what the call itself sets. ERR_INVALID for a patch without the word apply_patch, and what
 * else keeps a patch from being applied. */
int session_stand_in_init(struct session_stand_in *stand_in, const struct call *call,
                          const json_t *params, struct place *place, char *const *base,
                          struct unified_exec *exec, struct err *err);
void session_stand_in_done(struct session_stand_in *stand_in);
