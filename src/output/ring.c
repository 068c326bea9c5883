/* See ring.h. Memory is doubled as needed and straightened when it moves, so that a ring that never
 * reaches its maximum costs about what it holds; at its maximum it wraps and allocates no more.
 * Adding costs O(len), whatever is held. */
#include "output/ring.h"

#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RING_CAP_MIN ((size_t)64)

void ring_init(struct ring *ring, size_t max)
{
    *ring = (struct ring){.max = max};
}

void ring_done(struct ring *ring)
{
    free(ring->data);
    *ring = (struct ring){.max = ring->max};
}

/* Where the byte at `at` is, or would be. `at` is at most `cap`. */
static size_t ring_index(const struct ring *ring, size_t at)
{
    size_t index = ring->start + at;

    return index >= ring->cap ? index - ring->cap : index;
}

const char *ring_piece(const struct ring *ring, size_t at, size_t *ret_len)
{
    size_t index;

    if (at >= ring->len) {
        *ret_len = 0;
        return ring->data;
    }
    index = ring_index(ring, at);
    *ret_len = ring->len - at < ring->cap - index ? ring->len - at : ring->cap - index;
    return ring->data + index;
}

void ring_copy(const struct ring *ring, size_t at, char *into, size_t len)
{
    while (len) {
        size_t piece;
        const char *bytes = ring_piece(ring, at, &piece);

        if (piece > len)
            piece = len;
        memcpy(into, bytes, piece);
        into += piece;
        at += piece;
        len -= piece;
    }
}

static void ring_reserve(struct ring *ring, size_t need)
{
    size_t cap = ring->cap ? ring->cap : RING_CAP_MIN;
    char *data;

    if (need <= ring->cap)
        return;
    while (cap < need)
        cap *= 2;
    if (cap > ring->max)
        cap = ring->max;
    data = alloc_resize(NULL, cap, 1);
    ring_copy(ring, 0, data, ring->len);
    free(ring->data);
    ring->data = data;
    ring->cap = cap;
    ring->start = 0;
}

size_t ring_overflow(const struct ring *ring, size_t len)
{
    size_t room = ring->max - ring->len;

    if (len <= room)
        return 0;
    return len - room < ring->len ? len - room : ring->len;
}

void ring_drop(struct ring *ring, size_t len)
{
    if (len >= ring->len) {
        ring->start = 0;
        ring->len = 0;
        return;
    }
    ring->start = ring_index(ring, len);
    ring->len -= len;
}

void ring_add(struct ring *ring, const char *bytes, size_t len)
{
    size_t straight;
    size_t end;

    ring_drop(ring, ring_overflow(ring, len));
    if (len > ring->max) {
        bytes += len - ring->max;
        len = ring->max;
    }
    if (!len)
        return;
    ring_reserve(ring, ring->len + len);
    end = ring_index(ring, ring->len);
    straight = len < ring->cap - end ? len : ring->cap - end;
    memcpy(ring->data + end, bytes, straight);
    memcpy(ring->data, bytes + straight, len - straight);
    ring->len += len;
}
