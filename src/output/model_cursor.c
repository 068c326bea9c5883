/* See unread.h. A reader, and a hand on what the output is about to lose: the output keeps its own
 * head, but between two takes it is the first bytes since the last take that have to survive. They
 * are copied here only when they would be lost, so a take that comes in time costs no memory.
 *
 *     |-- taken --|-- saved, at most max / 2 --|-- gap --|-- still in the output --|
 */
#include "output/model_cursor.h"

#include "base/alloc.h"
#include "output/reader.h"

#include <stdlib.h>

enum { UNREAD_PIECE = 8192 };

struct unread {
    struct output_watch watch; /* first, so that a watch is its unread */
    struct output *output;
    struct reader *reader;
    size_t max;
    struct ring saved;    /* what the reader was to get and the output lost; never wraps */
    uint64_t saved_start; /* its offset, when it is not empty */
};

static void unread_on_loss(struct output_watch *watch, uint64_t offset, const char *bytes,
                           size_t len)
{
    struct unread *unread = (struct unread *)watch;
    uint64_t start = reader_offset(unread->reader);
    uint64_t held = reader_unread(unread->reader) - (output_total(unread->output) - start);
    uint64_t end = start + unread->max / 2 - held; /* of what will find a place in the head */
    uint64_t skip = offset < start ? start - offset : 0;

    if (unread->max / 2 < held || offset >= end || skip >= len)
        return;
    if (!unread->saved.len)
        unread->saved_start = offset + skip;
    if (len > end - offset)
        len = (size_t)(end - offset);
    ring_add(&unread->saved, bytes + skip, len - (size_t)skip);
}

struct unread *unread_new(struct output *output, size_t max)
{
    struct unread *unread = alloc_zero(1, sizeof *unread);
    struct reader_options options = {.text = READER_UTF8, .unit = OUTPUT_BY_RUN};

    unread->output = output;
    unread->max = max;
    unread->reader = reader_new(output, &options);
    unread->watch.on_loss = unread_on_loss;
    ring_init(&unread->saved, SIZE_MAX);
    output_watch(output, &unread->watch);
    return unread;
}

void unread_free(struct unread *unread)
{
    if (!unread)
        return;
    output_unwatch(unread->output, &unread->watch);
    reader_free(unread->reader);
    ring_done(&unread->saved);
    free(unread);
}

/* A gap in what the reader gives: begins with what was saved. */
static void unread_add_gap(struct unread *unread, const struct output_record *gap,
                           struct headtail *ret)
{
    size_t len = 0;

    if (unread->saved_start == gap->offset) {
        const char *bytes = ring_piece(&unread->saved, 0, &len);

        headtail_add(ret, bytes, len);
    }
    headtail_omit(ret, gap->len - len);
}

/* Leaves out what would only be read to be pushed out again. */
static void unread_skip(struct unread *unread, struct headtail *ret)
{
    uint64_t total = output_total(unread->output);

    if (ret->head.len == ret->head.max && total > ret->tail.max)
        headtail_omit(ret, reader_skip(unread->reader, total - ret->tail.max));
}

void unread_take(struct unread *unread, struct headtail *ret)
{
    struct output_record record = {.kind = OUTPUT_BYTES};
    char piece[UNREAD_PIECE];

    headtail_init(ret, unread->max);
    while (record.kind == OUTPUT_BYTES || record.kind == OUTPUT_GAP) {
        unread_skip(unread, ret);
        reader_read(unread->reader, piece, sizeof piece, &record);
        if (record.kind == OUTPUT_BYTES)
            headtail_add(ret, piece, (size_t)record.len);
        else if (record.kind == OUTPUT_GAP)
            unread_add_gap(unread, &record, ret);
    }
    ring_done(&unread->saved);
}

uint64_t unread_len(const struct unread *unread)
{
    return reader_unread(unread->reader);
}
