/* See retention.h. Memory is written to the spool only when it would otherwise lose bytes, and then
 * all of it that is not there yet: small outputs never touch the disk, large ones are written in
 * pieces of about half of the memory.
 *
 * The spool holds a prefix of the output and shares its offsets. Where it ends and the newest bytes
 * in memory have not begun, there is the gap. */
#include "output/byte_store.h"

void retention_init(struct retention *retention, size_t max, const struct spool_options *spool)
{
    *retention = (struct retention){.spool = spool ? spool_new(spool) : NULL};
    ring_init(&retention->head, max / 2);
    ring_init(&retention->tail, max - max / 2);
}

void retention_done(struct retention *retention)
{
    ring_done(&retention->head);
    ring_done(&retention->tail);
    spool_free(retention->spool);
}

uint64_t retention_tail_start(const struct retention *retention)
{
    return retention->total - retention->tail.len;
}

uint64_t retention_prefix_end(const struct retention *retention)
{
    uint64_t tail_start = retention_tail_start(retention);
    uint64_t end = spool_len(retention->spool);

    if (end < retention->head.len)
        end = retention->head.len;
    return end < tail_start ? end : tail_start;
}

static size_t head_room(const struct retention *retention, size_t len)
{
    size_t room = retention->head.max - retention->head.len;

    return len < room ? len : room;
}

bool retention_will_spool(const struct retention *retention, size_t len)
{
    size_t rest = len - head_room(retention, len);

    return spool_state(retention->spool) == SPOOL_OK &&
           rest > retention->tail.max - retention->tail.len;
}

/* The bytes at `offset` that are in memory and contiguous. */
static const char *memory_piece(const struct retention *retention, uint64_t offset, size_t *ret_len)
{
    if (offset < retention->head.len)
        return ring_piece(&retention->head, (size_t)offset, ret_len);
    return ring_piece(&retention->tail, (size_t)(offset - retention_tail_start(retention)),
                      ret_len);
}

void retention_flush(struct retention *retention)
{
    size_t len = 1;

    while (spool_state(retention->spool) == SPOOL_OK && len) {
        const char *bytes = memory_piece(retention, spool_len(retention->spool), &len);

        spool_write(retention->spool, bytes, len);
    }
}

/* Bytes at `offset` leave memory, or never came there. They are lost unless the spool has them. */
static void retention_leave(struct retention *retention, uint64_t offset, const char *bytes,
                            size_t len, retention_on_loss *on_loss, void *data)
{
    uint64_t kept = spool_len(retention->spool);

    if (kept >= offset + len)
        return;
    if (kept > offset) {
        bytes += kept - offset;
        len -= (size_t)(kept - offset);
        offset = kept;
    }
    on_loss(data, offset, bytes, len);
}

void retention_add(struct retention *retention, const char *bytes, size_t len,
                   retention_on_loss *on_loss, void *data)
{
    size_t first = head_room(retention, len);
    struct ring *tail = &retention->tail;
    uint64_t offset;
    size_t leaving;
    size_t passing;

    ring_add(&retention->head, bytes, first);
    retention->total += first;
    bytes += first;
    len -= first;
    if (retention_will_spool(retention, len))
        retention_flush(retention);
    leaving = ring_overflow(tail, len);
    passing = len > tail->max ? len - tail->max : 0;
    offset = retention_tail_start(retention);
    for (size_t at = 0, piece; at < leaving; at += piece) {
        const char *oldest = ring_piece(tail, at, &piece);

        if (piece > leaving - at)
            piece = leaving - at;
        retention_leave(retention, offset + at, oldest, piece, on_loss, data);
    }
    if (passing) {
        spool_write(retention->spool, bytes, passing);
        retention_leave(retention, offset + leaving, bytes, passing, on_loss, data);
    }
    ring_add(tail, bytes, len);
    retention->total += len;
}

size_t retention_copy(struct retention *retention, uint64_t offset, char *into, size_t max)
{
    uint64_t prefix_end = retention_prefix_end(retention);
    uint64_t tail_start = retention_tail_start(retention);
    uint64_t len;

    if (offset < retention->head.len)
        len = retention->head.len - offset;
    else if (offset < prefix_end)
        len = prefix_end - offset;
    else
        len = offset < tail_start || offset >= retention->total ? 0 : retention->total - offset;
    if (len > max)
        len = max;
    if (!len)
        return 0;
    if (offset < retention->head.len)
        ring_copy(&retention->head, (size_t)offset, into, (size_t)len);
    else if (offset >= tail_start)
        ring_copy(&retention->tail, (size_t)(offset - tail_start), into, (size_t)len);
    else if (!spool_read(retention->spool, offset, into, (size_t)len))
        return 0;
    return (size_t)len;
}

size_t retention_memory(const struct retention *retention)
{
    return retention->head.cap + retention->tail.cap;
}
