/* See reader.h. A reader is a cursor and, for text, up to three bytes of each stream that it has
 * passed but not delivered.
 *
 * Bytes are held back only when a whole record is the beginning of a character. A longer record is
 * simply cut before such an end and the cursor set back, so that its sequence numbers stay exact;
 * the next read then begins with the bytes in question. */
#include "output/reader.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* The beginning of a character, passed and not delivered. */
struct held {
    char bytes[READER_MAX_MIN];
    size_t len;
    uint64_t offset; /* of the first byte */
    uint64_t first_seq;
    uint64_t last_seq;
};

struct reader {
    struct output_watch watch;
    struct output *output;
    struct output_cursor cursor;
    struct reader_options options;
    struct held held[STREAM_COUNT];
    bool is_armed; /* on_ready is due when something comes */
};

static void reader_on_new(struct output_watch *watch)
{
    struct reader *reader = container_of(watch, struct reader, watch);

    if (!reader->is_armed)
        return;
    reader->is_armed = false;
    if (reader->options.on_ready)
        reader->options.on_ready(reader->options.data);
}

struct reader *reader_new(struct output *output, const struct reader_options *options)
{
    struct reader *reader = alloc_zero(1, sizeof *reader);

    reader->output = output;
    reader->options = *options;
    reader->watch.on_new = reader_on_new;
    output_seek(output, options->offset, &reader->cursor);
    output_watch(output, &reader->watch);
    return reader;
}

void reader_free(struct reader *reader)
{
    if (!reader)
        return;
    output_unwatch(&reader->watch);
    free(reader);
}

uint64_t reader_offset(const struct reader *reader)
{
    return reader->cursor.offset;
}

uint64_t reader_unread(const struct reader *reader)
{
    uint64_t unread = output_total(reader->output) - reader->cursor.offset;

    for (int i = 0; i < STREAM_COUNT; i++)
        unread += reader->held[i].len;
    return unread;
}

/* Delivers what is held back as a record of its own. */
static void reader_give(struct held *held, enum stream stream, char *into,
                        struct output_record *ret)
{
    memcpy(into, held->bytes, held->len);
    *ret = (struct output_record){.kind = OUTPUT_BYTES,
                                  .stream = stream,
                                  .offset = held->offset,
                                  .len = held->len,
                                  .first_seq = held->first_seq,
                                  .last_seq = held->last_seq};
    held->len = 0;
}

/* Delivers something that is held back, since nothing will complete it. */
static bool reader_flush(struct reader *reader, char *into, struct output_record *ret)
{
    for (int i = 0; i < STREAM_COUNT; i++) {
        if (!reader->held[i].len)
            continue;
        reader_give(&reader->held[i], (enum stream)i, into, ret);
        return true;
    }
    return false;
}

/* Reads behind what is held back of the stream that comes next, as one record. false, and nothing
 * is read, when its bytes have turned out to be gone. */
static bool reader_join(struct reader *reader, char *into, size_t max, struct output_record *ret)
{
    const struct output_cursor before = reader->cursor;
    const struct held *held = &reader->held[before.stream];

    memcpy(into, held->bytes, held->len);
    output_read(reader->output, &reader->cursor, reader->options.unit, into + held->len,
                max - held->len, ret);
    if (ret->kind != OUTPUT_BYTES) {
        reader->cursor = before;
        return false;
    }
    if (held->len) {
        ret->offset = held->offset;
        ret->first_seq = held->first_seq;
        ret->len += held->len;
    }
    return true;
}

/* Reads a record of text; the cursor has its stream. false when there is nothing to give: all of it
 * is held back, or gone. */
static bool reader_read_text(struct reader *reader, char *into, size_t max,
                             struct output_record *ret)
{
    const struct output_cursor before = reader->cursor;
    struct held *held = &reader->held[before.stream];
    size_t torn;

    if (held->len && held->offset + held->len != before.offset)
        max = READER_MAX_MIN;
    if (!reader_join(reader, into, max, ret))
        return false;
    torn = utf8_torn_len(into, (size_t)ret->len);
    if (torn == ret->len) { /* nothing but the beginning of a character */
        *held = (struct held){.len = torn,
                              .offset = ret->offset,
                              .first_seq = ret->first_seq,
                              .last_seq = ret->last_seq};
        memcpy(held->bytes, into, torn);
        return false;
    }
    if (torn) {
        reader->cursor = before;
        if (ret->len - torn == held->len) { /* it was no beginning after all */
            reader_give(held, before.stream, into, ret);
            return true;
        }
        if (!reader_join(reader, into, (size_t)ret->len - torn, ret))
            return false;
    }
    held->len = 0;
    return true;
}

void reader_read(struct reader *reader, char *into, size_t max, struct output_record *ret)
{
    struct output_record next;
    bool has_record = false;

    while (!has_record) {
        output_peek(reader->output, &reader->cursor, &next);
        if (next.kind == OUTPUT_BYTES && reader->options.text == READER_UTF8) {
            has_record = reader_read_text(reader, into, max, ret);
            continue;
        }
        if (next.kind == OUTPUT_EMPTY || !reader_flush(reader, into, ret))
            output_read(reader->output, &reader->cursor, reader->options.unit, into, max, ret);
        has_record = true;
    }
    if (ret->kind == OUTPUT_EMPTY)
        reader->is_armed = true;
}

uint64_t reader_skip(struct reader *reader, uint64_t offset)
{
    uint64_t before = reader_unread(reader);

    if (offset <= reader->cursor.offset)
        return 0;
    output_seek(reader->output, offset, &reader->cursor);
    for (int i = 0; i < STREAM_COUNT; i++)
        reader->held[i].len = 0;
    return before - reader_unread(reader);
}
