/* The calls of one command: taken from its listener, answered. */
#pragma once

#include "guard/guard.h"

/* A command with the descriptors of enum guard_descriptor, which are taken over. `flags`: enum guard_hello_flag. NULL: the
 * map is not one. */
struct command *command_new(const int fds[GUARD_FDS], uint32_t flags);
void command_free(struct command *command);

/* Reads one order from the channel: the launcher's, or the host's. false when the channel has ended. */
bool command_read_channel(struct command *command);

/* Readable when command_look() has something to see; -1: never. */
int command_ends(const struct command *command);

/* A caller that waits for an answer has ended. */
void command_look(struct command *command);

/* Takes one call and answers it. false when no process of the command is left. */
bool command_serve(struct command *command);
