/* A growing byte buffer that is told its largest size when it is made.
 *
 * `data` is always NUL-terminated behind `len` once anything was appended, so text can be used in
 * place. An append that would pass `max` fails and leaves the buffer as it was. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max; /* bytes; `len` never exceeds it */
};

void buf_init(struct buf *buf, size_t max);
void buf_done(struct buf *buf);
void buf_clear(struct buf *buf); /* keeps the memory */

/* false when the limit would be passed; nothing is appended then */
bool buf_append(struct buf *buf, const void *data, size_t len);
bool buf_append_str(struct buf *buf, const char *text);
bool buf_appendf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Makes the text longer by `len` bytes, which the caller fills before anything else is done with
 * the buffer; they may be written one byte beyond, where the NUL is. NULL when the limit would be
 * passed. */
char *buf_extend(struct buf *buf, size_t len);

/* Drops the first `len` bytes (at most all). */
void buf_consume(struct buf *buf, size_t len);

/* The text, owned by the caller (free()); the buffer is empty after. Never NULL. */
char *buf_take(struct buf *buf);

/* Reads `fd` to its end; ERR_LIMIT when more than the buffer's limit comes. */
int buf_read_fd(struct buf *buf, int fd, struct err *err);
