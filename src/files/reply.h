/* What a file call answers: JSON text that leaves in blocks while it is being made, so that a file
 * of 512 MiB needs no more memory than one of them; or a descriptor; or both. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    REPLY_BLOCK = 256 * 1024,   /* text that is held back at most, about */
    REPLY_TEXT_MAX = 720 << 20, /* of the whole answer: base64 of 512 MiB, and some */
};

/* Takes a block of text on its way; the rest comes later. */
typedef int reply_flush_fn(void *data, const char *text, size_t len, struct err *err);

struct reply {
    struct buf text;       /* what was not flushed */
    int fd;                /* fs/open: the open file, owned; else -1 */
    reply_flush_fn *flush; /* NULL: all stays in `text` */
    void *data;
};

void reply_init(struct reply *ret, reply_flush_fn *flush, void *data);
void reply_done(struct reply *reply);

/* Each appends to the text. */
int reply_raw(struct reply *reply, const char *text, size_t len, struct err *err);
int reply_str(struct reply *reply, const char *text, struct err *err);
int reply_fmt(struct reply *reply, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A JSON string of any bytes: ill-formed UTF-8 becomes U+FFFD. */
int reply_quoted(struct reply *reply, const char *text, struct err *err);

/* A JSON string with the file URI of an absolute path. */
int reply_uri(struct reply *reply, const char *path, struct err *err);

/* true or false. */
const char *reply_bool(bool value);
