/* See lines.h. White space is what Unicode calls so (PropList.txt, White_Space), because the
 * matching has to agree with programs that ask Unicode; ill-formed UTF-8 is no white space.
 *
 * The index: a level is built when it is first asked for: most patches need none, or the first one
 * only.
 *
 *     numbers[line]                   the number of each line
 *     slots                           hash table: a line of each number, plus 1
 *     starts[number], positions       the lines of a number are positions[starts[n]..starts[n + 1]]
 *
 * All of it is linear in the file. What a search costs is bounded by a budget, because texts can be
 * made in which every line is frequent and no two of them stand where they are wanted. */
#include "patch/lines.h"

#include "base/alloc.h"
#include "base/auto.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int lines_split(const char *text, size_t len, struct lines *ret, struct err *err)
{
    struct lines lines = {.items = NULL};

    while (len) {
        const char *feed = memchr(text, '\n', len);
        size_t part = feed ? (size_t)(feed - text) : len;

        if (lines.len == LINES_MAX) {
            lines_done(&lines);
            return err_set(err, ERR_LIMIT, "it has more than %d lines", LINES_MAX);
        }
        lines.items = alloc_grow(lines.items, lines.len, &lines.cap, sizeof *lines.items);
        lines.items[lines.len++] =
            feed && part && text[part - 1] == '\r'
                ? (struct line){.text = {text, part - 1}, .end = LINE_CRLF}
                : (struct line){.text = {text, part}, .end = feed ? LINE_LF : LINE_NO_END};
        part += feed != NULL;
        text += part;
        len -= part;
    }
    *ret = lines;
    return 0;
}

void lines_done(struct lines *lines)
{
    free(lines->items);
    *lines = (struct lines){.items = NULL};
}

const char *line_end_text(enum line_end end)
{
    static const char *const texts[] = {[LINE_NO_END] = "", [LINE_LF] = "\n", [LINE_CRLF] = "\r\n"};

    return texts[end];
}

/* --- characters --- */

/* The character of three bytes, or of two, that the text begins with; 0 when it begins with no
 * such, or ends before. Nothing beyond U+FFFF matters here. */
static uint32_t character(const char *text, size_t len, size_t *ret_len)
{
    const unsigned char *byte = (const unsigned char *)text;

    if (len >= 2 && (byte[0] & 0xe0) == 0xc0 && (byte[1] & 0xc0) == 0x80) {
        *ret_len = 2;
        return (byte[0] & 0x1fU) << 6 | (byte[1] & 0x3fU);
    }
    if (len >= 3 && (byte[0] & 0xf0) == 0xe0 && (byte[1] & 0xc0) == 0x80 &&
        (byte[2] & 0xc0) == 0x80) {
        *ret_len = 3;
        return (byte[0] & 0x0fU) << 12 | (byte[1] & 0x3fU) << 6 | (byte[2] & 0x3fU);
    }
    return 0;
}

static bool is_white_ascii(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_white(uint32_t c)
{
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static size_t white_at_end(struct span span)
{
    if (span.len && is_white_ascii(span.text[span.len - 1]))
        return 1;
    for (size_t want = 2; want <= 3 && want <= span.len; want++) {
        size_t len = 0;

        if (is_white(character(span.text + span.len - want, want, &len)) && len == want)
            return want;
    }
    return 0;
}

struct span span_trim_end(struct span span)
{
    for (size_t len; (len = white_at_end(span));)
        span.len -= len;
    return span;
}

struct span span_trim(struct span span)
{
    size_t len = 1;

    span = span_trim_end(span);
    while (span.len &&
           (is_white_ascii(span.text[0]) || is_white(character(span.text, span.len, &len)))) {
        span.text += len;
        span.len -= len;
        len = 1;
    }
    return span;
}

/* The ASCII that a typographic character stands for (dashes, quotes and odd spaces, as Codex has
 * them); 0 when it stands for itself. */
static char plain_character(uint32_t c)
{
    if ((c >= 0x2010 && c <= 0x2015) || c == 0x2212)
        return '-';
    if (c >= 0x2018 && c <= 0x201b)
        return '\'';
    if (c >= 0x201c && c <= 0x201f)
        return '"';
    if (c == 0xa0 || (c >= 0x2002 && c <= 0x200a) || c == 0x202f || c == 0x205f || c == 0x3000)
        return ' ';
    return 0;
}

static struct span make_plain(struct span span, char *scratch)
{
    size_t out = 0;

    for (size_t i = 0; i < span.len;) {
        size_t len = 1;
        char plain = plain_character(character(span.text + i, span.len - i, &len));

        if (plain) {
            scratch[out++] = plain;
            i += len;
        } else {
            scratch[out++] = span.text[i++];
        }
    }
    return (struct span){scratch, out};
}

struct span line_key(enum line_level level, struct span text, char *scratch)
{
    switch (level) {
    case LINE_TRIM_END:
        return span_trim_end(text);
    case LINE_TRIM:
        return span_trim(text);
    case LINE_PLAIN:
        return make_plain(span_trim(text), scratch);
    case LINE_EXACT:
    case LINE_LEVELS:
        break;
    }
    return text;
}

/* --- the index --- */

/* Comparisons of two lines, for one file: about a second. */
#define INDEX_BUDGET (UINT64_C(1) << 28)

struct level {
    char *plain;       /* what LINE_PLAIN keys point into */
    struct span *keys; /* of each line */
    uint32_t *numbers;
    uint32_t *slots;
    size_t mask; /* of `slots` */
    uint32_t *starts;
    uint32_t *positions;
    uint32_t count; /* of numbers */
};

struct line_index {
    const struct lines *lines;
    struct level *levels[LINE_LEVELS];
    uint64_t budget;
    size_t glances; /* comparisons of lines that may be made without an index */
};

static void level_free(struct level *level)
{
    if (!level)
        return;
    free(level->plain);
    free(level->keys);
    free(level->numbers);
    free(level->slots);
    free(level->starts);
    free(level->positions);
    free(level);
}

struct line_index *line_index_new(const struct lines *lines)
{
    struct line_index *index = alloc_zero(1, sizeof *index);

    index->lines = lines;
    index->budget = INDEX_BUDGET;
    index->glances = 2 * lines->len;
    return index;
}

void line_index_free(struct line_index *index)
{
    if (!index)
        return;
    for (int i = 0; i < LINE_LEVELS; i++)
        level_free(index->levels[i]);
    free(index);
}

/* false when the budget is used up */
static bool spend(struct line_index *index)
{
    if (index->budget)
        index->budget--;
    return index->budget > 0;
}

/* --- making a level --- */

/* Eight bytes at a time, each multiplied by 2^64 over the golden ratio (Knuth, The Art of Computer
 * Programming 3, 6.4). Keys that collide can be made on purpose: the budget is for that. */
static size_t key_hash(struct span key)
{
    uint64_t hash = key.len;
    uint64_t word;

    for (size_t i = 0; i < key.len; i += sizeof word) {
        size_t part = key.len - i < sizeof word ? key.len - i : sizeof word;

        word = 0;
        memcpy(&word, key.text + i, part);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (size_t)hash;
}

/* The slot that holds the key, or the free one where it belongs. */
static uint32_t *level_slot(struct line_index *index, const struct level *level, struct span key)
{
    size_t at = key_hash(key) & level->mask;

    while (level->slots[at] && !span_eq(level->keys[level->slots[at] - 1], key) && spend(index))
        at = (at + 1) & level->mask;
    return &level->slots[at];
}

static void level_make_keys(struct level *level, const struct lines *lines, enum line_level which)
{
    size_t used = 0;
    size_t bytes = 0;

    for (size_t i = 0; which == LINE_PLAIN && i < lines->len; i++)
        bytes += lines->items[i].text.len;
    level->plain = alloc_zero(bytes + 1, 1);
    level->keys = alloc_zero(lines->len + 1, sizeof *level->keys);
    for (size_t i = 0; i < lines->len; i++) {
        level->keys[i] = line_key(which, lines->items[i].text, level->plain + used);
        if (which == LINE_PLAIN)
            used += level->keys[i].len;
    }
}

static void level_number(struct line_index *index, struct level *level, size_t len)
{
    size_t slots = 16;

    while (slots < len * 2)
        slots *= 2;
    level->mask = slots - 1;
    level->slots = alloc_zero(slots, sizeof *level->slots);
    level->numbers = alloc_zero(len + 1, sizeof *level->numbers);
    for (size_t i = 0; i < len; i++) {
        uint32_t *slot = level_slot(index, level, level->keys[i]);

        if (*slot) {
            level->numbers[i] = level->numbers[*slot - 1];
        } else {
            level->numbers[i] = level->count++;
            *slot = (uint32_t)i + 1;
        }
    }
}

/* A counting sort: the lines by number, each number's in order. */
static void level_sort(struct level *level, size_t len)
{
    AUTO_FREE uint32_t *next = alloc_zero(level->count + 1, sizeof *next);

    level->starts = alloc_zero(level->count + 1, sizeof *level->starts);
    level->positions = alloc_zero(len + 1, sizeof *level->positions);
    for (size_t i = 0; i < len; i++)
        level->starts[level->numbers[i] + 1]++;
    for (uint32_t n = 0; n < level->count; n++) {
        level->starts[n + 1] += level->starts[n];
        next[n] = level->starts[n];
    }
    for (size_t i = 0; i < len; i++)
        level->positions[next[level->numbers[i]]++] = (uint32_t)i;
}

static struct level *index_level(struct line_index *index, enum line_level which)
{
    struct level *level = index->levels[which];

    if (level)
        return level;
    level = index->levels[which] = alloc_zero(1, sizeof *level);
    level_make_keys(level, index->lines, which);
    level_number(index, level, index->lines->len);
    level_sort(level, index->lines->len);
    return level;
}

/* --- looking --- */

/* The numbers of the wanted lines; false when one of them is nowhere in the file. */
static bool wanted_numbers(struct line_index *index, enum line_level which,
                           const struct line_search *search, uint32_t *ret)
{
    const struct level *level = index_level(index, which);

    for (size_t i = 0; i < search->len; i++) {
        AUTO_FREE char *scratch =
            which == LINE_PLAIN ? alloc_zero(search->wanted[i].len + 1, 1) : NULL;
        struct span key = line_key(which, search->wanted[i], scratch);
        uint32_t slot = *level_slot(index, level, key);

        if (!slot)
            return false;
        ret[i] = level->numbers[slot - 1];
    }
    return true;
}

static bool is_match(struct line_index *index, const struct level *level, const uint32_t *wanted,
                     size_t len, size_t at)
{
    for (size_t i = 0; i < len; i++)
        if (!spend(index) || level->numbers[at + i] != wanted[i])
            return false;
    return true;
}

static size_t rarest(const struct level *level, const uint32_t *wanted, size_t len)
{
    size_t best = 0;
    uint32_t least = UINT32_MAX;

    for (size_t i = 0; i < len; i++) {
        uint32_t count = level->starts[wanted[i] + 1] - level->starts[wanted[i]];

        if (count < least) {
            least = count;
            best = i;
        }
    }
    return best;
}

/* The first of the ordered positions from `low` to `high` that is not below `wanted`. */
static uint32_t lower_bound(const uint32_t *positions, uint32_t low, uint32_t high, size_t wanted)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (positions[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool find_at_level(struct line_index *index, enum line_level which,
                          const struct line_search *search, uint32_t *numbers, size_t *ret_at)
{
    const struct level *level = index_level(index, which);
    size_t last = index->lines->len - search->len;
    size_t start = search->is_at_end ? last : search->start;
    size_t pivot;
    uint32_t end;

    if (!wanted_numbers(index, which, search, numbers))
        return false;
    pivot = rarest(level, numbers, search->len);
    end = level->starts[numbers[pivot] + 1];
    for (uint32_t i =
             lower_bound(level->positions, level->starts[numbers[pivot]], end, start + pivot);
         i < end && level->positions[i] - pivot <= last; i++) {
        *ret_at = level->positions[i] - pivot;
        if (is_match(index, level, numbers, search->len, *ret_at))
            return true;
    }
    return false;
}

/* Most patches have their chunks in order and exact: then trying one place after the other passes
 * the file once, and no index is needed at all. */
static bool find_at_a_glance(struct line_index *index, const struct line_search *search,
                             size_t *ret_at)
{
    size_t last = index->lines->len - search->len;

    for (size_t at = search->is_at_end ? last : search->start; at <= last && index->glances; at++) {
        size_t i = 0;

        while (i < search->len && span_eq(index->lines->items[at + i].text, search->wanted[i]))
            i++;
        index->glances -= i < index->glances ? i + 1 : index->glances;
        *ret_at = at;
        if (i == search->len)
            return true;
    }
    return false;
}

int line_index_find(struct line_index *index, const struct line_search *search, bool *ret_found,
                    size_t *ret_at, struct err *err)
{
    AUTO_FREE uint32_t *numbers = alloc_zero(search->len, sizeof *numbers);
    bool is_found = false;
    size_t at = 0;

    if (search->len <= index->lines->len && search->start <= index->lines->len - search->len) {
        is_found = find_at_a_glance(index, search, &at);
        for (int which = 0; which < LINE_LEVELS && !is_found; which++)
            is_found = find_at_level(index, (enum line_level)which, search, numbers, &at);
    }
    if (!index->budget)
        return err_set(err, ERR_LIMIT,
                       "the file repeats itself so much that finding the place takes too long");
    *ret_found = is_found;
    if (is_found)
        *ret_at = at;
    return 0;
}
