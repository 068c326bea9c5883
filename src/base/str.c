/* See str.h. */
#include "base/str.h"

#include <ctype.h>
#include <string.h>

enum {
    DISTANCE_MAX = 64,
    NEAR_MIN = 6, /* of a shorter one two letters are half, and "list" is not meant by "test" */
};

bool str_eq(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

bool str_starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *text, const char *suffix)
{
    size_t len = strlen(text);
    size_t suffix_len = strlen(suffix);

    return len >= suffix_len && strcmp(text + len - suffix_len, suffix) == 0;
}

/* On a mismatch after a `*`, only the last star has to be tried one character further. */
static bool is_same(char a, char b, bool folds)
{
    return a == b || (folds && tolower((unsigned char)a) == tolower((unsigned char)b));
}

static bool match(const char *pattern, const char *text, bool folds)
{
    const char *star = NULL;
    const char *resume = NULL;

    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            resume = text;
        } else if (*pattern == '?' || is_same(*pattern, *text, folds)) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

bool str_match(const char *pattern, const char *text)
{
    return match(pattern, text, false);
}

bool str_match_nocase(const char *pattern, const char *text)
{
    return match(pattern, text, true);
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;

    return least < c ? least : c;
}

/* Edit distance (optimal string alignment), three rows of the table; DISTANCE_MAX for what is too
 * long. */
static size_t str_distance(const char *a, const char *b)
{
    size_t rows[3][DISTANCE_MAX + 1];
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);

    if (a_len > DISTANCE_MAX || b_len > DISTANCE_MAX)
        return DISTANCE_MAX;
    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *now = rows[i % 3];
        const size_t *last = rows[(i - 1) % 3];
        const size_t *before = rows[(i + 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min3(now[j], before[j - 2] + 1, now[j]);
        }
    }
    return rows[a_len % 3][b_len];
}

/* "workspace" for "workspace-write", "write" for "writable": it begins so, all but for a letter at most, and
 * no other does. */
static const char *str_begun(const char *text, const char *const *names)
{
    enum { BEGUN_MIN = 4 };
    const char *found = NULL;

    for (; *names; names++) {
        size_t len = 0;

        while (text[len] && text[len] == (*names)[len])
            len++;
        if (len < BEGUN_MIN || len + 1 < strlen(text))
            continue;
        if (found)
            return NULL;
        found = *names;
    }
    return found;
}

const char *str_nearest(const char *text, const char *const *names)
{
    size_t len = strlen(text);
    size_t limit = len < NEAR_MIN ? 1 : len / 3;
    const char *best = NULL;
    size_t best_distance = limit + 1;

    for (const char *const *name = names; *name; name++) {
        size_t distance = str_distance(text, *name);

        if (distance < best_distance) {
            best_distance = distance;
            best = *name;
        }
    }
    return best ? best : str_begun(text, names);
}
