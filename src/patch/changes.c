/* See changes.h. The sections of a patch are worked through in their order, each on what the ones
 * before it left: a file is read once, and then lives here in two states, before and after. Only
 * the two ends count. So a patch that swaps two files, or changes one twice, is nothing special,
 * and what has to be done on the disk does not depend on how the patch got there. */
#include "patch/changes.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "patch/dir.h"
#include "patch/update.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct builder {
    const struct patch *patch;
    const struct source *source;
    const char *root;
    struct changes *changes;
    size_t total; /* bytes held */
};

static int change_compare(const void *a, const void *b)
{
    return strcmp(((const struct change *)a)->path, ((const struct change *)b)->path);
}

static void keep_node(void *node)
{
}

void patch_changes_done(struct changes *changes)
{
    tdestroy(changes->by_path, keep_node);
    for (size_t i = 0; i < changes->len; i++) {
        struct change *change = changes->items[i];

        free(change->path);
        free(change->before.text);
        free(change->after.text);
        free(change->moved_from);
        edits_done(&change->edits);
        free(change);
    }
    free(changes->items);
    free(changes->notes);
    *changes = (struct changes){.items = NULL};
}

struct change *changes_find(const struct changes *changes, const char *path)
{
    const struct change wanted = {.path = (char *)path};
    void *found = tfind(&wanted, &changes->by_path, change_compare);

    return found ? *(struct change **)found : NULL;
}

static bool content_eq(const struct content *a, const struct content *b)
{
    if (!a->text || !b->text)
        return a->text == b->text;
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

bool change_is_real(const struct change *change)
{
    return change->moved_from || !content_eq(&change->before, &change->after);
}

/* --- one file --- */

static int count_bytes(struct builder *builder, size_t len, struct err *err)
{
    builder->total += len;
    if (builder->total > CHANGES_TOTAL_MAX)
        return err_set(err, ERR_LIMIT, "the files of the patch have more than %d MiB together",
                       CHANGES_TOTAL_MAX >> 20);
    return 0;
}

/* NULL */
static struct change *fail_in(const struct patch_file *file, struct err *err)
{
    err_wrap(err, "line %zu of the patch", file->line);
    return NULL;
}

/* The file that a patch calls `name`, read when it is named for the first time. NULL on failure. */
static struct change *open_change(struct builder *builder, const struct patch_file *file,
                                  const char *name, struct err *err)
{
    struct changes *changes = builder->changes;
    AUTO_FREE char *path = names_below(builder->root, name, err);
    struct change *change = path ? changes_find(changes, path) : NULL;
    struct content content = {.text = NULL};

    if (change)
        return change;
    if (!path)
        return fail_in(file, err);
    if (changes->len == CHANGES_FILES_MAX) {
        err_set(err, ERR_LIMIT, "a patch touches at most %d files", CHANGES_FILES_MAX);
        return fail_in(file, err);
    }
    if (builder->source->read(builder->source->data, path, CHANGES_FILE_MAX, &content, err))
        return fail_in(file, err);
    change = alloc_zero(1, sizeof *change);
    change->path = TAKE_PTR(path);
    change->line = file->line;
    change->before = change->after = content;
    if (content.text) {
        change->after.text = alloc_zero(content.len + 1, 1);
        memcpy(change->after.text, content.text, content.len);
    }
    changes->items =
        alloc_grow(changes->items, changes->len, &changes->cap, sizeof *changes->items);
    changes->items[changes->len++] = change;
    if (!tsearch(change, &changes->by_path, change_compare))
        abort(); /* out of memory: base/alloc.h */
    return count_bytes(builder, 2 * content.len, err) ? NULL : change;
}

static void set_after(struct change *change, struct content after)
{
    free(change->after.text);
    change->after = after;
}

/* One that has to be there. */
static struct change *open_existing(struct builder *builder, const struct patch_file *file,
                                    struct err *err)
{
    struct change *change = open_change(builder, file, file->path, err);

    if (change && !change->after.text) {
        err_set(err, ERR_NOT_FOUND, "there is no file %s to %s", file->path,
                file->action == PATCH_DELETE ? "delete" : "update");
        return fail_in(file, err);
    }
    if (change)
        change->touched++;
    return change;
}

static void add_note(struct builder *builder, char letter, const char *path)
{
    struct changes *changes = builder->changes;

    changes->notes =
        alloc_grow(changes->notes, changes->notes_len, &changes->notes_cap, sizeof *changes->notes);
    changes->notes[changes->notes_len++] = (struct change_note){.letter = letter, .path = path};
}

/* --- the three actions --- */

static int compute_add(struct builder *builder, const struct patch_file *file, struct err *err)
{
    struct change *change = open_change(builder, file, file->path, err);
    const struct patch_chunk *chunk = &builder->patch->chunks[file->first];
    AUTO(buf_done) struct buf text = {.max = CHANGES_FILE_MAX};
    bool fits = true;

    if (!change)
        return -1;
    change->touched++;
    for (size_t i = 0; i < chunk->len; i++) {
        struct span line = builder->patch->lines[chunk->first + i].text;

        fits = fits && buf_append(&text, line.text, line.len) && buf_append(&text, "\n", 1);
    }
    if (!fits)
        return err_set(err, ERR_LIMIT, "%s has more than %d MiB", file->path,
                       CHANGES_FILE_MAX >> 20);
    if (count_bytes(builder, text.len, err))
        return -1;
    set_after(change, (struct content){.len = text.len});
    change->after.text = buf_take(&text);
    free(TAKE_PTR(change->moved_from));
    add_note(builder, 'A', file->path);
    return 0;
}

static int compute_delete(struct builder *builder, const struct patch_file *file, struct err *err)
{
    struct change *change = open_existing(builder, file, err);

    if (!change)
        return -1;
    set_after(change, (struct content){.text = NULL});
    free(TAKE_PTR(change->moved_from));
    add_note(builder, 'D', file->path);
    return 0;
}

static int compute_move(struct builder *builder, const struct patch_file *file,
                        struct change *change, struct change **ret_target, struct err *err)
{
    struct change *target = open_change(builder, file, file->move_to, err);

    if (!target)
        return -1;
    *ret_target = target;
    if (target == change)
        return 0;
    free(target->moved_from);
    target->moved_from = alloc_str(change->moved_from    ? change->moved_from
                                   : change->before.text ? change->path
                                                         : NULL);
    set_after(change, (struct content){.text = NULL});
    free(TAKE_PTR(change->moved_from));
    return 0;
}

static int compute_update(struct builder *builder, const struct patch_file *file, struct err *err)
{
    struct change *change = open_existing(builder, file, err);
    struct change *target = change;
    struct content after;
    struct edits edits;

    if (!change || update_compute(builder->patch, file, &change->after, &after, &edits, err))
        return -1;
    if (count_bytes(builder, after.len, err) ||
        (file->move_to && compute_move(builder, file, change, &target, err))) {
        free(after.text);
        edits_done(&edits);
        return -1;
    }
    set_after(target, after);
    edits_done(&target->edits);
    target->edits = edits;
    target->edits_from = change;
    if (target != change)
        target->touched++;
    add_note(builder, 'M', file->move_to ? file->move_to : file->path);
    return 0;
}

/* --- all of them --- */

/* A file cannot be where a directory has to be for another one. */
static int check_dirs(const struct changes *changes, const struct change *change, struct err *err)
{
    AUTO_FREE char *path = alloc_str(change->path);

    for (char *slash; change->after.text && (slash = strrchr(path, '/'));) {
        const struct change *parent;

        *slash = '\0';
        parent = changes_find(changes, path);
        if (parent && (parent->before.text || parent->after.text))
            return err_set(err, ERR_INVALID,
                           "line %zu of the patch: %s cannot be in a directory %s, which is a file",
                           change->line, change->path, path);
    }
    return 0;
}

/* A file that goes to a new name is shown as one that was renamed, and its edits are from there. */
static void find_rename(const struct changes *changes, struct change *change)
{
    struct change *from = change->moved_from ? changes_find(changes, change->moved_from) : NULL;

    if (!from || from == change || from->after.text || change->before.text || from->renamed_to ||
        !change->after.text)
        return;
    from->renamed_to = change;
    change->renamed_from = from;
}

/* The edits that a section of the patch came to are those from the disk when it was the only one.
 */
static int finish_edits(struct change *change, struct err *err)
{
    const struct change *from = change->renamed_from ? change->renamed_from : change;

    if (change->edits_from == from && change->touched == 1 && from->touched == 1)
        return 0;
    edits_done(&change->edits);
    if (edits_between(&from->before, &change->after, &change->edits, err))
        return err_wrap(err, "%s", change->path);
    return 0;
}

static int finish_changes(const struct changes *changes, struct err *err)
{
    for (size_t i = 0; i < changes->len; i++) {
        struct change *change = changes->items[i];

        if (check_dirs(changes, change, err))
            return -1;
        find_rename(changes, change);
    }
    for (size_t i = 0; i < changes->len; i++)
        if (finish_edits(changes->items[i], err))
            return -1;
    return 0;
}

int changes_compute(const struct patch *patch, const struct source *source, const char *root,
                    struct changes *ret, struct err *err)
{
    AUTO(patch_changes_done) struct changes changes = {.items = NULL};
    struct builder builder = {.patch = patch, .source = source, .root = root, .changes = &changes};

    static int (*const computes[])(struct builder *, const struct patch_file *, struct err *) = {
        [PATCH_ADD] = compute_add,
        [PATCH_DELETE] = compute_delete,
        [PATCH_UPDATE] = compute_update,
    };

    if (patch->files_len == 0)
        return err_set(err, ERR_INVALID, "the patch names no file, so there is nothing to change");
    for (size_t i = 0; i < patch->files_len; i++)
        if (computes[patch->files[i].action](&builder, &patch->files[i], err))
            return -1;
    if (finish_changes(&changes, err))
        return -1;
    *ret = changes;
    changes = (struct changes){.items = NULL};
    return 0;
}
