/* See units.h. Numbers are read digit by digit in integers: no floating point, so no rounding and
 * no locale, and every overflow is seen. A fraction is kept as numerator and power of ten and only
 * multiplied with the unit at the end. */
#include "base/units.h"

#include <stdbool.h>
#include <stddef.h>
#include <strings.h>

struct unit {
    const char *name;
    uint64_t factor;
};

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

static const struct unit size_units[] = {
    {"", 1},      {"B", 1},    {"K", KIB},   {"KB", KIB},  {"KiB", KIB},
    {"M", MIB},   {"MB", MIB}, {"MiB", MIB}, {"G", GIB},   {"GB", GIB},
    {"GiB", GIB}, {"T", TIB},  {"TB", TIB},  {"TiB", TIB}, {NULL, 0},
};

static const struct unit duration_units[] = {
    {"", UINT64_C(1000000000)},      {"ns", 1},
    {"us", UINT64_C(1000)},          {"ms", UINT64_C(1000000)},
    {"s", UINT64_C(1000000000)},     {"m", UINT64_C(60000000000)},
    {"min", UINT64_C(60000000000)},  {"h", UINT64_C(3600000000000)},
    {"d", UINT64_C(86400000000000)}, {NULL, 0},
};

/* A number without its unit: whole + fraction / scale. */
struct number {
    uint64_t whole;
    uint64_t fraction;
    uint64_t scale; /* power of ten, at most 10^9 */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* What follows the digits; NULL when there are none or too many. */
static const char *read_whole(const char *text, uint64_t *ret)
{
    uint64_t value = 0;

    if (!is_digit(*text))
        return NULL;
    for (; is_digit(*text); text++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return NULL;
    *ret = value;
    return text;
}

/* Digits behind the point; those after the ninth do not count. */
static const char *read_fraction(const char *text, struct number *number)
{
    if (!is_digit(*text))
        return NULL;
    for (; is_digit(*text); text++) {
        if (number->scale >= UINT64_C(1000000000))
            continue;
        number->fraction = number->fraction * 10 + (uint64_t)(*text - '0');
        number->scale *= 10;
    }
    return text;
}

/* 0: no such unit. */
static uint64_t unit_factor(const struct unit *units, const char *name)
{
    while (units->name && strcasecmp(units->name, name) != 0)
        units++;
    return units->factor;
}

/* false when the result does not fit. fraction < scale, so its part is below the factor and
 * factor / scale * fraction cannot overflow; the remainder is below scale <= 10^9 each. */
static bool number_scale(const struct number *number, uint64_t factor, uint64_t *ret)
{
    uint64_t part = factor / number->scale * number->fraction +
                    factor % number->scale * number->fraction / number->scale;
    uint64_t value;

    if (__builtin_mul_overflow(number->whole, factor, &value) ||
        __builtin_add_overflow(value, part, &value))
        return false;
    *ret = value;
    return true;
}

int units_parse_size(const char *text, uint64_t *ret_bytes, struct err *err)
{
    struct number number = {.scale = 1};
    const char *rest = read_whole(text, &number.whole);
    uint64_t factor = rest ? unit_factor(size_units, rest) : 0;

    if (!factor)
        return err_set(err, ERR_INVALID,
                       "'%s' is not a size: write a whole number of bytes, or with K, M, G or T "
                       "behind it, as in 512M",
                       text);
    if (!number_scale(&number, factor, ret_bytes))
        return err_set(err, ERR_INVALID, "the size '%s' is too large", text);
    return 0;
}

int units_parse_duration(const char *text, uint64_t *ret_ns, struct err *err)
{
    struct number number = {.scale = 1};
    const char *rest = read_whole(text, &number.whole);
    uint64_t factor;

    if (rest && *rest == '.')
        rest = read_fraction(rest + 1, &number);
    factor = rest ? unit_factor(duration_units, rest) : 0;
    if (!factor)
        return err_set(err, ERR_INVALID,
                       "'%s' is not a duration: write a number of seconds, or with ms, s, m or h "
                       "behind it, as in 1.5s",
                       text);
    if (!number_scale(&number, factor, ret_ns))
        return err_set(err, ERR_INVALID, "the duration '%s' is too long", text);
    return 0;
}

int units_parse_count(const char *text, uint64_t *ret_count, struct err *err)
{
    uint64_t value;
    const char *rest = read_whole(text, &value);

    if (!rest || *rest)
        return err_set(err, ERR_INVALID, "'%s' is not a count: write a whole number", text);
    *ret_count = value;
    return 0;
}
