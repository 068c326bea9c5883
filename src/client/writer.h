/* Passes on what comes in on stdin to a process at the server, one write at a time: the next bytes
 * are read when the server has taken the last. */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct connection;
struct detach_key;
struct face;
struct writer;

enum writer_flags {
    WRITER_CLOSES = 1, /* the end of our input is the end of the command's */
    WRITER_MUTE = 2,   /* nothing is passed on: only the detach key is looked for */
    WRITER_RAW = 4,    /* stdin is a raw terminal; Ctrl-C leaves a mute one, too */
};

struct writer_options {
    struct connection *connection; /* borrowed */
    const struct face *face;
    const char *id;                /* of the process; borrowed */
    int fd;                        /* borrowed; its flags are left alone */
    unsigned flags;                /* of writer_flags */
    struct detach_key *detach;     /* borrowed; NULL: no such key */
    void (*on_detach)(void *data); /* it was pressed; nothing is read any more */
    void *data;
};

struct writer *writer_new(const struct writer_options *options, struct err *err);
void writer_free(struct writer *writer); /* before the connection; safe on NULL */
