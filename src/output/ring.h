/* A bounded circle of bytes that keeps the newest and grows with what it holds.
 *
 * Positions are counted from the oldest byte that is held. */
#pragma once

#include <stddef.h>

struct ring {
    char *data;
    size_t cap;
    size_t max; /* bytes; SIZE_MAX: no limit */
    size_t start;
    size_t len;
};

void ring_init(struct ring *ring, size_t max);
void ring_done(struct ring *ring);

/* Appends; what does not fit pushes out the oldest bytes, or is itself left out. */
void ring_add(struct ring *ring, const char *bytes, size_t len);

/* How many of the held bytes the next ring_add() of `len` bytes will push out. */
size_t ring_overflow(const struct ring *ring, size_t len);

/* Forgets the oldest `len` bytes (at most all). */
void ring_drop(struct ring *ring, size_t len);

/* The bytes from `at` on as far as they are contiguous, at most two pieces in all; `*ret_len` is 0
 * behind the end. Valid until the ring changes. */
const char *ring_piece(const struct ring *ring, size_t at, size_t *ret_len);

/* Copies `len` bytes from `at` on; all of them have to be held. */
void ring_copy(const struct ring *ring, size_t at, char *into, size_t len);
