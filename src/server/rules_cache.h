/* The rules that hold for clients' commands: those of this host's user; and those of the last call
 * of session/exec, so that files that have not changed are not read for every command. */
#pragma once

#include "workspace/rule_layers.h"

#include <stdbool.h>

struct rules;
struct server;
struct workspace;

/* Zeroed it is empty. */
struct rules_cache {
    struct rules *rules;
    char *signature; /* of the files that they are made of */
    bool is_settled; /* a change of these files would show in a signature */
};

/* As rule_layers_load(), which it is whenever anything about the files may have changed. Borrowed
 * until the next call. */
const struct rules *rules_cache_get(struct rules_cache *cache, const struct rule_owner *owner,
                                    const char *dir);
void rules_cache_done(struct rules_cache *cache);

/* Whose rules the commands have to keep that a client starts: those of this host's user, whatever
 * the client says. Borrows from the configuration. */
struct rule_owner server_rule_owner(const struct server *server);

/* Whose project a command belongs to: a model chooses the directory, so that counts only where the
 * client vouches for it, as a root of the workspace. Borrowed from `cwd`, or static. */
const char *server_rules_dir(const struct workspace *workspace, const char *cwd);
