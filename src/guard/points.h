/* Watchpoints: denied places of a command that are covered by a FUSE file system, which we answer
 * for, so that whoever looks into one is seen, and can be held until somebody has said yes or no. */
#pragma once

#include "guard/guard.h"

/* Takes a watchpoint over, with all descriptors. false: it is none. */
bool points_add(struct command *command, const struct guard_order *order,
                const int fds[GUARD_WATCHPOINT_FDS]);

/* Readable when points_serve() has something to do; -1 as long as there is no watchpoint. */
int points_events(const struct command *command);

/* Answers one request. */
void points_serve(struct command *command);

/* A yes uncovers the place for the rest of the command. false: the question is none of these. */
bool points_answer(struct command *command, uint64_t id, enum guard_verdict verdict);

/* The path lies in a place with a watchpoint, or with one that was taken away. */
bool points_has(const struct command *command, const char *path);

/* The command is over. */
void points_end(struct command *command);
