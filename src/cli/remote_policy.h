/* The options of a struct policy_options as a sandbox of our own protocol takes them (docs/protocol.md, "The sandbox object"): for
 * who runs commands at a server, in another process or in this one. */
#pragma once

#include "base/err.h"
#include "base/strv.h"

#include <jansson.h>

struct client_run;
struct policy_options;

/* Lists that the result borrows from; zeroed at first. */
struct remote_policy {
    struct strv deny;
    struct strv readable;
    struct strv writable;
    struct strv protect;
};

/* Fills in what the options say of the sandbox, and no other member; borrows from both. */
void remote_policy_take(const struct policy_options *policy, struct remote_policy *lists,
                        struct client_run *ret);
void remote_policy_done(struct remote_policy *lists);

/* All of it as JSON, with this directory as the workspace: a new reference, NULL on failure. */
json_t *remote_policy_sandbox(const struct policy_options *policy, const char *workspace,
                              struct err *err);
