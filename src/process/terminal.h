/* The user's own terminal while a command runs on a PTY: raw, so that every key goes to the
 * command, and put back on every way out of the program (return, exit, deadly signal). */
#pragma once

#include "base/err.h"
#include "process/pty.h"

#include <termios.h>

struct terminal {
    int fd; /* borrowed; -1: none */
    struct termios saved;
};

/* The size of the terminal `fd`; both 0 when it is no terminal. */
struct pty_size terminal_size(int fd);

/* Remembers the settings of `fd` and switches it to raw. One terminal at a time per program. */
int terminal_raw(struct terminal *terminal, int fd, struct err *err);

/* Puts the settings back; safe on one that is not raw. */
void terminal_restore(struct terminal *terminal);
