/* Whether something outside listens at a port that was refused inside: then a command may mean that one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct command;

/* TCP on the host's localhost. Looked at once for each port of a command, and for some ports alone. */
bool listening_outside(struct command *command, uint16_t port);
