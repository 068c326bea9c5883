/* ring: the newest bytes, in order. */
#include "../base/support.h"
#include "script.h"

#include "base/alloc.h"
#include "output/ring.h"

#include <stdlib.h>
#include <string.h>

static void assert_holds(const struct ring *ring, const char *bytes, size_t len)
{
    char copy[600] = {0};
    size_t at = 0;
    size_t pieces = 0;

    assert_int_equal(ring->len, len);
    ring_copy(ring, 0, copy, len);
    assert_memory_equal(copy, bytes, len);
    for (size_t piece; at < len; at += piece, pieces++) {
        const char *got = ring_piece(ring, at, &piece);

        assert_true(piece > 0);
        assert_memory_equal(got, bytes + at, piece);
    }
    assert_int_equal(at, len);
    assert_true(pieces <= 2);
    ring_piece(ring, len, &at);
    assert_int_equal(at, 0);
}

static void random_additions_and_drops(void **state)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct script script;
        struct ring ring;
        char all[70000];
        size_t start = 0; /* what the ring holds is [start, end) */
        size_t end = 0;

        script_init(&script, seed);
        ring_init(&ring, (size_t)script_random(&script, 500));
        while (end < 60000 && (end < 2000 || seed % 8 == 0)) {
            size_t len = (size_t)script_random(&script, 2 * ring.max + 2);
            size_t out = end + len - start > ring.max ? end + len - start - ring.max : 0;
            size_t drop = script_random(&script, 4) ? 0 : (size_t)script_random(&script, 50);

            for (size_t i = 0; i < len; i++)
                all[end + i] = (char)script_random(&script, 256);
            assert_int_equal(ring_overflow(&ring, len), out < end - start ? out : end - start);
            ring_add(&ring, all + end, len);
            end += len;
            start += out;
            assert_holds(&ring, all + start, end - start);
            ring_drop(&ring, drop);
            start += drop < end - start ? drop : end - start;
            assert_holds(&ring, all + start, end - start);
        }
        ring_done(&ring);
        script_done(&script);
    }
}

static void memory_follows_the_content_up_to_the_limit(void **state)
{
    struct ring ring;

    ring_init(&ring, 1000);
    assert_null(ring.data);
    ring_add(&ring, "abc", 3);
    assert_true(ring.cap <= 64);
    for (int i = 0; i < 1000; i++)
        ring_add(&ring, "abc", 3);
    assert_int_equal(ring.cap, 1000);
    ring_done(&ring);
    ring_done(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_additions_and_drops),
        cmocka_unit_test(memory_follows_the_content_up_to_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
