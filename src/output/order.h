/* In which order the streams of a command came, for a reader that has them apart: runs of bytes of
 * one stream. At most OUTPUT_ORDER_MAX runs are kept, those of the beginning and those of the end;
 * what fell out between them is counted. */
#pragma once

#include "output/stream.h"

#include <stddef.h>
#include <stdint.h>

#define OUTPUT_ORDER_MAX 8192

struct output_run {
    enum stream stream;
    uint64_t offset; /* of its first byte, in all output */
    uint64_t at;     /* the same, in its stream */
    uint64_t len;
};

/* Zeroed it is empty. */
struct output_order {
    struct output_run *runs; /* a first half that only grows; a ring behind it */
    size_t len;
    size_t cap;
    size_t start; /* of the ring, counted from its beginning */
    uint64_t offset;
    uint64_t totals[STREAM_COUNT];
    uint64_t omitted; /* bytes of the runs that fell out */
};

void output_order_done(struct output_order *order);
void output_order_add(struct output_order *order, enum stream stream, size_t len);

/* Run `i` of `order->len`, in order. */
const struct output_run *output_order_at(const struct output_order *order, size_t i);
