/* See update.h. The rules of matching are those of Codex (apply-patch, seek_sequence.rs).
 *
 *     chunks -> places in the old lines -> what goes and comes (of all chunks first) -> new text
 *
 * Places never overlap: each is looked for behind the one before. Only chunks without old lines
 * stand out of order, at the end of the file; what several chunks add there comes in their order.
 *
 * Kept lines stay as the file has them, however the patch spells them; new lines get the ending of
 * the file's first line. The result ends with a line ending. */
#include "patch/update.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "patch/lines.h"

#include <stdlib.h>
#include <string.h>

/* --- edits --- */

void edits_done(struct edits *edits)
{
    free(edits->items);
    *edits = (struct edits){.items = NULL};
}

/* Appends a difference, which joins the last one when it touches it. */
static void edits_add(struct edits *edits, struct edit edit)
{
    struct edit *last = edits->len ? &edits->items[edits->len - 1] : NULL;

    if (last && last->old_at + last->old_len == edit.old_at &&
        last->new_at + last->new_len == edit.new_at) {
        last->old_len += edit.old_len;
        last->new_len += edit.new_len;
        return;
    }
    edits->items = alloc_grow(edits->items, edits->len, &edits->cap, sizeof *edits->items);
    edits->items[edits->len++] = edit;
}

static bool line_eq(const struct line *a, const struct line *b)
{
    return a->end == b->end && span_eq(a->text, b->text);
}

int edits_between(const struct content *before, const struct content *after, struct edits *ret,
                  struct err *err)
{
    AUTO(lines_done) struct lines old = {.items = NULL};
    AUTO(lines_done) struct lines new = {.items = NULL};
    size_t head = 0;
    size_t tail = 0;
    size_t most;

    if (lines_split(before->text, before->len, &old, err) ||
        lines_split(after->text, after->len, &new, err))
        return -1;
    *ret = (struct edits){.items = NULL};
    most = old.len < new.len ? old.len : new.len;
    while (head < most && line_eq(&old.items[head], &new.items[head]))
        head++;
    while (tail < most - head &&
           line_eq(&old.items[old.len - 1 - tail], &new.items[new.len - 1 - tail]))
        tail++;
    if (old.len - head - tail || new.len - head - tail)
        edits_add(ret, (struct edit){.old_at = head,
                                     .old_len = old.len - head - tail,
                                     .new_at = head,
                                     .new_len = new.len - head - tail});
    return 0;
}

#define NO_LINE SIZE_MAX

/* Where a chunk goes. */
struct place {
    const struct patch_chunk *chunk;
    size_t at;      /* line of the old text */
    size_t not_old; /* index in the chunk of a line that is not looked for after all; NO_LINE */
    size_t not_new; /* ... that is not written after all; NO_LINE */
};

/* A line that goes or comes. `at` is the line of the old text where it stands, or the first of the
 * neighbours that go and come with it. */
struct turn {
    size_t at;
    size_t order;
    bool is_old;      /* the next old line goes */
    struct span text; /* else this comes */
};

struct updater {
    const struct patch *patch;
    const struct patch_file *file;
    struct lines lines;
    struct line_index *index;
    size_t next; /* where looking goes on */
    struct turn *turns;
    size_t turns_len;
    size_t turns_cap;
};

static void updater_done(struct updater *updater)
{
    line_index_free(updater->index);
    lines_done(&updater->lines);
    free(updater->turns);
}

/* --- finding the places --- */

static const struct patch_line *chunk_line(const struct updater *updater,
                                           const struct patch_chunk *chunk, size_t i)
{
    return &updater->patch->lines[chunk->first + i];
}

static int fail_at(const struct updater *updater, const struct patch_chunk *chunk, struct err *err)
{
    return err_wrap(err, "line %zu of the patch: %s", chunk->line, updater->file->path);
}

static int seek(struct updater *updater, const struct line_search *search, bool *ret_found,
                size_t *ret_at, const struct patch_chunk *chunk, struct err *err)
{
    if (!updater->index)
        updater->index = line_index_new(&updater->lines);
    if (line_index_find(updater->index, search, ret_found, ret_at, err))
        return fail_at(updater, chunk, err);
    return 0;
}

static int seek_context(struct updater *updater, const struct patch_chunk *chunk, struct err *err)
{
    const struct line_search search = {.wanted = &chunk->context, .len = 1, .start = updater->next};
    int shown = chunk->context.len > 80 ? 80 : (int)chunk->context.len;
    bool is_found;
    size_t at;

    if (seek(updater, &search, &is_found, &at, chunk, err))
        return -1;
    if (is_found) {
        updater->next = at + 1;
        return 0;
    }
    err_set(err, ERR_INVALID, "there is no line \"%.*s\" (after @@) from line %zu on", shown,
            chunk->context.text, updater->next + 1);
    return fail_at(updater, chunk, err);
}

/* The lines that have to be there. */
static size_t old_lines(const struct updater *updater, const struct patch_chunk *chunk,
                        struct span *ret)
{
    size_t len = 0;

    for (size_t i = 0; i < chunk->len; i++) {
        const struct patch_line *line = chunk_line(updater, chunk, i);

        if (line->mark != PATCH_ADDED)
            ret[len++] = line->text;
    }
    return len;
}

/* The last line of the chunk that has another mark than `other`, if it is empty; else NO_LINE. */
static size_t empty_last(const struct updater *updater, const struct patch_chunk *chunk,
                         enum patch_mark other)
{
    for (size_t i = chunk->len; i-- > 0;) {
        const struct patch_line *line = chunk_line(updater, chunk, i);

        if (line->mark != other)
            return line->text.len ? NO_LINE : i;
    }
    return NO_LINE;
}

static int fail_not_found(const struct updater *updater, const struct patch_chunk *chunk,
                          const struct line_search *search, struct err *err)
{
    struct span first = search->wanted[0];
    int shown = first.len > 60 ? 60 : (int)first.len;

    if (search->is_at_end)
        err_set(err, ERR_INVALID,
                "the file does not end with the %zu lines that the chunk keeps or removes; they "
                "begin with \"%.*s\"",
                search->len, shown, first.text);
    else
        err_set(err, ERR_INVALID,
                "the %zu lines that the chunk keeps or removes are not there from line %zu on; "
                "they begin with \"%.*s\"",
                search->len, updater->next + 1, shown, first.text);
    return fail_at(updater, chunk, err);
}

static void take_place(struct updater *updater, struct place *place, size_t at, size_t len)
{
    place->at = at;
    updater->next = at + len;
}

/* A last empty line is often only what stands between the chunk and the next thing. */
static int seek_without_last(struct updater *updater, struct line_search *search,
                             struct place *place, struct err *err)
{
    const struct line_search whole = *search;
    bool is_found = true;
    size_t at = updater->next;

    place->not_old = empty_last(updater, place->chunk, PATCH_ADDED);
    if (place->not_old == NO_LINE)
        return fail_not_found(updater, place->chunk, &whole, err);
    place->not_new = empty_last(updater, place->chunk, PATCH_REMOVED);
    search->len--;
    if (search->len && seek(updater, search, &is_found, &at, place->chunk, err))
        return -1;
    if (!is_found)
        return fail_not_found(updater, place->chunk, &whole, err);
    take_place(updater, place, at, search->len);
    return 0;
}

static int place_chunk(struct updater *updater, struct place *place, struct err *err)
{
    const struct patch_chunk *chunk = place->chunk;
    AUTO_FREE struct span *wanted = alloc_zero(chunk->len + 1, sizeof *wanted);
    struct line_search search = {.wanted = wanted};
    bool is_found;
    size_t at;

    if (chunk->context.text && seek_context(updater, chunk, err))
        return -1;
    search.len = old_lines(updater, chunk, wanted);
    search.start = updater->next;
    search.is_at_end = chunk->is_at_end;
    if (search.len == 0) {
        place->at = updater->lines.len;
        return 0;
    }
    if (seek(updater, &search, &is_found, &at, chunk, err))
        return -1;
    if (!is_found)
        return seek_without_last(updater, &search, place, err);
    take_place(updater, place, at, search.len);
    return 0;
}

/* --- what goes and comes --- */

static void add_turns(struct updater *updater, const struct place *place)
{
    size_t at = place->at;
    size_t start = at;

    for (size_t i = 0; i < place->chunk->len; i++) {
        const struct patch_line *line = chunk_line(updater, place->chunk, i);
        bool is_old = line->mark != PATCH_ADDED && i != place->not_old;
        bool is_new = line->mark != PATCH_REMOVED && i != place->not_new;

        at += is_old;
        if (is_old == is_new) {
            start = at;
            continue;
        }
        updater->turns = alloc_grow(updater->turns, updater->turns_len, &updater->turns_cap,
                                    sizeof *updater->turns);
        updater->turns[updater->turns_len] = (struct turn){
            .at = start, .order = updater->turns_len, .is_old = is_old, .text = line->text};
        updater->turns_len++;
    }
}

static int turn_compare(const void *a, const void *b)
{
    const struct turn *left = a;
    const struct turn *right = b;

    if (left->at != right->at)
        return left->at < right->at ? -1 : 1;
    return left->order < right->order ? -1 : 1;
}

static int place_chunks(struct updater *updater, struct err *err)
{
    const struct patch_file *file = updater->file;

    for (size_t i = 0; i < file->len; i++) {
        struct place place = {.chunk = &updater->patch->chunks[file->first + i],
                              .not_old = NO_LINE,
                              .not_new = NO_LINE};

        if (place_chunk(updater, &place, err))
            return -1;
        add_turns(updater, &place);
    }
    if (updater->turns_len)
        qsort(updater->turns, updater->turns_len, sizeof *updater->turns, turn_compare);
    return 0;
}

/* --- writing the new text --- */

struct writer {
    const struct lines *old;
    enum line_end end; /* of new lines */
    struct buf text;
    struct edits edits;
    size_t old_at; /* lines of the old text that are done with */
    size_t new_at; /* lines written */
    bool is_full;
};

static void writer_done(struct writer *writer)
{
    buf_done(&writer->text);
    edits_done(&writer->edits);
}

static void writer_put(struct writer *writer, struct span text, enum line_end end)
{
    const char *ending = line_end_text(end);

    writer->is_full = writer->is_full || !buf_append(&writer->text, text.text, text.len) ||
                      !buf_append_str(&writer->text, ending);
    writer->new_at++;
}

/* The next old line; one without an ending gets one. */
static void writer_keep(struct writer *writer)
{
    const struct line *old = &writer->old->items[writer->old_at];
    enum line_end end = old->end == LINE_NO_END ? writer->end : old->end;

    if (end != old->end)
        edits_add(&writer->edits, (struct edit){.old_at = writer->old_at,
                                                .old_len = 1,
                                                .new_at = writer->new_at,
                                                .new_len = 1});
    writer_put(writer, old->text, end);
    writer->old_at++;
}

/* Lines lie one behind the other, so many can be taken at once; but the last may lack its ending.
 */
static void writer_keep_to(struct writer *writer, size_t at)
{
    const struct line *lines = writer->old->items;
    size_t whole = at && lines[at - 1].end == LINE_NO_END ? at - 1 : at;

    if (writer->old_at < whole) {
        const struct line *last = &lines[whole - 1];
        const char *start = lines[writer->old_at].text.text;
        const char *end = last->text.text + last->text.len + strlen(line_end_text(last->end));

        writer->is_full =
            writer->is_full || !buf_append(&writer->text, start, (size_t)(end - start));
        writer->new_at += whole - writer->old_at;
        writer->old_at = whole;
    }
    if (writer->old_at < at)
        writer_keep(writer);
}

static void write_turn(struct writer *writer, const struct turn *turn)
{
    writer_keep_to(writer, turn->at);
    edits_add(&writer->edits, (struct edit){.old_at = writer->old_at,
                                            .old_len = turn->is_old,
                                            .new_at = writer->new_at,
                                            .new_len = !turn->is_old});
    if (turn->is_old)
        writer->old_at++;
    else
        writer_put(writer, turn->text, writer->end);
}

static int write_text(const struct updater *updater, struct content *ret, struct edits *ret_edits,
                      struct err *err)
{
    const struct lines *lines = &updater->lines;
    AUTO(writer_done)
    struct writer writer = {
        .old = lines, .end = lines->len && lines->items[0].end == LINE_CRLF ? LINE_CRLF : LINE_LF};

    buf_init(&writer.text, CHANGES_FILE_MAX);
    for (size_t i = 0; i < updater->turns_len; i++)
        write_turn(&writer, &updater->turns[i]);
    writer_keep_to(&writer, lines->len);
    if (writer.is_full || writer.new_at > LINES_MAX)
        return err_set(err, ERR_LIMIT, "%s would be larger than %d MiB or %d lines",
                       updater->file->path, CHANGES_FILE_MAX >> 20, LINES_MAX);
    *ret = (struct content){.len = writer.text.len};
    ret->text = buf_take(&writer.text);
    *ret_edits = writer.edits;
    writer.edits = (struct edits){.items = NULL};
    return 0;
}

int update_compute(const struct patch *patch, const struct patch_file *file,
                   const struct content *before, struct content *ret, struct edits *ret_edits,
                   struct err *err)
{
    AUTO(updater_done) struct updater updater = {.patch = patch, .file = file};

    if (lines_split(before->text, before->len, &updater.lines, err))
        return err_wrap(err, "%s", file->path);
    if (place_chunks(&updater, err))
        return -1;
    return write_text(&updater, ret, ret_edits, err);
}
