/* See diff.h. Lines become numbers first, equal ones the same, and those that only one text has are set aside: nothing
 * can be done with them. For the others Myers' algorithm ("An O(ND) Difference Algorithm and Its Variations", 1986),
 * in the form that needs little memory: search from both ends for a point in the middle of a shortest way, and go on
 * with what is before it and what is behind it. Those parts wait on a stack of our own.
 *
 * Time is bounded twice, so that nobody can have a diff last for ever. A search gives up after SEARCH_MAX
 * differences from each end, and splits where it came farthest: the way is then longer than need be, and right all the
 * same. And when all searches together have cost STEPS_MAX, the parts that are left are taken to differ as a whole.
 *
 * Between two texts there may be many shortest ways. Each run of changed lines is moved down as far as it can be, as
 * others do it: then a new function is shown with its own end, and not with that of the one before. */
#include "layer/diff.h"

#include "base/alloc.h"
#include "base/auto.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEARCH_MAX = 256,
    STEPS_MAX = 10 * 1000 * 1000,
    DIAGONALS = 2 * SEARCH_MAX + 3,
    NOWHERE = INT_MIN / 2,
};

/* --- lines --- */

struct line {
    const char *text;
    size_t len;     /* with its end, if it has one */
    unsigned class; /* of equal lines */
    bool is_changed;
};

struct lines {
    struct line *items;
    size_t len;
    size_t cap;
};

static void lines_done(struct lines *lines)
{
    free(lines->items);
}

static void lines_split(struct lines *lines, const char *text, size_t len)
{
    while (len) {
        const char *end = memchr(text, '\n', len);
        size_t line = end ? (size_t)(end - text) + 1 : len;

        lines->items = alloc_grow(lines->items, lines->len, &lines->cap, sizeof *lines->items);
        lines->items[lines->len++] = (struct line){.text = text, .len = line};
        text += line;
        len -= line;
    }
}

static int compare_lines(const void *a, const void *b)
{
    const struct line *one = *(struct line *const *)a, *other = *(struct line *const *)b;

    if (one->len != other->len)
        return one->len < other->len ? -1 : 1;
    return memcmp(one->text, other->text, one->len);
}

/* Gives equal lines of both texts the same class, and marks as changed what only one text has. By sorting, since
 * who writes the lines might have a table's buckets overflow. */
static void classify(struct lines *old, struct lines *now)
{
    size_t len = old->len + now->len;
    AUTO_FREE struct line **all = alloc_zero(len + 1, sizeof(struct line *));

    for (size_t i = 0; i < len; i++)
        all[i] = i < old->len ? &old->items[i] : &now->items[i - old->len];
    qsort(all, len, sizeof *all, compare_lines);
    for (size_t i = 0, end; i < len; i = end) {
        bool in_old = false, in_now = false;

        for (end = i; end < len && compare_lines(&all[i], &all[end]) == 0; end++) {
            bool is_old = old->len && all[end] >= old->items && all[end] < old->items + old->len;

            all[end]->class = (unsigned)i;
            in_old = in_old || is_old;
            in_now = in_now || !is_old;
        }
        for (size_t at = i; at < end; at++)
            all[at]->is_changed = !in_old || !in_now;
    }
}

/* --- the shortest way --- */

/* A part of both texts; of each the lines that both have. */
struct box {
    struct line **old, **now;
    int old_len, now_len; /* DIFF_MAX at most */
};

struct boxes {
    struct box *items;
    size_t len;
    size_t cap;
};

/* Where on each diagonal (lines of the old text less those of the new one) a search has come to, in lines of
 * the old text. The one from the end counts from there. */
struct search {
    int forward[DIAGONALS], backward[DIAGONALS];
    unsigned long steps;
};

static bool is_same(const struct box *box, int old, int now, bool from_end)
{
    const struct line *one = box->old[from_end ? box->old_len - 1 - old : old];
    const struct line *other = box->now[from_end ? box->now_len - 1 - now : now];

    return one->class == other->class;
}

/* One more difference on diagonal `k`, then as far as lines are equal. */
static int advance(struct search *search, const struct box *box, bool from_end, int k)
{
    int *reached = (from_end ? search->backward : search->forward) + SEARCH_MAX + 1;
    int down = reached[k + 1], right = reached[k - 1] + 1, x;

    if (down < 0 || down - k > box->now_len)
        down = NOWHERE;
    if (right < 1 || right > box->old_len)
        right = NOWHERE;
    x = down > right ? down : right;
    if (x != NOWHERE)
        for (; x < box->old_len && x - k < box->now_len && is_same(box, x, x - k, from_end); x++)
            search->steps++;
    search->steps++;
    reached[k] = x;
    return x;
}

/* The searches have met on the diagonal on which one is at `x`, and not yet when the other is nowhere near. */
static bool have_met(const struct search *search, const struct box *box, bool from_end, int k)
{
    const int *own = (from_end ? search->backward : search->forward) + SEARCH_MAX + 1;
    const int *others = (from_end ? search->forward : search->backward) + SEARCH_MAX + 1;
    int other = box->old_len - box->now_len - k;

    return other >= -SEARCH_MAX && other <= SEARCH_MAX && others[other] >= 0 && own[k] >= 0 &&
           own[k] + others[other] >= box->old_len;
}

/* The farthest point of the search from the front. */
static int farthest(const struct search *search, int differences, int *ret_now)
{
    const int *reached = search->forward + SEARCH_MAX + 1;
    int best = 0, best_k = 0;

    for (int k = -differences; k <= differences; k += 2)
        if (reached[k] >= 0 && 2 * reached[k] - k > 2 * best - best_k) {
            best = reached[k];
            best_k = k;
        }
    *ret_now = best - best_k;
    return best;
}

/* A point on a short way through the box, in which neither text is empty, and neither the first nor the last lines are
 * equal. Lines of the old text before it; `*ret_now`: of the new one. */
static int find_middle(struct search *search, const struct box *box, int *ret_now)
{
    bool is_odd = (box->old_len - box->now_len) & 1;

    for (int i = 0; i < DIAGONALS; i++)
        search->forward[i] = search->backward[i] = NOWHERE;
    search->forward[SEARCH_MAX + 2] = search->backward[SEARCH_MAX + 2] = 0; /* diagonal 1 */
    for (int differences = 0; differences <= SEARCH_MAX; differences++) {
        for (int k = -differences; k <= differences; k += 2) {
            int x = advance(search, box, false, k);

            if (!is_odd || !have_met(search, box, false, k))
                continue;
            *ret_now = x - k;
            return x;
        }
        for (int k = -differences; k <= differences; k += 2) {
            int x = advance(search, box, true, k);

            if (is_odd || !have_met(search, box, true, k))
                continue;
            *ret_now = box->now_len - (x - k);
            return box->old_len - x;
        }
    }
    return farthest(search, SEARCH_MAX, ret_now);
}

/* Without the equal lines at both ends. */
static struct box trim(struct box box)
{
    while (box.old_len && box.now_len && is_same(&box, 0, 0, false)) {
        box.old++;
        box.now++;
        box.old_len--;
        box.now_len--;
    }
    while (box.old_len && box.now_len && is_same(&box, 0, 0, true)) {
        box.old_len--;
        box.now_len--;
    }
    return box;
}

static void boxes_push(struct boxes *boxes, struct box box)
{
    boxes->items = alloc_grow(boxes->items, boxes->len, &boxes->cap, sizeof *boxes->items);
    boxes->items[boxes->len++] = box;
}

static void mark_changed(const struct box *box)
{
    for (int i = 0; i < box->old_len; i++)
        box->old[i]->is_changed = true;
    for (int i = 0; i < box->now_len; i++)
        box->now[i]->is_changed = true;
}

static void search_box(struct search *search, struct boxes *boxes, struct box box)
{
    int old, now = 0;

    box = trim(box);
    if (!box.old_len || !box.now_len || search->steps > STEPS_MAX) {
        mark_changed(&box);
        return;
    }
    old = find_middle(search, &box, &now);
    if (old + now == 0 || old + now == box.old_len + box.now_len) {
        mark_changed(&box);
        return;
    }
    boxes_push(boxes,
               (struct box){box.old + old, box.now + now, box.old_len - old, box.now_len - now});
    boxes_push(boxes, (struct box){box.old, box.now, old, now});
}

/* Pointers to the lines that the other text has, too. */
static struct line **common(const struct lines *lines, int *ret_len)
{
    struct line **kept = alloc_zero(lines->len + 1, sizeof(struct line *));

    *ret_len = 0;
    for (size_t i = 0; i < lines->len; i++)
        if (!lines->items[i].is_changed)
            kept[(*ret_len)++] = &lines->items[i];
    return kept;
}

static void compare(struct lines *old, struct lines *now)
{
    AUTO_FREE struct search *search = alloc_zero(1, sizeof *search);
    struct boxes boxes = {0};
    struct box all;
    AUTO_FREE struct line **old_kept = common(old, &all.old_len);
    AUTO_FREE struct line **now_kept = common(now, &all.now_len);

    all.old = old_kept;
    all.now = now_kept;
    boxes_push(&boxes, all);
    while (boxes.len)
        search_box(search, &boxes, boxes.items[--boxes.len]);
    free(boxes.items);
}

/* --- hunks --- */

/* Unchanged lines pair in order; what lies between two pairs is a hunk. */
static void collect(const struct lines *old, const struct lines *now, struct hunks *ret)
{
    size_t i = 0, j = 0;

    while (i < old->len || j < now->len) {
        struct hunk hunk = {.old_at = i, .new_at = j};

        while (i < old->len && old->items[i].is_changed)
            i++;
        while (j < now->len && now->items[j].is_changed)
            j++;
        hunk.old_len = i - hunk.old_at;
        hunk.new_len = j - hunk.new_at;
        if (hunk.old_len || hunk.new_len) {
            ret->items = alloc_grow(ret->items, ret->len, &ret->cap, sizeof *ret->items);
            ret->items[ret->len++] = hunk;
        }
        i += i < old->len;
        j += j < now->len;
    }
}

/* Moves a hunk that only adds or removes down while its first line is equal to the one behind it, but not so far as
 * to touch the next one. */
static void slide(const struct lines *lines, struct hunk *hunk, size_t *at, size_t len, size_t end)
{
    while (*at + len + 1 < end && lines->items[*at].class == lines->items[*at + len].class) {
        hunk->old_at++;
        hunk->new_at++;
    }
}

static void slide_all(const struct lines *old, const struct lines *now, struct hunks *hunks)
{
    for (size_t i = 0; i < hunks->len; i++) {
        struct hunk *hunk = &hunks->items[i];
        const struct hunk *next = i + 1 < hunks->len ? hunk + 1 : NULL;

        if (!hunk->new_len)
            slide(old, hunk, &hunk->old_at, hunk->old_len, next ? next->old_at : old->len + 1);
        else if (!hunk->old_len)
            slide(now, hunk, &hunk->new_at, hunk->new_len, next ? next->new_at : now->len + 1);
    }
}

void diff_lines(const char *old, size_t old_len, const char *text, size_t len, struct hunks *ret)
{
    AUTO(lines_done) struct lines one = {0};
    AUTO(lines_done) struct lines other = {0};

    *ret = (struct hunks){0};
    lines_split(&one, old, old_len);
    lines_split(&other, text, len);
    classify(&one, &other);
    compare(&one, &other);
    collect(&one, &other, ret);
    slide_all(&one, &other, ret);
}

void hunks_done(struct hunks *hunks)
{
    free(hunks->items);
    *hunks = (struct hunks){0};
}

/* --- what is made of them --- */

void diff_apply(const char *old, size_t old_len, const char *text, size_t len,
                const struct hunks *hunks, bool (*takes)(void *data, size_t hunk), void *data,
                struct buf *ret)
{
    AUTO(lines_done) struct lines one = {0};
    AUTO(lines_done) struct lines other = {0};
    size_t at = 0;

    lines_split(&one, old, old_len);
    lines_split(&other, text, len);
    for (size_t i = 0; i <= hunks->len; i++) {
        const struct hunk *hunk = i < hunks->len ? &hunks->items[i] : NULL;

        for (; at < (hunk ? hunk->old_at : one.len); at++)
            buf_append(ret, one.items[at].text, one.items[at].len);
        if (!hunk || !takes(data, i))
            continue;
        at += hunk->old_len;
        for (size_t j = 0; j < hunk->new_len; j++)
            buf_append(ret, other.items[hunk->new_at + j].text, other.items[hunk->new_at + j].len);
    }
}

static void add_line(struct buf *buf, char sign, const struct line *line)
{
    buf_append(buf, &sign, 1);
    buf_append(buf, line->text, line->len);
    if (line->text[line->len - 1] != '\n')
        buf_append_str(buf, "\n\\ No newline at end of file\n");
}

/* "12,3": where the lines begin, from 1, and how many they are; of none the line before. */
static void add_range(struct buf *buf, char sign, size_t at, size_t len)
{
    buf_appendf(buf, "%c%zu", sign, len ? at + 1 : at);
    if (len != 1)
        buf_appendf(buf, ",%zu", len);
}

/* Some hunks as one, with the lines around them. */
static void add_group(struct buf *buf, const struct lines *old, const struct lines *now,
                      const struct hunk *hunks, size_t len, size_t context)
{
    const struct hunk *first = &hunks[0], *last = &hunks[len - 1];
    size_t before = first->old_at < context ? first->old_at : context;
    size_t end = last->old_at + last->old_len;
    size_t behind = old->len - end < context ? old->len - end : context;
    size_t at = first->old_at - before;

    buf_append_str(buf, "@@ ");
    add_range(buf, '-', at, end + behind - at);
    buf_append_str(buf, " ");
    add_range(buf, '+', first->new_at - before,
              last->new_at + last->new_len + behind - (first->new_at - before));
    buf_append_str(buf, " @@\n");
    for (size_t i = 0; i < len; i++) {
        for (; at < hunks[i].old_at; at++)
            add_line(buf, ' ', &old->items[at]);
        for (; at < hunks[i].old_at + hunks[i].old_len; at++)
            add_line(buf, '-', &old->items[at]);
        for (size_t j = 0; j < hunks[i].new_len; j++)
            add_line(buf, '+', &now->items[hunks[i].new_at + j]);
    }
    for (; at < end + behind; at++)
        add_line(buf, ' ', &old->items[at]);
}

void diff_unified(const char *old, size_t old_len, const char *text, size_t len,
                  const struct hunks *hunks, size_t context, struct buf *ret)
{
    AUTO(lines_done) struct lines one = {0};
    AUTO(lines_done) struct lines other = {0};

    lines_split(&one, old, old_len);
    lines_split(&other, text, len);
    if (context > one.len)
        context = one.len;
    for (size_t i = 0, end; i < hunks->len; i = end) {
        for (end = i + 1; end < hunks->len; end++) {
            const struct hunk *last = &hunks->items[end - 1];

            if (hunks->items[end].old_at - (last->old_at + last->old_len) > 2 * context)
                break;
        }
        add_group(ret, &one, &other, hunks->items + i, end - i, context);
    }
}
