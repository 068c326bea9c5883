/* The bytes of an output that can still be read, by offset: a prefix, one gap, a suffix. Internal
 * to output.h, which has the drawing. */
#pragma once

#include "output/ring.h"
#include "output/spool.h"

#include <stdbool.h>

struct byte_store {
    struct ring head; /* the first max / 2 bytes; never wraps */
    struct ring tail; /* the newest bytes, beginning right behind the head or later */
    uint64_t total;
    struct spool *spool; /* bytes [0, its length); NULL: none */
};

typedef void byte_store_on_loss(void *data, uint64_t offset, const char *bytes, size_t len);

void byte_store_init(struct byte_store *store, size_t max, const struct spool_options *spool);
void byte_store_done(struct byte_store *store);

/* Whether adding `len` bytes will write to the spool. */
bool byte_store_will_spool(const struct byte_store *store, size_t len);

/* Appends. What memory has no place for goes to the spool; what finds no place there is shown to
 * `on_loss`, in order, before it is forgotten. */
void byte_store_add(struct byte_store *store, const char *bytes, size_t len,
                    byte_store_on_loss *on_loss, void *data);

/* Writes everything to the spool that is not there yet. */
void byte_store_flush(struct byte_store *store);

/* Bytes [0, prefix_end) and [tail_start, total) are held; prefix_end <= tail_start. */
uint64_t byte_store_prefix_end(const struct byte_store *store);
uint64_t byte_store_tail_start(const struct byte_store *store);

/* As output_copy(). */
size_t byte_store_copy(struct byte_store *store, uint64_t offset, char *into, size_t max);

size_t byte_store_memory(const struct byte_store *store);
