/* Pseudo-terminals: what a command gets instead of the user's own terminal. */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct termios;

/* In characters; 0 rows or columns mean the default. */
struct pty_size {
    uint16_t rows;
    uint16_t columns;
};

#define PTY_DEFAULT_ROWS 24
#define PTY_DEFAULT_COLUMNS 80

struct pty {
    int master; /* non-blocking; owned */
    int slave;  /* owned */
};

/* Opens a pair; both ends are close-on-exec and never become a controlling terminal by being
 * opened. The line settings are copied from `like`, or are the kernel's plus UTF-8 input when it
 * is NULL. */
int pty_open(struct pty_size size, const struct termios *like, struct pty *ret, struct err *err);
void pty_close(struct pty *pty); /* safe on a closed one */
void pty_close_slave(struct pty *pty);

/* The kernel sends SIGWINCH to the foreground group when the size changes. */
int pty_resize(const struct pty *pty, struct pty_size size, struct err *err);

/* Sends SIGINT, SIGQUIT or SIGTSTP to the foreground process group of the terminal. */
int pty_signal(const struct pty *pty, int signal, struct err *err);

/* The byte that means "end of input" to the line discipline now (Ctrl-D as a rule). */
char pty_eof_byte(const struct pty *pty);
