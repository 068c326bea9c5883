/* The retained output of one process: written once, read by any number of readers.
 *
 * Every byte of the merged stream has a 64-bit offset, every appended chunk a sequence number (from
 * 1) and the stream it came by. What is retained is always a prefix and a suffix:
 *
 *     0 ......... prefix_end            tail_start ......... total
 *     [ head, spool ]      one gap      [ newest bytes in memory ]
 *
 * Without a spool the prefix is the head, half of `memory_max`; with one it goes on growing until
 * the quota is reached, and there is no gap before that. Both ends of the gap are exact, always.
 *
 * Life: output_new(), output_append() ..., output_finish() once, output_free(). Readers (reader.h,
 * model_cursor.h) borrow the output and are freed before it.
 */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "output/spool.h"
#include "output/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output;

#define OUTPUT_MEMORY_DEFAULT ((size_t)1 << 20) /* bytes, docs/model-calls.md */

struct output_options {
    size_t memory_max; /* bytes kept in memory: max / 2 of the head, the rest of the tail; 0 is 0 */
    const struct spool_options *spool; /* NULL: none */
};

struct output *output_new(const struct output_options *options);
void output_free(struct output *output);

/* An empty chunk does not count. */
void output_append(struct output *output, enum stream stream, const char *bytes, size_t len);

/* Nothing comes any more. A spool with a name is brought up to date: byte n of its file is byte n
 * of the output. */
void output_finish(struct output *output);

/* --- numbers --- */

struct output_info {
    uint64_t total;      /* bytes that came */
    uint64_t last_seq;   /* of the newest chunk; 0 before the first */
    uint64_t prefix_end; /* bytes [0, prefix_end) and */
    uint64_t tail_start; /* [tail_start, total) can be read; prefix_end <= tail_start */
    bool finished;
    enum spool_state spool;
    int spool_errno; /* why SPOOL_FAILED; else 0 */
};

void output_info(const struct output *output, struct output_info *ret);
uint64_t output_total(const struct output *output);

/* Bytes of memory that it takes, roughly; for tests and `ps`. */
size_t output_memory(const struct output *output);

/* --- reading by place --- */

/* A place between two bytes. A value, to be copied freely; it stays good whatever happens to the
 * output. Only `offset` means anything to others; zeroed it is the beginning. */
struct output_cursor {
    uint64_t offset; /* of the next byte */
    uint64_t seq;    /* of the chunk that `left` belongs to, or of the last one before the place */
    uint64_t mark;   /* where the description of the chunk behind that one is */
    uint64_t left;   /* bytes of the chunk from `offset` on; 0: the next chunk begins here */
    enum stream stream;
};

enum output_kind {
    OUTPUT_BYTES, /* `len` bytes of `stream` at `offset` */
    OUTPUT_GAP,   /* `len` bytes at `offset` are gone */
    OUTPUT_EMPTY, /* nothing more for now */
    OUTPUT_END,   /* nothing more, ever */
};

struct output_record {
    enum output_kind kind;
    enum stream stream; /* OUTPUT_BYTES */
    uint64_t offset;
    uint64_t len;
    uint64_t first_seq; /* OUTPUT_BYTES: the chunks that the bytes belong to, whole or in part */
    uint64_t last_seq;
};

/* How far one read goes. */
enum output_unit {
    OUTPUT_BY_CHUNK, /* to the end of the chunk: first_seq == last_seq */
    OUTPUT_BY_RUN,   /* over chunks of the same stream */
};

/* What comes next, up to the end of its chunk. Loads that chunk's description into the place. */
void output_peek(struct output *output, struct output_cursor *cursor, struct output_record *ret);

/* Reads the next at most `max` (> 0) bytes into `into` and moves the place behind them; a gap moves
 * it to the gap's end. */
void output_read(struct output *output, struct output_cursor *cursor, enum output_unit unit,
                 char *into, size_t max, struct output_record *ret);

/* The place at `offset` (at most the total). Costs a walk over the chunks between it and the
 * nearest known place: the beginning, or the beginning of the newest bytes. */
void output_seek(struct output *output, uint64_t offset, struct output_cursor *ret);

/* The place where chunk `seq` + 1 begins, or the end when it has not come yet. When that place
 * is lost, it is the beginning of the gap. */
void output_seek_after(struct output *output, uint64_t seq, struct output_cursor *ret);

/* Appends what is retained of the first and the last `max` / 2 bytes as text for readers of lines, by stream:
 * with spaces for NULs, and a line's end for what is left out. */
void output_append_text(struct output *output, uint64_t max, struct buf texts[STREAM_COUNT]);

/* --- reading without stream tags --- */

/* Copies the at most `max` bytes that are retained at `offset`, as many as come easily (at least
 * one if there is one). 0 at the end and inside the gap; the gap ends at `tail_start`. */
size_t output_copy(struct output *output, uint64_t offset, char *into, size_t max);

/* Appends bytes [from, to), which are retained. false when the limit of the buffer is passed, or
 * the spool has failed. */
bool output_append_range(struct output *output, uint64_t from, uint64_t to, struct buf *out);

/* Appends all that is retained, with the marker of headtail.h on a line of its own in the gap. */
bool output_render(struct output *output, struct buf *out);

/* --- notifications --- */

/* Embedded in what wants to be told; borrowed until output_unwatch(). The calls come from inside
 * output_append() and output_finish(); they must not change the output nor its set of watches. */
struct output_watch {
    /* Something was appended, or the output ended. May be NULL. */
    void (*on_new)(struct output_watch *watch);
    /* These bytes are about to be lost: in order, without overlap. May be NULL. */
    void (*on_loss)(struct output_watch *watch, uint64_t offset, const char *bytes, size_t len);
    struct list link;
};

void output_watch(struct output *output, struct output_watch *watch);
void output_unwatch(struct output_watch *watch);
