/* What session/exec runs. First the rules of this host's user: what they forbid, and what a broken
 * rules file might, is not started, and no one is asked. Then what is executed when that is not the
 * shell on the text of the call: the program that applies a patch, or a shell that need not log in
 * again. */
#pragma once

#include "base/strv.h"
#include "job/model_calls.h"
#include "patch/call.h"

#include <jansson.h>

struct call;
struct workspace;
struct model_exec;

/* Why the command is not to be started, in the words of exec/run, which is also written to the
 * audit log; NULL: nothing forbids it. Caller frees. To be asked before anything of it is run:
 * `exec` is that of the call, without a replacement. */
char *argv_rules_refusal(const struct call *call, char *const *argv, const char *cwd,
                         char *const *env, const struct workspace *workspace);
char *session_rules_refusal(const struct call *call, const struct model_exec *exec,
                            const struct workspace *workspace);

/* What the replacement of an exec borrows from while it is started. Zeroed is valid. */
struct session_replacement {
    struct patch_call patch;
    char *cwd; /* of the patch */
    struct strv helper;
    struct strv argv;
    struct strv env;
    struct model_replacement words;
};

/* Looks at the command of `exec` and changes what it runs, and with what. `base`: its environment
 * without what the call itself sets. ERR_INVALID for a patch without the word apply_patch, and what
 * else keeps a patch from being applied. */
int session_replacement_init(struct session_replacement *replacement, const struct call *call,
                             const json_t *params, struct workspace *workspace, char *const *base,
                             struct model_exec *exec, struct err *err);
void session_replacement_done(struct session_replacement *replacement);
