/* A ring of blocks, one for each message that did not fit, so that writev(2) takes many at once and
 * nothing is moved when some is taken. An empty outbox holds no memory: most peers are idle. */
#include "rpc/outbox.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

struct outbox_piece {
    char *data; /* owned */
    size_t len;
    size_t sent;
};

static struct outbox_piece *outbox_at(const struct outbox *outbox, size_t index)
{
    return &outbox->pieces[(outbox->first + index) % outbox->cap];
}

static void outbox_drop_first(struct outbox *outbox)
{
    free(outbox_at(outbox, 0)->data);
    outbox->first = (outbox->first + 1) % outbox->cap;
    outbox->count--;
}

static void outbox_release(struct outbox *outbox)
{
    free(outbox->pieces);
    *outbox = (struct outbox){0};
}

void outbox_done(struct outbox *outbox)
{
    while (outbox->count)
        outbox_drop_first(outbox);
    outbox_release(outbox);
}

static void outbox_grow(struct outbox *outbox)
{
    size_t cap = outbox->cap ? outbox->cap * 2 : 16;
    struct outbox_piece *pieces = alloc_zero(cap, sizeof *pieces);

    for (size_t i = 0; i < outbox->count; i++)
        pieces[i] = *outbox_at(outbox, i);
    free(outbox->pieces);
    outbox->pieces = pieces;
    outbox->cap = cap;
    outbox->first = 0;
}

void outbox_push_take(struct outbox *outbox, char *data, size_t len, size_t skip)
{
    if (skip >= len) {
        free(data);
        return;
    }
    if (outbox->count == outbox->cap)
        outbox_grow(outbox);
    *outbox_at(outbox, outbox->count++) =
        (struct outbox_piece){.data = data, .len = len, .sent = skip};
    outbox->len += len - skip;
}

void outbox_push(struct outbox *outbox, const struct iovec *parts, size_t count, size_t skip)
{
    size_t total = 0;
    size_t len = 0;
    char *data;

    for (size_t i = 0; i < count; i++)
        total += parts[i].iov_len;
    if (skip >= total)
        return;
    data = alloc_resize(NULL, total - skip, 1);
    for (size_t i = 0; i < count; i++) {
        size_t skipped = skip < parts[i].iov_len ? skip : parts[i].iov_len;

        if (parts[i].iov_len > skipped)
            memcpy(data + len, (const char *)parts[i].iov_base + skipped,
                   parts[i].iov_len - skipped);
        len += parts[i].iov_len - skipped;
        skip -= skipped;
    }
    outbox_push_take(outbox, data, len, 0);
}

size_t outbox_peek(const struct outbox *outbox, struct iovec *ret, size_t max)
{
    size_t n = 0;

    for (; n < outbox->count && n < max; n++) {
        const struct outbox_piece *piece = outbox_at(outbox, n);

        ret[n] = (struct iovec){piece->data + piece->sent, piece->len - piece->sent};
    }
    return n;
}

void outbox_consume(struct outbox *outbox, size_t len)
{
    while (len && outbox->count) {
        struct outbox_piece *piece = outbox_at(outbox, 0);
        size_t left = piece->len - piece->sent;

        if (len < left) {
            piece->sent += len;
            outbox->len -= len;
            return;
        }
        len -= left;
        outbox->len -= left;
        outbox_drop_first(outbox);
    }
    if (!outbox->count)
        outbox_release(outbox);
}
