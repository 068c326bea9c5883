/* One consumer of an output, with its own place in it. A slow one never holds up the process nor
 * the others: what it comes too late for it gets as a gap, with the exact count.
 *
 *     reader_new()
 *       reader_read() ...         until it says OUTPUT_EMPTY; from then on
 *       on_ready                  ... once, when there is more, or the end
 *     reader_free()               before the output, and not from a callback of this output
 */
#pragma once

#include "output/output.h"

struct reader;

enum reader_text {
    READER_RAW,  /* bytes as they came */
    READER_UTF8, /* the beginning of a character is held back, per stream, until the rest came, or
                    cannot come any more */
};

struct reader_options {
    uint64_t offset; /* to begin at; beyond the end: the end */
    enum reader_text text;
    enum output_unit unit;
    void (*on_ready)(void *data); /* may be NULL; may read */
    void *data;
};

struct reader *reader_new(struct output *output, const struct reader_options *options);
void reader_free(struct reader *reader);

#define READER_MAX_MIN ((size_t)4) /* room for one character */

/* The next record, its bytes (OUTPUT_BYTES) in `into`, at most `max` (>= READER_MAX_MIN) of them; a
 * gap is one record. With READER_UTF8 a character whose bytes came in more than one chunk is in one
 * record, that names all of these chunks. When the other stream came in between, that record holds
 * little else (four bytes at most), and `offset` is that of its first byte. */
void reader_read(struct reader *reader, char *into, size_t max, struct output_record *ret);

/* Of the next byte that it has not looked at: bytes held back lie before it. */
uint64_t reader_offset(const struct reader *reader);

/* Bytes that came and were not delivered: those held back and those lost included. */
uint64_t reader_unread(const struct reader *reader);

/* Goes on at `offset`, never backwards, and drops what is held back. Returns the number of bytes
 * that will not be delivered for it. */
uint64_t reader_skip(struct reader *reader, uint64_t offset);
