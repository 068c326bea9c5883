/* See plugin_version.h; semver.org, point 9 to 11. Build metadata, which the standard gives no
 * order, is compared as pre-releases are, because two folders have to have one. */
#include "files/plugin_version.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_word(char byte)
{
    return is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           byte == '-';
}

static size_t number_len(const char *text)
{
    size_t len = strspn(text, "0123456789");

    return len > 1 && *text == '0' ? 0 : len;
}

/* Dot-separated identifiers up to `end`; numbers among them without leading zeros when `strict`. */
static bool are_identifiers(const char *text, const char *end, bool is_strict)
{
    while (text <= end) {
        const char *start = text;

        while (text < end && is_word(*text))
            text++;
        if (text == start || (text < end && *text != '.'))
            return false;
        if (is_strict && strspn(start, "0123456789") >= (size_t)(text - start) &&
            text - start > 1 && *start == '0')
            return false;
        text++;
    }
    return true;
}

struct version {
    const char *numbers[3];
    size_t numbers_len[3];
    const char *pre; /* NULL: none */
    const char *pre_end;
    const char *build; /* NULL: none */
    const char *build_end;
};

static bool version_read(const char *text, struct version *ret)
{
    *ret = (struct version){0};
    for (int i = 0; i < 3; i++) {
        ret->numbers[i] = text;
        ret->numbers_len[i] = number_len(text);
        text += ret->numbers_len[i];
        if (ret->numbers_len[i] == 0 || (i < 2 && *text++ != '.'))
            return false;
    }
    if (*text == '-') {
        ret->pre = text + 1;
        ret->pre_end = text += strcspn(text, "+");
        if (!are_identifiers(ret->pre, ret->pre_end, true))
            return false;
    }
    if (*text == '+') {
        ret->build = text + 1;
        ret->build_end = text += strlen(text);
        if (!are_identifiers(ret->build, ret->build_end, false))
            return false;
    }
    return *text == '\0';
}

static int sign(long value)
{
    return (value > 0) - (value < 0);
}

static int compare_numbers(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a_len != b_len ? sign((long)a_len - (long)b_len) : memcmp(a, b, a_len);
}

static int compare_words(const char *a, size_t a_len, const char *b, size_t b_len)
{
    bool is_a_number = strspn(a, "0123456789") >= a_len;
    bool is_b_number = strspn(b, "0123456789") >= b_len;
    size_t len = a_len < b_len ? a_len : b_len;
    int order;

    if (is_a_number && is_b_number)
        return compare_numbers(a, a_len, b, b_len);
    if (is_a_number != is_b_number)
        return is_a_number ? -1 : 1;
    order = memcmp(a, b, len);
    return order ? order : sign((long)a_len - (long)b_len);
}

static int compare_identifiers(const char *a, const char *a_end, const char *b, const char *b_end)
{
    while (a < a_end && b < b_end) {
        const char *a_dot = memchr(a, '.', (size_t)(a_end - a));
        const char *b_dot = memchr(b, '.', (size_t)(b_end - b));
        size_t a_len = (size_t)((a_dot ? a_dot : a_end) - a);
        size_t b_len = (size_t)((b_dot ? b_dot : b_end) - b);
        int order = compare_words(a, a_len, b, b_len);

        if (order)
            return order;
        a += a_len + (a_dot ? 1 : 0);
        b += b_len + (b_dot ? 1 : 0);
    }
    return sign((long)(a < a_end) - (long)(b < b_end));
}

int plugin_version_compare(const char *a, const char *b)
{
    struct version left;
    struct version right;
    int order = 0;

    if (!version_read(a, &left) || !version_read(b, &right))
        return strcmp(a, b);
    for (int i = 0; !order && i < 3; i++)
        order = compare_numbers(left.numbers[i], left.numbers_len[i], right.numbers[i],
                                right.numbers_len[i]);
    if (!order && (!left.pre || !right.pre))
        order = (left.pre ? 0 : 1) - (right.pre ? 0 : 1);
    else if (!order)
        order = compare_identifiers(left.pre, left.pre_end, right.pre, right.pre_end);
    if (!order && (left.build || right.build))
        order = !left.build ? -1
                : !right.build
                    ? 1
                    : compare_identifiers(left.build, left.build_end, right.build, right.build_end);
    return order;
}
