/* Random output, and a record of it that is too simple to be wrong: what every byte was, which
 * stream it came by, and in which chunk. */
#pragma once

#include "output/output.h"

struct script {
    uint64_t random; /* state of the generator; its seed is in messages of failure */
    uint64_t seed;
    char *bytes;
    unsigned char *streams; /* per byte */
    uint64_t *seqs;         /* per byte */
    size_t len;
    size_t cap;
    uint64_t last_seq;
};

void script_init(struct script *script, uint64_t seed);
void script_done(struct script *script);

/* A number below `end`. */
uint64_t script_random(struct script *script, uint64_t end);

/* Appends a chunk of at most `max` bytes, mostly of lines, to record and output. */
void script_append(struct script *script, struct output *output, size_t max);
void script_append_bytes(struct script *script, struct output *output, enum stream stream,
                         const char *bytes, size_t len);

/* A record that was read has to be what the script says is there. `bytes` are those of
 * OUTPUT_BYTES. */
void script_check(const struct script *script, const struct output_record *record,
                  const char *bytes, enum output_unit unit);

/* Offset of the first byte of a chunk; the length when there is none such. */
uint64_t script_chunk_start(const struct script *script, uint64_t seq);
