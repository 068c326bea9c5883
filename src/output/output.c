/* See output.h. The bytes are kept by a byte store, the chunks that they came in by a chunk index;
 * an output keeps the two in step. The pin between them is `front`, the cursor at the oldest byte
 * of the newest ones: it moves as they are pushed out, and what the index says about chunks before
 * it goes with them. A cursor in the prefix or behind the front stays good because chunks are
 * forgotten only together with their bytes; every cursor between is in the gap, and the gap only
 * grows.
 *
 * The index goes to disk before the bytes that it describes, so the prefix never holds bytes
 * without chunks. When the index cannot be written the bytes are not either.
 *
 * Appending is O(length of the chunk), and O(number of watches). */
#include "output/output.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/list.h"
#include "output/headtail.h"
#include "output/ring.h"
#include "output/spool.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* --- the bytes ---
 *
 * By offset: a prefix, one gap, a suffix. Memory is written to the spool only when it would
 * otherwise lose bytes, and then all of it that is not there yet: small outputs never touch the
 * disk, large ones are written in pieces of about half of the memory.
 *
 * The spool holds a prefix of the output and shares its offsets. Where it ends and the newest bytes
 * in memory have not begun, there is the gap. */

struct byte_store {
    struct ring head; /* the first max / 2 bytes; never wraps */
    struct ring tail; /* the newest bytes, beginning right behind the head or later */
    uint64_t total;
    struct spool *spool; /* bytes [0, its length); NULL: none */
};

typedef void byte_store_on_loss(void *data, uint64_t offset, const char *bytes, size_t len);

static uint64_t byte_store_tail_start(const struct byte_store *store)
{
    return store->total - store->tail.len;
}

static uint64_t byte_store_prefix_end(const struct byte_store *store)
{
    uint64_t tail_start = byte_store_tail_start(store);
    uint64_t end = spool_len(store->spool);

    if (end < store->head.len)
        end = store->head.len;
    return end < tail_start ? end : tail_start;
}

static size_t head_room(const struct byte_store *store, size_t len)
{
    size_t room = store->head.max - store->head.len;

    return len < room ? len : room;
}

/* Whether adding `len` bytes will write to the spool. */
static bool byte_store_will_spool(const struct byte_store *store, size_t len)
{
    size_t rest = len - head_room(store, len);

    return spool_state(store->spool) == SPOOL_OK && rest > store->tail.max - store->tail.len;
}

/* Writes everything to the spool that is not there yet. */
static void byte_store_flush(struct byte_store *store)
{
    size_t len = 1;

    while (spool_state(store->spool) == SPOOL_OK && len) {
        uint64_t at = spool_len(store->spool);
        const char *bytes =
            at < store->head.len
                ? ring_piece(&store->head, (size_t)at, &len)
                : ring_piece(&store->tail, (size_t)(at - byte_store_tail_start(store)), &len);

        spool_write(store->spool, bytes, len);
    }
}

/* Bytes at `offset` leave memory, or never came there. They are lost unless the spool has them. */
static void byte_store_leave(struct byte_store *store, uint64_t offset, const char *bytes,
                             size_t len, byte_store_on_loss *on_loss, void *data)
{
    uint64_t kept = spool_len(store->spool);

    if (kept >= offset + len)
        return;
    if (kept > offset) {
        bytes += kept - offset;
        len -= (size_t)(kept - offset);
        offset = kept;
    }
    on_loss(data, offset, bytes, len);
}

/* Appends. What memory has no room for goes to the spool; what finds no room there is shown to
 * `on_loss`, in order, before it is forgotten. */
static void byte_store_add(struct byte_store *store, const char *bytes, size_t len,
                           byte_store_on_loss *on_loss, void *data)
{
    size_t first = head_room(store, len);
    struct ring *tail = &store->tail;
    uint64_t offset;
    size_t leaving;
    size_t passing;

    ring_add(&store->head, bytes, first);
    store->total += first;
    bytes += first;
    len -= first;
    if (byte_store_will_spool(store, len))
        byte_store_flush(store);
    leaving = ring_overflow(tail, len);
    passing = len > tail->max ? len - tail->max : 0;
    offset = byte_store_tail_start(store);
    for (size_t at = 0, piece; at < leaving; at += piece) {
        const char *oldest = ring_piece(tail, at, &piece);

        if (piece > leaving - at)
            piece = leaving - at;
        byte_store_leave(store, offset + at, oldest, piece, on_loss, data);
    }
    if (passing) {
        spool_write(store->spool, bytes, passing);
        byte_store_leave(store, offset + leaving, bytes, passing, on_loss, data);
    }
    ring_add(tail, bytes, len);
    store->total += len;
}

static size_t byte_store_copy(struct byte_store *store, uint64_t offset, char *into, size_t max)
{
    uint64_t prefix_end = byte_store_prefix_end(store);
    uint64_t tail_start = byte_store_tail_start(store);
    uint64_t len;

    if (offset < store->head.len)
        len = store->head.len - offset;
    else if (offset < prefix_end)
        len = prefix_end - offset;
    else
        len = offset < tail_start || offset >= store->total ? 0 : store->total - offset;
    if (len > max)
        len = max;
    if (!len)
        return 0;
    if (offset < store->head.len)
        ring_copy(&store->head, (size_t)offset, into, (size_t)len);
    else if (offset >= tail_start)
        ring_copy(&store->tail, (size_t)(offset - tail_start), into, (size_t)len);
    else if (!spool_read(store->spool, offset, into, (size_t)len))
        return 0;
    return (size_t)len;
}

/* --- the chunks ---
 *
 * Of each a mark, so that sequence numbers and streams stay exact however small the chunks are: its
 * length and its stream as one number, seven bits to a byte, the low ones first, the high bit set
 * in all bytes but the last (LEB128). So a chunk of up to 63 bytes costs one byte more, one of 8
 * KiB three.
 *
 * Marks have positions in a stream of their own, kept as the output keeps its bytes: the beginning
 * for good, the newest in a ring, the rest in a file if there is one. A cursor says where the next
 * mark is, so that going on from it needs no search. */

enum { STREAM_BITS = 1, MARK_SIZE_MAX = 10, PAGE_SIZE = 512 };

_Static_assert(STREAM_COUNT <= 1 << STREAM_BITS, "a stream has to fit into its bits of a mark");

struct chunk_index_page {
    uint64_t at;
    size_t len;
    char bytes[PAGE_SIZE];
};

enum chunk_index_region { CHUNK_INDEX_HEAD, CHUNK_INDEX_TAIL };

struct chunk_index {
    struct ring head; /* of chunks that begin in the output's head: positions [0, head.len) */
    struct ring tail; /* of the newest chunks: positions [tail_at, tail_at + tail.len) */
    uint64_t tail_at;
    struct spool *spool;            /* positions [head.len, head.len + its length); NULL: none */
    struct chunk_index_page *cache; /* of the spool; NULL until used */
};

/* Of one chunk; all of the head come before all of the tail. */
static void chunk_index_add(struct chunk_index *chunks, enum chunk_index_region region,
                            enum stream stream, uint64_t len)
{
    uint64_t value = len << STREAM_BITS | (uint64_t)stream;
    char bytes[MARK_SIZE_MAX];
    size_t n = 0;

    for (; value >= 0x80; value >>= 7)
        bytes[n++] = (char)(value | 0x80);
    bytes[n++] = (char)value;
    if (region == CHUNK_INDEX_HEAD) {
        ring_add(&chunks->head, bytes, n);
        chunks->tail_at = chunks->head.len;
    } else {
        ring_add(&chunks->tail, bytes, n);
    }
}

static bool page_load(struct chunk_index *chunks, uint64_t at)
{
    uint64_t end = spool_len(chunks->spool);

    if (at >= end)
        return false;
    if (!chunks->cache)
        chunks->cache = alloc_zero(1, sizeof *chunks->cache);
    chunks->cache->at = at;
    chunks->cache->len = end - at < PAGE_SIZE ? (size_t)(end - at) : PAGE_SIZE;
    if (spool_read(chunks->spool, at, chunks->cache->bytes, chunks->cache->len))
        return true;
    chunks->cache->len = 0;
    return false;
}

/* The byte at a position; -1 when it has not come yet, or is lost. */
static int chunk_index_byte(struct chunk_index *chunks, uint64_t at)
{
    const struct chunk_index_page *page = chunks->cache;
    size_t len;

    if (at < chunks->head.len)
        return (unsigned char)*ring_piece(&chunks->head, (size_t)at, &len);
    if (at >= chunks->tail_at)
        return at - chunks->tail_at < chunks->tail.len
                   ? (unsigned char)*ring_piece(&chunks->tail, (size_t)(at - chunks->tail_at), &len)
                   : -1;
    at -= chunks->head.len;
    if (!page || at < page->at || at >= page->at + page->len) {
        if (!page_load(chunks, at))
            return -1;
        page = chunks->cache;
    }
    return (unsigned char)page->bytes[at - page->at];
}

/* Loads the chunk behind the cursor, whose `left` is 0. false at the end, and when it cannot be
 * read. */
static bool chunk_index_next(struct chunk_index *chunks, struct output_cursor *cursor)
{
    uint64_t value = 0;
    uint64_t at = cursor->mark;
    unsigned shift = 0;
    int byte;

    do {
        byte = chunk_index_byte(chunks, at++);
        if (byte < 0)
            return false;
        value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    cursor->mark = at;
    cursor->seq++;
    cursor->stream = (enum stream)(value & ((1 << STREAM_BITS) - 1));
    cursor->left = value >> STREAM_BITS;
    return true;
}

/* Moves the cursor forward to `offset`; false when it cannot get there. */
static bool chunk_index_advance(struct chunk_index *chunks, struct output_cursor *cursor,
                                uint64_t offset)
{
    while (cursor->offset < offset) {
        uint64_t step = offset - cursor->offset;

        if (!cursor->left && !chunk_index_next(chunks, cursor))
            return false;
        if (step > cursor->left)
            step = cursor->left;
        cursor->offset += step;
        cursor->left -= step;
    }
    return true;
}

/* Writes to the spool what is not there yet; false when that is not possible. */
static bool chunk_index_flush(struct chunk_index *chunks)
{
    uint64_t written = chunks->head.len + spool_len(chunks->spool);
    const char *bytes;
    size_t len;

    while (written < chunks->tail_at + chunks->tail.len) {
        bytes = ring_piece(&chunks->tail, (size_t)(written - chunks->tail_at), &len);
        if (!spool_write(chunks->spool, bytes, len))
            return false;
        written += len;
    }
    return true;
}

/* --- both --- */

struct output {
    struct byte_store store;
    struct chunk_index chunks;
    struct output_cursor front; /* at byte_store_tail_start() */
    uint64_t last_seq;
    struct list watches;
    bool finished;
    bool has_name; /* the spool has */
};

struct output *output_new(const struct output_options *options)
{
    struct output *output = alloc_zero(1, sizeof *output);

    ring_init(&output->store.head, options->memory_max / 2);
    ring_init(&output->store.tail, options->memory_max - options->memory_max / 2);
    ring_init(&output->chunks.head, SIZE_MAX);
    ring_init(&output->chunks.tail, SIZE_MAX);
    if (options->spool) {
        const struct spool_options marks = {.dir = options->spool->dir, .quota = UINT64_MAX};

        output->store.spool = spool_new(options->spool);
        output->chunks.spool = spool_new(&marks);
        output->has_name = options->spool->name;
    }
    return output;
}

void output_free(struct output *output)
{
    if (!output)
        return;
    ring_done(&output->store.head);
    ring_done(&output->store.tail);
    spool_free(output->store.spool);
    ring_done(&output->chunks.head);
    ring_done(&output->chunks.tail);
    spool_free(output->chunks.spool);
    free(output->chunks.cache);
    free(output);
}

static void output_on_loss(void *data, uint64_t offset, const char *bytes, size_t len)
{
    const struct output *output = data;
    struct output_watch *watch;

    list_for_each(watch, &output->watches, link)
        if (watch->on_loss)
            watch->on_loss(watch, offset, bytes, len);
}

static void output_notify(const struct output *output)
{
    struct output_watch *watch;

    list_for_each(watch, &output->watches, link)
        if (watch->on_new)
            watch->on_new(watch);
}

void output_append(struct output *output, enum stream stream, const char *bytes, size_t len)
{
    struct byte_store *store = &output->store;
    struct chunk_index *chunks = &output->chunks;
    enum chunk_index_region region =
        store->total < store->head.max ? CHUNK_INDEX_HEAD : CHUNK_INDEX_TAIL;

    if (!len)
        return;
    output->last_seq++;
    chunk_index_add(chunks, region, stream, len);
    /* The index first. */
    if (byte_store_will_spool(store, len) && !chunk_index_flush(chunks))
        spool_fail(store->spool, spool_errno(chunks->spool));
    byte_store_add(store, bytes, len, output_on_loss, output);
    chunk_index_advance(chunks, &output->front, byte_store_tail_start(store));
    if (output->front.mark > chunks->tail_at) {
        ring_drop(&chunks->tail, (size_t)(output->front.mark - chunks->tail_at));
        chunks->tail_at = output->front.mark;
    }
    output_notify(output);
}

void output_finish(struct output *output)
{
    if (output->finished)
        return;
    output->finished = true;
    if (output->has_name)
        byte_store_flush(&output->store);
    output_notify(output);
}

void output_info(const struct output *output, struct output_info *ret)
{
    *ret = (struct output_info){
        .total = output->store.total,
        .last_seq = output->last_seq,
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
    const struct byte_store *store = &output->store;
    const struct chunk_index *chunks = &output->chunks;

    return sizeof *output + store->head.cap + store->tail.cap + chunks->head.cap +
           chunks->tail.cap + (chunks->cache ? sizeof *chunks->cache : 0);
}

/* Whether the bytes behind the place are gone. */
static bool output_in_gap(const struct output *output, uint64_t offset)
{
    return offset >= byte_store_prefix_end(&output->store) &&
           offset < byte_store_tail_start(&output->store);
}

void output_peek(struct output *output, struct output_cursor *cursor, struct output_record *ret)
{
    uint64_t prefix_end = byte_store_prefix_end(&output->store);
    uint64_t tail_start = byte_store_tail_start(&output->store);
    uint64_t end = /* of the retained bytes that begin here */
        prefix_end < tail_start && cursor->offset < prefix_end ? prefix_end : output->store.total;

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
        ret->len = end - cursor->offset < cursor->left ? end - cursor->offset : cursor->left;
        return;
    }
    ret->kind = OUTPUT_GAP;
    ret->len = tail_start - cursor->offset;
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

bool output_append_range(struct output *output, uint64_t from, uint64_t to, struct buf *out)
{
    char *into = buf_extend(out, (size_t)(to - from));

    return into && output_copy_all(output, from, into, to - from);
}

bool output_render(struct output *output, struct buf *out)
{
    uint64_t prefix_end = byte_store_prefix_end(&output->store);
    uint64_t tail_start = byte_store_tail_start(&output->store);

    if (!output_append_range(output, 0, prefix_end, out))
        return false;
    if (prefix_end < tail_start &&
        !buf_appendf(out, "\n" HEADTAIL_MARKER "\n", tail_start - prefix_end))
        return false;
    return output_append_range(output, tail_start, output->store.total, out);
}

/* A NUL would end the text, and a gap ends a line. */
static void append_record(const struct output_record *record, char *piece,
                          struct buf texts[STREAM_COUNT])
{
    if (record->kind == OUTPUT_GAP)
        for (int i = 0; i < STREAM_COUNT; i++)
            buf_append_str(&texts[i], "\n");
    if (record->kind != OUTPUT_BYTES)
        return;
    for (uint64_t i = 0; i < record->len; i++)
        piece[i] = piece[i] ? piece[i] : ' ';
    buf_append(&texts[record->stream], piece, (size_t)record->len);
}

static void append_part(struct output *output, uint64_t from, uint64_t to,
                        struct buf texts[STREAM_COUNT])
{
    struct output_record record = {.kind = OUTPUT_BYTES};
    struct output_cursor cursor;
    char piece[8192];

    output_seek(output, from, &cursor);
    while (cursor.offset < to && (record.kind == OUTPUT_BYTES || record.kind == OUTPUT_GAP)) {
        uint64_t left = to - cursor.offset;

        output_read(output, &cursor, OUTPUT_BY_RUN, piece,
                    left < sizeof piece ? (size_t)left : sizeof piece, &record);
        append_record(&record, piece, texts);
    }
}

void output_append_text(struct output *output, uint64_t max, struct buf texts[STREAM_COUNT])
{
    static const struct output_record gap = {.kind = OUTPUT_GAP};
    const uint64_t total = output_total(output);
    const uint64_t half = max / 2;

    if (total <= 2 * half) {
        append_part(output, 0, total, texts);
        return;
    }
    append_part(output, 0, half, texts);
    append_record(&gap, NULL, texts);
    append_part(output, total - half, total, texts);
}

void output_watch(struct output *output, struct output_watch *watch)
{
    list_add(&output->watches, &watch->link);
}

void output_unwatch(struct output_watch *watch)
{
    list_remove(&watch->link);
}
