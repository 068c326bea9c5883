/* See glob_name.h. A star backtracks at most to the last star, so the time is bounded by the
 * product of the lengths. */
#include "policy/glob_name.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"

#include <stdint.h>
#include <string.h>

/* --- characters and classes --- */

/* One UTF-8 character; a byte that is part of none stands for itself, apart from all characters. */
static uint32_t glob_char(const char **at)
{
    const unsigned char *text = (const unsigned char *)*at;
    size_t more = text[0] >= 0xf0 ? 3 : text[0] >= 0xe0 ? 2 : text[0] >= 0xc0 ? 1 : 0;
    uint32_t code = text[0] & (0x7fu >> more);

    for (size_t i = 1; i <= more; i++) {
        if ((text[i] & 0xc0) != 0x80)
            more = 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    if (more == 0) {
        (*at)++;
        return text[0] < 0x80 ? text[0] : 0x80000000u | text[0];
    }
    *at += more + 1;
    return code;
}

/* Behind the class that starts at `at` (a "["); NULL when it is never closed. */
static const char *glob_class_end(const char *at)
{
    at++;
    if (*at == '!' || *at == '^')
        at++;
    if (*at == ']')
        at++;
    for (; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (*at == ']')
            return at + 1;
    }
    return NULL;
}

static uint32_t glob_class_char(const char **at)
{
    if (**at == '\\')
        (*at)++;
    return glob_char(at);
}

struct glob_range {
    uint32_t low;
    uint32_t high;
};

/* Reads one member of a class that ends before `end`. A "-" at either end is a member. */
static struct glob_range glob_class_range(const char **at, const char *end)
{
    struct glob_range range;

    range.low = range.high = glob_class_char(at);
    if (**at == '-' && *at + 1 < end) {
        (*at)++;
        range.high = glob_class_char(at);
    }
    return range;
}

static bool glob_class_has(const char *class, const char *end, uint32_t wanted)
{
    const char *at = class + 1;
    bool negate = *at == '!' || *at == '^';
    bool found = false;

    at += negate;
    while (at < end - 1) {
        struct glob_range range = glob_class_range(&at, end - 1);

        found |= wanted >= range.low && wanted <= range.high;
    }
    return found != negate;
}

/* Matches one pattern item that is not a star against one character; moves both on when it fits. */
static bool glob_item_matches(const char **pattern, const char **text)
{
    const char *next_pattern = *pattern;
    const char *next_text = *text;
    const char *class_end = **pattern == '[' ? glob_class_end(*pattern) : NULL;
    uint32_t wanted = glob_char(&next_text);
    bool fits;

    if (class_end) {
        fits = glob_class_has(*pattern, class_end, wanted);
        next_pattern = class_end;
    } else if (**pattern == '?') {
        fits = true;
        next_pattern++;
    } else {
        if (*next_pattern == '\\')
            next_pattern++;
        fits = *next_pattern && glob_char(&next_pattern) == wanted;
    }
    if (fits) {
        *pattern = next_pattern;
        *text = next_text;
    }
    return fits;
}

bool glob_name_match(const char *pattern, const char *name)
{
    const char *star = NULL;
    const char *resume = NULL;

    while (*name) {
        if (*pattern == '*') {
            star = ++pattern;
            resume = name;
        } else if (*pattern && glob_item_matches(&pattern, &name)) {
            continue;
        } else if (star) {
            glob_char(&resume);
            name = resume;
            pattern = star;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static int glob_check_class(const char *class, const char *end, struct err *err)
{
    const char *at = class + 1;

    at += *at == '!' || *at == '^';
    while (at < end - 1) {
        struct glob_range range = glob_class_range(&at, end - 1);

        if (range.low > range.high)
            return err_set(err, ERR_INVALID, "a range in %.*s runs backwards", (int)(end - class),
                           class);
    }
    return 0;
}

int glob_name_check(const char *part, struct err *err)
{
    AUTO_FREE char *plain = glob_unescape(part);

    if (str_eq(plain, ".") || str_eq(plain, ".."))
        return err_set(err, ERR_INVALID, "has a \"%s\" component", plain);
    for (const char *at = part; *at; at++) {
        const char *end = *at == '[' ? glob_class_end(at) : NULL;

        if (end) {
            if (glob_check_class(at, end, err))
                return -1;
            at = end - 1;
        } else if (*at == '{') {
            return err_set(err, ERR_INVALID,
                           "\"{\" is not supported, write one pattern for each alternative, or "
                           "\\{ for the character");
        } else if (*at == '\\' && !*++at) {
            return err_set(err, ERR_INVALID, "ends in a single backslash");
        }
    }
    return 0;
}

/* --- text --- */

bool glob_has_meta(const char *text)
{
    for (const char *at = text; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (*at == '*' || *at == '?')
            return true;
        else if (*at == '[') {
            const char *end = glob_class_end(at);

            /* a class does not reach over a slash */
            if (end && !memchr(at, '/', (size_t)(end - at)))
                return true;
        }
    }
    return false;
}

static bool is_special(char c)
{
    return c && strchr("*?[]{}\\", c);
}

bool glob_has_escape(const char *text)
{
    while ((text = strchr(text, '\\'))) {
        if (is_special(text[1]))
            return true;
        text++;
    }
    return false;
}

char *glob_escape(const char *text)
{
    char *out = alloc_zero(2 * strlen(text) + 1, 1);
    size_t len = 0;

    for (; *text; text++) {
        if (is_special(*text))
            out[len++] = '\\';
        out[len++] = *text;
    }
    return out;
}

char *glob_unescape(const char *text)
{
    char *out = alloc_zero(strlen(text) + 1, 1);
    size_t len = 0;

    for (; *text; text++) {
        if (*text == '\\' && text[1])
            text++;
        out[len++] = *text;
    }
    return out;
}
