/* Whether somebody outside listens at a port that was refused inside: then a command may mean that one. */
#pragma once

#include <stdint.h>

struct command;

enum listening {
    LISTENING_NOBODY,
    LISTENING_HOST,    /* on its localhost */
    LISTENING_COMMAND, /* another one, on its own localhost */
};

/* TCP. Looked at once for each port of a command, and for some ports alone; else nobody. */
enum listening listening_outside(struct command *command, uint16_t port);
