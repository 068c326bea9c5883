/* See marks.h. A mark is the length of a chunk and its stream as one number, seven bits to a byte,
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

struct marks_page {
    uint64_t at;
    size_t len;
    char bytes[PAGE_SIZE];
};

void marks_init(struct marks *marks, const struct spool_options *spool)
{
    *marks = (struct marks){0};
    ring_init(&marks->head, SIZE_MAX);
    ring_init(&marks->tail, SIZE_MAX);
    if (spool)
        marks->spool =
            spool_new(&(struct spool_options){.folder = spool->folder, .quota = UINT64_MAX});
}

void marks_done(struct marks *marks)
{
    ring_done(&marks->head);
    ring_done(&marks->tail);
    spool_free(marks->spool);
    free(marks->cache);
}

void marks_add(struct marks *marks, enum marks_region region, enum stream stream, uint64_t len)
{
    uint64_t value = len << STREAM_BITS | (uint64_t)stream;
    char bytes[MARK_SIZE_MAX];
    size_t n = 0;

    for (; value >= 0x80; value >>= 7)
        bytes[n++] = (char)(value | 0x80);
    bytes[n++] = (char)value;
    if (region == MARKS_HEAD) {
        ring_add(&marks->head, bytes, n);
        marks->tail_at = marks->head.len;
    } else {
        ring_add(&marks->tail, bytes, n);
    }
}

static bool page_load(struct marks *marks, uint64_t at)
{
    uint64_t end = spool_len(marks->spool);

    if (at >= end)
        return false;
    if (!marks->cache)
        marks->cache = alloc_zero(1, sizeof *marks->cache);
    marks->cache->at = at;
    marks->cache->len = end - at < PAGE_SIZE ? (size_t)(end - at) : PAGE_SIZE;
    if (spool_read(marks->spool, at, marks->cache->bytes, marks->cache->len))
        return true;
    marks->cache->len = 0;
    return false;
}

/* The byte at a position; -1 when there is none, or not any more. */
static int marks_byte(struct marks *marks, uint64_t at)
{
    const struct marks_page *page = marks->cache;
    size_t len;

    if (at < marks->head.len)
        return (unsigned char)*ring_piece(&marks->head, (size_t)at, &len);
    if (at >= marks->tail_at)
        return at - marks->tail_at < marks->tail.len
                   ? (unsigned char)*ring_piece(&marks->tail, (size_t)(at - marks->tail_at), &len)
                   : -1;
    at -= marks->head.len;
    if (!page || at < page->at || at >= page->at + page->len) {
        if (!page_load(marks, at))
            return -1;
        page = marks->cache;
    }
    return (unsigned char)page->bytes[at - page->at];
}

bool marks_next(struct marks *marks, struct output_place *place)
{
    uint64_t value = 0;
    uint64_t at = place->mark;
    unsigned shift = 0;
    int byte;

    do {
        byte = marks_byte(marks, at++);
        if (byte < 0)
            return false;
        value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    place->mark = at;
    place->seq++;
    place->stream = (enum stream)(value & ((1 << STREAM_BITS) - 1));
    place->left = value >> STREAM_BITS;
    return true;
}

bool marks_advance(struct marks *marks, struct output_place *place, uint64_t offset)
{
    while (place->offset < offset) {
        uint64_t step = offset - place->offset;

        if (!place->left && !marks_next(marks, place))
            return false;
        if (step > place->left)
            step = place->left;
        place->offset += step;
        place->left -= step;
    }
    return true;
}

void marks_forget(struct marks *marks, uint64_t mark)
{
    if (mark <= marks->tail_at)
        return;
    ring_drop(&marks->tail, (size_t)(mark - marks->tail_at));
    marks->tail_at = mark;
}

bool marks_flush(struct marks *marks)
{
    uint64_t written = marks->head.len + spool_len(marks->spool);
    const char *bytes;
    size_t len;

    while (written < marks->tail_at + marks->tail.len) {
        bytes = ring_piece(&marks->tail, (size_t)(written - marks->tail_at), &len);
        if (!spool_write(marks->spool, bytes, len))
            return false;
        written += len;
    }
    return true;
}

size_t marks_memory(const struct marks *marks)
{
    return marks->head.cap + marks->tail.cap + (marks->cache ? sizeof *marks->cache : 0);
}
