/* The table of `ps`. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "client/client.h"

#include <stdint.h>
#include <string.h>

#define A "11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
#define B "22222222-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
#define B2 "22222222-cccc-4ccc-8ccc-cccccccccccc"

static json_t *list_of(const char *text)
{
    struct err err;
    json_t *list = json_parse(text, strlen(text), &err);

    assert_non_null(list);
    return list;
}

static void check_table(const char *json, uint64_t now_ms, const char *wanted)
{
    AUTO_JSON json_t *list = list_of(json);
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    ps_table(list, now_ms * CLOCK_NS_PER_MS, &text);
    assert_string_equal(strchr(text.data, '\n') + 1, wanted);
}

static void the_table_shows_what_there_is(void **state)
{
    check_table("[]", 0, "");
    check_table("[{\"processId\": \"p\", \"sessionId\": \"" A "\", \"argv\": [\"a\", \"b c\"],"
                "\"pid\": 12, \"tty\": true, \"exited\": false, \"startedAtMs\": 1000}]",
                43000, "11111111/p       running  12       tty 42s  a b c\n");
    check_table(
        "[{\"processId\": \"a long name of a process\", \"sessionId\": \"" A "\","
        "\"argv\": [\"\\u001b[2J\\n\"], \"pid\": null, \"tty\": false, \"exited\": true,"
        "\"exitCode\": 137, \"startedAtMs\": 0}]",
        7200000,
        "11111111/a long name of a process exit 137 -        -   2h   <U+001B>[2J<U+000A>\n");
}

static void the_table_keeps_sessions_apart(void **state)
{
    check_table("[{\"processId\": \"p\", \"sessionId\": \"" B "\", \"argv\": [\"x\"]},"
                "{\"processId\": \"p\", \"sessionId\": \"" B2 "\", \"argv\": [\"y\"]}]",
                1000, B "/p running  -        -   1s   x\n" B2 "/p running  -        -   1s   y\n");
}

static void the_table_stands_anything(void **state)
{
    check_table("[7, {\"argv\": 8, \"pid\": \"x\"}]", 1000,
                "/                running  -        -   1s   \n"
                "/                running  -        -   1s   \n");
}

static void the_table_cuts_long_commands(void **state)
{
    AUTO_JSON json_t *list = list_of("[{\"argv\": [\"0123456789012345678901234567890123456789\","
                                     "\"0123456789012345678901234567890123456789\"]}]");
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    ps_table(list, 0, &text);
    assert_string_equal(strrchr(text.data, ' '), " 0123456789012345678\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_shows_what_there_is),
        cmocka_unit_test(the_table_keeps_sessions_apart),
        cmocka_unit_test(the_table_stands_anything),
        cmocka_unit_test(the_table_cuts_long_commands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
