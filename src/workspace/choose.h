/* What a request makes of a new workspace: its profile with all that was asked for beside it, where
 * both come from, mode, topics and roots. */
#pragma once

#include "workspace/workspace.h"

int workspace_choose(struct workspace *workspace, const struct workspaces_options *owner,
                     const struct workspace_request *request, struct err *err);
