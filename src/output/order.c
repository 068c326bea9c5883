/* See order.h. Memory grows with the number of changes between the streams, up to the limit, so a
 * command that prints little costs little. */
#include "output/order.h"

#include "base/alloc.h"

#include <stdlib.h>

#define HEAD_MAX ((size_t)OUTPUT_ORDER_MAX / 2)
#define RING_MAX (OUTPUT_ORDER_MAX - HEAD_MAX)

void output_order_done(struct output_order *order)
{
    free(order->runs);
    *order = (struct output_order){0};
}

static size_t index_of(const struct output_order *order, size_t i)
{
    return i < HEAD_MAX ? i : HEAD_MAX + (i - HEAD_MAX + order->start) % RING_MAX;
}

const struct output_run *output_order_at(const struct output_order *order, size_t i)
{
    return &order->runs[index_of(order, i)];
}

static struct output_run *order_push(struct output_order *order)
{
    struct output_run *oldest;

    if (order->len < OUTPUT_ORDER_MAX) {
        order->runs = alloc_grow(order->runs, order->len, &order->cap, sizeof *order->runs);
        return &order->runs[order->len++];
    }
    oldest = &order->runs[HEAD_MAX + order->start];
    order->start = (order->start + 1) % RING_MAX;
    order->omitted += oldest->len;
    return oldest;
}

void output_order_add(struct output_order *order, enum stream stream, size_t len)
{
    struct output_run *last = order->len ? &order->runs[index_of(order, order->len - 1)] : NULL;

    if (!len)
        return;
    if (last && last->stream == stream)
        last->len += len;
    else
        *order_push(order) = (struct output_run){
            .stream = stream, .offset = order->offset, .at = order->totals[stream], .len = len};
    order->offset += len;
    order->totals[stream] += len;
}
