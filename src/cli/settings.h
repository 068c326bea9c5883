/* What the options, the config file and this host come to: the workspace of the command, and who is
 * asked. `run` uses it, `explain` prints it.
 */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "cli/config_file.h"
#include "policy/config/approval.h"
#include "workspace/workspace.h"

struct policy_options;

struct settings {
    struct config_file file;
    struct workspaces *workspaces;
    struct workspace *workspace; /* of the command; not open yet */
    struct approval_policy approval;
    const char *approval_from; /* who chose it; NULL: no policy was chosen, so no question is asked,
                                  and of the rules only those that forbid count; borrowed */
    struct strv warnings;      /* lines for the person */
};

/* ERR_INVALID also for options that contradict each other. settings_done() by the caller. */
int settings_init(struct settings *ret, const struct policy_options *options, struct err *err);
void settings_done(struct settings *settings); /* nothing runs in its workspaces any more */
