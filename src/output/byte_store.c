/* See store.h. Memory is written to the spool only when it would otherwise lose bytes, and then
 * all of it that is not there yet: small outputs never touch the disk, large ones are written in
 * pieces of about half of the memory.
 *
 * The spool holds a prefix of the output and shares its offsets. Where it ends and the newest bytes
 * in memory have not begun, there is the gap. */
#include "output/byte_store.h"

void byte_store_init(struct byte_store *store, size_t max, const struct spool_options *spool)
{
    *store = (struct byte_store){.spool = spool ? spool_new(spool) : NULL};
    ring_init(&store->head, max / 2);
    ring_init(&store->tail, max - max / 2);
}

void byte_store_done(struct byte_store *store)
{
    ring_done(&store->head);
    ring_done(&store->tail);
    spool_free(store->spool);
}

uint64_t byte_store_tail_start(const struct byte_store *store)
{
    return store->total - store->tail.len;
}

uint64_t byte_store_prefix_end(const struct byte_store *store)
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

bool byte_store_will_spool(const struct byte_store *store, size_t len)
{
    size_t rest = len - head_room(store, len);

    return spool_state(store->spool) == SPOOL_OK && rest > store->tail.max - store->tail.len;
}

/* The bytes at `offset` that are in memory and contiguous. */
static const char *memory_piece(const struct byte_store *store, uint64_t offset, size_t *ret_len)
{
    if (offset < store->head.len)
        return ring_piece(&store->head, (size_t)offset, ret_len);
    return ring_piece(&store->tail, (size_t)(offset - byte_store_tail_start(store)), ret_len);
}

void byte_store_flush(struct byte_store *store)
{
    size_t len = 1;

    while (spool_state(store->spool) == SPOOL_OK && len) {
        const char *bytes = memory_piece(store, spool_len(store->spool), &len);

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

void byte_store_add(struct byte_store *store, const char *bytes, size_t len,
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

size_t byte_store_copy(struct byte_store *store, uint64_t offset, char *into, size_t max)
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

size_t byte_store_memory(const struct byte_store *store)
{
    return store->head.cap + store->tail.cap;
}
