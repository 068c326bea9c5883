/* The environment of a command as a client describes it (spec/exec-server.md 5.1). */
#pragma once

#include "base/strv.h"

#include <jansson.h>

struct config;

/* `policy` is envPolicy, or null: then `env` is all there is. Both are checked. `ret` is complete
 * and ordered as it came; two names never get into it, nor do Cordon's own secrets. */
void start_env_build(const json_t *policy, const json_t *env, struct strv *ret);

/* For calls of ours, whose `envPolicy` and `env` may be missing: without a policy of the client's,
 * that of the server's configuration counts (NULL: there is none). */
void start_env_for_call(const json_t *params, const struct config *config, struct strv *ret);
