/* output: offsets, sequence numbers, streams and gaps are exact, whatever comes and whenever one
 * looks; and it costs no more memory than it should. */
#include "../base/support.h"
#include "script.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "output/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void output_free_slot(struct output **slot)
{
    output_free(*slot);
}

#define AUTO_OUTPUT AUTO(output_free_slot) struct output *

static struct output *new_output(size_t memory_max)
{
    return output_new(&(struct output_options){.memory_max = memory_max});
}

static void append(struct output *output, enum stream stream, const char *text)
{
    output_append(output, stream, text, strlen(text));
}

/* One record as text: "3-4 stdout@10 bytes", "gap@5 7", "empty", "end". */
static const char *read_text(struct output *output, struct output_cursor *cursor,
                             enum output_unit unit, size_t max)
{
    static const char *const ends[] = {[OUTPUT_EMPTY] = "empty", [OUTPUT_END] = "end"};
    static char text[256];
    char bytes[128];
    struct output_record record;

    output_read(output, cursor, unit, bytes, max, &record);
    if (record.kind == OUTPUT_GAP)
        snprintf(text, sizeof text, "gap@%" PRIu64 " %" PRIu64, record.offset, record.len);
    else if (record.kind == OUTPUT_BYTES)
        snprintf(text, sizeof text, "%" PRIu64 "-%" PRIu64 " %s@%" PRIu64 " %.*s", record.first_seq,
                 record.last_seq, stream_name(record.stream), record.offset, (int)record.len,
                 bytes);
    else
        snprintf(text, sizeof text, "%s", ends[record.kind]);
    return text;
}

#define assert_reads(output, cursor, unit, max, expected)                                          \
    assert_string_equal(read_text(output, cursor, unit, max), expected)

static void chunks_keep_their_numbers_and_streams(void **state)
{
    AUTO_OUTPUT output = new_output(100);
    struct output_cursor cursor = {0};

    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 100, "empty");
    append(output, STREAM_STDOUT, "ab");
    append(output, STREAM_STDOUT, "");
    append(output, STREAM_STDOUT, "c");
    append(output, STREAM_STDERR, "DE");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 100, "1-1 stdout@0 ab");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 100, "2-2 stdout@2 c");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 1, "3-3 stderr@3 D");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 1, "3-3 stderr@4 E");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 100, "empty");
    output_finish(output);
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 100, "end");
}

static void a_run_is_one_record_and_can_end_within_a_chunk(void **state)
{
    AUTO_OUTPUT output = new_output(100);
    struct output_cursor cursor = {0};

    append(output, STREAM_STDOUT, "ab");
    append(output, STREAM_STDOUT, "cd");
    append(output, STREAM_STDERR, "E");
    append(output, STREAM_STDOUT, "f");
    assert_reads(output, &cursor, OUTPUT_BY_RUN, 3, "1-2 stdout@0 abc");
    assert_reads(output, &cursor, OUTPUT_BY_RUN, 100, "2-2 stdout@3 d");
    assert_reads(output, &cursor, OUTPUT_BY_RUN, 100, "3-3 stderr@4 E");
    assert_reads(output, &cursor, OUTPUT_BY_RUN, 100, "4-4 stdout@5 f");
}

static void a_late_reader_gets_head_gap_and_tail(void **state)
{
    AUTO_OUTPUT output = new_output(10);
    struct output_cursor cursor = {0};
    struct output_info info;

    append(output, STREAM_STDOUT, "0123456789");
    append(output, STREAM_STDERR, "ab");
    output_info(output, &info);
    assert_int_equal(info.prefix_end, 5);
    assert_int_equal(info.tail_start, 7);
    assert_int_equal(info.last_seq, 2);
    assert_reads(output, &cursor, OUTPUT_BY_RUN, 100, "1-1 stdout@0 01234");
    assert_reads(output, &cursor, OUTPUT_BY_RUN, 100, "gap@5 2");
    assert_reads(output, &cursor, OUTPUT_BY_RUN, 100, "1-1 stdout@7 789");
    assert_reads(output, &cursor, OUTPUT_BY_RUN, 100, "2-2 stderr@10 ab");
}

static void a_reader_is_overtaken_in_the_middle_of_a_chunk(void **state)
{
    AUTO_OUTPUT output = new_output(10);
    struct output_cursor cursor = {0};

    append(output, STREAM_STDOUT, "0123456789");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 6, "1-1 stdout@0 012345");
    append(output, STREAM_STDERR, "abc");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 6, "gap@6 2");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 6, "1-1 stdout@8 89");
    append(output, STREAM_STDOUT, "a chunk larger than everything");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 6, "gap@10 28");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 6, "3-3 stdout@38 thing");
}

static void nothing_is_kept_with_no_memory(void **state)
{
    AUTO_OUTPUT output = new_output(0);
    struct output_cursor cursor = {0};

    append(output, STREAM_STDOUT, "abc");
    append(output, STREAM_STDERR, "d");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 6, "gap@0 4");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 6, "empty");
}

static void one_byte_of_memory_keeps_the_last(void **state)
{
    AUTO_OUTPUT output = new_output(1);
    struct output_cursor cursor = {0};

    append(output, STREAM_STDOUT, "abc");
    append(output, STREAM_STDERR, "de");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 6, "gap@0 4");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 6, "2-2 stderr@4 e");
}

static void seeking_finds_chunks_by_number(void **state)
{
    AUTO_OUTPUT output = new_output(100);
    struct output_cursor cursor;

    append(output, STREAM_STDOUT, "ab");
    append(output, STREAM_STDERR, "cd");
    append(output, STREAM_STDOUT, "ef");
    output_seek_after(output, 0, &cursor);
    assert_int_equal(cursor.offset, 0);
    output_seek_after(output, 1, &cursor);
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 9, "2-2 stderr@2 cd");
    output_seek_after(output, 3, &cursor);
    assert_int_equal(cursor.offset, 6);
    output_seek_after(output, 99, &cursor);
    assert_int_equal(cursor.offset, 6);
    append(output, STREAM_STDERR, "g");
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 9, "4-4 stderr@6 g");
    output_seek(output, 3, &cursor);
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 9, "2-2 stderr@3 d");
    output_seek(output, 1000, &cursor);
    assert_int_equal(cursor.offset, 7);
}

static void a_lost_chunk_is_sought_at_the_gap(void **state)
{
    AUTO_OUTPUT output = new_output(4);
    struct output_cursor cursor;

    append(output, STREAM_STDOUT, "a");
    append(output, STREAM_STDOUT, "bcd");
    append(output, STREAM_STDERR, "e");
    append(output, STREAM_STDERR, "f");
    append(output, STREAM_STDERR, "g"); /* kept: ab, fg */
    output_seek_after(output, 1, &cursor);
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 9, "2-2 stdout@1 b");
    output_seek_after(output, 2, &cursor);
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 9, "gap@2 3");
    output_seek_after(output, 3, &cursor);
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 9, "4-4 stderr@5 f");
}

/* --- cost --- */

static void an_empty_output_is_small(void **state)
{
    AUTO_OUTPUT output = new_output(OUTPUT_MEMORY_DEFAULT);

    assert_true(output_memory(output) < 600);
    append(output, STREAM_STDOUT, "hello, world\n");
    assert_true(output_memory(output) < 1000);
}

static void tiny_chunks_cost_little_more(void **state)
{
    AUTO_OUTPUT output = new_output(1 << 16);

    for (int i = 0; i < 1000000; i++)
        output_append(output, i & 1 ? STREAM_STDERR : STREAM_STDOUT, "x", 1);
    /* a byte each, in memory that is doubled as it grows */
    assert_true(output_memory(output) <= 3 * (1 << 16));
}

static void large_chunks_cost_their_limit(void **state)
{
    AUTO_OUTPUT output = new_output(1 << 16);
    AUTO_FREE char *chunk = alloc_zero(1 << 13, 1);

    for (int i = 0; i < 1000; i++)
        output_append(output, STREAM_STDOUT, chunk, 1 << 13);
    assert_true(output_memory(output) <= (1 << 16) + 1000);
}

/* --- as text --- */

/* The worked example of docs/model-calls.md. */
static void a_text_has_its_gap_marked(void **state)
{
    AUTO_OUTPUT output = new_output(10);
    struct buf text;

    buf_init(&text, 100);
    output_append(output, STREAM_STDOUT, "0123456789", 10);
    assert_true(output_render(output, &text));
    assert_string_equal(text.data, "0123456789");
    buf_clear(&text);
    output_append(output, STREAM_STDOUT, "ab", 2);
    assert_true(output_render(output, &text));
    assert_string_equal(text.data, "01234\n... 2 bytes omitted ...\n789ab");
    buf_done(&text);

    buf_init(&text, 20);
    assert_false(output_render(output, &text));
    buf_done(&text);
}

static void nothing_is_an_empty_text(void **state)
{
    AUTO_OUTPUT output = new_output(10);
    struct buf text;

    buf_init(&text, 0);
    assert_true(output_render(output, &text));
    assert_int_equal(text.len, 0);
    buf_done(&text);
}

/* --- watches --- */

struct losses {
    struct output_watch watch;
    uint64_t next;
    const struct script *script;
    unsigned news;
};

static void on_loss(struct output_watch *watch, uint64_t offset, const char *bytes, size_t len)
{
    struct losses *losses = container_of(watch, struct losses, watch);

    assert_true(len > 0);
    assert_int_equal(offset, losses->next);
    losses->next += len;
}

static void on_new(struct output_watch *watch)
{
    (container_of(watch, struct losses, watch))->news++;
}

static void losses_are_shown_once_and_in_order(void **state)
{
    AUTO_OUTPUT output = new_output(16);
    struct losses losses = {.watch = {.on_loss = on_loss, .on_new = on_new}, .next = 8};
    struct output_watch other = {0};
    struct output_info info;
    struct script script;

    script_init(&script, 7);
    output_watch(output, &losses.watch);
    output_watch(output, &other);
    for (int i = 0; i < 200; i++)
        script_append(&script, output, 30);
    output_finish(output);
    output_finish(output);
    output_info(output, &info);
    assert_int_equal(losses.next, info.tail_start);
    assert_int_equal(losses.news, info.last_seq + 1);
    output_unwatch(&losses.watch);
    output_unwatch(&other);
    script_done(&script);
}

/* --- against the record --- */

enum { READERS = 4 };

struct trial {
    struct script script;
    struct output *output;
    size_t memory_max;
    struct spool_options spool;
    struct output_cursor places[READERS];
    uint64_t seen[READERS];
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What has to be retained by docs/model-calls.md, and by the quota. */
static void check_info(const struct trial *trial)
{
    uint64_t total = trial->script.len;
    uint64_t head = least(total, trial->memory_max / 2);
    uint64_t tail_start = total - least(total - head, trial->memory_max - trial->memory_max / 2);
    uint64_t prefix_end = tail_start <= trial->spool.quota ? tail_start : trial->spool.quota;
    struct output_info info;

    output_info(trial->output, &info);
    assert_int_equal(info.total, total);
    assert_int_equal(info.last_seq, trial->script.last_seq);
    assert_int_equal(info.tail_start, tail_start);
    assert_int_equal(info.prefix_end, prefix_end > head ? prefix_end : head);
    assert_int_not_equal(info.spool, SPOOL_FAILED);
    if (info.spool == SPOOL_OK)
        assert_int_equal(info.prefix_end, info.tail_start);
}

static void check_copy(struct trial *trial)
{
    uint64_t offset = script_random(&trial->script, trial->script.len + 1);
    struct output_info info;
    char bytes[64];
    size_t n = output_copy(trial->output, offset, bytes, sizeof bytes);

    output_info(trial->output, &info);
    assert_int_equal(n > 0, offset < info.prefix_end ||
                                (offset >= info.tail_start && offset < info.total));
    if (n)
        assert_memory_equal(bytes, trial->script.bytes + offset, n);
}

static void check_record(struct trial *trial, const struct output_record *record, const char *bytes,
                         enum output_unit unit)
{
    struct output_info info;

    output_info(trial->output, &info);
    if (record->kind == OUTPUT_EMPTY) {
        assert_int_equal(record->offset, info.total);
        return;
    }
    script_check(&trial->script, record, bytes, unit);
    if (record->kind == OUTPUT_GAP) {
        assert_true(record->offset >= info.prefix_end);
        assert_int_equal(record->offset + record->len, info.tail_start);
    }
}

static void check_reader(struct trial *trial, int i)
{
    enum output_unit unit = i & 1 ? OUTPUT_BY_RUN : OUTPUT_BY_CHUNK;
    struct output_record record;
    char bytes[100];

    output_read(trial->output, &trial->places[i], unit, bytes,
                1 + (size_t)script_random(&trial->script, sizeof bytes), &record);
    assert_int_equal(record.offset, trial->seen[i]);
    check_record(trial, &record, bytes, unit);
    trial->seen[i] += record.len;
    assert_int_equal(trial->places[i].offset, trial->seen[i]);
}

static void check_seek(struct trial *trial)
{
    uint64_t offset = script_random(&trial->script, trial->script.len + 1);
    struct output_cursor cursor;
    struct output_record record;
    char bytes[40];

    output_seek(trial->output, offset, &cursor);
    assert_int_equal(cursor.offset, offset);
    output_read(trial->output, &cursor, OUTPUT_BY_RUN, bytes, sizeof bytes, &record);
    assert_int_equal(record.offset, offset);
    check_record(trial, &record, bytes, OUTPUT_BY_RUN);
}

static void check_seek_after(struct trial *trial)
{
    uint64_t seq = script_random(&trial->script, trial->script.last_seq + 1);
    uint64_t start = script_chunk_start(&trial->script, seq + 1);
    struct output_cursor cursor;
    struct output_info info;

    output_info(trial->output, &info);
    output_seek_after(trial->output, seq, &cursor);
    if (start >= info.prefix_end && start < info.tail_start)
        start = info.prefix_end;
    assert_int_equal(cursor.offset, start);
}

static void run_trial(struct trial *trial)
{
    size_t chunk_max = 1 + (size_t)script_random(&trial->script, 3 * trial->memory_max + 3);

    for (int round = 0; round < 300; round++) {
        script_append(&trial->script, trial->output, chunk_max);
        check_info(trial);
        check_copy(trial);
        check_seek(trial);
        check_seek_after(trial);
        for (int i = 0; i < READERS; i++)
            if (!script_random(&trial->script, (uint64_t)(i * 5 + 1)))
                check_reader(trial, i);
    }
    for (int i = 0; i < READERS; i++)
        while (trial->seen[i] < trial->script.len)
            check_reader(trial, i);
}

static void try_outputs(uint64_t first_seed, const uint64_t *quotas, size_t len)
{
    for (uint64_t seed = first_seed; seed < first_seed + 60; seed++) {
        struct trial trial = {0};

        script_init(&trial.script, seed);
        trial.memory_max =
            seed % 12 < 6 ? (size_t)(seed % 12) : (size_t)script_random(&trial.script, 300);
        if (quotas)
            trial.spool.quota = quotas[seed % len];
        trial.output = output_new(&(struct output_options){.memory_max = trial.memory_max,
                                                           .spool = quotas ? &trial.spool : NULL});
        run_trial(&trial);
        output_free(trial.output);
        script_done(&trial.script);
    }
}

static void random_output_in_memory(void **state)
{
    try_outputs(1000, NULL, 0);
}

static void random_output_with_a_spool(void **state)
{
    static const uint64_t quotas[] = {UINT64_C(1) << 30, 5000, 100, 1, 0};

    try_outputs(2000, quotas, 5);
}

/* A gigantic offset is nothing special. */
static void offsets_beyond_32_bits(void **state)
{
    AUTO_OUTPUT output = new_output(1 << 10);
    AUTO_FREE char *chunk = alloc_zero(1 << 26, 1);
    struct output_cursor cursor = {0};

    for (int i = 0; i < 65; i++)
        output_append(output, STREAM_STDOUT, chunk, 1 << 26);
    append(output, STREAM_STDERR, "end");
    assert_true(output_total(output) > UINT64_C(1) << 32);
    output_seek_after(output, 65, &cursor);
    assert_reads(output, &cursor, OUTPUT_BY_CHUNK, 9, "66-66 stderr@4362076160 end");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_keep_their_numbers_and_streams),
        cmocka_unit_test(a_run_is_one_record_and_can_end_within_a_chunk),
        cmocka_unit_test(a_late_reader_gets_head_gap_and_tail),
        cmocka_unit_test(a_reader_is_overtaken_in_the_middle_of_a_chunk),
        cmocka_unit_test(nothing_is_kept_with_no_memory),
        cmocka_unit_test(one_byte_of_memory_keeps_the_last),
        cmocka_unit_test(seeking_finds_chunks_by_number),
        cmocka_unit_test(a_lost_chunk_is_sought_at_the_gap),
        cmocka_unit_test(an_empty_output_is_small),
        cmocka_unit_test(tiny_chunks_cost_little_more),
        cmocka_unit_test(large_chunks_cost_their_limit),
        cmocka_unit_test(a_text_has_its_gap_marked),
        cmocka_unit_test(nothing_is_an_empty_text),
        cmocka_unit_test(losses_are_shown_once_and_in_order),
        cmocka_unit_test(random_output_in_memory),
        cmocka_unit_test(random_output_with_a_spool),
        cmocka_unit_test(offsets_beyond_32_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
