/* units: sizes, durations, counts. */
#include "support.h"

#include "base/units.h"

#include <inttypes.h>
#include <string.h>

struct good {
    const char *text;
    uint64_t value;
};

static void test_sizes(void **state)
{
    static const struct good good[] = {
        {"0", 0},
        {"1", 1},
        {"17B", 17},
        {"4k", 4096},
        {"512M", UINT64_C(512) << 20},
        {"512MiB", UINT64_C(512) << 20},
        {"2G", UINT64_C(2) << 30},
        {"1gb", UINT64_C(1) << 30},
        {"3T", UINT64_C(3) << 40},
        {"18446744073709551615", UINT64_MAX},
        {"16777215T", UINT64_C(16777215) << 40},
    };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct err err = ERR_UNTOUCHED;
        uint64_t value = 42;

        assert_int_equal(units_parse_size(good[i].text, &value, &err), 0);
        if (value != good[i].value)
            fail_msg("%s is %" PRIu64, good[i].text, value);
        assert_untouched(err);
    }
}

static void test_durations(void **state)
{
    static const struct good good[] = {
        {"0", 0},
        {"1", UINT64_C(1000000000)},
        {"1.5s", UINT64_C(1500000000)},
        {"2m", UINT64_C(120000000000)},
        {"0.5m", UINT64_C(30000000000)},
        {"2min", UINT64_C(120000000000)},
        {"250ms", 250000000},
        {"0.25ms", 250000},
        {"7us", 7000},
        {"9ns", 9},
        {"0.9ns", 0},
        {"1h", UINT64_C(3600000000000)},
        {"1d", UINT64_C(86400000000000)},
        {"0.1234567899s", 123456789}, /* the tenth digit does not count */
        {"0.000000001d", 86400},
        {"18446744073.709551615", UINT64_MAX},
    };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct err err = ERR_UNTOUCHED;
        uint64_t value = 42;

        assert_int_equal(units_parse_duration(good[i].text, &value, &err), 0);
        if (value != good[i].value)
            fail_msg("%s is %" PRIu64, good[i].text, value);
        assert_untouched(err);
    }
}

typedef int parse_fn(const char *text, uint64_t *ret, struct err *err);

static void check_bad(parse_fn *parse, const char *const *texts)
{
    for (; *texts; texts++) {
        struct err err = ERR_UNTOUCHED;
        uint64_t value = 42;

        if (parse(*texts, &value, &err) == 0)
            fail_msg("'%s' was taken", *texts);
        assert_int_equal(err.code, ERR_INVALID);
        assert_int_equal(value, 42);
        if (**texts)
            assert_contains(err.msg, *texts);
    }
}

static void test_bad(void **state)
{
    static const char *const sizes[] = {
        "",
        "M",
        "-1",
        "+1",
        "1.5G",
        "1 G",
        " 1",
        "1X",
        "0x10",
        "1KK",
        "18446744073709551616",
        "16777216T",
        "1e3",
        NULL,
    };
    static const char *const durations[] = {
        "",
        "s",
        "-1s",
        "1.s",
        ".5s",
        "1,5s",
        "1 s",
        "1y",
        "1.5.5",
        "18446744073.709551616",
        "99999999999999d",
        NULL,
    };
    static const char *const counts[] = {"",  "-1", "1K", "many", "1.0", "18446744073709551616",
                                         NULL};

    check_bad(units_parse_size, sizes);
    check_bad(units_parse_duration, durations);
    check_bad(units_parse_count, counts);
}

static void test_count(void **state)
{
    struct err err = ERR_UNTOUCHED;
    uint64_t value;

    assert_int_equal(units_parse_count("64", &value, &err), 0);
    assert_int_equal(value, 64);
    assert_untouched(err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
