/* What `cordon mcp install` and `cordon integrate` have in common: which clients are here, and one entry of one of them
 * written, shown or taken out, with what is said about it. */
#pragma once

#include "cli/settings.h"
#include "setup/clients.h"

#include <stdbool.h>

struct client_options {
    bool prints; /* shows it, and writes nothing */
    bool undoes;
    bool wants_json;
};

/* ERR_INVALID for a client that is not known, and for options that contradict each other or need one. */
int client_options_check(const struct client_options *options, const char *command,
                         const char *name, struct err *err);

struct client_setup {
    struct client_places places;
    char *home;
    char *project;
    char *cordon;
    char *link;
};

/* Finds the places. ERR_FORBIDDEN when the program lies where commands with these permissions could put another in its
 * place, and what was written would start that outside; also when the permissions cannot be had. With NULL it may lie
 * anywhere: nothing is to be written, or what takes an entry out. */
int client_setup_init(struct client_setup *setup, bool is_project,
                      const struct policy_options *policy, struct err *err);
void client_setup_done(struct client_setup *setup);

/* Whether it is on this machine: its program on PATH (`*ret`, the caller frees), or a folder of its own. */
bool client_is_here(const struct client *client, const struct client_setup *setup, char **ret);

/* Does it, and tells; an exit status. `more` (NULL: nothing) is said behind an entry that was written. */
int client_setup_apply(const struct client *client, const struct entry *entry,
                       const struct client_options *options, const char *more);

/* One client of a list, and what would be done for it: a line for people, an object for programs. `entry` NULL: nothing
 * can be, which `why` says. */
struct json_t *client_setup_tell(const struct client *client, const struct client_setup *setup,
                                 const struct entry *entry, const char *why, struct buf *text);
