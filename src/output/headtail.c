/* See headtail.h. The head fills first and never changes again, the tail is a ring. What the ring
 * pushes out is the gap. */
#include "output/headtail.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/utf8.h"

#include <string.h>

enum { UTF8_CONTINUATIONS_MAX = 3 };

void headtail_init(struct headtail *headtail, size_t max)
{
    headtail->omitted = 0;
    ring_init(&headtail->head, max / 2);
    ring_init(&headtail->tail, max - max / 2);
}

void headtail_done(struct headtail *headtail)
{
    ring_done(&headtail->head);
    ring_done(&headtail->tail);
}

void headtail_add(struct headtail *headtail, const char *bytes, size_t len)
{
    size_t room = headtail->head.max - headtail->head.len;
    size_t first = len < room ? len : room;
    size_t before = headtail->tail.len;

    if (!len)
        return;
    ring_add(&headtail->head, bytes, first);
    ring_add(&headtail->tail, bytes + first, len - first);
    headtail->omitted += before + (len - first) - headtail->tail.len;
}

void headtail_omit(struct headtail *headtail, uint64_t bytes)
{
    if (!bytes)
        return;
    headtail->omitted += bytes;
    headtail->head.max = headtail->head.len;
}

uint64_t headtail_total(const struct headtail *headtail)
{
    return headtail->head.len + headtail->omitted + headtail->tail.len;
}

bool headtail_render(const struct headtail *headtail, struct buf *out, uint64_t *ret_omitted)
{
    size_t head = headtail->head.len;
    size_t tail = head;
    size_t len = head + headtail->tail.len;
    AUTO_FREE char *text = alloc_zero(len, 1);
    uint64_t omitted = headtail->omitted;
    const size_t before = out->len;
    bool fits;

    ring_copy(&headtail->head, 0, text, head);
    ring_copy(&headtail->tail, 0, text + head, len - head);
    if (omitted) {
        /* bytes that can only continue a character */
        while (tail - head < UTF8_CONTINUATIONS_MAX && tail < len &&
               ((unsigned char)text[tail] & 0xc0) == 0x80)
            tail++;
        head -= utf8_torn_len(text, head);
        omitted += tail - head;
    }
    fits = !omitted ? utf8_append_lossy(out, text, len)
                    : utf8_append_lossy(out, text, head) &&
                          buf_appendf(out, "\n" HEADTAIL_MARKER "\n", omitted) &&
                          utf8_append_lossy(out, text + tail, len - tail);
    if (fits) {
        *ret_omitted = omitted;
    } else if (out->data) {
        out->len = before;
        out->data[before] = '\0';
    }
    return fits;
}
