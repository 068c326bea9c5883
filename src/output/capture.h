/* Bounded store of a command's output: of each stream the head and the tail, half and half,
 * an exact count of what was left out between them, and the order in which the streams came. */
#pragma once

#include "output/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define CAPTURE_DEFAULT_MAX ((size_t)1 << 20) /* bytes per stream, spec/exec-core.md 1.1 */

/* A run of bytes of one stream. Neighbours are never of the same stream and adjacent. */
struct capture_segment {
    enum stream stream;
    uint64_t offset; /* among the bytes of all streams, in order of arrival */
    uint64_t at;     /* among the bytes of its own stream */
    uint64_t len;
};

/* Retained bytes [0, head_len) and [total - tail_len, total) of a stream. */
struct capture_view {
    const char *head;
    size_t head_len;
    const char *tail; /* contiguous; right behind the head when nothing was left out */
    size_t tail_len;
    uint64_t total;   /* bytes that came */
    uint64_t omitted; /* total - head_len - tail_len */
};

struct capture;

/* Retains at most `max` bytes of each stream: max / 2 of its beginning, the rest of its end. */
struct capture *capture_new(size_t max);
void capture_free(struct capture *capture);

void capture_add(struct capture *capture, enum stream stream, const char *bytes, size_t len);

/* Pointers into the capture, valid until the next capture_add(). */
void capture_view(struct capture *capture, enum stream stream, struct capture_view *ret);

/* The retained segments in order; at most CAPTURE_SEGMENTS_MAX, those of the beginning and those of
 * the end. What fell out between them is counted in bytes: `*ret_omitted`. Segments may cover bytes
 * that are not retained any more. Valid until the next capture_add(). */
const struct capture_segment *capture_segments(struct capture *capture, size_t *ret_len,
                                               uint64_t *ret_omitted);
#define CAPTURE_SEGMENTS_MAX 8192

/* Appends head, marker line with the count if anything was left out, and tail. false when the
 * buffer's limit is passed. The marker is the one of spec/unified-exec.md 7. */
bool capture_render(struct capture *capture, enum stream stream, struct buf *out);
