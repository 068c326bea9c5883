/* Binding Unix sockets to a path, and which sockets were bound so. */
#pragma once

#include "guard/socket.h"

/* The answer to a bind(2) of the caller's socket, of which `copy` is a copy, to this path. */
struct answer bind_path(const struct request *request, int copy, const struct address *address);

/* It was bound by a command with the same map, under this guard. */
bool bind_is_known(struct command *command, const struct identity *identity);

/* Lets go of what lies in the command's own file systems. */
void bind_forget(const struct command *command);
