/* See review.h. What is asked about are the lines of `cordon changes` (change_view.h): a folder that is new, gone or moved is one
 * question, which can be split into its files, and a text into its hunks. The keys are those of git add -p.
 *
 * Nothing is done before the last answer; what is accepted then is just what was shown, by its stamps. A yes to what is marked
 * is one: the marks stand in the question. "all that follows" leaves out what is marked or in conflict, which is still
 * asked about. */
#include "cli/review.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "cli/diff_view.h"
#include "cli/pager.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    CONTEXT = 3,
    NAMES_SHOWN = 10, /* of a folder */
    PROMPT_LINES = 6, /* of the screen that are not the diff's */
};

static const unsigned marks_asked = MARKS_LATER | MARK_CONFLICT | MARK_SPECIAL;

enum verdict { LEAVE, TAKE, FORCE, PART };

struct decision {
    enum verdict verdict;
    struct buf text; /* PART: what the file is to have */
};

struct review {
    struct review_terminal *terminal;
    struct layer *layer;
    struct change_view view;
    const struct changes *changes;
    struct decision *decisions; /* by change */
    bool takes_rest;            /* but what is marked */
    bool is_over;
};

/* --- the hunks of a text --- */

/* Both sides of a file; zeroed: it is none. */
struct sides {
    struct buf old, new;
    struct hunks hunks;
    bool *takes;  /* by hunk */
    size_t first; /* of the hunks that are shown together: first .. end */
    size_t end;
};

static void sides_done(struct sides *sides)
{
    buf_done(&sides->old);
    buf_done(&sides->new);
    hunks_done(&sides->hunks);
    free(sides->takes);
}

static bool has_hunks(const struct change *change)
{
    return change->kind == CHANGE_MODIFIED && !change->is_binary && S_ISREG(change->layer.mode) &&
           S_ISREG(change->real.mode) && change->layer.size <= DIFF_MAX &&
           change->real.size <= DIFF_MAX;
}

static int read_side(const struct review *review, const struct change *change,
                     enum change_side side, struct buf *ret, struct err *err)
{
    AUTO_CLOSE int fd = change_open(review->layer, change, side, err);

    *ret = (struct buf){.max = DIFF_MAX};
    buf_append_str(ret, "");
    return fd < 0 || buf_read_fd(ret, fd, err) ? -1 : 0;
}

static int sides_read(const struct review *review, const struct change *change, struct sides *ret,
                      struct err *err)
{
    if (read_side(review, change, CHANGE_REAL, &ret->old, err) ||
        read_side(review, change, CHANGE_LAYER, &ret->new, err))
        return -1;
    diff_lines(ret->old.data, ret->old.len, ret->new.data, ret->new.len, &ret->hunks);
    ret->takes = alloc_zero(ret->hunks.len + 1, sizeof *ret->takes);
    return 0;
}

/* Where those end that diff -u would show as one with the hunk `at`. */
static size_t group_end(const struct hunks *hunks, size_t at)
{
    while (++at < hunks->len) {
        const struct hunk *before = &hunks->items[at - 1];

        if (hunks->items[at].old_at - (before->old_at + before->old_len) > 2 * CONTEXT)
            break;
    }
    return at;
}

static void show_group(const struct review *review, const struct sides *sides, struct buf *plain,
                       struct buf *ret)
{
    struct hunks group = {&sides->hunks.items[sides->first], sides->end - sides->first, 0};

    diff_unified(sides->old.data, sides->old.len, sides->new.data, sides->new.len, &group, CONTEXT,
                 plain);
    diff_text_print(plain->data, plain->len, review->terminal->ink, true, ret);
}

static const char hunk_help[] = "y - accept this hunk\n"
                                "n - leave it in the layer\n"
                                "a - accept it and all later ones of this file\n"
                                "d - neither it nor the later ones of this file\n"
                                "s - split it into smaller ones\n"
                                "/ - go to the next one with some text\n"
                                "q - stop here: what was said yes to so far is accepted\n"
                                "? - this help\n";

/* The next group from `sides->end` on that has the text; false: there is none. */
static bool find_hunk(const struct review *review, struct sides *sides, const char *text)
{
    struct sides at = *sides;

    for (at.first = sides->end; at.first < sides->hunks.len; at.first = at.end) {
        AUTO(buf_done) struct buf plain = {.max = SIZE_MAX / 2};
        AUTO(buf_done) struct buf shown = {.max = SIZE_MAX / 2};

        at.end = group_end(&sides->hunks, at.first);
        show_group(review, &at, &plain, &shown);
        if (plain.len && memmem(plain.data, plain.len, text, strlen(text))) {
            sides->first = at.first;
            sides->end = at.end;
            return true;
        }
    }
    return false;
}

static void say(const struct review *review, const char *line)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    buf_appendf(&text, "%s\n", line);
    review_terminal_show(review->terminal, &text);
}

/* What was typed to look for; NULL: nothing. Caller frees. */
static char *ask_text(const struct review *review)
{
    AUTO_FREE char *text = review_terminal_ask(review->terminal, "search for:");

    return text && *text ? TAKE_PTR(text) : NULL;
}

/* One question about the hunks first .. end; the key, of which '/' and 's' have been seen to. */
static char ask_hunk(const struct review *review, struct sides *sides)
{
    while (true) {
        AUTO(buf_done) struct buf plain = {.max = SIZE_MAX / 2};
        AUTO(buf_done) struct buf shown = {.max = SIZE_MAX / 2};
        AUTO_FREE char *prompt =
            alloc_strf("(%zu/%zu) Accept this hunk [y,n,a,d,%s/,q,?]?", sides->first + 1,
                       sides->hunks.len, sides->end - sides->first > 1 ? "s," : "");
        AUTO_FREE char *text = NULL;
        char key;

        show_group(review, sides, &plain, &shown);
        review_terminal_show(review->terminal, &shown);
        key =
            review_terminal_key(review->terminal, prompt,
                                sides->end - sides->first > 1 ? "ynads/q?" : "ynad/q?", hunk_help);
        if (key == 's') {
            sides->end = sides->first + 1;
            continue;
        }
        if (key != '/')
            return key;
        text = ask_text(review);
        if (text && !find_hunk(review, sides, text))
            say(review, "no later hunk has that");
    }
}

static bool takes_hunk(void *data, size_t hunk)
{
    return ((const struct sides *)data)->takes[hunk];
}

/* What the answers to its hunks come to. */
static void decide_by_hunks(struct review *review, size_t item, struct sides *sides)
{
    struct decision *decision = &review->decisions[item];
    bool is_conflict = review->changes->items[item].marks & MARK_CONFLICT;
    size_t taken = 0;

    for (size_t i = 0; i < sides->hunks.len; i++)
        taken += sides->takes[i];
    if (!taken)
        return;
    decision->verdict = taken < sides->hunks.len ? PART : is_conflict ? FORCE : TAKE;
    if (decision->verdict != PART)
        return;
    decision->text = (struct buf){.max = SIZE_MAX / 2};
    buf_append_str(&decision->text, "");
    diff_apply(sides->old.data, sides->old.len, sides->new.data, sides->new.len, &sides->hunks,
               takes_hunk, sides, &decision->text);
}

static void ask_hunks(struct review *review, size_t item)
{
    AUTO(sides_done) struct sides sides = {.first = 0};
    struct err err;

    if (sides_read(review, &review->changes->items[item], &sides, &err)) {
        say(review, err.msg);
        return;
    }
    for (sides.first = 0; sides.first < sides.hunks.len && !review->is_over;) {
        bool is_all;
        char key;

        /* after a split the rest of it is asked about in pieces, too */
        sides.end = group_end(&sides.hunks, sides.first);
        key = ask_hunk(review, &sides);
        is_all = key == 'a' || key == 'd';
        for (size_t i = sides.first; i < (is_all ? sides.hunks.len : sides.end); i++)
            sides.takes[i] = key == 'y' || key == 'a';
        if (key == 'q')
            review->is_over = true;
        sides.first = is_all ? sides.hunks.len : sides.end;
    }
    decide_by_hunks(review, item, &sides);
}

/* --- the files --- */

static const char file_help[] =
    "y - accept this change\n"
    "n - leave it in the layer\n"
    "f - accept it all the same: what was changed outside meanwhile is kept for cordon undo\n"
    "a - accept it and all that follow, but for what is marked, which is asked about\n"
    "d - neither it nor any that follow\n"
    "s - go through its hunks, or the files of a folder\n"
    "v - see all of it\n"
    "/ - go to the next one with some text in its name or contents\n"
    "q - stop here: what was said yes to so far is accepted\n"
    "? - this help\n";

static void print_names(const struct review *review, const struct change_line *line,
                        struct buf *ret)
{
    for (size_t i = 0, shown = 0; i < line->len; i++) {
        size_t items[1] = {line->items[i]};
        const struct change_line one = {.items = items, .len = 1};

        if (S_ISDIR(review->changes->items[items[0]].layer.mode))
            continue;
        if (shown++ == NAMES_SHOWN) {
            buf_appendf(ret, "    ... and %zu more\n", line->files - NAMES_SHOWN);
            return;
        }
        buf_append_str(ret, "  ");
        change_line_print(&review->view, &one, ret);
    }
}

/* All that there is to see of it. */
static void print_contents(const struct review *review, const struct change_line *line,
                           struct buf *ret)
{
    struct err err;

    if (line->fold != FOLD_NONE)
        print_names(review, line, ret);
    else if (diff_change_print(&review->view, &review->changes->items[line->items[0]], true, ret,
                               &err))
        buf_appendf(ret, "%s\n", err.msg);
}

/* As much as the screen has room for; false: there is more. */
static bool cut_to_screen(const struct review *review, struct buf *text)
{
    size_t room = review->terminal->lines > 2 * PROMPT_LINES
                      ? review->terminal->lines - PROMPT_LINES
                      : PROMPT_LINES;
    size_t lines = 0, at = 0, more = 0;

    for (size_t i = 0; i < text->len; i++) {
        if (text->data[i] != '\n')
            continue;
        if (++lines == room)
            at = i + 1;
    }
    if (lines <= room)
        return true;
    more = lines - room;
    text->len = at;
    buf_appendf(text, "%s... %zu more lines, v shows all%s\n", review->terminal->ink->faint, more,
                review->terminal->ink->off);
    return false;
}

static void show_all(const struct review *review, const struct change_line *line)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    struct pager pager;

    print_contents(review, line, &text);
    pager_start(&pager);
    pager_write(&pager, text.data, text.len);
    (void)pager_end(&pager);
}

/* Which keys there are; the first of them takes it. */
static const char *keys_of(const struct review *review, const struct change_line *line)
{
    const struct change *change = &review->changes->items[line->items[0]];

    if (line->fold != FOLD_NONE)
        return line->marks & MARK_SPECIAL    ? "nads/q?"
               : line->marks & MARK_CONFLICT ? "nads/q?"
                                             : "ynads/q?";
    if (change->marks & MARK_SPECIAL)
        return "nad/q?";
    if (change->marks & MARK_CONFLICT)
        return has_hunks(change) ? "fnadsv/q?" : "fnadv/q?";
    return has_hunks(change) ? "ynadsv/q?" : "ynadv/q?";
}

static bool line_has(const struct review *review, const struct change_line *line, const char *text)
{
    AUTO(buf_done) struct buf shown = {.max = SIZE_MAX / 2};

    change_line_print(&review->view, line, &shown);
    if (line->fold == FOLD_NONE)
        print_contents(review, line, &shown);
    return shown.len && memmem(shown.data, shown.len, text, strlen(text));
}

static void decide_line(struct review *review, const struct change_line *line, enum verdict verdict)
{
    for (size_t i = 0; i < line->len; i++)
        review->decisions[line->items[i]].verdict = verdict;
}

static char ask_line(const struct review *review, const struct change_line *line, size_t number,
                     size_t count)
{
    const char *keys = keys_of(review, line);
    AUTO(buf_done) struct buf prompt = {.max = SIZE_MAX / 2};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO(buf_done) struct buf contents = {.max = SIZE_MAX / 2};

    buf_append_str(&text, "\n");
    change_line_print(&review->view, line, &text);
    buf_append_str(&contents, "");
    print_contents(review, line, &contents);
    cut_to_screen(review, &contents);
    buf_append(&text, contents.data, contents.len);
    review_terminal_show(review->terminal, &text);
    buf_appendf(&prompt, "(%zu/%zu) Accept this change [", number, count);
    for (const char *key = keys; *key; key++)
        buf_appendf(&prompt, "%s%c", key > keys ? "," : "", *key);
    buf_append_str(&prompt, "]?");
    return review_terminal_key(review->terminal, prompt.data, keys, file_help);
}

static void review_lines(struct review *review, const struct change_lines *lines);

/* Each by itself. A folder has no folder in it that is one line again: this ends. */
static void ask_files(struct review *review, const struct change_line *line)
{
    struct change_lines lines = {.items = alloc_zero(line->len, sizeof *lines.items)};

    for (size_t i = 0; i < line->len; i++) {
        const struct change *change = &review->changes->items[line->items[i]];
        const struct change_stamp *side =
            change->kind == CHANGE_DELETED ? &change->real : &change->layer;

        if (S_ISDIR(side->mode))
            continue;
        lines.items[lines.len++] = (struct change_line){
            .items = &line->items[i], .len = 1, .files = 1, .marks = change->marks};
    }
    review_lines(review, &lines);
    free(lines.items);
}

/* The line behind this one to go on with. */
static size_t find_line(const struct review *review, const struct change_lines *lines, size_t at)
{
    AUTO_FREE char *text = ask_text(review);

    for (size_t i = at + 1; text && i < lines->len; i++)
        if (line_has(review, &lines->items[i], text))
            return i;
    if (text)
        say(review, "nothing that follows has that");
    return at;
}

static void review_lines(struct review *review, const struct change_lines *lines)
{
    for (size_t at = 0; at < lines->len && !review->is_over;) {
        const struct change_line *line = &lines->items[at];
        char key;

        if (review->takes_rest && !(line->marks & marks_asked)) {
            decide_line(review, line, TAKE);
            at++;
            continue;
        }
        key = ask_line(review, line, at + 1, lines->len);
        if (key == '/') {
            at = find_line(review, lines, at);
            continue;
        }
        if (key == 'v') {
            show_all(review, line);
            continue;
        }
        if (key == 'y' || (key == 'a' && !(line->marks & (MARK_CONFLICT | MARK_SPECIAL))))
            decide_line(review, line, TAKE);
        if (key == 'f')
            decide_line(review, line, FORCE);
        if (key == 'a')
            review->takes_rest = true;
        if (key == 'd' || key == 'q')
            review->is_over = true;
        if (key == 's' && line->fold == FOLD_NONE)
            ask_hunks(review, line->items[0]);
        else if (key == 's')
            ask_files(review, line);
        at++;
    }
}

/* --- what the answers come to --- */

static bool is_dir_change(const struct change *change)
{
    const struct change_stamp *side =
        change->kind == CHANGE_DELETED ? &change->real : &change->layer;

    return S_ISDIR(side->mode);
}

/* Something below the directory stays. `*ret_some`: there is something below it. */
static bool leaves_below(const struct review *review, size_t at, bool *ret_some)
{
    const struct changes *changes = review->changes;
    const struct change *dir = &changes->items[at];
    const char *gone = dir->kind == CHANGE_RENAMED ? dir->from : dir->path;
    bool leaves = false;

    *ret_some = false;
    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];

        if (i == at || change->root != dir->root ||
            (!path_is_within(change->path, dir->path) && !path_is_within(change->path, gone) &&
             !(change->from && path_is_within(change->from, gone))))
            continue;
        *ret_some = true;
        leaves |= review->decisions[i].verdict == LEAVE;
    }
    return leaves;
}

/* To name a directory is to take all that is below: so only when all of that is. One that is new comes along with what is
 * taken below it. */
static void decide_dirs(struct review *review)
{
    for (size_t i = review->changes->len; i-- > 0;) {
        const struct change *dir = &review->changes->items[i];
        bool has_some;
        bool leaves;

        if (!is_dir_change(dir) || dir->kind == CHANGE_MODE || dir->kind == CHANGE_TYPE)
            continue;
        leaves = leaves_below(review, i, &has_some);
        if (has_some)
            review->decisions[i].verdict = leaves || dir->kind == CHANGE_ADDED ? LEAVE : TAKE;
    }
}

/* What is handed to change_accept() of one verdict. */
struct taken {
    struct strv paths;
    struct accept_expected *expected;
    size_t len, cap;
};

static void taken_done(struct taken *taken)
{
    for (size_t i = 0; i < taken->len; i++)
        free(taken->expected[i].path);
    free(taken->expected);
    strv_done(&taken->paths);
}

/* Takes the path over. */
static void taken_expect(struct taken *taken, char *path, struct change_stamp stamp)
{
    taken->expected = alloc_grow(taken->expected, taken->len, &taken->cap, sizeof *taken->expected);
    taken->expected[taken->len++] = (struct accept_expected){path, stamp};
}

/* Of what was moved, the place where it is stands for both. */
static void taken_add_change(struct taken *taken, const struct layer *layer,
                             const struct change *change)
{
    char *path = change_path(layer, change);

    taken_expect(taken, alloc_str(path), change->layer);
    if (change->from)
        taken_expect(taken, change_from(layer, change), (struct change_stamp){0});
    strv_push_take(&taken->paths, path);
}

/* Puts the second result behind the first. */
static void add_result(struct accept_result *to, struct accept_result *from)
{
    if (from->accept)
        to->accept = from->accept;
    strv_push_all(&to->done, strv_view(&from->done));
    for (size_t i = 0; i < from->left_len; i++) {
        to->left = alloc_grow(to->left, to->left_len, &to->left_cap, sizeof *to->left);
        to->left[to->left_len++] = from->left[i];
    }
    from->left_len = 0;
    accept_result_done(from);
}

static int accept_taken(struct review *review, const struct taken *taken, unsigned flags,
                        const struct accept_text *text, struct accept_result *ret, struct err *err)
{
    const struct accept_request request = {
        .paths = strv_view(&taken->paths),
        .flags = flags | ACCEPT_MARKED,
        .expected = taken->expected,
        .expected_len = taken->len,
        .text = text,
    };
    struct accept_result result = {.accept = 0};

    if (!taken->paths.len)
        return 0;
    if (change_accept(review->layer, &request, &result, err)) {
        accept_result_done(&result);
        return -1;
    }
    add_result(ret, &result);
    return 0;
}

static int accept_part(struct review *review, size_t item, struct accept_result *ret,
                       struct err *err)
{
    const struct change *change = &review->changes->items[item];
    AUTO(taken_done) struct taken taken = {.len = 0};
    struct accept_text text = {.text = review->decisions[item].text.data,
                               .len = review->decisions[item].text.len};

    taken_add_change(&taken, review->layer, change);
    text.path = taken.paths.items[0];
    return accept_taken(review, &taken, change->marks & MARK_CONFLICT ? ACCEPT_FORCE : 0u, &text,
                        ret, err);
}

static int accept_all(struct review *review, struct accept_result *ret, struct err *err)
{
    AUTO(taken_done) struct taken taken = {.len = 0};
    AUTO(taken_done) struct taken forced = {.len = 0};

    decide_dirs(review);
    for (size_t i = 0; i < review->changes->len; i++) {
        const struct change *change = &review->changes->items[i];

        if (review->decisions[i].verdict == TAKE)
            taken_add_change(&taken, review->layer, change);
        if (review->decisions[i].verdict == FORCE)
            taken_add_change(&forced, review->layer, change);
    }
    if (accept_taken(review, &taken, 0, NULL, ret, err) ||
        accept_taken(review, &forced, ACCEPT_FORCE, NULL, ret, err))
        return -1;
    for (size_t i = 0; i < review->changes->len; i++)
        if (review->decisions[i].verdict == PART && accept_part(review, i, ret, err))
            return -1;
    return 0;
}

int review_run(struct review_terminal *terminal, struct layer *layer, const struct changes *changes,
               const char *cwd, struct accept_result *ret, struct err *err)
{
    AUTO_FREE struct decision *decisions = alloc_zero(changes->len + 1, sizeof *decisions);
    AUTO(change_lines_done) struct change_lines lines = {.items = NULL};
    struct review review = {
        .terminal = terminal,
        .layer = layer,
        .view = {layer, changes, cwd, terminal->ink},
        .changes = changes,
        .decisions = decisions,
    };
    int status;

    change_lines_make(changes, false, &lines);
    review_lines(&review, &lines);
    status = accept_all(&review, ret, err);
    for (size_t i = 0; i < changes->len; i++)
        buf_done(&decisions[i].text);
    return status;
}
