/* See output.h. The bytes are kept by `store`, the chunks that they came in by `chunks`; this
 * file keeps the two in step. The pin between them is `front`, the place of the oldest byte of the
 * newest ones: it moves as they are pushed out, and what the chunks say about chunks before it goes
 * with them. A place in the prefix or behind the front stays good because chunks are forgotten only
 * together with their bytes; every place between is in the gap, and the gap only grows.
 *
 * Marks go to disk before the bytes that they describe, so the prefix never holds bytes without
 * chunks. When chunks cannot be written the bytes are not either.
 *
 * Appending is O(length of the chunk), and O(number of watches). */
#include "output/output.h"

#include "base/alloc.h"
#include "output/byte_store.h"
#include "output/chunk_index.h"
#include "output/newlines.h"

#include <stdlib.h>

struct output {
    struct byte_store store;
    struct chunk_index chunks;
    struct output_cursor front; /* at byte_store_tail_start() */
    uint64_t last_seq;
    uint64_t newlines;
    struct output_watch *watches;
    bool finished;
    bool has_name; /* the spool has */
};

struct output *output_new(const struct output_options *options)
{
    struct output *output = alloc_zero(1, sizeof *output);

    byte_store_init(&output->store, options->memory_max, options->spool);
    chunk_index_init(&output->chunks, options->spool);
    output->has_name = options->spool && options->spool->name;
    return output;
}

void output_free(struct output *output)
{
    if (!output)
        return;
    byte_store_done(&output->store);
    chunk_index_done(&output->chunks);
    free(output);
}

static void output_on_loss(void *data, uint64_t offset, const char *bytes, size_t len)
{
    const struct output *output = data;

    for (struct output_watch *watch = output->watches; watch; watch = watch->next)
        if (watch->on_loss)
            watch->on_loss(watch, offset, bytes, len);
}

static void output_tell(const struct output *output)
{
    for (struct output_watch *watch = output->watches; watch; watch = watch->next)
        if (watch->on_new)
            watch->on_new(watch);
}

/* Marks first. */
static void output_prepare_spool(struct output *output)
{
    if (!chunk_index_flush(&output->chunks))
        spool_fail(output->store.spool, spool_errno(output->chunks.spool));
}

void output_append(struct output *output, enum stream stream, const char *bytes, size_t len)
{
    struct byte_store *store = &output->store;
    enum chunk_index_region region =
        store->total < store->head.max ? CHUNK_INDEX_HEAD : CHUNK_INDEX_TAIL;

    if (!len)
        return;
    output->last_seq++;
    output->newlines += newlines_count(bytes, len);
    chunk_index_add(&output->chunks, region, stream, len);
    if (byte_store_will_spool(store, len))
        output_prepare_spool(output);
    byte_store_add(store, bytes, len, output_on_loss, output);
    chunk_index_advance(&output->chunks, &output->front, byte_store_tail_start(store));
    chunk_index_forget(&output->chunks, output->front.mark);
    output_tell(output);
}

void output_finish(struct output *output)
{
    if (output->finished)
        return;
    output->finished = true;
    if (output->has_name)
        byte_store_flush(&output->store);
    output_tell(output);
}

void output_info(const struct output *output, struct output_info *ret)
{
    *ret = (struct output_info){
        .total = output->store.total,
        .last_seq = output->last_seq,
        .newlines = output->newlines,
        .prefix_end = byte_store_prefix_end(&output->store),
        .tail_start = byte_store_tail_start(&output->store),
        .finished = output->finished,
        .spool = spool_state(output->store.spool),
        .spool_errno = spool_errno(output->store.spool),
    };
}

uint64_t output_total(const struct output *output)
{
    return output->store.total;
}

size_t output_memory(const struct output *output)
{
    return sizeof *output + byte_store_memory(&output->store) + chunk_index_memory(&output->chunks);
}

/* Whether the bytes behind the place are gone. */
static bool output_in_gap(const struct output *output, uint64_t offset)
{
    return offset >= byte_store_prefix_end(&output->store) &&
           offset < byte_store_tail_start(&output->store);
}

/* Where the retained bytes that begin at `offset` end. */
static uint64_t output_reach(const struct output *output, uint64_t offset)
{
    uint64_t prefix_end = byte_store_prefix_end(&output->store);
    uint64_t tail_start = byte_store_tail_start(&output->store);

    return prefix_end < tail_start && offset < prefix_end ? prefix_end : output->store.total;
}

void output_peek(struct output *output, struct output_cursor *cursor, struct output_record *ret)
{
    *ret = (struct output_record){.kind = OUTPUT_BYTES, .offset = cursor->offset};
    if (cursor->offset == output->store.total) {
        ret->kind = output->finished ? OUTPUT_END : OUTPUT_EMPTY;
        return;
    }
    if (!output_in_gap(output, cursor->offset) &&
        (cursor->left || chunk_index_next(&output->chunks, cursor))) {
        ret->stream = cursor->stream;
        ret->first_seq = cursor->seq;
        ret->last_seq = cursor->seq;
        ret->len = output_reach(output, cursor->offset) - cursor->offset;
        if (ret->len > cursor->left)
            ret->len = cursor->left;
        return;
    }
    ret->kind = OUTPUT_GAP;
    ret->len = byte_store_tail_start(&output->store) - cursor->offset;
}

/* Makes the record, which is one of bytes, as long as unit and `max` allow, and moves the place
 * behind it. */
static void output_extend(struct output *output, struct output_cursor *cursor,
                          enum output_unit unit, size_t max, struct output_record *record)
{
    struct output_record next = *record;

    record->len = 0;
    while (next.kind == OUTPUT_BYTES && next.stream == record->stream && record->len < max) {
        uint64_t step = next.len < max - record->len ? next.len : max - record->len;

        record->len += step;
        record->last_seq = cursor->seq;
        cursor->offset += step;
        cursor->left -= step;
        if (unit == OUTPUT_BY_CHUNK)
            return;
        output_peek(output, cursor, &next);
    }
}

static bool output_copy_all(struct output *output, uint64_t offset, char *into, uint64_t len)
{
    while (len) {
        size_t n = output_copy(output, offset, into, (size_t)len);

        if (!n)
            return false;
        into += n;
        offset += n;
        len -= n;
    }
    return true;
}

void output_read(struct output *output, struct output_cursor *cursor, enum output_unit unit,
                 char *into, size_t max, struct output_record *ret)
{
    const struct output_cursor before = *cursor;

    output_peek(output, cursor, ret);
    while (ret->kind == OUTPUT_BYTES) {
        output_extend(output, cursor, unit, max, ret);
        if (output_copy_all(output, ret->offset, into, ret->len))
            return;
        /* the spool has failed: less is retained now, and all of that is in memory */
        *cursor = before;
        output_peek(output, cursor, ret);
    }
    if (ret->kind == OUTPUT_GAP)
        *cursor = output->front;
}

void output_seek(struct output *output, uint64_t offset, struct output_cursor *ret)
{
    if (offset > output->store.total)
        offset = output->store.total;
    *ret = offset < output->front.offset ? (struct output_cursor){0} : output->front;
    if (output_in_gap(output, offset) || !chunk_index_advance(&output->chunks, ret, offset))
        *ret = (struct output_cursor){.offset = offset, .mark = UINT64_MAX};
}

void output_seek_after(struct output *output, uint64_t seq, struct output_cursor *ret)
{
    struct output_cursor cursor = output->front;
    uint64_t end = output->store.total;

    if (cursor.seq > seq) {
        cursor = (struct output_cursor){0};
        end = byte_store_prefix_end(&output->store);
    }
    while (cursor.offset < end && (cursor.left || cursor.seq < seq)) {
        uint64_t chunk_end;

        if (!cursor.left && !chunk_index_next(&output->chunks, &cursor))
            break;
        chunk_end = cursor.offset + cursor.left;
        chunk_index_advance(&output->chunks, &cursor, chunk_end < end ? chunk_end : end);
    }
    *ret = cursor;
}

size_t output_copy(struct output *output, uint64_t offset, char *into, size_t max)
{
    return byte_store_copy(&output->store, offset, into, max);
}

void output_watch(struct output *output, struct output_watch *watch)
{
    watch->previous = NULL;
    watch->next = output->watches;
    if (watch->next)
        watch->next->previous = watch;
    output->watches = watch;
}

void output_unwatch(struct output *output, struct output_watch *watch)
{
    if (watch->next)
        watch->next->previous = watch->previous;
    if (watch->previous)
        watch->previous->next = watch->next;
    else
        output->watches = watch->next;
}
