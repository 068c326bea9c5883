/* See chunks.h. A mark is the length of a chunk and its stream as one number, seven bits to a byte,
 * the low ones first, the high bit set in all bytes but the last (LEB128). So a chunk of up to 63
 * bytes costs one byte more, one of 8 KiB three.
 *
 * Marks have positions in a stream of their own, kept as the output keeps its bytes: the beginning
 * for good, the newest in a ring, the rest in a file if there is one. A place in the output says
 * where the next mark is, so that going on from it needs no search. */
#include "output/chunk_index.h"

#include "base/alloc.h"

#include <errno.h>
#include <stdlib.h>

enum { STREAM_BITS = 1, MARK_SIZE_MAX = 10, PAGE_SIZE = 512 };

_Static_assert(STREAM_COUNT <= 1 << STREAM_BITS, "a stream has to fit into its bits of a mark");

struct chunk_index_page {
    uint64_t at;
    size_t len;
    char bytes[PAGE_SIZE];
};

void chunk_index_init(struct chunk_index *chunks, const struct spool_options *spool)
{
    *chunks = (struct chunk_index){0};
    ring_init(&chunks->head, SIZE_MAX);
    ring_init(&chunks->tail, SIZE_MAX);
    if (spool)
        chunks->spool =
            spool_new(&(struct spool_options){.folder = spool->folder, .quota = UINT64_MAX});
}

void chunk_index_done(struct chunk_index *chunks)
{
    ring_done(&chunks->head);
    ring_done(&chunks->tail);
    spool_free(chunks->spool);
    free(chunks->cache);
}

void chunk_index_add(struct chunk_index *chunks, enum chunk_index_region region, enum stream stream,
                     uint64_t len)
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

/* The byte at a position; -1 when there is none, or not any more. */
static int marks_byte(struct chunk_index *chunks, uint64_t at)
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

bool chunk_index_next(struct chunk_index *chunks, struct output_cursor *cursor)
{
    uint64_t value = 0;
    uint64_t at = cursor->mark;
    unsigned shift = 0;
    int byte;

    do {
        byte = marks_byte(chunks, at++);
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

bool chunk_index_advance(struct chunk_index *chunks, struct output_cursor *cursor, uint64_t offset)
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

void chunk_index_forget(struct chunk_index *chunks, uint64_t mark)
{
    if (mark <= chunks->tail_at)
        return;
    ring_drop(&chunks->tail, (size_t)(mark - chunks->tail_at));
    chunks->tail_at = mark;
}

bool chunk_index_flush(struct chunk_index *chunks)
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

size_t chunk_index_memory(const struct chunk_index *chunks)
{
    return chunks->head.cap + chunks->tail.cap + (chunks->cache ? sizeof *chunks->cache : 0);
}
