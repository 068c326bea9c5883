/* screen: what a terminal would show (tests/cases/screen).
 *
 *     rows, columns         24 and 80 unless given
 *     lines_max, bytes_max  of the scrollback; 0 and 65536 unless given
 *     feed         bytes (output_cases.h) and {"resize": [rows, columns]}, in order
 *     screen       the rows from the top; those behind the last one given have to be empty
 *     cursor       [row, column], from 0
 *     hidden       the cursor is not shown; false unless given
 *     alternate    false unless given
 *     title        "" unless given
 *     scrollback   the lines that left; not looked at unless given
 *
 * Every case is fed whole and byte by byte. */
#include "output_cases.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "screen/screen.h"
#include "screen/scrollback.h"

#include <stdlib.h>
#include <string.h>

static void feed(struct screen *screen, const char *bytes, size_t len, size_t step)
{
    while (len) {
        size_t taken = screen_feed(screen, bytes, len < step ? len : step);

        assert_in_range(taken, 1, len);
        bytes += taken;
        len -= taken;
    }
}

static void feed_text(struct screen *screen, const char *text)
{
    feed(screen, text, strlen(text), SIZE_MAX);
}

static uint16_t number_at(const json_t *pair, size_t i)
{
    return (uint16_t)json_integer_value(json_array_get(pair, i));
}

static void play(struct screen *screen, const json_t *json, size_t step)
{
    const json_t *item;
    size_t i;

    json_array_foreach(json, i, item)
    {
        const json_t *size = json_object_get(item, "resize");
        AUTO(buf_done) struct buf bytes;

        buf_init(&bytes, 1 << 22);
        if (size) {
            screen_resize(screen, (struct pty_size){number_at(size, 0), number_at(size, 1)});
            continue;
        }
        case_bytes(item, &bytes);
        feed(screen, bytes.data, bytes.len, step);
    }
}

static void check_row(const struct screen *screen, unsigned row, const char *wanted)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, 1 << 16);
    assert_true(screen_row(screen, row, &text));
    if (strcmp(text.data ? text.data : "", wanted))
        fail_msg("row %u is \"%s\", wanted \"%s\"", row, text.data ? text.data : "", wanted);
}

static void check_rows(const struct screen *screen, const json_t *wanted)
{
    struct screen_info info;

    screen_info(screen, &info);
    assert_true(json_is_array(wanted));
    assert_in_range(json_array_size(wanted), 0, info.rows);
    for (unsigned row = 0; row < info.rows; row++) {
        const char *text = json_string_value(json_array_get(wanted, row));

        check_row(screen, row, text ? text : "");
    }
}

static void check_scrollback(const struct screen *screen, const json_t *wanted)
{
    struct screen_info info;
    const json_t *line;
    size_t i;

    screen_info(screen, &info);
    assert_int_equal(info.lines, json_array_size(wanted));
    json_array_foreach(wanted, i, line)
        assert_string_equal(screen_line(screen, i), json_string_value(line));
}

static void check_info(const struct screen *screen, const json_t *json)
{
    const json_t *wanted = json_object_get(json, "cursor");
    struct screen_info info;

    screen_info(screen, &info);
    assert_int_equal(json_array_size(wanted), 2);
    assert_int_equal(info.cursor_row, number_at(wanted, 0));
    assert_int_equal(info.cursor_column, number_at(wanted, 1));
    assert_int_equal(info.is_cursor_visible, !json_is_true(json_object_get(json, "hidden")));
    assert_int_equal(info.is_alternate, json_is_true(json_object_get(json, "alternate")));
    assert_string_equal(info.title, case_string_or(json, "title", ""));
}

static void check(const json_t *json, size_t step)
{
    struct screen *screen = screen_new(&(struct screen_options){
        .size = {.rows = (uint16_t)case_number(json, "rows", 0),
                 .columns = (uint16_t)case_number(json, "columns", 0)},
        .limits = {.lines_max = case_number(json, "lines_max", 0),
                   .bytes_max = case_number(json, "bytes_max", 1 << 16)},
    });

    play(screen, json_object_get(json, "feed"), step);
    check_rows(screen, json_object_get(json, "screen"));
    check_info(screen, json);
    if (json_object_get(json, "scrollback"))
        check_scrollback(screen, json_object_get(json, "scrollback"));
    screen_free(screen);
}

static void screen_case(void **state)
{
    static const char *const keys[] = {"why",       "rows",       "columns", "lines_max", "feed",
                                       "screen",    "bytes_max",  "cursor",  "hidden",    "title",
                                       "alternate", "scrollback", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;

    case_check_keys(json, keys);
    check(json, SIZE_MAX);
    check(json, 1);
}

/* --- what is no case --- */

static void sizes_are_bounded(void **state)
{
    struct screen *screen = screen_new(&(struct screen_options){.size = {UINT16_MAX, 1}});
    struct screen_info info;

    screen_info(screen, &info);
    assert_int_equal(info.rows, SCREEN_ROWS_MAX);
    assert_int_equal(info.columns, SCREEN_COLUMNS_MIN);
    screen_resize(screen, (struct pty_size){1, UINT16_MAX});
    screen_info(screen, &info);
    assert_int_equal(info.rows, SCREEN_ROWS_MIN);
    assert_int_equal(info.columns, SCREEN_COLUMNS_MAX);
    screen_resize(screen, (struct pty_size){0, 0});
    screen_info(screen, &info);
    assert_int_equal(info.rows, PTY_DEFAULT_ROWS);
    assert_int_equal(info.columns, PTY_DEFAULT_COLUMNS);
    screen_free(screen);
}

/* A few bytes that set much in motion are not all taken at once. */
static void work_of_one_call_is_bounded(void **state)
{
    struct screen *screen = screen_new(&(struct screen_options){.size = {300, 500}});
    char bytes[4096];
    size_t taken;

    memset(bytes, '\n', sizeof bytes);
    taken = screen_feed(screen, bytes, sizeof bytes);
    assert_in_range(taken, 1, 100);
    taken = screen_feed(screen, "\033[9999bx", 8);
    assert_int_equal(taken, 8);
    screen_free(screen);
}

static void text_needs_many_calls_only_when_long(void **state)
{
    struct screen *screen = screen_new(&(struct screen_options){.size = {24, 80}});
    char bytes[4096];

    memset(bytes, 'x', sizeof bytes);
    assert_int_equal(screen_feed(screen, bytes, sizeof bytes), sizeof bytes);
    screen_free(screen);
}

static void scrollback_counts_what_it_drops(void **state)
{
    struct screen *screen =
        screen_new(&(struct screen_options){.size = {2, 10}, .limits = {3, 100}});
    struct screen_info info;

    for (int i = 0; i < 50; i++)
        feed_text(screen, "line\r\n");
    screen_info(screen, &info);
    assert_int_equal(info.lines, 3);
    assert_int_equal(info.lines_total, 49);
    assert_string_equal(screen_line(screen, 2), "line");
    assert_string_equal(screen_line(screen, 3), "");
    screen_free(screen);
}

static void scrollback_bounds_bytes(void **state)
{
    struct scrollback back = {.lines_max = 100, .bytes_max = 10};

    scrollback_add(&back, "abcd", 4);
    scrollback_add(&back, "efgh", 4);
    assert_int_equal(back.len, 2);
    scrollback_add(&back, "", 0);
    assert_int_equal(back.len, 2);
    assert_string_equal(scrollback_line(&back, 0), "efgh");
    scrollback_add(&back, "0123456789", 10);
    assert_int_equal(back.len, 0);
    assert_int_equal(back.bytes, 0);
    assert_int_equal(back.total, 4);
    scrollback_done(&back);
}

/* What libvterm would gather without bound. */
static void combining_characters_are_bounded(void **state)
{
    struct screen *screen = screen_new(&(struct screen_options){.size = {2, 10}});

    feed_text(screen, "e");
    for (int i = 0; i < 100000; i++)
        feed_text(screen, "\xcc\x81\033[C\033[D");
    feed_text(screen, "x\xcc\x81");
    check_row(screen, 0, "e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81x\xcc\x81");
    screen_free(screen);
}

static void a_row_that_does_not_fit_is_left_out(void **state)
{
    struct screen *screen = screen_new(&(struct screen_options){.size = {2, 10}});
    AUTO(buf_done) struct buf text;

    buf_init(&text, 4);
    feed_text(screen, "abcde\r\nabcd");
    assert_false(screen_row(screen, 0, &text));
    assert_int_equal(text.len, 0);
    assert_true(screen_row(screen, 1, &text));
    assert_string_equal(text.data, "abcd");
    assert_true(screen_row(screen, 99, &text));
    assert_int_equal(text.len, 4);
    screen_free(screen);
}

/* Whatever comes: valid UTF-8, the cursor on the screen. Bytes of escape sequences come often. */
static void any_bytes_will_do(void **state)
{
    static const char often[] = "\033\033\033[[[];?0123456789hlHJKLMPSTrbsum\n\r\t\xc2\x80\xe4\xb8";
    uint64_t random = 1;
    struct screen *screen = screen_new(&(struct screen_options){.size = {5, 9}, .limits = {9, 99}});

    for (int i = 0; i < 200000; i++) {
        struct screen_info info;
        char byte;

        random = random * 6364136223846793005U + 1442695040888963407U;
        byte = random >> 40 & 3 ? often[(random >> 44) % (sizeof often - 1)] : (char)(random >> 50);
        screen_feed(screen, &byte, 1);
        if ((random >> 33) % 1000 == 0)
            screen_resize(screen, (struct pty_size){(random >> 50) % 9, (random >> 57) % 20});
        screen_info(screen, &info);
        assert_in_range(info.cursor_row, 0, info.rows - 1);
        assert_in_range(info.cursor_column, 0, info.columns - 1);
        if (i % 100 == 0) {
            AUTO(buf_done) struct buf text;

            buf_init(&text, 1 << 16);
            for (unsigned row = 0; row < info.rows; row++)
                assert_true(screen_row(screen, row, &text));
            assert_true(!text.data || utf8_is_valid(text.data, text.len));
        }
    }
    screen_free(screen);
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(work_of_one_call_is_bounded),
        cmocka_unit_test(text_needs_many_calls_only_when_long),
        cmocka_unit_test(scrollback_counts_what_it_drops),
        cmocka_unit_test(scrollback_bounds_bytes),
        cmocka_unit_test(combining_characters_are_bounded),
        cmocka_unit_test(a_row_that_does_not_fit_is_left_out),
        cmocka_unit_test(any_bytes_will_do),
    };

    return cases_run("screen", screen_case, more, sizeof more / sizeof *more);
}
