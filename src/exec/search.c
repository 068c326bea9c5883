/* See search.h. Bytes are fetched in pieces and put together to lines; a line is tested when it is
 * complete, or when it has filled its buffer. One line at a time is in memory, and the lines of
 * context before it.
 *
 *     fetch -> feed -> [piece of a long line] -> line -> match or context -> on_line
 *        \-> gap
 *
 * The invariant of the numbers: `number` is one more than the newlines before `at`. */
#include "exec/search.h"

#include "base/alloc.h"
#include "exec/ere.h"
#include "exec/newlines.h"
#include "exec/output.h"
#include "exec/search_part.h"

#include <stdlib.h>
#include <string.h>

#define FETCH_MAX ((size_t)16384)

struct search {
    struct output *output;
    struct search_options options;
    struct ere *ere;
    char *plain;
    uint64_t first; /* lines that are asked for */
    uint64_t last;
    uint64_t at;  /* offset of the next byte */
    uint64_t end; /* of what there was at the beginning */
    uint64_t number;
    struct search_part part;    /* of line `number` */
    struct search_part opening; /* of the same line, when the part is not its beginning any more */
    bool is_open;               /* something of line `number` was seen */
    bool is_reported;           /* ... and it matched */
    struct search_context before;
    unsigned after_left;
    bool is_done;
    struct search_result result;
    search_on_line *on_line;
    void *data;
    char fetched[FETCH_MAX];
};

/* --- making one --- */

static int search_check(const struct search_options *options, struct err *err)
{
    bool has_pattern = options->pattern && *options->pattern;

    if (options->syntax != SEARCH_ALL && !has_pattern)
        return err_set(err, ERR_INVALID, "the pattern to search for is empty");
    if (options->syntax == SEARCH_PLAIN && strlen(options->pattern) > SEARCH_TEXT_MAX)
        return err_set(err, ERR_INVALID, "the text to search for is longer than %d bytes",
                       SEARCH_TEXT_MAX);
    if (options->before > SEARCH_CONTEXT_MAX || options->after > SEARCH_CONTEXT_MAX)
        return err_set(err, ERR_INVALID, "more than %d lines of context", SEARCH_CONTEXT_MAX);
    if (options->shown_max > SEARCH_SHOWN_MAX)
        return err_set(err, ERR_INVALID, "more than %d bytes of a line to show", SEARCH_SHOWN_MAX);
    return 0;
}

/* Newlines from `offset` on, all of which is retained. */
static uint64_t count_newlines(struct search *search, uint64_t offset)
{
    uint64_t count = 0;
    size_t n;

    while ((n = output_copy(search->output, offset, search->fetched, FETCH_MAX))) {
        count += newlines_count(search->fetched, n);
        offset += n;
    }
    return count;
}

/* The number of the line that the oldest of the newest bytes is in. */
static uint64_t tail_number(struct search *search, const struct output_info *info)
{
    return 1 + info->newlines - count_newlines(search, info->tail_start);
}

static uint64_t lines_total(struct search *search, const struct output_info *info)
{
    char last = 0;

    if (info->total)
        output_copy(search->output, info->total - 1, &last, 1);
    return info->newlines + (info->total && last != '\n');
}

/* A line number as it is given, counted from the beginning; 0 for one before that. */
static uint64_t resolve(int64_t number, uint64_t otherwise, uint64_t total)
{
    uint64_t back = 0 - (uint64_t)number;

    if (number > 0)
        return (uint64_t)number;
    if (number == 0)
        return otherwise;
    return back <= total ? total + 1 - back : 0;
}

static void search_begin(struct search *search)
{
    struct output_info info;
    uint64_t total;
    uint64_t tail;

    output_info(search->output, &info);
    total = lines_total(search, &info);
    tail = tail_number(search, &info);
    search->end = info.total;
    search->first = resolve(search->options.from, 1, total);
    search->last = resolve(search->options.to, UINT64_MAX, total);
    search->number = 1;
    if (search->first > tail) { /* nothing before is wanted */
        search->at = info.tail_start;
        search->number = tail;
    }
    search->is_done = search->first > search->last;
}

struct search *search_new(struct output *output, const struct search_options *options,
                          struct err *err)
{
    struct ere *ere = NULL;
    struct search *search;

    if (search_check(options, err))
        return NULL;
    if (options->syntax == SEARCH_REGEX) {
        ere = ere_new(options->pattern, err);
        if (!ere)
            return NULL;
    }
    search = alloc_zero(1, sizeof *search);
    search->output = output;
    search->options = *options;
    search->ere = ere;
    search->plain = options->syntax == SEARCH_PLAIN ? alloc_str(options->pattern) : NULL;
    search_part_add(&search->part, NULL, 0);
    search_context_init(&search->before, options->before);
    if (!options->matches_max)
        search->options.matches_max = SEARCH_MATCHES_DEFAULT;
    if (!options->shown_max)
        search->options.shown_max = SEARCH_SHOWN_DEFAULT;
    search_begin(search);
    return search;
}

void search_free(struct search *search)
{
    if (!search)
        return;
    search_context_done(&search->before);
    search_part_done(&search->part);
    search_part_done(&search->opening);
    free(search->plain);
    ere_free(search->ere);
    free(search);
}

void search_result(const struct search *search, struct search_result *ret)
{
    *ret = search->result;
}

/* --- matches and context --- */

static void show(struct search *search, const struct search_part *part, struct search_line *line)
{
    search_part_show(part, search->options.shown_max, line);
    search->on_line(search->data, line);
}

static bool is_full(const struct search *search)
{
    return search->result.matches == search->options.matches_max;
}

/* With all matches that were asked for, only the context behind the last one is left to show. */
static void stop_if_full(struct search *search)
{
    if (!is_full(search) || search->after_left)
        return;
    search->is_done = true;
}

static void take_match(struct search *search, const struct ere_span *span)
{
    struct search_line line = {.match_at = span->at, .match_len = span->len};
    const struct search_part *before;

    while ((before = search_context_pop(&search->before)))
        show(search, before, &(struct search_line){.kind = SEARCH_CONTEXT});
    show(search, &search->part, &line);
    search->is_reported = true;
    search->result.matches++;
    search->after_left = search->options.after;
}

static void take_other(struct search *search, const struct search_part *part)
{
    if (!search->after_left) {
        search_context_push(&search->before, part, search->options.shown_max);
        return;
    }
    show(search, part, &(struct search_line){.kind = SEARCH_CONTEXT});
    search->after_left--;
}

/* --- lines --- */

static bool part_matches(struct search *search, struct ere_span *ret_span)
{
    const struct search_part *part = &search->part;
    const char *found;
    unsigned flags = 0;

    *ret_span = (struct ere_span){0};
    if (is_full(search))
        return false;
    if (search->plain) {
        found =
            part->len ? memmem(part->text, part->len, search->plain, strlen(search->plain)) : NULL;
        if (found)
            *ret_span = (struct ere_span){(size_t)(found - part->text), strlen(search->plain)};
        return found;
    }
    if (part->cut & SEARCH_CUT_BEGIN)
        flags |= ERE_NOT_BEGIN;
    if (part->cut & SEARCH_CUT_END)
        flags |= ERE_NOT_END;
    return !search->ere ||
           ere_find(search->ere, part->len ? part->text : "", part->len, flags, ret_span);
}

/* The part has filled its buffer, and its line goes on. */
static void part_end(struct search *search)
{
    struct search_part *part = &search->part;
    size_t keep = SEARCH_LINE_MAX / 2;
    struct ere_span span;

    part->cut |= SEARCH_CUT_END;
    if (part_matches(search, &span)) {
        take_match(search, &span);
        return;
    }
    if (!search->opening.len)
        search_part_set(&search->opening, part, search->options.shown_max);
    memmove(part->text, part->text + part->len - keep, keep);
    part->offset += part->len - keep;
    part->len = keep;
    part->cut = SEARCH_CUT_BEGIN;
}

static void line_begin(struct search *search, unsigned cut)
{
    search->part.len = 0;
    search->part.cut = cut;
    search->opening.len = 0;
    search->is_open = false;
    search->is_reported = false;
}

static bool is_wanted(const struct search *search)
{
    return search->number >= search->first;
}

static void line_add(struct search *search, const char *bytes, size_t len)
{
    struct search_part *part = &search->part;

    if (!search->is_open) {
        part->number = search->number;
        part->offset = search->at;
        search->is_open = true;
    }
    search->at += len;
    while (len && !search->is_reported && is_wanted(search)) {
        size_t n = SEARCH_LINE_MAX - part->len;

        if (!n) {
            part_end(search);
            continue;
        }
        n = n < len ? n : len;
        search_part_add(part, bytes, n);
        bytes += n;
        len -= n;
    }
}

/* All of the line that there is, was seen. */
static void line_end(struct search *search)
{
    struct ere_span span;

    if (!is_wanted(search))
        return;
    search->result.lines++;
    if (search->is_reported) {
        stop_if_full(search);
        return;
    }
    if (part_matches(search, &span))
        take_match(search, &span);
    else
        take_other(search, search->opening.len ? &search->opening : &search->part);
    stop_if_full(search);
}

static void line_end_at_newline(struct search *search)
{
    struct search_part *part = &search->part;

    line_add(search, NULL, 0);
    if (part->len && part->text[part->len - 1] == '\r')
        part->len--;
    line_end(search);
    search->at++;
    search->number++;
    line_begin(search, 0);
    if (search->number > search->last)
        search->is_done = true;
}

static void search_feed(struct search *search, const char *bytes, size_t len)
{
    while (len && !search->is_done) {
        const char *newline = memchr(bytes, '\n', len);
        size_t n = newline ? (size_t)(newline - bytes) : len;

        line_add(search, bytes, n);
        if (newline) {
            line_end_at_newline(search);
            n++;
        }
        bytes += n;
        len -= n;
    }
}

static void search_gap(struct search *search)
{
    struct search_line gap = {.kind = SEARCH_GAP, .offset = search->at, .text = ""};
    struct output_info info;
    uint64_t number;

    output_info(search->output, &info);
    number = tail_number(search, &info);
    search->part.cut |= SEARCH_CUT_END;
    if (search->is_open)
        line_end(search);
    gap.line = search->number;
    gap.gap_bytes = info.tail_start - search->at;
    gap.gap_newlines = number - search->number;
    search->result.gap += gap.gap_bytes;
    search->at = info.tail_start;
    search->number = number;
    search->before.len = 0;
    search->after_left = 0;
    line_begin(search, SEARCH_CUT_BEGIN);
    if (is_wanted(search) && !search->is_done)
        search->on_line(search->data, &gap);
    if (search->number > search->last)
        search->is_done = true;
    stop_if_full(search);
}

bool search_step(struct search *search, size_t max_bytes, search_on_line *on_line, void *data)
{
    search->on_line = on_line;
    search->data = data;
    for (size_t n = 0, done = 0; done < max_bytes && !search->is_done; done += n) {
        uint64_t left = search->end > search->at ? search->end - search->at : 0;

        if (!left) {
            if (search->is_open)
                line_end(search);
            search->is_done = true;
            return false;
        }
        n = output_copy(search->output, search->at, search->fetched,
                        left < FETCH_MAX ? (size_t)left : FETCH_MAX);
        if (n)
            search_feed(search, search->fetched, n);
        else
            search_gap(search);
    }
    search->result.was_limited = search->is_done && is_full(search) && search->at < search->end;
    return !search->is_done;
}
