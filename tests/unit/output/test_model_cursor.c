/* model_cursor: each byte once, the beginning and the end of what is new, exact counts. */
#include "../base/support.h"
#include "script.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "output/model_cursor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct desk {
    struct output *output;
    struct model_cursor *cursor;
};

static void desk_open(struct desk *desk, size_t memory_max, size_t unread_max)
{
    desk->output = output_new(&(struct output_options){.memory_max = memory_max});
    desk->cursor = model_cursor_new(desk->output, unread_max);
}

static void desk_close(struct desk *desk)
{
    model_cursor_free(desk->cursor);
    output_free(desk->output);
}

static void out(const struct desk *desk, const char *text)
{
    output_append(desk->output, STREAM_STDOUT, text, strlen(text));
}

/* What the next take shows. */
static char *take(const struct desk *desk)
{
    struct headtail taken;
    struct buf text;
    uint64_t omitted;

    buf_init(&text, 1 << 20);
    model_cursor_take(desk->cursor, &taken);
    assert_true(headtail_render(&taken, &text, &omitted));
    headtail_done(&taken);
    return buf_take(&text);
}

#define assert_takes(desk, expected)                                                               \
    do {                                                                                           \
        AUTO_FREE char *taken_ = take(desk);                                                       \
        assert_string_equal(taken_, expected);                                                     \
    } while (0)

static void each_byte_is_given_once(void **state)
{
    struct desk desk;

    desk_open(&desk, 100, 100);
    assert_takes(&desk, "");
    out(&desk, "one ");
    output_append(desk.output, STREAM_STDERR, "two", 3);
    assert_int_equal(model_cursor_len(desk.cursor), 7);
    assert_takes(&desk, "one two");
    assert_int_equal(model_cursor_len(desk.cursor), 0);
    assert_takes(&desk, "");
    out(&desk, "three");
    assert_takes(&desk, "three");
    desk_close(&desk);
}

/* docs/model-calls.md, worked example; and the head is new for every take */
static void every_take_has_a_head_and_a_tail(void **state)
{
    struct desk desk;

    desk_open(&desk, 10, 10);
    for (int i = 0; i < 3; i++) {
        out(&desk, "0123456789");
        out(&desk, "ab");
        assert_takes(&desk, "01234\n... 2 bytes omitted ...\n789ab");
    }
    out(&desk, "0123456789");
    assert_takes(&desk, "0123456789");
    desk_close(&desk);
}

/* The output keeps 4 bytes of its end only, the head of a take is saved from being lost. */
static void the_head_is_saved_when_the_output_loses_it(void **state)
{
    struct desk desk;

    desk_open(&desk, 8, 20);
    out(&desk, "taken already");
    assert_takes(&desk, "taken already");
    out(&desk, "abcdefghijklmnopqrstuvwxyz");
    assert_takes(&desk, "abcdefghij\n... 12 bytes omitted ...\nwxyz");
    for (const char *p = "abcdefghijklmnopqrstuvwxyz"; *p; p++)
        output_append(desk.output, STREAM_STDOUT, p, 1);
    assert_takes(&desk, "abcdefghij\n... 12 bytes omitted ...\nwxyz");
    out(&desk, "abcdefghijklmn"); /* all that is lost was saved */
    assert_takes(&desk, "abcdefghijklmn");
    desk_close(&desk);
}

static void a_character_that_is_not_complete_stays(void **state)
{
    struct desk desk;

    desk_open(&desk, 100, 100);
    out(&desk, "price: 5 \xe2\x82");
    assert_takes(&desk, "price: 5 ");
    out(&desk, "\xac\n\xe2");
    assert_takes(&desk, "\xe2\x82\xac\n");
    output_finish(desk.output);
    assert_takes(&desk, "\xef\xbf\xbd");
    assert_takes(&desk, "");
    desk_close(&desk);
}

static void the_budget_may_be_smaller_than_what_is_retained(void **state)
{
    struct desk desk;

    desk_open(&desk, 1000, 4);
    out(&desk, "0123456789");
    assert_takes(&desk, "01\n... 6 bytes omitted ...\n89");
    desk_close(&desk);
    desk_open(&desk, 1000, 0);
    out(&desk, "0123456789");
    assert_takes(&desk, "\n... 10 bytes omitted ...\n");
    desk_close(&desk);
    desk_open(&desk, 1000, 1);
    out(&desk, "0123456789");
    assert_takes(&desk, "\n... 9 bytes omitted ...\n9");
    desk_close(&desk);
}

static void a_spool_is_read_only_as_far_as_it_is_shown(void **state)
{
    const struct spool_options spool = {.quota = 1 << 20};
    struct desk desk;

    desk.output = output_new(&(struct output_options){.memory_max = 8, .spool = &spool});
    desk.cursor = model_cursor_new(desk.output, 30);
    for (int i = 0; i < 10; i++)
        out(&desk, "abcdefghij");
    assert_takes(&desk, "abcdefghijabcde\n... 70 bytes omitted ...\nfghijabcdefghij");
    desk_close(&desk);
}

/* Against the rule: of what came since the last take the first max / 2 bytes, and of its end as
 * much as both the take and the memory of the output hold. */
static void random_takes(void **state)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct script script;
        struct desk desk;
        size_t start = 0;
        size_t memory_max;
        size_t max;

        script_init(&script, seed);
        memory_max = (size_t)script_random(&script, 100);
        max = (size_t)script_random(&script, 100);
        desk_open(&desk, memory_max, max);
        for (int round = 0; round < 200; round++) {
            struct headtail taken;
            char copy[100];
            size_t len;

            script_append(&script, desk.output, 60);
            if (script_random(&script, 4))
                continue;
            len = script.len - start;
            model_cursor_take(desk.cursor, &taken);
            assert_int_equal(headtail_total(&taken), len);
            assert_true(taken.head.len + taken.tail.len <= max);
            assert_int_equal(taken.head.len, len < max / 2 ? len : max / 2);
            ring_copy(&taken.head, 0, copy, taken.head.len);
            if (taken.head.len)
                assert_memory_equal(copy, script.bytes + start, taken.head.len);
            ring_copy(&taken.tail, 0, copy, taken.tail.len);
            if (taken.tail.len)
                assert_memory_equal(copy, script.bytes + script.len - taken.tail.len,
                                    taken.tail.len);
            if (memory_max >= max)
                assert_int_equal(taken.omitted, len > max ? len - max : 0);
            headtail_done(&taken);
            start = script.len;
        }
        desk_close(&desk);
        script_done(&script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_is_given_once),
        cmocka_unit_test(every_take_has_a_head_and_a_tail),
        cmocka_unit_test(the_head_is_saved_when_the_output_loses_it),
        cmocka_unit_test(a_character_that_is_not_complete_stays),
        cmocka_unit_test(the_budget_may_be_smaller_than_what_is_retained),
        cmocka_unit_test(a_spool_is_read_only_as_far_as_it_is_shown),
        cmocka_unit_test(random_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
