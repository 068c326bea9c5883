/* The `sandbox` object of a call, read: a profile, its roots, and how strictly it is meant. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "policy/profile.h"
#include "rpc/message.h"
#include "sandbox/sandbox.h"

#include <jansson.h>

struct sandbox_request {
    struct profile profile;
    struct strv roots; /* of the workspace: absolute, clean */
    enum sandbox_mode mode;
    const char *type; /* sandboxType as the client's generation spells it; static */
};

void sandbox_request_done(struct sandbox_request *request);

/* `object` is not null. `cwd` (may be NULL) is what project roots mean where nothing else says it.
 * `*ret_code` is the code for the wire of a failure. */
int sandbox_request_read(const json_t *object, const char *cwd, struct sandbox_request *ret,
                         enum rpc_code *ret_code, struct err *err);
