/* Patches: the input is a patch, a line "=====", and files of a tree, each as "=== PATH" and its
 * text. Beside memory errors: the parts of a patch lie in its text, edits lead from the old text to
 * the new one, the diff and the summary can be written, and a changed file keeps what no edit
 * names. A ledger and a command line are read from the same bytes. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "patch/call.h"
#include "patch/changes.h"
#include "patch/ledger.h"
#include "patch/lines.h"
#include "patch/report.h"

#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* --- a tree in memory --- */

enum { FILES_MAX = 16 };

struct tree {
    struct {
        char *path;
        struct span text;
    } files[FILES_MAX];
    size_t len;
};

static void tree_done(struct tree *tree)
{
    for (size_t i = 0; i < tree->len; i++)
        free(tree->files[i].path);
}

static void tree_parse(const char *text, const char *end, struct tree *ret)
{
    static const char mark[] = "=== ";

    while (ret->len < FILES_MAX && (size_t)(end - text) > sizeof mark - 1 &&
           memcmp(text, mark, sizeof mark - 1) == 0) {
        const char *name = text + sizeof mark - 1;
        const char *feed = memchr(name, '\n', (size_t)(end - name));
        const char *next;

        if (!feed)
            return;
        next = memmem(feed, (size_t)(end - feed), "\n=== ", 5);
        text = next ? next + 1 : end;
        ret->files[ret->len].path = alloc_strn(name, (size_t)(feed - name));
        ret->files[ret->len++].text = (struct span){feed + 1, (size_t)(text - feed - 1)};
    }
}

static int tree_read(void *data, const char *path, size_t max, struct content *ret, struct err *err)
{
    const struct tree *tree = data;

    *ret = (struct content){.text = NULL};
    for (size_t i = 0; i < tree->len; i++) {
        if (!str_eq(tree->files[i].path, path))
            continue;
        ret->len = tree->files[i].text.len;
        ret->text = alloc_zero(ret->len + 1, 1);
        memcpy(ret->text, tree->files[i].text.text, ret->len);
        return 0;
    }
    return 0;
}

/* --- what has to hold --- */

static void check_span(const struct patch *patch, struct span span, size_t size)
{
    check(span.text >= patch->text && span.text + span.len <= patch->text + size);
    check(!memchr(span.text, '\n', span.len));
}

static void check_patch(const struct patch *patch, size_t size)
{
    for (size_t i = 0; i < patch->lines_len; i++)
        check_span(patch, patch->lines[i].text, size);
    for (size_t i = 0; i < patch->chunks_len; i++)
        check(patch->chunks[i].first + patch->chunks[i].len <= patch->lines_len);
    for (size_t i = 0; i < patch->files_len; i++)
        check(patch->files[i].first + patch->files[i].len <= patch->chunks_len &&
              *patch->files[i].path);
}

static void check_equal(const struct lines *old, size_t old_at, const struct lines *new,
                        size_t new_at, size_t len)
{
    check(old_at + len <= old->len && new_at + len <= new->len);
    for (size_t i = 0; i < len; i++)
        check(old->items[old_at + i].end ==
              new->items[new_at + i].end &&span_eq(old->items[old_at + i].text,
                                                   new->items[new_at + i].text));
}

/* Between two edits, before the first and behind the last all lines are equal. */
static void check_change(const struct change *change)
{
    const struct change *from = change->renamed_from ? change->renamed_from : change;
    AUTO(lines_done) struct lines old = {.items = NULL};
    AUTO(lines_done) struct lines new = {.items = NULL};
    size_t old_at = 0;
    size_t new_at = 0;
    struct err err;

    check(lines_split(from->before.text, from->before.len, &old, &err) == 0);
    check(lines_split(change->after.text, change->after.len, &new, &err) == 0);
    for (size_t i = 0; i < change->edits.len; i++) {
        const struct edit *edit = &change->edits.items[i];

        check(edit->old_at >= old_at && edit->new_at - new_at == edit->old_at - old_at);
        check_equal(&old, old_at, &new, new_at, edit->old_at - old_at);
        old_at = edit->old_at + edit->old_len;
        new_at = edit->new_at + edit->new_len;
    }
    check(old.len - old_at == new.len - new_at);
    check_equal(&old, old_at, &new, new_at, old.len - old_at);
}

static void check_changes(const struct changes *changes)
{
    AUTO(buf_done) struct buf text = {.max = 64 << 20};

    check(report_summary(changes, &text) && report_diff(changes, 3, &text) &&
          report_diff(changes, 0, &text));
    json_decref(report_to_json(changes));
    for (size_t i = 0; i < changes->len; i++) {
        check(changes_find(changes, changes->items[i]->path) == changes->items[i]);
        check_change(changes->items[i]);
    }
}

static void run_patch(const char *text, size_t len, struct tree *tree)
{
    AUTO(patch_changes_done) struct changes changes = {.items = NULL};
    const struct source source = {.data = tree, .read = tree_read};
    struct err err;
    AUTO(patch_auto) struct patch *patch = patch_parse(text, len, &err);

    if (!patch)
        return;
    check_patch(patch, len);
    if (changes_compute(patch, &source, "/w", &changes, &err) == 0)
        check_changes(&changes);
}

static void run_others(const char *text, size_t len)
{
    AUTO_FREE char *script = alloc_strn(text, len);
    char *const argv[] = {(char *)"bash", (char *)"-lc", script, NULL};
    AUTO(patch_call_done) struct patch_call call;
    AUTO(steps_done) struct steps steps = {.items = NULL};
    enum ledger_state state;
    struct err err;

    patch_call_read(argv, &call);
    check((call.kind == PATCH_CALL_PATCH) == (call.text != NULL));
    check(!call.text || (call.text_len <= len && strlen(call.text) == call.text_len));
    (void)ledger_parse(text, len, NULL, &steps, &state, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char cut[] = "\n=====\n";
    const char *text = (const char *)data;
    const char *tree_text = size ? memmem(text, size, cut, sizeof cut - 1) : NULL;
    AUTO(tree_done) struct tree tree = {.len = 0};

    if (tree_text)
        tree_parse(tree_text + sizeof cut - 1, text + size, &tree);
    run_patch(text, tree_text ? (size_t)(tree_text - text) : size, &tree);
    run_others(text, size);
    return 0;
}
