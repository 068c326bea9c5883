/* See similar.h. Every line is a hash. A table has, for each line of the texts that are gone, which ones have it; a new text
 * asks there with its own lines, and the one that was named most is counted out. So it costs as much as there are lines,
 * and not as there are pairs. Lines that very many have (a licence, a brace) name nobody.
 *
 * Hashes may collide by chance or on purpose; then two texts are called similar that are not, which a diff shows. */
#include "layer/similar.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX = 1 << 20,
    BYTES_MAX = 64 << 20,
    LINES_MAX = 2 << 20,
    BINARY_HEAD = 8 * 1024,
    TELLING = 5,      /* bytes that a line needs to name a text */
    NAMED_MAX = 16,   /* texts that a line names */
    SAME_NAME_MAX = 8 /* texts of the same name that are looked at anyway */
};

/* A line that names a text. */
struct entry {
    uint64_t line;
    size_t text;
};

struct find {
    struct similar *similar;
    struct entry *entries; /* sorted by line */
    size_t entries_len;
    size_t *by_name; /* texts that are gone */
    size_t by_name_len;
    size_t *named; /* texts with votes, or of the same name */
    size_t named_len;
};

bool similar_wants(const struct similar *similar, uint64_t size)
{
    return size <= TEXT_MAX && similar->bytes < BYTES_MAX && similar->lines < LINES_MAX;
}

/* FNV-1a; the lowest bit says whether the line tells anything. */
static uint64_t hash(const char *line, size_t len)
{
    uint64_t value = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < len; i++)
        value = (value ^ (unsigned char)line[i]) * UINT64_C(0x100000001b3);
    return (value & ~UINT64_C(1)) | (len >= TELLING);
}

static int compare_lines(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return one < other ? -1 : one > other;
}

void similar_add(struct similar *similar, const char *data, size_t len,
                 const struct similar_file *file)
{
    struct similar_text text = {.file = *file};
    size_t cap = 0;

    if (!len || memchr(data, 0, len < BINARY_HEAD ? len : BINARY_HEAD))
        return;
    for (const char *at = data, *end = data + len; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t line = newline ? (size_t)(newline - at) : (size_t)(end - at);

        text.lines = alloc_grow(text.lines, text.len, &cap, sizeof *text.lines);
        text.lines[text.len++] = hash(at, line);
        at += line + 1;
    }
    qsort(text.lines, text.len, sizeof *text.lines, compare_lines);
    similar->bytes += len;
    similar->lines += text.len;
    similar->texts =
        alloc_grow(similar->texts, similar->texts_len, &similar->texts_cap, sizeof *similar->texts);
    similar->texts[similar->texts_len++] = text;
}

/* --- the table --- */

static int compare_entries(const void *a, const void *b)
{
    const struct entry *one = a, *other = b;

    if (one->line != other->line)
        return one->line < other->line ? -1 : 1;
    return one->text < other->text ? -1 : one->text > other->text;
}

static bool is_telling(const struct similar_text *text, size_t line)
{
    return (text->lines[line] & 1) && (line == 0 || text->lines[line] != text->lines[line - 1]);
}

static int compare_names(const void *a, const void *b, void *data)
{
    const struct similar_text *texts = data;
    const struct similar_text *one = &texts[*(const size_t *)a],
                              *other = &texts[*(const size_t *)b];

    return strcmp(one->file.name, other->file.name);
}

static void build(struct find *find)
{
    const struct similar *similar = find->similar;

    for (size_t i = 0; i < similar->texts_len; i++) {
        const struct similar_text *text = &similar->texts[i];

        if (text->file.is_added || text->is_taken)
            continue;
        find->by_name[find->by_name_len++] = i;
        for (size_t line = 0; line < text->len; line++)
            if (is_telling(text, line))
                find->entries[find->entries_len++] = (struct entry){text->lines[line], i};
    }
    if (find->entries_len)
        qsort(find->entries, find->entries_len, sizeof *find->entries, compare_entries);
    if (find->by_name_len)
        qsort_r(find->by_name, find->by_name_len, sizeof *find->by_name, compare_names,
                similar->texts);
}

/* --- one new text asks --- */

static void vote(struct find *find, uint64_t line)
{
    size_t low = 0, high = find->entries_len, end;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (find->entries[middle].line < line)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < find->entries_len && find->entries[end].line == line; end++)
        if (end - low == NAMED_MAX)
            return;
    for (; low < end; low++) {
        size_t text = find->entries[low].text;

        if (!find->similar->texts[text].votes++)
            find->named[find->named_len++] = text;
    }
}

static void name_same(struct find *find, const char *name)
{
    struct similar_text *texts = find->similar->texts;
    size_t low = 0, high = find->by_name_len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(texts[find->by_name[middle]].file.name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < find->by_name_len && i - low < SAME_NAME_MAX; i++) {
        size_t text = find->by_name[i];

        if (!str_eq(texts[text].file.name, name))
            return;
        if (!texts[text].votes++) /* one more for the name */
            find->named[find->named_len++] = text;
    }
}

/* Lines that both have. */
static size_t common(const struct similar_text *one, const struct similar_text *other)
{
    size_t i = 0, j = 0, count = 0;

    while (i < one->len && j < other->len) {
        bool is_same = one->lines[i] == other->lines[j];
        bool is_first_less = one->lines[i] < other->lines[j];

        count += is_same;
        i += is_same || is_first_less;
        j += is_same || !is_first_less;
    }
    return count;
}

static bool are_similar(const struct similar_text *one, const struct similar_text *other)
{
    size_t larger = one->len > other->len ? one->len : other->len;

    return 2 * common(one, other) >= larger;
}

static void ask(struct find *find, struct similar_text *text)
{
    struct similar *similar = find->similar;
    struct similar_text *best = NULL;

    find->named_len = 0;
    for (size_t line = 0; line < text->len; line++)
        if (is_telling(text, line))
            vote(find, text->lines[line]);
    name_same(find, text->file.name);
    for (size_t i = 0; i < find->named_len; i++) {
        struct similar_text *other = &similar->texts[find->named[i]];

        if (!other->is_taken && other->file.root == text->file.root &&
            (!best || other->votes > best->votes))
            best = other;
    }
    for (size_t i = 0; i < find->named_len; i++)
        similar->texts[find->named[i]].votes = 0;
    if (!best || !are_similar(text, best))
        return;
    best->is_taken = true;
    similar->pairs =
        alloc_grow(similar->pairs, similar->pairs_len, &similar->pairs_cap, sizeof *similar->pairs);
    similar->pairs[similar->pairs_len++] = (struct similar_pair){text->file.at, best->file.at};
}

void similar_find(struct similar *similar)
{
    struct find find = {
        .similar = similar,
        .entries = alloc_zero(similar->lines + 1, sizeof *find.entries),
        .by_name = alloc_zero(similar->texts_len + 1, sizeof *find.by_name),
        .named = alloc_zero(similar->texts_len + 1, sizeof *find.named),
    };

    build(&find);
    for (size_t i = 0; i < similar->texts_len; i++)
        if (similar->texts[i].file.is_added && !similar->texts[i].is_taken)
            ask(&find, &similar->texts[i]);
    free(find.entries);
    free(find.by_name);
    free(find.named);
}

void similar_done(struct similar *similar)
{
    for (size_t i = 0; i < similar->texts_len; i++)
        free(similar->texts[i].lines);
    free(similar->texts);
    free(similar->pairs);
}
