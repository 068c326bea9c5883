/* The environment of a command as a client describes it. */
#pragma once

#include "base/strv.h"

#include <jansson.h>

struct config;
struct environment_report;

/* `policy` is envPolicy, or NULL: then `env` is all there is. Both are checked. `ret` is complete
 * and ordered as it came; two names never get into it, nor do Cordon's own secrets. */
void start_env_build(const json_t *policy, const json_t *env, struct strv *ret);

/* For calls of ours, where both may be missing: without a policy of the client's, that of the
 * server's configuration counts (NULL: there is none). */
void start_env_for_call(const json_t *policy, const json_t *env, const struct config *config,
                        struct strv *ret);

/* What the server's configuration gives alone, and, unless NULL, what it leaves out and why. */
void start_env_own(const struct config *config, struct strv *ret,
                   struct environment_report *report);

/* The variables by which programs are told of the proxy in the command's own network, in place of those that are there. */
void start_env_add_proxy(bool has_socks, bool allows_local_binding, struct strv *env);
