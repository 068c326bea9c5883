/* Bytes that a peer has not taken yet, in order. Internal to rpc. */
#pragma once

#include <stddef.h>
#include <sys/uio.h>

struct outbox_piece;

struct outbox {
    struct outbox_piece *pieces; /* a ring of `cap`, `count` of them in use from `first` on */
    size_t cap;
    size_t first;
    size_t count;
    size_t len; /* bytes */
};

void outbox_done(struct outbox *outbox);

/* Copies the parts without their first `skip` bytes. */
void outbox_push(struct outbox *outbox, const struct iovec *parts, size_t count, size_t skip);

/* Takes `data`, of which the first `skip` bytes are not sent; it is freed when it is all taken. */
void outbox_push_take(struct outbox *outbox, char *data, size_t len, size_t skip);

/* Fills at most `max` parts with what comes next; borrowed until the next call. */
size_t outbox_peek(const struct outbox *outbox, struct iovec *ret, size_t max);

/* Forgets the first `len` bytes, at most all. */
void outbox_consume(struct outbox *outbox, size_t len);
