/* The bytes of an output that can still be read, by offset: a prefix, one gap, a suffix. Internal
 * to output.h, which has the drawing. */
#pragma once

#include "output/ring.h"
#include "output/spool.h"

#include <stdbool.h>

struct retention {
    struct ring head; /* the first max / 2 bytes; never wraps */
    struct ring tail; /* the newest bytes, beginning right behind the head or later */
    uint64_t total;
    struct spool *spool; /* bytes [0, its length); NULL: none */
};

typedef void retention_on_loss(void *data, uint64_t offset, const char *bytes, size_t len);

void retention_init(struct retention *retention, size_t max, const struct spool_options *spool);
void retention_done(struct retention *retention);

/* Whether adding `len` bytes will write to the spool. */
bool retention_will_spool(const struct retention *retention, size_t len);

/* Appends. What memory has no place for goes to the spool; what finds no place there is shown to
 * `on_loss`, in order, before it is forgotten. */
void retention_add(struct retention *retention, const char *bytes, size_t len,
                   retention_on_loss *on_loss, void *data);

/* Writes everything to the spool that is not there yet. */
void retention_flush(struct retention *retention);

/* Bytes [0, prefix_end) and [tail_start, total) are held; prefix_end <= tail_start. */
uint64_t retention_prefix_end(const struct retention *retention);
uint64_t retention_tail_start(const struct retention *retention);

/* As output_copy(). */
size_t retention_copy(struct retention *retention, uint64_t offset, char *into, size_t max);

size_t retention_memory(const struct retention *retention);
