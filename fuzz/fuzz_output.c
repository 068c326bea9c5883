/* Output and its readers: the input is a list of steps, one byte each, some with an operand byte.
 * The first byte is the memory, the second the quota of a spool (0: none). Every byte of the output
 * is the low byte of a number that follows from its offset, so all that is read can be checked. */
#include "fuzz.h"

#include "base/alloc.h"
#include "output/model_cursor.h"
#include "output/output.h"
#include "output/reader.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 8192, READERS = 2 };

struct desk {
    struct output *output;
    struct reader *readers[READERS];
    struct model_cursor *cursor;
    uint64_t given[READERS];
    uint64_t taken;
    char all[BYTES_MAX]; /* what every offset holds */
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void append(struct desk *desk, unsigned stream, size_t len)
{
    uint64_t total = output_total(desk->output);

    if (len > BYTES_MAX - total)
        len = (size_t)(BYTES_MAX - total);
    output_append(desk->output, stream % STREAM_COUNT, desk->all + total, len);
}

static enum output_kind step_reader(struct desk *desk, unsigned i, size_t max)
{
    struct output_record record;
    char bytes[256 + READER_MAX_MIN];

    reader_read(desk->readers[i], bytes, READER_MAX_MIN + max, &record);
    desk->given[i] += record.len;
    check(reader_unread(desk->readers[i]) == output_total(desk->output) - desk->given[i]);
    if (record.kind == OUTPUT_BYTES) {
        check(record.len <= READER_MAX_MIN + max);
        /* bytes of a character may be further apart in text */
        if (i == 0)
            check(memcmp(bytes, desk->all + record.offset, (size_t)record.len) == 0);
        check(bytes[0] == desk->all[record.offset]);
    }
    return record.kind;
}

static void take(struct desk *desk)
{
    struct headtail taken;

    model_cursor_take(desk->cursor, &taken);
    desk->taken += headtail_total(&taken);
    check(desk->taken + model_cursor_len(desk->cursor) == output_total(desk->output));
    headtail_done(&taken);
}

static void seek(struct desk *desk, uint64_t number)
{
    struct output_cursor cursor;
    struct output_record record;
    char bytes[64];

    output_seek(desk->output, number * 32, &cursor);
    output_read(desk->output, &cursor, OUTPUT_BY_RUN, bytes, sizeof bytes, &record);
    if (record.kind == OUTPUT_BYTES)
        check(memcmp(bytes, desk->all + record.offset, (size_t)record.len) == 0);
    output_seek_after(desk->output, number, &cursor);
    output_peek(desk->output, &cursor, &record);
    check(record.kind != OUTPUT_BYTES || record.first_seq > number);
}

static void step(struct desk *desk, uint8_t op, uint8_t operand)
{
    switch (op % 8) {
    case 0:
    case 1:
        append(desk, op, operand);
        break;
    case 2:
    case 3:
        step_reader(desk, op % READERS, operand);
        break;
    case 4:
    case 5:
        take(desk);
        break;
    case 6:
        seek(desk, operand);
        break;
    default:
        append(desk, op / 8, 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct spool_options spool = {.quota = size > 1 ? data[1] * UINT64_C(20) : 0};
    struct desk *desk = alloc_zero(1, sizeof *desk);
    static const char letters[] = "ab\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff";

    for (size_t i = 0; i < BYTES_MAX; i++)
        desk->all[i] = letters[(i * 7 + i / 13) % (sizeof letters - 1)];
    desk->output = output_new(&(struct output_options){.memory_max = size ? data[0] : 0,
                                                       .spool = spool.quota ? &spool : NULL});
    desk->readers[0] = reader_new(desk->output, &(struct reader_options){0});
    desk->readers[1] = reader_new(
        desk->output, &(struct reader_options){.text = READER_UTF8, .unit = OUTPUT_BY_RUN});
    desk->cursor = model_cursor_new(desk->output, size > 2 ? data[2] : 0);
    for (size_t i = 3; i + 1 < size && i < 2000; i += 2)
        step(desk, data[i], data[i + 1]);
    output_finish(desk->output);
    for (unsigned i = 0; i < READERS; i++)
        while (step_reader(desk, i, 200) != OUTPUT_END)
            ;
    check(desk->given[0] == output_total(desk->output));
    check(desk->given[1] == output_total(desk->output));
    take(desk);
    check(desk->taken == output_total(desk->output));
    for (unsigned i = 0; i < READERS; i++)
        reader_free(desk->readers[i]);
    model_cursor_free(desk->cursor);
    output_free(desk->output);
    free(desk);
    return 0;
}
