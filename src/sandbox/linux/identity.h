/* Which ids a user namespace maps, of those that its maker has. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

/* The caller's own user and group, and nothing else. */
struct identity {
    char uid_map[40];
    char gid_map[40];
    bool is_root;
};

void identity_init(struct identity *identity);

/* In the new namespace, for its first process itself. System calls only. */
int identity_map(const struct identity *identity, struct err *err);

/* Every id that we have here as itself, for the first process `pid` of a new namespace that is below ours; root's alone. */
int identity_map_all(pid_t pid, struct err *err);
