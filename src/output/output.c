/* See output.h. The bytes are kept by `retention`, the chunks that they came in by `marks`; this
 * file keeps the two in step. The pin between them is `front`, the place of the oldest byte of the
 * newest ones: it moves as they are pushed out, and what the marks say about chunks before it goes
 * with them. A place in the prefix or behind the front stays good because marks are forgotten only
 * together with their bytes; every place between is in the gap, and the gap only grows.
 *
 * Marks go to disk before the bytes that they describe, so the prefix never holds bytes without
 * marks. When marks cannot be written the bytes are not either.
 *
 * Appending is O(length of the chunk), and O(number of watches). */
#include "output/output.h"

#include "base/alloc.h"
#include "output/byte_store.h"
#include "output/chunk_index.h"
#include "output/newlines.h"

#include <stdlib.h>

struct output {
    struct retention retention;
    struct marks marks;
    struct output_place front; /* at retention_tail_start() */
    uint64_t last_seq;
    uint64_t newlines;
    struct output_watch *watches;
    bool finished;
    bool has_name; /* the spool has */
};

struct output *output_new(const struct output_options *options)
{
    struct output *output = alloc_zero(1, sizeof *output);

    retention_init(&output->retention, options->memory_max, options->spool);
    marks_init(&output->marks, options->spool);
    output->has_name = options->spool && options->spool->name;
    return output;
}

void output_free(struct output *output)
{
    if (!output)
        return;
    retention_done(&output->retention);
    marks_done(&output->marks);
    free(output);
}

static void output_on_loss(void *data, uint64_t offset, const char *bytes, size_t len)
{
    const struct output *output = data;

    for (struct output_watch *watch = output->watches; watch; watch = watch->next)
        if (watch->on_loss)
            watch->on_loss(watch, offset, bytes, len);
}

static void output_tell(const struct output *output)
{
    for (struct output_watch *watch = output->watches; watch; watch = watch->next)
        if (watch->on_new)
            watch->on_new(watch);
}

/* Marks first. */
static void output_prepare_spool(struct output *output)
{
    if (!marks_flush(&output->marks))
        spool_fail(output->retention.spool, spool_errno(output->marks.spool));
}

void output_append(struct output *output, enum stream stream, const char *bytes, size_t len)
{
    struct retention *retention = &output->retention;
    enum marks_region region = retention->total < retention->head.max ? MARKS_HEAD : MARKS_TAIL;

    if (!len)
        return;
    output->last_seq++;
    output->newlines += newlines_count(bytes, len);
    marks_add(&output->marks, region, stream, len);
    if (retention_will_spool(retention, len))
        output_prepare_spool(output);
    retention_add(retention, bytes, len, output_on_loss, output);
    marks_advance(&output->marks, &output->front, retention_tail_start(retention));
    marks_forget(&output->marks, output->front.mark);
    output_tell(output);
}

void output_finish(struct output *output)
{
    if (output->finished)
        return;
    output->finished = true;
    if (output->has_name)
        retention_flush(&output->retention);
    output_tell(output);
}

void output_info(const struct output *output, struct output_info *ret)
{
    *ret = (struct output_info){
        .total = output->retention.total,
        .last_seq = output->last_seq,
        .newlines = output->newlines,
        .prefix_end = retention_prefix_end(&output->retention),
        .tail_start = retention_tail_start(&output->retention),
        .finished = output->finished,
        .spool = spool_state(output->retention.spool),
        .spool_errno = spool_errno(output->retention.spool),
    };
}

uint64_t output_total(const struct output *output)
{
    return output->retention.total;
}

size_t output_memory(const struct output *output)
{
    return sizeof *output + retention_memory(&output->retention) + marks_memory(&output->marks);
}

/* Whether the bytes behind the place are gone. */
static bool output_in_gap(const struct output *output, uint64_t offset)
{
    return offset >= retention_prefix_end(&output->retention) &&
           offset < retention_tail_start(&output->retention);
}

/* Where the retained bytes that begin at `offset` end. */
static uint64_t output_reach(const struct output *output, uint64_t offset)
{
    uint64_t prefix_end = retention_prefix_end(&output->retention);
    uint64_t tail_start = retention_tail_start(&output->retention);

    return prefix_end < tail_start && offset < prefix_end ? prefix_end : output->retention.total;
}

void output_peek(struct output *output, struct output_place *place, struct output_record *ret)
{
    *ret = (struct output_record){.kind = OUTPUT_BYTES, .offset = place->offset};
    if (place->offset == output->retention.total) {
        ret->kind = output->finished ? OUTPUT_END : OUTPUT_EMPTY;
        return;
    }
    if (!output_in_gap(output, place->offset) &&
        (place->left || marks_next(&output->marks, place))) {
        ret->stream = place->stream;
        ret->first_seq = place->seq;
        ret->last_seq = place->seq;
        ret->len = output_reach(output, place->offset) - place->offset;
        if (ret->len > place->left)
            ret->len = place->left;
        return;
    }
    ret->kind = OUTPUT_GAP;
    ret->len = retention_tail_start(&output->retention) - place->offset;
}

/* Makes the record, which is one of bytes, as long as unit and `max` allow, and moves the place
 * behind it. */
static void output_extend(struct output *output, struct output_place *place, enum output_unit unit,
                          size_t max, struct output_record *record)
{
    struct output_record next = *record;

    record->len = 0;
    while (next.kind == OUTPUT_BYTES && next.stream == record->stream && record->len < max) {
        uint64_t step = next.len < max - record->len ? next.len : max - record->len;

        record->len += step;
        record->last_seq = place->seq;
        place->offset += step;
        place->left -= step;
        if (unit == OUTPUT_BY_CHUNK)
            return;
        output_peek(output, place, &next);
    }
}

static bool output_copy_all(struct output *output, uint64_t offset, char *into, uint64_t len)
{
    while (len) {
        size_t n = output_copy(output, offset, into, (size_t)len);

        if (!n)
            return false;
        into += n;
        offset += n;
        len -= n;
    }
    return true;
}

void output_read(struct output *output, struct output_place *place, enum output_unit unit,
                 char *into, size_t max, struct output_record *ret)
{
    const struct output_place before = *place;

    output_peek(output, place, ret);
    while (ret->kind == OUTPUT_BYTES) {
        output_extend(output, place, unit, max, ret);
        if (output_copy_all(output, ret->offset, into, ret->len))
            return;
        /* the spool has failed: less is retained now, and all of that is in memory */
        *place = before;
        output_peek(output, place, ret);
    }
    if (ret->kind == OUTPUT_GAP)
        *place = output->front;
}

void output_seek(struct output *output, uint64_t offset, struct output_place *ret)
{
    if (offset > output->retention.total)
        offset = output->retention.total;
    *ret = offset < output->front.offset ? (struct output_place){0} : output->front;
    if (output_in_gap(output, offset) || !marks_advance(&output->marks, ret, offset))
        *ret = (struct output_place){.offset = offset, .mark = UINT64_MAX};
}

void output_seek_after(struct output *output, uint64_t seq, struct output_place *ret)
{
    struct output_place place = output->front;
    uint64_t end = output->retention.total;

    if (place.seq > seq) {
        place = (struct output_place){0};
        end = retention_prefix_end(&output->retention);
    }
    while (place.offset < end && (place.left || place.seq < seq)) {
        uint64_t chunk_end;

        if (!place.left && !marks_next(&output->marks, &place))
            break;
        chunk_end = place.offset + place.left;
        marks_advance(&output->marks, &place, chunk_end < end ? chunk_end : end);
    }
    *ret = place;
}

size_t output_copy(struct output *output, uint64_t offset, char *into, size_t max)
{
    return retention_copy(&output->retention, offset, into, max);
}

void output_watch(struct output *output, struct output_watch *watch)
{
    watch->previous = NULL;
    watch->next = output->watches;
    if (watch->next)
        watch->next->previous = watch;
    output->watches = watch;
}

void output_unwatch(struct output *output, struct output_watch *watch)
{
    if (watch->next)
        watch->next->previous = watch->previous;
    if (watch->previous)
        watch->previous->next = watch->next;
    else
        output->watches = watch->next;
}
