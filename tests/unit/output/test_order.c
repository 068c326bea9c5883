/* order: compared with a record of everything, over many random histories. */
#include "../base/support.h"

#include "output/order.h"

#include <stdint.h>

/* xorshift32: the same histories in every run */
static uint32_t next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

#define PIECES 60

/* Runs are contiguous, never two of a stream in a row, and say what was added. */
static void check_history(uint32_t seed)
{
    struct output_order order = {0};
    enum stream streams[PIECES];
    size_t lens[PIECES];
    uint64_t at[STREAM_COUNT] = {0};
    uint64_t offset = 0;
    size_t next = 0;

    for (size_t i = 0; i < PIECES; i++) {
        streams[i] = next_random(&seed) % 3 ? STREAM_STDOUT : STREAM_STDERR;
        lens[i] = next_random(&seed) % 4;
        output_order_add(&order, streams[i], lens[i]);
    }
    for (size_t i = 0; i < PIECES; i++) {
        const struct output_run *run = next ? output_order_at(&order, next - 1) : NULL;

        if (!lens[i])
            continue;
        if (!run || offset == run->offset + run->len) {
            assert_true(!run || run->stream != streams[i]);
            assert_true(next < order.len);
            run = output_order_at(&order, next++);
            assert_int_equal(run->offset, offset);
            assert_int_equal(run->at, at[streams[i]]);
        }
        assert_int_equal(run->stream, streams[i]);
        offset += lens[i];
        at[streams[i]] += lens[i];
        assert_true(offset <= run->offset + run->len);
    }
    assert_int_equal(next, order.len);
    assert_int_equal(order.omitted, 0);
    output_order_done(&order);
}

static void test_random_histories(void **state)
{
    for (uint32_t seed = 1; seed <= 2000; seed++)
        check_history(seed * 2654435761u);
}

/* Too many changes of stream: the oldest of the second half go, counted. */
static void test_runs_are_bounded(void **state)
{
    enum { CHANGES = 3 * OUTPUT_ORDER_MAX + 5, LOST = CHANGES - OUTPUT_ORDER_MAX };
    struct output_order order = {0};

    for (size_t i = 0; i < CHANGES; i++)
        output_order_add(&order, i % 2 ? STREAM_STDERR : STREAM_STDOUT, 3);
    assert_int_equal(order.len, OUTPUT_ORDER_MAX);
    assert_int_equal(order.omitted, 3 * LOST);
    for (size_t i = 0; i < order.len; i++) {
        const struct output_run *run = output_order_at(&order, i);
        size_t number = i < order.len / 2 ? i : i + LOST;

        assert_int_equal(run->offset, 3 * number);
        assert_int_equal(run->stream, number % 2 ? STREAM_STDERR : STREAM_STDOUT);
        assert_int_equal(run->at, 3 * (number / 2));
        assert_int_equal(run->len, 3);
    }
    output_order_done(&order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_histories),
        cmocka_unit_test(test_runs_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
