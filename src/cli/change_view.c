/* See change_view.h. Names are made plain here and nowhere before: whoever prints a change prints it through this file.
 *
 * Lines are made in three passes over the sorted list: moved files that agree in where from and where to (what stands
 * before the names that they have in common) become one; a directory that is new or gone takes what is below it,
 * when that is much; what is left has its own line. What is marked keeps its own line as long as those are few: it
 * is what has to be looked at. */
#include "cli/change_view.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/layer_words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FOLD_MIN = 5,         /* files, from which a folder that is new or gone is one line */
    FOLD_MARKED_MAX = 20, /* marked ones in it, up to which each has its own */
    WORD_WIDTH = 8,
    PATH_WIDTH = 36,
};

static const unsigned marks_shown = MARKS_LATER | MARK_SPECIAL | MARK_CONFLICT;

/* --- colours --- */

const struct ink *ink_plain(void)
{
    static const struct ink plain = {"", "", "", "", "", "", "", "", ""};

    return &plain;
}

const struct ink *ink_of(int fd)
{
    static const struct ink coloured = {
        .added = "\033[32m",
        .gone = "\033[31m",
        .changed = "\033[33m",
        .moved = "\033[36m",
        .mark = "\033[1;35m",
        .head = "\033[1m",
        .hunk = "\033[36m",
        .faint = "\033[2m",
        .off = "\033[0m",
    };
    const char *term = getenv("TERM");
    const char *without = getenv("NO_COLOR");

    return isatty(fd) && !(without && *without) && term && !str_eq(term, "dumb") ? &coloured
                                                                                 : ink_plain();
}

/* --- lines --- */

static void line_add(struct change_line *line, const struct changes *changes, size_t item)
{
    const struct change *change = &changes->items[item];
    const struct change_stamp *stamp =
        change->kind == CHANGE_DELETED ? &change->real : &change->layer;

    line->items = alloc_grow(line->items, line->len, &line->cap, sizeof *line->items);
    line->items[line->len++] = item;
    line->marks |= change->marks;
    if (S_ISDIR(stamp->mode))
        return;
    line->files++;
    line->bytes += stamp->size;
}

static struct change_line *lines_add(struct change_lines *lines, enum change_fold fold)
{
    lines->items = alloc_grow(lines->items, lines->len, &lines->cap, sizeof *lines->items);
    lines->items[lines->len] = (struct change_line){.fold = fold};
    return &lines->items[lines->len++];
}

void change_lines_done(struct change_lines *lines)
{
    for (size_t i = 0; i < lines->len; i++) {
        free(lines->items[i].items);
        free(lines->items[i].path);
        free(lines->items[i].from);
    }
    free(lines->items);
    *lines = (struct change_lines){.items = NULL};
}

/* What is known of the changes while lines are made. */
struct folding {
    const struct changes *changes;
    struct change_lines *lines;
    bool *is_done;   /* by change: it is in a line, or has none */
    size_t *line_of; /* by change: 1 + its line, of those that begin one; 0: none */
};

static bool is_dir(const struct change *change)
{
    return S_ISDIR((change->kind == CHANGE_DELETED ? &change->real : &change->layer)->mode);
}

static bool is_below(const struct change *change, const struct change *dir)
{
    return change->root == dir->root && path_is_within(change->path, dir->path);
}

/* How much of both is the same at their ends, in whole names: "lib/a.c" and "new/a.c" agree in "/a.c". Bytes. */
static size_t common_end(const char *one, const char *other)
{
    size_t a = strlen(one), b = strlen(other), names = 0, len = 0;

    while (a - len && b - len && one[a - len - 1] == other[b - len - 1]) {
        len++;
        if (one[a - len] == '/')
            names = len;
    }
    return names;
}

/* A line for what moved between these two folders; NULL: there is none yet. The ones that were made last are the likely ones. */
static struct change_line *find_moved(const struct folding *folding, const struct change *change,
                                      size_t same)
{
    enum { LOOK = 64 };
    const struct change_lines *lines = folding->lines;
    size_t to = strlen(change->path) - same, from = strlen(change->from) - same;

    for (size_t i = lines->len; i-- && lines->len - i <= LOOK;) {
        struct change_line *line = &lines->items[i];

        if (line->fold == FOLD_MOVED &&
            folding->changes->items[line->items[0]].root == change->root &&
            strlen(line->path) == to && strlen(line->from) == from &&
            memcmp(line->path, change->path, to) == 0 &&
            memcmp(line->from, change->from, from) == 0)
            return line;
    }
    return NULL;
}

/* mv(1) keeps times, also where it has to copy. */
static bool is_edited(const struct change *change)
{
    return change->kind == CHANGE_RENAMED && !is_dir(change) &&
           (change->layer.size != change->real.size ||
            change->layer_mtime_ns != change->real_mtime_ns);
}

static void fold_moved(struct folding *folding)
{
    const struct changes *changes = folding->changes;

    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];
        size_t same = change->kind == CHANGE_RENAMED ? common_end(change->from, change->path) : 0;
        struct change_line *line;

        /* a directory that agrees in nothing is the one that was moved */
        if (change->kind != CHANGE_RENAMED || change->marks & marks_shown || is_edited(change) ||
            (!same && !is_dir(change)))
            continue;
        line = find_moved(folding, change, same);
        if (!line) {
            line = lines_add(folding->lines, FOLD_MOVED);
            line->path = alloc_strn(change->path, strlen(change->path) - same);
            line->from = alloc_strn(change->from, strlen(change->from) - same);
        }
        line_add(line, changes, i);
    }
    for (size_t i = 0; i < folding->lines->len; i++) {
        struct change_line *line = &folding->lines->items[i];

        if (line->len == 1) {
            line->fold = FOLD_NONE;
            free(TAKE_PTR(line->path));
            free(TAKE_PTR(line->from));
        }
        folding->line_of[line->items[0]] = i + 1;
        for (size_t k = 0; k < line->len; k++)
            folding->is_done[line->items[k]] = true;
    }
}

/* Of the directory that change `at` is: what is below it and of its kind. */
static void fold_dir(struct folding *folding, size_t at)
{
    const struct changes *changes = folding->changes;
    const struct change *dir = &changes->items[at];
    struct change_line *line;
    size_t files = 0, marked = 0, end;

    for (end = at + 1; end < changes->len && is_below(&changes->items[end], dir); end++) {
        const struct change *change = &changes->items[end];

        if (folding->is_done[end] || change->kind != dir->kind)
            continue;
        files += !is_dir(change);
        marked += (change->marks & marks_shown) != 0;
    }
    if (files < FOLD_MIN)
        return;
    line = lines_add(folding->lines, dir->kind == CHANGE_ADDED ? FOLD_NEW : FOLD_GONE);
    line->path = alloc_str(dir->path);
    folding->line_of[at] = folding->lines->len;
    for (size_t i = at; i < end; i++) {
        const struct change *change = &changes->items[i];

        if (folding->is_done[i] || change->kind != dir->kind ||
            (change->marks & marks_shown && marked <= FOLD_MARKED_MAX && !is_dir(change)))
            continue;
        line_add(line, changes, i);
        folding->is_done[i] = true;
    }
}

static int compare_paths(const void *one, const void *other)
{
    return path_compare(*(const char *const *)one, *(const char *const *)other);
}

/* Where renamed files were, sorted. */
static size_t list_origins(const struct changes *changes, const char ***ret)
{
    size_t len = 0;

    *ret = alloc_zero(changes->len + 1, sizeof **ret);
    for (size_t i = 0; i < changes->len; i++)
        if (changes->items[i].kind == CHANGE_RENAMED)
            (*ret)[len++] = changes->items[i].from;
    qsort(*ret, len, sizeof **ret, compare_paths);
    return len;
}

static bool has_origin_below(const char **origins, size_t len, const char *dir)
{
    size_t low = 0, high = len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (path_compare(origins[middle], dir) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < len && path_is_within(origins[low], dir);
}

/* Something below it is told of, so that it need not be. */
static bool is_implied(const struct folding *folding, size_t at, const char **origins, size_t len)
{
    const struct changes *changes = folding->changes;
    const struct change *dir = &changes->items[at];

    if (!is_dir(dir) || dir->kind == CHANGE_MODE || dir->kind == CHANGE_TYPE)
        return false;
    return (at + 1 < changes->len && is_below(&changes->items[at + 1], dir)) ||
           (dir->kind == CHANGE_DELETED && has_origin_below(origins, len, dir->path));
}

/* In the order of the list, by the first of each. */
static void sort_lines(struct folding *folding)
{
    struct change_lines *lines = folding->lines;
    struct change_lines sorted = {.items = NULL};

    for (size_t i = 0; i < folding->changes->len; i++)
        if (folding->line_of[i])
            *lines_add(&sorted, FOLD_NONE) = lines->items[folding->line_of[i] - 1];
    free(lines->items);
    *lines = sorted;
}

void change_lines_make(const struct changes *changes, bool is_full, struct change_lines *ret)
{
    AUTO_FREE bool *is_done = alloc_zero(changes->len + 1, sizeof *is_done);
    AUTO_FREE size_t *line_of = alloc_zero(changes->len + 1, sizeof *line_of);
    struct folding folding = {changes, ret, is_done, line_of};
    AUTO_FREE const char **origins = NULL;
    size_t origins_len = list_origins(changes, &origins);

    *ret = (struct change_lines){.items = NULL};
    if (!is_full)
        fold_moved(&folding);
    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];

        if (is_done[i])
            continue;
        if (!is_full && is_dir(change) &&
            (change->kind == CHANGE_ADDED || change->kind == CHANGE_DELETED))
            fold_dir(&folding, i);
        if (is_done[i] || (!is_full && is_implied(&folding, i, origins, origins_len)))
            continue;
        line_add(lines_add(ret, FOLD_NONE), changes, i);
        line_of[i] = ret->len;
    }
    sort_lines(&folding);
}

/* --- words --- */

static const char *kind_word(const struct change *change)
{
    switch (change->kind) {
    case CHANGE_ADDED:
        return "new";
    case CHANGE_MODIFIED:
        return "changed";
    case CHANGE_DELETED:
        return "deleted";
    case CHANGE_RENAMED:
        return "moved";
    case CHANGE_TYPE:
        return "type";
    case CHANGE_MODE:
        return "mode";
    }
    return "?";
}

static const char *colour_of(const struct ink *ink, enum change_kind kind)
{
    switch (kind) {
    case CHANGE_ADDED:
        return ink->added;
    case CHANGE_DELETED:
        return ink->gone;
    case CHANGE_RENAMED:
        return ink->moved;
    case CHANGE_MODIFIED:
    case CHANGE_TYPE:
    case CHANGE_MODE:
        break;
    }
    return ink->changed;
}

void size_print(uint64_t bytes, struct buf *ret)
{
    static const char units[] = "KMGT";
    double value = (double)bytes / 1024;
    size_t unit = 0;

    if (bytes < 1024) {
        buf_appendf(ret, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
        return;
    }
    for (; value >= 1000 && unit + 2 < sizeof units; unit++)
        value /= 1024;
    buf_appendf(ret, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

void age_print(const struct timespec *when, struct buf *ret)
{
    static const struct {
        time_t seconds;
        const char *name;
    } units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}};
    struct timespec now;
    time_t age;

    clock_gettime(CLOCK_REALTIME, &now);
    age = now.tv_sec - when->tv_sec;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (age >= units[i].seconds) {
            time_t count = age / units[i].seconds;

            buf_appendf(ret, "%" PRId64 " %s%s ago", (int64_t)count, units[i].name,
                        count == 1 ? "" : "s");
            return;
        }
    buf_append_str(ret, "just now");
}

static void add_mark(struct buf *ret, size_t begin, const char *text)
{
    buf_appendf(ret, "%s%s", ret->len > begin ? ", " : "", text);
}

void change_marks_print(const struct change *change, struct buf *ret)
{
    const size_t begin = ret->len;
    AUTO_FREE char *by = change->run_by ? alloc_strf("run later by %s", change->run_by)
                                        : alloc_str("executable as before");

    if (change->marks & MARK_CONFLICT)
        add_mark(ret, begin, "changed outside meanwhile, too");
    if (change->marks & MARK_SPECIAL)
        add_mark(ret, begin, "a pipe, socket or device, which cannot be accepted");
    if (change->marks & MARK_PROTECTED)
        add_mark(ret, begin, "a protected name");
    if (change->marks & MARK_RUNS_LATER)
        add_mark(ret, begin, by);
    if (change->marks & MARK_EXECUTABLE)
        add_mark(ret, begin, "executable now");
    if (change->marks & MARK_SET_ID)
        add_mark(ret, begin, "set-user-id or set-group-id, which accepting takes away");
    if (change->marks & MARK_LEAVES)
        add_mark(ret, begin, "a link that leads elsewhere");
}

/* Of a folder: what its marks are, all in all. */
static void fold_marks_print(unsigned marks, struct buf *ret)
{
    const struct change all = {.marks = marks & ~(unsigned)MARK_RUNS_LATER};

    if (marks & MARK_RUNS_LATER)
        buf_append_str(ret, "some are run later");
    if (all.marks & marks_shown) {
        buf_append_str(ret, ret->len ? ", " : "");
        change_marks_print(&all, ret);
    }
}

/* --- printing --- */

/* As it is shown, plain. Caller frees. */
static char *name_of(const struct change_view *view, size_t root, const char *path, bool is_folder)
{
    size_t len;
    const struct layer_root *roots = layer_roots(view->layer, &len);
    AUTO_FREE char *whole = *path ? path_join(roots[root].path, path) : alloc_str(roots[root].path);
    AUTO_FREE char *shown = layer_shown_path(view->cwd, whole);
    AUTO_FREE char *name = alloc_strf("%s%s", shown, is_folder ? "/" : "");

    return utf8_plain(name);
}

/* "lib/ -> library/", "12 files, 1.2M" */
static void print_fold(const struct change_view *view, const struct change_line *line,
                       struct buf *name, struct buf *about)
{
    size_t root = view->changes->items[line->items[0]].root;
    AUTO_FREE char *path = name_of(view, root, line->path, true);
    AUTO_FREE char *from = line->from ? name_of(view, root, line->from, true) : NULL;

    buf_appendf(name, "%s%s%s", from ? from : "", from ? " -> " : "", path);
    buf_appendf(about, "%zu files, ", line->files);
    size_print(line->bytes, about);
}

static void print_one(const struct change_view *view, const struct change *change, struct buf *name,
                      struct buf *about)
{
    bool is_folder = is_dir(change);
    AUTO_FREE char *path = name_of(view, change->root, change->path, is_folder);
    AUTO_FREE char *from = change->from ? name_of(view, change->root, change->from, false) : NULL;

    buf_appendf(name, "%s%s%s", from ? from : "", from ? " -> " : "", path);
    if (is_edited(change))
        buf_append_str(about, "and edited");
    if (change->kind == CHANGE_MODE)
        buf_appendf(about, "%04o -> %04o", change->real.mode & 07777, change->layer.mode & 07777);
    if (change->kind == CHANGE_TYPE)
        buf_appendf(about, "now %s",
                    S_ISLNK(change->layer.mode)   ? "a link"
                    : S_ISREG(change->layer.mode) ? "a file"
                                                  : "something else");
}

void change_line_print(const struct change_view *view, const struct change_line *line,
                       struct buf *ret)
{
    static const char *const fold_words[] = {"", "moved", "new", "deleted"};
    const struct change *change = &view->changes->items[line->items[0]];
    const struct ink *ink = view->ink;
    AUTO(buf_done) struct buf name = {.max = SIZE_MAX / 2};
    AUTO(buf_done) struct buf about = {.max = SIZE_MAX / 2};
    AUTO(buf_done) struct buf marks = {.max = SIZE_MAX / 2};

    buf_append_str(&about, "");
    buf_append_str(&marks, "");
    if (line->fold == FOLD_NONE) {
        print_one(view, change, &name, &about);
        change_marks_print(change, &marks);
    } else {
        print_fold(view, line, &name, &about);
        fold_marks_print(line->marks, &marks);
    }
    buf_appendf(ret, "  %s%-*s%s ", colour_of(ink, change->kind), WORD_WIDTH,
                line->fold == FOLD_NONE ? kind_word(change) : fold_words[line->fold], ink->off);
    buf_appendf(ret, "%-*s", about.len || marks.len ? PATH_WIDTH : 0, name.data);
    if (about.len)
        buf_appendf(ret, "  %s%s%s", ink->faint, about.data, ink->off);
    if (marks.len)
        buf_appendf(ret, "  %s! %s%s", ink->mark, marks.data, ink->off);
    buf_append_str(ret, "\n");
}

void change_counts_print(const struct change_counts *counts, const struct ink *ink, struct buf *ret)
{
    const struct {
        size_t count;
        const char *word, *colour;
    } parts[] = {
        {counts->added, "new", ink->added},         {counts->modified, "changed", ink->changed},
        {counts->deleted, "deleted", ink->gone},    {counts->renamed, "moved", ink->moved},
        {counts->other, "otherwise", ink->changed},
    };
    const char *comma = "";

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].count) {
            buf_appendf(ret, "%s%s%zu %s%s", comma, parts[i].colour, parts[i].count, parts[i].word,
                        ink->off);
            comma = ", ";
        }
    if (!*comma)
        buf_append_str(ret, "nothing");
    if (counts->marked)
        buf_appendf(ret, "; %s%zu to look at%s", ink->mark, counts->marked, ink->off);
    if (counts->conflicts)
        buf_appendf(ret, "; %s%zu changed outside, too%s", ink->mark, counts->conflicts, ink->off);
}

/* --- what was not done --- */

static void left_reason(const struct left *left, struct buf *ret)
{
    static const char *const reasons[] = {
        [LEFT_CONFLICT] = "it was changed outside meanwhile",
        [LEFT_MARKED] = "it is marked, and --marked was not given",
        [LEFT_CHANGED] = "it is not any more what was shown",
        [LEFT_SPECIAL] = "a pipe, socket or device cannot be accepted",
        [LEFT_SUSPECT] = "the machine went down since it was written, and it may lack contents",
        [LEFT_BUSY] = "commands of the layer are running",
        [LEFT_FAILED] = "it could not be done",
        [LEFT_LATER] = "it was changed since",
    };

    buf_append_str(ret, left->detail && *left->detail ? left->detail : reasons[left->why]);
}

/* The command that would do it; NULL: there is none. Caller frees. */
static char *left_remedy(const char *layer, const char *command, const struct left *left,
                         const char *path)
{
    switch (left->why) {
    case LEFT_CONFLICT:
        return alloc_strf("cordon diff %s %s; the layer's all the same: cordon %s %s %s --force",
                          layer, path, command, layer, path);
    case LEFT_SUSPECT:
        return alloc_strf("look at it, then: cordon %s %s %s --force", command, layer, path);
    case LEFT_MARKED:
        return alloc_strf("cordon %s %s %s", command, layer, path);
    case LEFT_CHANGED:
        return alloc_strf("cordon diff %s %s", layer, path);
    case LEFT_SPECIAL:
        return alloc_strf("cordon drop %s %s", layer, path);
    case LEFT_BUSY:
        return alloc_str("again when they have ended");
    case LEFT_LATER:
    case LEFT_FAILED:
        break;
    }
    return NULL;
}

/* The same reason many times is told a few times, and then counted. */
void left_print(const struct layer *layer, const char *cwd, const char *command,
                const struct left *left, size_t len, struct buf *ret)
{
    enum { EACH_MAX = 10 };
    AUTO_FREE char *name = layer_shown_name(layer);
    size_t told[LEFT_LATER + 1] = {0};

    for (size_t i = 0; i < len; i++) {
        AUTO_FREE char *shown = layer_shown_path(cwd, left[i].path);
        AUTO_FREE char *word = layer_shell_word(shown);
        AUTO_FREE char *remedy = left_remedy(name, command, &left[i], word);
        AUTO(buf_done) struct buf line = {.max = SIZE_MAX / 2};
        AUTO_FREE char *plain = NULL;

        if (told[left[i].why]++ >= EACH_MAX)
            continue;
        buf_appendf(&line, "left %s: ", shown);
        left_reason(&left[i], &line);
        if (remedy && !(left[i].detail && *left[i].detail))
            buf_appendf(&line, " (%s)", remedy);
        plain = utf8_plain(line.data);
        buf_appendf(ret, "%s\n", plain);
    }
    for (size_t why = 0; why <= LEFT_LATER; why++)
        if (told[why] > EACH_MAX)
            buf_appendf(ret, "left %zu more for the same reason (%s): cordon changes %s\n",
                        told[why] - EACH_MAX, left_why_words[why], name);
}
