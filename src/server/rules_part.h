/* Whose rules the commands have to keep that a client starts: those of this host's user, whatever
 * the client says. */
#pragma once

#include "server/sandbox_request.h"
#include "server/server.h"
#include "workspace/rule_layers.h"

static inline struct rule_owner rules_part_owner(const struct server *server)
{
    return (struct rule_owner){
        .config = server->config.file,
        .folder = server->config.dir,
        .home = server->config.home,
    };
}

/* Whose project a command belongs to: a model chooses the directory, so that counts only where the
 * client vouches for it, as a root of the workspace. Borrowed from `cwd`, or static. */
static inline const char *rules_part_dir(const struct workspace *workspace, const char *cwd)
{
    return workspace_has_root(workspace, cwd) ? cwd : "/";
}
