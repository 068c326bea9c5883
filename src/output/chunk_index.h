/* Which chunks an output came in: a few bits for each, so that sequence numbers and streams stay
 * exact however small the chunks are. Internal to output.h. */
#pragma once

#include "output/output.h"
#include "output/ring.h"

struct chunk_index_page;

struct chunk_index {
    struct ring head; /* of chunks that begin in the output's head: positions [0, head.len) */
    struct ring tail; /* of the newest chunks: positions [tail_at, tail_at + tail.len) */
    uint64_t tail_at;
    struct spool *spool;            /* positions [head.len, head.len + its length); NULL: none */
    struct chunk_index_page *cache; /* of the spool; NULL until used */
};

/* `spool` says where, its quota and name do not count; NULL: none. */
void chunk_index_init(struct chunk_index *chunks, const struct spool_options *spool);
void chunk_index_done(struct chunk_index *chunks);

enum chunk_index_region { CHUNK_INDEX_HEAD, CHUNK_INDEX_TAIL };

/* Of one chunk; all of the head come before all of the tail. */
void chunk_index_add(struct chunk_index *chunks, enum chunk_index_region region, enum stream stream,
                     uint64_t len);

/* Loads the chunk behind the cursor, whose `left` is 0. false when there is none, or none that can
 * be read. */
bool chunk_index_next(struct chunk_index *chunks, struct output_cursor *cursor);

/* Moves the place forward to `offset`; false when it cannot get there. */
bool chunk_index_advance(struct chunk_index *chunks, struct output_cursor *cursor, uint64_t offset);

/* Those before position `mark`, of the tail, are no longer needed in memory. */
void chunk_index_forget(struct chunk_index *chunks, uint64_t mark);

/* Writes to the spool what is not there yet; false when that is not possible. */
bool chunk_index_flush(struct chunk_index *chunks);

size_t chunk_index_memory(const struct chunk_index *chunks);
