/* See scrollback.h. Each line is a string of its own, and a ring of pointers gives their order. The
 * ring grows with what is kept, so a screen that never scrolls costs nothing. */
#include "screen/scrollback.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

void scrollback_done(struct scrollback *back)
{
    scrollback_clear(back);
    free(back->lines);
    back->lines = NULL;
    back->cap = 0;
}

static size_t place_of(const struct scrollback *back, size_t i)
{
    return (back->first + i) % back->cap;
}

static void drop_oldest(struct scrollback *back)
{
    char *line = back->lines[back->first];

    back->bytes -= strlen(line) + 1;
    free(line);
    back->first = place_of(back, 1);
    back->len--;
}

void scrollback_clear(struct scrollback *back)
{
    while (back->len)
        drop_oldest(back);
}

static void grow(struct scrollback *back)
{
    size_t cap = back->cap ? 2 * back->cap : 16;
    char **lines = alloc_zero(cap, sizeof *lines);

    for (size_t i = 0; i < back->len; i++)
        lines[i] = back->lines[place_of(back, i)];
    free(back->lines);
    back->lines = lines;
    back->cap = cap;
    back->first = 0;
}

void scrollback_add(struct scrollback *back, const char *text, size_t len)
{
    back->total++;
    while (back->len && (back->len >= back->lines_max || back->bytes + len + 1 > back->bytes_max))
        drop_oldest(back);
    if (!back->lines_max || len + 1 > back->bytes_max)
        return;
    if (back->len == back->cap)
        grow(back);
    back->lines[place_of(back, back->len)] = alloc_strn(text, len);
    back->len++;
    back->bytes += len + 1;
}

const char *scrollback_line(const struct scrollback *back, size_t i)
{
    return back->lines[place_of(back, i)];
}
