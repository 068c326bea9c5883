/* See report.h. The diff is written from the edits that were found on the way, so it says what the
 * patch does and not what some other algorithm finds shorter. It is git's form, so that renames
 * and missing line feeds at the end can be told, and `git apply` and patch(1) take it. */
#include "patch/report.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "patch/lines.h"

/* --- the summary --- */

bool report_summary(const struct changes *changes, struct buf *ret)
{
    bool fits = buf_append_str(ret, "Success. Updated the following files:\n");

    for (const char *letter = "AMD"; *letter; letter++)
        for (size_t i = 0; i < changes->notes_len; i++)
            if (changes->notes[i].letter == *letter) {
                /* a person reads it at a terminal, and the patch chose the name */
                AUTO_FREE char *path = utf8_plain(changes->notes[i].path);

                fits = fits && buf_appendf(ret, "%c %s\n", *letter, path);
            }
    return fits;
}

/* --- the diff --- */

struct differ {
    const struct change *change;
    struct lines old;
    struct lines new;
    size_t context;
    struct buf *out;
    bool fits;
};

static void differ_done(struct differ *differ)
{
    lines_done(&differ->old);
    lines_done(&differ->new);
}

static void put_lines(struct differ *differ, char mark, size_t from, size_t to)
{
    const struct lines *lines = mark == '+' ? &differ->new : &differ->old;

    for (size_t i = from; i < to; i++) {
        const struct line *line = &lines->items[i];
        const char *end = line->end == LINE_NO_END ? "\n\\ No newline at end of file\n"
                                                   : line_end_text(line->end);

        differ->fits = differ->fits && buf_append(differ->out, &mark, 1) &&
                       buf_append(differ->out, line->text.text, line->text.len) &&
                       buf_append_str(differ->out, end);
    }
}

static size_t edit_old_end(const struct edit *edit)
{
    return edit->old_at + edit->old_len;
}

/* The first edit behind `first` whose context does not touch that of the one before. */
static size_t group_end(const struct differ *differ, size_t first)
{
    const struct edits *edits = &differ->change->edits;
    size_t end = first + 1;

    while (end < edits->len &&
           edits->items[end].old_at - edit_old_end(&edits->items[end - 1]) <= 2 * differ->context)
        end++;
    return end;
}

/* "-3,4" of a hunk's head; an empty range is named by the line before it. */
static void put_range(struct differ *differ, char mark, size_t at, size_t len)
{
    differ->fits = differ->fits && buf_appendf(differ->out, "%c%zu", mark, len ? at + 1 : at);
    if (len != 1)
        differ->fits = differ->fits && buf_appendf(differ->out, ",%zu", len);
}

/* The edits from `first` to before `end`, and the lines around and between them. */
static void put_hunk(struct differ *differ, size_t first, size_t end)
{
    const struct edit *edits = differ->change->edits.items;
    const struct edit *last = &edits[end - 1];
    size_t before = edits[first].old_at < differ->context ? edits[first].old_at : differ->context;
    size_t rest = differ->old.len - edit_old_end(last);
    size_t after = rest < differ->context ? rest : differ->context;
    size_t old_at = edits[first].old_at - before;
    size_t new_at = edits[first].new_at - before;

    differ->fits = differ->fits && buf_append_str(differ->out, "@@ ");
    put_range(differ, '-', old_at, edit_old_end(last) + after - old_at);
    differ->fits = differ->fits && buf_append_str(differ->out, " ");
    put_range(differ, '+', new_at, last->new_at + last->new_len + after - new_at);
    differ->fits = differ->fits && buf_append_str(differ->out, " @@\n");
    for (size_t i = first; i < end; i++) {
        put_lines(differ, ' ', old_at, edits[i].old_at);
        put_lines(differ, '-', edits[i].old_at, edit_old_end(&edits[i]));
        put_lines(differ, '+', edits[i].new_at, edits[i].new_at + edits[i].new_len);
        old_at = edit_old_end(&edits[i]);
    }
    put_lines(differ, ' ', old_at, old_at + after);
}

static bool put_head(const struct change *change, struct buf *out)
{
    const struct change *from = change->renamed_from ? change->renamed_from : change;
    bool fits = buf_appendf(out, "diff --git a/%s b/%s\n", from->path, change->path);

    if (from != change)
        fits = fits && buf_appendf(out, "rename from %s\nrename to %s\n", from->path, change->path);
    else if (!change->before.text)
        fits = fits && buf_append_str(out, "new file mode 100644\n");
    else if (!change->after.text)
        fits = fits && buf_append_str(out, "deleted file mode 100644\n");
    if (change->edits.len == 0)
        return fits;
    fits = fits && (from->before.text ? buf_appendf(out, "--- a/%s\n", from->path)
                                      : buf_append_str(out, "--- /dev/null\n"));
    return fits && (change->after.text ? buf_appendf(out, "+++ b/%s\n", change->path)
                                       : buf_append_str(out, "+++ /dev/null\n"));
}

static bool put_change(const struct change *change, size_t context, struct buf *out)
{
    const struct change *from = change->renamed_from ? change->renamed_from : change;
    AUTO(differ_done)
    struct differ differ = {.change = change, .context = context, .out = out, .fits = true};
    struct err ignored; /* both were split before */

    if (!put_head(change, out) ||
        lines_split(from->before.text, from->before.len, &differ.old, &ignored) ||
        lines_split(change->after.text, change->after.len, &differ.new, &ignored))
        return false;
    for (size_t i = 0, end; i < change->edits.len; i = end) {
        end = group_end(&differ, i);
        put_hunk(&differ, i, end);
    }
    return differ.fits;
}

bool report_diff(const struct changes *changes, size_t context, struct buf *ret)
{
    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = changes->items[i];

        if (!change->renamed_to && change_is_real(change) && !put_change(change, context, ret))
            return false;
    }
    return true;
}

/* --- JSON --- */

static const char *change_word(const struct change *change)
{
    if (change->renamed_from)
        return "rename";
    if (!change->before.text)
        return "add";
    return change->after.text ? "update" : "delete";
}

static json_t *change_to_json(const struct change *change)
{
    size_t added = 0;
    size_t removed = 0;
    json_t *json;

    for (size_t i = 0; i < change->edits.len; i++) {
        added += change->edits.items[i].new_len;
        removed += change->edits.items[i].old_len;
    }
    json = json_pack("{s:o, s:s, s:I, s:I}", "path", json_lossy(change->path), "change",
                     change_word(change), "lines_added", (json_int_t)added, "lines_removed",
                     (json_int_t)removed);
    if (change->renamed_from)
        json_object_set_new(json, "from", json_lossy(change->renamed_from->path));
    return json;
}

json_t *report_to_json(const struct changes *changes)
{
    json_t *list = json_array();

    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = changes->items[i];

        if (!change->renamed_to && change_is_real(change))
            json_array_append_new(list, change_to_json(change));
    }
    return list;
}
