/* See model_cursor.h. A reader, and a hand on what the output is about to lose: the output keeps
 * its own head, but between two takes it is the first bytes since the last take that have to
 * survive. They are copied here only when they would be lost, so a take that comes in time costs no
 * memory.
 *
 *     |-- taken --|-- saved, at most max / 2 --|-- gap --|-- still in the output --|
 */
#include "output/model_cursor.h"

#include "base/alloc.h"
#include "output/reader.h"

#include <stdlib.h>

enum { PIECE_SIZE = 8192 };

struct model_cursor {
    struct output_watch watch;
    struct output *output;
    struct reader *reader;
    size_t max;
    struct ring saved;    /* what the reader was to get and the output lost; never wraps */
    uint64_t saved_start; /* its offset, when it is not empty */
};

static void model_cursor_on_loss(struct output_watch *watch, uint64_t offset, const char *bytes,
                                 size_t len)
{
    struct model_cursor *cursor = container_of(watch, struct model_cursor, watch);
    uint64_t start = reader_offset(cursor->reader);
    uint64_t held = reader_unread(cursor->reader) - (output_total(cursor->output) - start);
    uint64_t end = start + cursor->max / 2 - held; /* of what will find a place in the head */
    uint64_t skip = offset < start ? start - offset : 0;

    if (cursor->max / 2 < held || offset >= end || skip >= len)
        return;
    if (!cursor->saved.len)
        cursor->saved_start = offset + skip;
    if (len > end - offset)
        len = (size_t)(end - offset);
    ring_add(&cursor->saved, bytes + skip, len - (size_t)skip);
}

struct model_cursor *model_cursor_new(struct output *output, size_t max)
{
    struct model_cursor *cursor = alloc_zero(1, sizeof *cursor);
    struct reader_options options = {.text = READER_UTF8, .unit = OUTPUT_BY_RUN};

    cursor->output = output;
    cursor->max = max;
    cursor->reader = reader_new(output, &options);
    cursor->watch.on_loss = model_cursor_on_loss;
    ring_init(&cursor->saved, SIZE_MAX);
    output_watch(output, &cursor->watch);
    return cursor;
}

void model_cursor_free(struct model_cursor *cursor)
{
    if (!cursor)
        return;
    output_unwatch(&cursor->watch);
    reader_free(cursor->reader);
    ring_done(&cursor->saved);
    free(cursor);
}

/* A gap in what the reader gives: begins with what was saved. */
static void model_cursor_add_gap(struct model_cursor *cursor, const struct output_record *gap,
                                 struct headtail *ret)
{
    size_t len = 0;

    if (cursor->saved_start == gap->offset) {
        const char *bytes = ring_piece(&cursor->saved, 0, &len);

        headtail_add(ret, bytes, len);
    }
    headtail_omit(ret, gap->len - len);
}

void model_cursor_take(struct model_cursor *cursor, struct headtail *ret)
{
    struct output_record record = {.kind = OUTPUT_BYTES};
    char piece[PIECE_SIZE];

    headtail_init(ret, cursor->max);
    while (record.kind == OUTPUT_BYTES || record.kind == OUTPUT_GAP) {
        uint64_t total = output_total(cursor->output);

        /* what would only be read to be pushed out again is left out */
        if (ret->head.len == ret->head.max && total > ret->tail.max)
            headtail_omit(ret, reader_skip(cursor->reader, total - ret->tail.max));
        reader_read(cursor->reader, piece, sizeof piece, &record);
        if (record.kind == OUTPUT_BYTES)
            headtail_add(ret, piece, (size_t)record.len);
        else if (record.kind == OUTPUT_GAP)
            model_cursor_add_gap(cursor, &record, ret);
    }
    ring_done(&cursor->saved);
}

uint64_t model_cursor_len(const struct model_cursor *cursor)
{
    return reader_unread(cursor->reader);
}
