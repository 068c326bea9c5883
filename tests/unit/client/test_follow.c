/* The order of the events of a process. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/json.h"
#include "client/follow.h"

#include <stdlib.h>
#include <string.h>

/* Puts events by these numbers; the numbers that come out, as letters from "a" = 1 on. */
static char *play(struct event_order *order, const char *numbers)
{
    char *out = calloc(strlen(numbers) + 1, 1);
    size_t len = 0;

    for (; *numbers; numbers++) {
        uint64_t seq = (uint64_t)(*numbers - 'a' + 1);
        AUTO_JSON json_t *params = json_integer((json_int_t)seq);
        json_t *next;
        char *method;

        assert_true(event_order_put(order, seq, "m", params));
        while (event_order_take(order, &method, &next)) {
            assert_string_equal(method, "m");
            out[len++] = (char)(json_integer_value(next) - 1 + 'a');
            free(method);
            json_decref(next);
        }
    }
    return out;
}

static void order_sorts(void **state)
{
    static const struct {
        const char *in;
        const char *out;
        size_t held;
    } cases[] = {
        {"abc", "abc", 0},       {"bac", "abc", 0},    {"cba", "abc", 0},  {"aabb", "ab", 0},
        {"bbaacc", "abc", 0},    {"bcd", "", 3},       {"acab", "abc", 0}, {"ac", "a", 1},
        {"fedcba", "abcdef", 0}, {"dbacd", "abcd", 0}, {"", "", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO(event_order_done) struct event_order order = {0};
        AUTO_FREE char *out = play(&order, cases[i].in);

        assert_string_equal(out, cases[i].out);
        assert_int_equal(order.held, cases[i].held);
    }
}

static void order_holds_only_so_many(void **state)
{
    AUTO(event_order_done) struct event_order order = {0};
    AUTO_JSON json_t *params = json_object();

    /* from the last to the first, so that each finds its place at once */
    for (uint64_t seq = EVENT_ORDER_MAX + 1; seq > 1; seq--)
        assert_true(event_order_put(&order, seq, "m", params));
    assert_false(event_order_put(&order, 1, "m", params));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_sorts),
        cmocka_unit_test(order_holds_only_so_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
