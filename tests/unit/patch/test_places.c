/* Finding lines: the index against a plain search, on many small random files whose lines are few
 * and alike; and the bound on what a search may cost. */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "patch/lines.h"

#include <stdlib.h>
#include <string.h>

enum { FILES = 8000, LINES_MOST = 24, WANTED_MOST = 4 };

static uint32_t seed = 1;

static unsigned draw(unsigned below)
{
    seed = seed * 1664525U + 1013904223U; /* Numerical Recipes' generator */
    return (seed >> 16) % below;
}

static struct span draw_line(void)
{
    static const char *const lines[] = {"",   "a",    "b",       "a ",      "  a",
                                        "-a", " b\t", "\u2013a", "\u00a0b", "-a "};
    const char *text = lines[draw(sizeof lines / sizeof *lines)];

    return (struct span){text, strlen(text)};
}

/* The plain search: level by level, from exact to lenient, the first place counts. */
static bool plain_find(const struct lines *lines, const struct line_search *search, size_t *ret)
{
    char left[16];
    char right[16];

    for (int level = 0; level < LINE_LEVELS; level++)
        for (size_t at = search->is_at_end && search->len <= lines->len ? lines->len - search->len
                                                                        : search->start;
             at >= search->start && at + search->len <= lines->len; at++) {
            size_t i = 0;

            while (i < search->len &&
                   span_eq(line_key((enum line_level)level, lines->items[at + i].text, left),
                           line_key((enum line_level)level, search->wanted[i], right)))
                i++;
            *ret = at;
            if (i == search->len)
                return true;
        }
    return false;
}

static void check_one(const struct lines *lines, struct line_index *index)
{
    struct span wanted[WANTED_MOST];
    struct line_search search = {.wanted = wanted, .len = 1 + draw(WANTED_MOST)};
    bool is_found;
    size_t plain = 0;
    size_t at = 0;
    struct err err;

    for (size_t i = 0; i < search.len; i++)
        wanted[i] = draw_line();
    search.start = draw((unsigned)lines->len + 1);
    search.is_at_end = draw(4) == 0;
    if (line_index_find(index, &search, &is_found, &at, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(is_found, plain_find(lines, &search, &plain));
    if (is_found)
        assert_int_equal(at, plain);
}

static void index_finds_what_a_plain_search_finds(void **state)
{
    struct line items[LINES_MOST];

    for (int file = 0; file < FILES; file++) {
        struct lines lines = {.items = items, .len = draw(LINES_MOST)};
        struct line_index *index = line_index_new(&lines);

        for (size_t i = 0; i < lines.len; i++)
            items[i] = (struct line){.text = draw_line(), .end = LINE_LF};
        for (int i = 0; i < 4; i++)
            check_one(&lines, index);
        line_index_free(index);
    }
}

/* "a" and "b" by turns, and what is looked for is "a", "a": both are everywhere, and never so. */
static void a_search_that_never_ends_is_given_up(void **state)
{
    enum { MANY = 1 << 18, SEARCHES = 1 << 13 };
    struct lines lines = {.items = alloc_zero(MANY, sizeof(struct line)), .len = MANY};
    struct span wanted[] = {{"a", 1}, {"a", 1}};
    const struct line_search search = {.wanted = wanted, .len = 2};
    struct line_index *index = line_index_new(&lines);
    bool is_found = false;
    size_t at;
    struct err err = {.code = ERR_NONE};

    for (size_t i = 0; i < MANY; i++)
        lines.items[i].text = (struct span){i % 2 ? "b" : "a", 1};
    for (int i = 0; i < SEARCHES && err.code == ERR_NONE; i++)
        (void)line_index_find(index, &search, &is_found, &at, &err);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_false(is_found);
    line_index_free(index);
    free(lines.items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_finds_what_a_plain_search_finds),
        cmocka_unit_test(a_search_that_never_ends_is_given_up),
    };

    return cmocka_run_group_tests_name("patch/places", tests, NULL, NULL);
}
