/* Our terminal, or what else stdin is, while a process runs at the server. What comes in is passed on
 * one write at a time: the next bytes are read when the server has taken the last. A terminal is raw
 * meanwhile where that is asked for, its size follows the window's, and signals are handed on. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct connection;
struct detach_key;
struct client_console;
struct stdin_sender;

enum stdin_sender_flags {
    STDIN_SENDER_CLOSES = 1,   /* the end of our input is the end of the command's */
    STDIN_SENDER_MUTE = 2,     /* nothing is passed on: only the detach key is looked for */
    STDIN_SENDER_RAW = 4,      /* stdin is a terminal, to be made raw; Ctrl-C leaves a mute one */
    STDIN_SENDER_NO_INPUT = 8, /* stdin is not read */
    STDIN_SENDER_NO_SIZE = 16, /* the process has no terminal, or is only looked at */
};

struct stdin_sender_options {
    struct connection *connection; /* borrowed */
    const struct client_console *console;
    const char *id;                            /* of the process; borrowed */
    unsigned flags;                            /* of stdin_sender_flags */
    struct detach_key *detach;                 /* borrowed; NULL: no such key */
    const int *signals;                        /* to be caught, up to a 0; borrowed */
    void (*on_signal)(void *data, int signal); /* but for SIGWINCH */
    void (*on_detach)(void *data);             /* the key was pressed; nothing is read any more */
    void *data;
};

struct stdin_sender *stdin_sender_new(const struct stdin_sender_options *options, struct err *err);

/* Puts the terminal back; before the connection; safe on NULL. */
void stdin_sender_free(struct stdin_sender *sender);

/* Signals end this program again. */
void stdin_sender_drop_signals(struct stdin_sender *sender);

/* Somebody else has the terminal, as it was before us: nothing is read here until it is given back. */
void stdin_sender_lend(struct stdin_sender *sender, bool is_lent);

/* Gives the process the size of our terminal. */
void stdin_sender_resize(struct stdin_sender *sender);
