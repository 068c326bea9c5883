/* Passes on what comes in on stdin to a process at the server, one write at a time: the next bytes
 * are read when the server has taken the last. */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct connection;
struct detach_key;
struct client_console;
struct stdin_sender;

enum stdin_sender_flags {
    STDIN_SENDER_CLOSES = 1, /* the end of our input is the end of the command's */
    STDIN_SENDER_MUTE = 2,   /* nothing is passed on: only the detach key is looked for */
    STDIN_SENDER_RAW = 4,    /* stdin is a raw terminal; Ctrl-C leaves a mute one, too */
};

struct stdin_sender_options {
    struct connection *connection; /* borrowed */
    const struct client_console *console;
    const char *id;                /* of the process; borrowed */
    int fd;                        /* borrowed; its flags are left alone */
    unsigned flags;                /* of stdin_sender_flags */
    struct detach_key *detach;     /* borrowed; NULL: no such key */
    void (*on_detach)(void *data); /* it was pressed; nothing is read any more */
    void *data;
};

struct stdin_sender *stdin_sender_new(const struct stdin_sender_options *options, struct err *err);
void stdin_sender_free(struct stdin_sender *sender); /* before the connection; safe on NULL */
