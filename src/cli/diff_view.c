/* See diff_view.h. A file's lines were chosen by the command: on a terminal each is made plain, but for tabs. Where the
 * output goes to a file it is a patch, byte for byte; what is said of a change beside it stands before its "diff --git", where
 * git apply and patch(1) read over it. */
#include "cli/diff_view.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 3 };

/* Tabs stay, since they are what lines begin with. */
static void append_plain(const char *text, size_t len, struct buf *ret)
{
    while (len) {
        const char *tab = memchr(text, '\t', len);
        size_t part = tab ? (size_t)(tab - text) : len;
        AUTO_FREE char *copy = alloc_strn(text, part);
        size_t copied = strlen(copy);
        AUTO_FREE char *plain = utf8_plain(copy);

        buf_append_str(ret, plain);
        if (copied < part) { /* a NUL ends it */
            buf_append_str(ret, "<U+0000>");
            text += copied + 1;
            len -= copied + 1;
            continue;
        }
        if (tab)
            buf_append_str(ret, "\t");
        text += part + (tab != NULL);
        len -= part + (tab != NULL);
    }
}

static const char *line_colour(const char *line, bool is_head, const struct ink *ink)
{
    if (is_head)
        return ink->head;
    switch (*line) {
    case '@':
        return ink->hunk;
    case '+':
        return ink->added;
    case '-':
        return ink->gone;
    case '\\':
        return ink->faint;
    default:
        return "";
    }
}

void diff_text_print(const char *text, size_t len, const struct ink *ink, bool is_plain,
                     struct buf *ret)
{
    bool is_head = true;

    if (!is_plain && !*ink->off) {
        buf_append(ret, text, len);
        return;
    }
    for (const char *end = text + len; text < end;) {
        const char *feed = memchr(text, '\n', (size_t)(end - text));
        size_t line = feed ? (size_t)(feed - text) : (size_t)(end - text);
        const char *colour;

        if (line > 1 && text[0] == '@' && text[1] == '@')
            is_head = false;
        colour = line ? line_colour(text, is_head, ink) : "";
        buf_append_str(ret, colour);
        if (is_plain)
            append_plain(text, line, ret);
        else
            buf_append(ret, text, line);
        buf_appendf(ret, "%s\n", *colour ? ink->off : "");
        text += line + 1;
    }
}

static void print_marks(const struct change_view *view, const struct change *change,
                        struct buf *ret)
{
    AUTO(buf_done) struct buf marks = {.max = SIZE_MAX / 2};
    AUTO_FREE char *path = utf8_plain(change->path);

    change_marks_print(change, &marks);
    if (marks.len)
        buf_appendf(ret, "%s# %s: %s%s\n", view->ink->mark, path, marks.data, view->ink->off);
}

/* Of what is no text: how large it was and is. */
static void print_sizes(const struct change_diff *diff, const struct ink *ink, struct buf *ret)
{
    buf_appendf(ret, "%s# no text: ", ink->faint);
    size_print(diff->old_size, ret);
    buf_append_str(ret, " before, ");
    size_print(diff->new_size, ret);
    buf_appendf(ret, " now%s\n", ink->off);
}

int diff_change_print(const struct change_view *view, const struct change *change, bool is_plain,
                      struct buf *ret, struct err *err)
{
    AUTO(change_diff_done) struct change_diff diff = {.is_binary = false};

    if (change_diff(view->layer, change, CONTEXT, 0, &diff, err))
        return -1;
    print_marks(view, change, ret);
    diff_text_print(diff.unified.data ? diff.unified.data : "", diff.unified.len, view->ink,
                    is_plain, ret);
    if (diff.is_binary && (diff.old_sha256[0] || diff.new_sha256[0]))
        print_sizes(&diff, view->ink, ret);
    return 0;
}
