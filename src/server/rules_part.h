/* Whose rules the commands have to keep that a client starts: those of this host's user, whatever
 * the client says. */
#pragma once

#include "engine/rule_layers.h"
#include "server/server.h"

static inline struct rule_owner rules_part_owner(const struct server *server)
{
    return (struct rule_owner){
        .config = server->config.file,
        .folder = server->config.folder,
        .home = server->config.home,
    };
}
