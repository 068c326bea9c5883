/* reader: every byte once and in order, or a gap; characters whole; and events once. */
#include "../base/support.h"
#include "script.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "output/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An output with a reader, and what the reader was told. */
struct desk {
    struct output *output;
    struct reader *reader;
    unsigned ready;
};

static void on_ready(void *data)
{
    ((struct desk *)data)->ready++;
}

static void desk_open(struct desk *desk, size_t memory_max, struct reader_options options)
{
    *desk = (struct desk){0};
    desk->output = output_new(&(struct output_options){.memory_max = memory_max});
    options.on_ready = on_ready;
    options.data = desk;
    desk->reader = reader_new(desk->output, &options);
}

static void desk_close(struct desk *desk)
{
    reader_free(desk->reader);
    output_free(desk->output);
}

static void out(const struct desk *desk, const char *text)
{
    output_append(desk->output, STREAM_STDOUT, text, strlen(text));
}

static void error(const struct desk *desk, const char *text)
{
    output_append(desk->output, STREAM_STDERR, text, strlen(text));
}

/* "o1-2@10 bytes", 'o' or 'e' for the stream; "gap@5 7"; "empty"; "end". */
static const char *read_text(const struct desk *desk, size_t max)
{
    static char text[256];
    char bytes[128];
    struct output_record record;

    reader_read(desk->reader, bytes, max, &record);
    if (record.kind == OUTPUT_GAP)
        snprintf(text, sizeof text, "gap@%" PRIu64 " %" PRIu64, record.offset, record.len);
    else if (record.kind == OUTPUT_BYTES)
        snprintf(text, sizeof text, "%c%" PRIu64 "-%" PRIu64 "@%" PRIu64 " %.*s",
                 "oe"[record.stream], record.first_seq, record.last_seq, record.offset,
                 (int)record.len, bytes);
    else
        snprintf(text, sizeof text, "%s", record.kind == OUTPUT_END ? "end" : "empty");
    return text;
}

#define assert_reads(desk, max, expected) assert_string_equal(read_text(desk, max), expected)

static void begins_where_it_is_told(void **state)
{
    struct desk desk;

    desk_open(&desk, 100, (struct reader_options){.offset = 99});
    out(&desk, "abc");
    reader_free(desk.reader);
    desk.reader = reader_new(desk.output, &(struct reader_options){.offset = 2});
    assert_reads(&desk, 10, "o1-1@2 c");
    assert_reads(&desk, 10, "empty");
    output_finish(desk.output);
    assert_reads(&desk, 10, "end");
    assert_reads(&desk, 10, "end");
    desk_close(&desk);
}

static void ready_is_said_once_per_empty(void **state)
{
    struct desk desk;

    desk_open(&desk, 100, (struct reader_options){0});
    out(&desk, "a");
    assert_int_equal(desk.ready, 0); /* it has not read yet */
    assert_reads(&desk, 10, "o1-1@0 a");
    out(&desk, "b");
    assert_int_equal(desk.ready, 0);
    assert_reads(&desk, 10, "o2-2@1 b");
    assert_reads(&desk, 10, "empty");
    out(&desk, "c");
    out(&desk, "d");
    assert_int_equal(desk.ready, 1);
    assert_reads(&desk, 10, "o3-3@2 c");
    assert_reads(&desk, 10, "o4-4@3 d");
    assert_reads(&desk, 10, "empty");
    assert_int_equal(desk.ready, 1);
    output_finish(desk.output);
    assert_int_equal(desk.ready, 2);
    assert_reads(&desk, 10, "end");
    desk_close(&desk);
}

static void a_slow_reader_gets_a_gap_and_holds_up_nobody(void **state)
{
    struct reader *fast;
    struct desk desk;
    struct output_record record;
    char bytes[10];
    uint64_t total = 0;

    desk_open(&desk, 10, (struct reader_options){0});
    fast = reader_new(desk.output, &(struct reader_options){0});
    for (int i = 0; i < 100; i++) {
        out(&desk, "12345");
        reader_read(fast, bytes, sizeof bytes, &record);
        assert_int_equal(record.kind, OUTPUT_BYTES);
        total += record.len;
    }
    assert_int_equal(total, 500);
    assert_reads(&desk, 10, "o1-1@0 12345");
    assert_reads(&desk, 10, "gap@5 490");
    assert_reads(&desk, 10, "o100-100@495 12345");
    assert_reads(&desk, 10, "empty");
    reader_free(fast);
    desk_close(&desk);
}

/* --- UTF-8 --- */

#define EURO "\xe2\x82\xac"

static const struct reader_options text_options = {.text = READER_UTF8, .unit = OUTPUT_BY_RUN};

static void a_torn_character_is_held_back(void **state)
{
    struct desk desk;

    desk_open(&desk, 100, text_options);
    out(&desk, "ab\xe2");
    assert_reads(&desk, 10, "o1-1@0 ab");
    assert_reads(&desk, 10, "empty");
    assert_int_equal(reader_unread(desk.reader), 1);
    out(&desk, "\x82");
    assert_reads(&desk, 10, "empty");
    out(&desk, "\xac!");
    assert_reads(&desk, 10, "o1-3@2 " EURO "!");
    assert_reads(&desk, 10, "empty");
    assert_int_equal(reader_unread(desk.reader), 0);
    desk_close(&desk);
}

static void a_torn_character_is_given_at_the_end(void **state)
{
    struct desk desk;

    desk_open(&desk, 100, text_options);
    out(&desk, "a\xe2\x82");
    error(&desk, "\xf0");
    assert_reads(&desk, 10, "o1-1@0 a");
    assert_reads(&desk, 10, "empty");
    output_finish(desk.output);
    assert_reads(&desk, 10, "o1-1@1 \xe2\x82");
    assert_reads(&desk, 10, "e2-2@3 \xf0");
    assert_reads(&desk, 10, "end");
    desk_close(&desk);
}

static void streams_are_held_back_apart(void **state)
{
    struct desk desk;

    desk_open(&desk, 100, text_options);
    out(&desk, "\xe2");
    error(&desk, "x\xc3");
    out(&desk, "\x82");
    error(&desk, "\xa9y");
    out(&desk, "\xac and more");
    assert_reads(&desk, 50, "e2-2@1 x");
    assert_reads(&desk, 50, "e2-4@2 \xc3\xa9y");
    assert_reads(&desk, 50, "o1-5@0 " EURO " "); /* a record of its own */
    assert_reads(&desk, 50, "o5-5@8 and more");
    assert_reads(&desk, 50, "empty");
    desk_close(&desk);
}

static void what_cannot_be_completed_is_given(void **state)
{
    struct desk desk;

    desk_open(&desk, 100, text_options);
    out(&desk, "\xe2\x82");
    assert_reads(&desk, 10, "empty");
    out(&desk, "\xe2");
    assert_reads(&desk, 10, "o1-1@0 \xe2\x82");
    assert_reads(&desk, 10, "empty");
    out(&desk, "\x82\xac");
    assert_reads(&desk, 10, "o2-3@2 " EURO);
    out(&desk, "\xff\x80");
    assert_reads(&desk, 10, "o4-4@5 \xff\x80"); /* no beginning of anything */
    assert_reads(&desk, 10, "empty");
    desk_close(&desk);
}

static void a_small_buffer_cuts_between_characters(void **state)
{
    struct desk desk;

    desk_open(&desk, 100, text_options);
    out(&desk, EURO EURO);
    assert_reads(&desk, READER_MAX_MIN, "o1-1@0 " EURO);
    assert_reads(&desk, READER_MAX_MIN, "o1-1@3 " EURO);
    assert_reads(&desk, READER_MAX_MIN, "empty");
    desk_close(&desk);
}

static void what_is_held_back_comes_before_the_gap(void **state)
{
    struct desk desk;

    desk_open(&desk, 8, text_options);
    out(&desk, "a\xe2");
    assert_reads(&desk, 10, "o1-1@0 a");
    assert_reads(&desk, 10, "empty");
    out(&desk, "\x82\xac 123456789");
    assert_reads(&desk, 10, "o1-2@1 " EURO);
    assert_reads(&desk, 10, "gap@4 6");
    assert_reads(&desk, 10, "o2-2@10 6789");
    desk_close(&desk);
    desk_open(&desk, 2, text_options);
    out(&desk, "\xe2");
    assert_reads(&desk, 10, "empty");
    out(&desk, "\x82\xac 123456789");
    assert_reads(&desk, 10, "o1-1@0 \xe2");
    assert_reads(&desk, 10, "gap@1 11");
    assert_reads(&desk, 10, "o2-2@12 9");
    desk_close(&desk);
}

static void skipping_drops_what_is_held_back(void **state)
{
    struct desk desk;

    desk_open(&desk, 100, text_options);
    out(&desk, "a\xe2");
    error(&desk, "bcd");
    assert_reads(&desk, 10, "o1-1@0 a");
    assert_reads(&desk, 10, "e2-2@2 bcd");
    assert_int_equal(reader_skip(desk.reader, 4), 0); /* not backwards */
    error(&desk, "efg");
    assert_int_equal(reader_skip(desk.reader, 7), 3); /* one held back, two in between */
    assert_reads(&desk, 10, "e3-3@7 g");
    assert_reads(&desk, 10, "empty");
    desk_close(&desk);
}

/* --- against the record --- */

static void random_readers(void **state)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        enum output_unit unit = seed & 1 ? OUTPUT_BY_RUN : OUTPUT_BY_CHUNK;
        struct script script;
        struct desk desk;
        uint64_t next = 0;

        script_init(&script, seed);
        desk_open(&desk, (size_t)script_random(&script, 200),
                  (struct reader_options){.unit = unit});
        for (int round = 0; round < 300; round++) {
            struct output_record record;
            char bytes[64];

            script_append(&script, desk.output, 40);
            if (script_random(&script, seed % 5 + 1))
                continue;
            reader_read(desk.reader, bytes, READER_MAX_MIN + (size_t)script_random(&script, 60),
                        &record);
            assert_int_equal(record.offset, next);
            next += record.len;
            if (record.kind != OUTPUT_EMPTY)
                script_check(&script, &record, bytes, unit);
            assert_int_equal(reader_unread(desk.reader), script.len - next);
        }
        script_done(&script);
        desk_close(&desk);
    }
}

static const char *const letters[] = {"a", "\xc3\xa9", EURO, "\xf0\x9f\x98\x80"};

/* Text cut into random pieces between two streams: each stream arrives complete, and no record
 * tears a character. */
static void random_text(void **state)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct buf sent[STREAM_COUNT];
        struct buf got[STREAM_COUNT];
        size_t cut[STREAM_COUNT] = {0};
        struct output_record record = {0};
        struct script script;
        struct desk desk;
        char bytes[32];

        script_init(&script, seed);
        desk_open(&desk, 100000,
                  (struct reader_options){.text = READER_UTF8,
                                          .unit = seed & 1 ? OUTPUT_BY_RUN : OUTPUT_BY_CHUNK});
        for (int i = 0; i < STREAM_COUNT; i++) {
            buf_init(&sent[i], 100000);
            buf_init(&got[i], 100000);
            for (int n = 0; n < 200; n++)
                buf_append_str(&sent[i], letters[script_random(&script, 4)]);
        }
        while (record.kind != OUTPUT_END) {
            enum stream stream = (enum stream)script_random(&script, STREAM_COUNT);
            size_t left = sent[stream].len - cut[stream];
            size_t len = (size_t)script_random(&script, 6);

            len = len < left ? len : left;
            output_append(desk.output, stream, sent[stream].data + cut[stream], len);
            cut[stream] += len;
            if (cut[0] == sent[0].len && cut[1] == sent[1].len)
                output_finish(desk.output);
            reader_read(desk.reader, bytes,
                        READER_MAX_MIN + (size_t)script_random(&script, sizeof bytes - 3), &record);
            if (record.kind != OUTPUT_BYTES)
                continue;
            if (!utf8_is_valid(bytes, (size_t)record.len))
                fail_msg("seed %lu: a torn character", (unsigned long)seed);
            buf_append(&got[record.stream], bytes, (size_t)record.len);
        }
        for (int i = 0; i < STREAM_COUNT; i++) {
            assert_string_equal(got[i].data, sent[i].data);
            buf_done(&sent[i]);
            buf_done(&got[i]);
        }
        script_done(&script);
        desk_close(&desk);
    }
}

/* Any bytes at all, with gaps: no byte twice, none missing but in a gap. */
static void random_bytes_as_text(void **state)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct output_record record = {0};
        struct script script;
        struct desk desk;
        uint64_t given = 0;
        char bytes[32];

        script_init(&script, seed);
        desk_open(&desk, (size_t)script_random(&script, 60), text_options);
        while (record.kind != OUTPUT_END) {
            static const char pool[] = "a\xe2\x82\xac\xc3\xf0\x9f\x80\xff";
            char chunk[8];
            size_t len = (size_t)script_random(&script, sizeof chunk);

            for (size_t i = 0; i < len; i++)
                chunk[i] = pool[script_random(&script, sizeof pool - 1)];
            if (script.len < 2000)
                script_append_bytes(&script, desk.output,
                                    (enum stream)script_random(&script, STREAM_COUNT), chunk, len);
            else
                output_finish(desk.output);
            if (script.len < 2000 && script_random(&script, 3))
                continue;
            reader_read(desk.reader, bytes, sizeof bytes, &record);
            given += record.len;
            assert_int_equal(reader_unread(desk.reader), script.len - given);
        }
        assert_int_equal(given, script.len);
        script_done(&script);
        desk_close(&desk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_where_it_is_told),
        cmocka_unit_test(ready_is_said_once_per_empty),
        cmocka_unit_test(a_slow_reader_gets_a_gap_and_holds_up_nobody),
        cmocka_unit_test(a_torn_character_is_held_back),
        cmocka_unit_test(a_torn_character_is_given_at_the_end),
        cmocka_unit_test(streams_are_held_back_apart),
        cmocka_unit_test(what_cannot_be_completed_is_given),
        cmocka_unit_test(a_small_buffer_cuts_between_characters),
        cmocka_unit_test(what_is_held_back_comes_before_the_gap),
        cmocka_unit_test(skipping_drops_what_is_held_back),
        cmocka_unit_test(random_readers),
        cmocka_unit_test(random_text),
        cmocka_unit_test(random_bytes_as_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
