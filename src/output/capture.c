/* See capture.h. A stream is a head that only grows and a ring behind it that holds the newest
 * bytes; what the ring pushes out is the gap. The order is kept the same way: a list of segments
 * whose first half only grows and whose second half is a ring.
 *
 * Rings are turned into straight lines when somebody looks (rotation in place), not when bytes
 * come: looking is rare. Memory grows with the output, up to the limit, so a command that prints
 * little costs little.
 *
 *     head  |0 1 2 3|            tail  |8 9 a b|      total 12, omitted 4 (bytes 4 to 7)
 */
#include "output/capture.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "output/ring.h"

#include <inttypes.h>
#include <stdlib.h>

#define SEGMENTS_HEAD ((size_t)CAPTURE_SEGMENTS_MAX / 2)

struct retained {
    struct buf head;
    struct ring tail;
    uint64_t total;
};

struct capture {
    struct retained streams[STREAM_COUNT];
    struct capture_segment *segments;
    size_t segments_len;
    size_t segments_cap;
    size_t segments_start; /* of the ring in the second half, counted from its beginning */
    uint64_t offset;       /* bytes of all streams */
    uint64_t order_omitted;
};

static void reverse(char *data, size_t len)
{
    for (size_t i = 0; i < len / 2; i++) {
        char c = data[i];

        data[i] = data[len - 1 - i];
        data[len - 1 - i] = c;
    }
}

/* Moves the first `shift` bytes behind the others. */
static void rotate(void *data, size_t len, size_t shift)
{
    if (!shift)
        return;
    reverse(data, shift);
    reverse((char *)data + shift, len - shift);
    reverse(data, len);
}

struct capture *capture_new(size_t max)
{
    struct capture *capture = alloc_zero(1, sizeof *capture);

    for (int i = 0; i < STREAM_COUNT; i++) {
        buf_init(&capture->streams[i].head, max / 2);
        ring_init(&capture->streams[i].tail, max - max / 2);
    }
    return capture;
}

void capture_free(struct capture *capture)
{
    if (!capture)
        return;
    for (int i = 0; i < STREAM_COUNT; i++) {
        buf_done(&capture->streams[i].head);
        ring_done(&capture->streams[i].tail);
    }
    free(capture->segments);
    free(capture);
}

static struct capture_segment *segment_last(struct capture *capture)
{
    size_t last = capture->segments_len - 1;

    if (!capture->segments_len)
        return NULL;
    if (capture->segments_start)
        last = SEGMENTS_HEAD + capture->segments_start - 1;
    return &capture->segments[last];
}

static struct capture_segment *segment_push(struct capture *capture)
{
    struct capture_segment *oldest;

    if (capture->segments_len < CAPTURE_SEGMENTS_MAX) {
        capture->segments = alloc_grow(capture->segments, capture->segments_len,
                                       &capture->segments_cap, sizeof *capture->segments);
        return &capture->segments[capture->segments_len++];
    }
    oldest = &capture->segments[SEGMENTS_HEAD + capture->segments_start];
    capture->segments_start =
        (capture->segments_start + 1) % (CAPTURE_SEGMENTS_MAX - SEGMENTS_HEAD);
    capture->order_omitted += oldest->len;
    return oldest;
}

static void capture_note(struct capture *capture, enum stream stream, size_t len)
{
    struct capture_segment *last = segment_last(capture);

    if (last && last->stream == stream) {
        last->len += len;
    } else {
        *segment_push(capture) = (struct capture_segment){
            .stream = stream,
            .offset = capture->offset,
            .at = capture->streams[stream].total,
            .len = len,
        };
    }
    capture->offset += len;
}

void capture_add(struct capture *capture, enum stream stream, const char *bytes, size_t len)
{
    struct retained *retained = &capture->streams[stream];
    size_t room = retained->head.max - retained->head.len;
    size_t first = len < room ? len : room;

    if (!len)
        return;
    capture_note(capture, stream, len);
    retained->total += len;
    buf_append(&retained->head, bytes, first);
    ring_add(&retained->tail, bytes + first, len - first);
}

void capture_view(struct capture *capture, enum stream stream, struct capture_view *ret)
{
    struct retained *retained = &capture->streams[stream];
    struct ring *tail = &retained->tail;

    if (tail->start) { /* it has had to push something out, so it is full */
        rotate(tail->data, tail->cap, tail->start);
        tail->start = 0;
    }
    *ret = (struct capture_view){
        .head = retained->head.data ? retained->head.data : "",
        .head_len = retained->head.len,
        .tail = tail->data ? tail->data : "",
        .tail_len = tail->len,
        .total = retained->total,
        .omitted = retained->total - retained->head.len - tail->len,
    };
}

const struct capture_segment *capture_segments(struct capture *capture, size_t *ret_len,
                                               uint64_t *ret_omitted)
{
    size_t size = sizeof *capture->segments;

    if (capture->segments_start) {
        rotate(capture->segments + SEGMENTS_HEAD, (CAPTURE_SEGMENTS_MAX - SEGMENTS_HEAD) * size,
               capture->segments_start * size);
        capture->segments_start = 0;
    }
    *ret_len = capture->segments_len;
    *ret_omitted = capture->order_omitted;
    return capture->segments;
}

bool capture_render(struct capture *capture, enum stream stream, struct buf *out)
{
    struct capture_view view;

    capture_view(capture, stream, &view);
    if (!buf_append(out, view.head, view.head_len))
        return false;
    if (view.omitted && !buf_appendf(out, "\n... %" PRIu64 " bytes omitted ...\n", view.omitted))
        return false;
    return buf_append(out, view.tail, view.tail_len);
}
