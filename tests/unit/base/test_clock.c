/* clock: real, frozen, and as text. */
#include "support.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void real_clocks_agree_with_the_kernel(void **state)
{
    struct timespec before, after;
    uint64_t now;

    clock_gettime(CLOCK_MONOTONIC, &before);
    now = clock_now_ns();
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true(now >= (uint64_t)before.tv_sec * CLOCK_NS_PER_S + (uint64_t)before.tv_nsec);
    assert_true(now <= (uint64_t)after.tv_sec * CLOCK_NS_PER_S + (uint64_t)after.tv_nsec);
    assert_true(clock_wall_ns() / CLOCK_NS_PER_S >= 1700000000);
}

static void frozen_clocks_move_only_by_hand(void **state)
{
    clock_freeze(100, 5000);
    assert_int_equal(clock_now_ns(), 100);
    assert_int_equal(clock_wall_ns(), 5000);
    clock_advance(CLOCK_NS_PER_MS);
    assert_int_equal(clock_now_ns(), 1000100);
    assert_int_equal(clock_wall_ns(), 1005000);
    clock_release();
    assert_true(clock_wall_ns() > 1005000);
}

/* Most of the time the precise clock is ahead of what the file gets. */
static void nothing_is_stamped_earlier(void **state)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    for (int i = 0; i < 100; i++) {
        const uint64_t before = clock_stamp_ns();
        struct stat st;

        assert_int_equal(ftruncate(fileno(file), i), 0);
        assert_int_equal(fstat(fileno(file), &st), 0);
        assert_true((uint64_t)st.st_ctim.tv_sec * CLOCK_NS_PER_S + (uint64_t)st.st_ctim.tv_nsec >=
                    before);
    }
    fclose(file);
}

static void after_does_not_wrap(void **state)
{
    assert_int_equal(clock_after(5, 6), 11);
    assert_int_equal(clock_after(5, 0), 5);
    assert_int_equal(clock_after(5, UINT64_MAX - 5), UINT64_MAX);
    assert_int_equal(clock_after(5, UINT64_MAX - 4), UINT64_MAX);
    assert_int_equal(clock_after(UINT64_MAX, UINT64_MAX), UINT64_MAX);
}

static void text_is_rfc_3339(void **state)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {999999, "1970-01-01T00:00:00.000Z"},
        {UINT64_C(951782399999999999), "2000-02-28T23:59:59.999Z"},
        {UINT64_C(951868799001000000), "2000-02-29T23:59:59.001Z"},
        {UINT64_C(1795170840123456789), "2026-11-20T10:34:00.123Z"},
        {UINT64_MAX, "2554-07-21T23:34:33.709Z"},
    };
    char text[CLOCK_UTC_SIZE];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clock_format_utc(cases[i].ns, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_clocks_agree_with_the_kernel),
        cmocka_unit_test(frozen_clocks_move_only_by_hand),
        cmocka_unit_test(nothing_is_stamped_earlier),
        cmocka_unit_test(after_does_not_wrap),
        cmocka_unit_test(text_is_rfc_3339),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
