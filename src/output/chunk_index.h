/* Which chunks an output came in: a few bits for each, so that sequence numbers and streams stay
 * exact however small the chunks are. Internal to output.h. */
#pragma once

#include "output/output.h"
#include "output/ring.h"

struct marks_page;

struct marks {
    struct ring head; /* of chunks that begin in the output's head: positions [0, head.len) */
    struct ring tail; /* of the newest chunks: positions [tail_at, tail_at + tail.len) */
    uint64_t tail_at;
    struct spool *spool;      /* positions [head.len, head.len + its length); NULL: none */
    struct marks_page *cache; /* of the spool; NULL until used */
};

/* `spool` says where, its quota and name do not count; NULL: none. */
void marks_init(struct marks *marks, const struct spool_options *spool);
void marks_done(struct marks *marks);

enum marks_region { MARKS_HEAD, MARKS_TAIL };

/* Of one chunk; all of the head come before all of the tail. */
void marks_add(struct marks *marks, enum marks_region region, enum stream stream, uint64_t len);

/* Loads the chunk behind the place, whose `left` is 0. false when there is none, or none that can
 * be read. */
bool marks_next(struct marks *marks, struct output_place *place);

/* Moves the place forward to `offset`; false when it cannot get there. */
bool marks_advance(struct marks *marks, struct output_place *place, uint64_t offset);

/* Those before position `mark`, of the tail, are no longer needed in memory. */
void marks_forget(struct marks *marks, uint64_t mark);

/* Writes to the spool what is not there yet; false when that is not possible. */
bool marks_flush(struct marks *marks);

size_t marks_memory(const struct marks *marks);
