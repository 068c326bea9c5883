/* One consumer of an output, with its own place in it. A slow one never holds up the process nor
 * the others: what it comes too late for it gets as a gap, with the exact count.
 *
 *     reader_new()                 at an offset
 *       on_event READER_READY      there is something to read, or the end; once until
 *     reader_read() ...            ... this has said READER_EMPTY
 *     reader_free()                any time, but not from its own callback, and before the output
 */
#pragma once

#include "exec/output.h"

struct reader;

enum reader_text {
    READER_RAW,  /* bytes as they came */
    READER_UTF8, /* a character that is not complete yet is held back, per stream, until it is, or
                    cannot become one, or the output ends */
};

enum reader_event {
    READER_READY,
    READER_HIGH, /* more than `high` bytes wait */
    READER_LOW,  /* after that: at most `low` bytes wait */
};

struct reader_options {
    uint64_t offset; /* to begin at; beyond the end: the end */
    enum reader_text text;
    enum output_unit unit;
    uint64_t high; /* 0: no watermarks */
    uint64_t low;
    void (*on_event)(void *data, enum reader_event event); /* may be NULL; may read */
    void *data;
};

struct reader *reader_new(struct output *output, const struct reader_options *options);
void reader_free(struct reader *reader);

#define READER_MAX_MIN ((size_t)4) /* room for one character */

/* The next record, its bytes (OUTPUT_BYTES) in `into`, at most `max` (>= READER_MAX_MIN) of them. A
 * gap is one record. With READER_UTF8 the bytes of a record follow each other in their stream; they
 * do in the output too, except where the other stream came inside a character: that character is a
 * record of its own, with the offset of its first byte. */
void reader_read(struct reader *reader, char *into, size_t max, struct output_record *ret);

/* Offset of the first byte that was not delivered in order: bytes held back lie before it. */
uint64_t reader_offset(const struct reader *reader);

/* Bytes that came and were not delivered, those held back and those lost included. */
uint64_t reader_unread(const struct reader *reader);

bool reader_is_high(const struct reader *reader); /* between READER_HIGH and READER_LOW */

/* Goes on at `offset`, never backwards; drops what is held back. Returns the number of bytes that
 * will not be delivered for it. */
uint64_t reader_skip(struct reader *reader, uint64_t offset);
