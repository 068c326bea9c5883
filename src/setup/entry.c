/* See entry.h. Nothing is remembered beside the files: whether an entry is ours is seen from itself, and whether a file
 * or an object around it was there before from the first text that was kept of the file. */
#include "setup/entry.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "setup/kept_file.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const entry_state_words[] = {"missing", "installed", "older", "foreign", NULL};
const char *const entry_change_words[] = {"unchanged", "written", "removed", "file-removed", NULL};

void entry_done(struct entry *entry)
{
    free(entry->path);
    free(entry->inside);
    free(entry->text);
    json_decref(entry->value);
    *entry = (struct entry){.path = NULL};
}

static struct toml_block block_of(const struct entry *entry)
{
    struct toml_block block = entry->block;

    block.mark = entry->mark;
    block.body = entry->text;
    return block;
}

static const char *base_text(const struct entry *entry)
{
    return entry->form == ENTRY_JSON ? entry->base ? entry->base : "{}\n" : "";
}

static bool is_text(const struct buf *text, const char *wanted)
{
    return text->len == strlen(wanted) && !memcmp(text->data ? text->data : "", wanted, text->len);
}

/* --- looking --- */

/* A whole file is ours if it has our lines, whatever paths they name. */
static bool is_our_file(const struct entry *entry, const struct buf *text)
{
    size_t lines = 0, wanted = 0;

    for (size_t i = 0; i < text->len; i++)
        lines += text->data[i] == '\n';
    for (const char *at = entry->text; *at; at++)
        wanted += *at == '\n';
    return text->len > strlen(entry->mark) && str_starts(text->data, entry->mark) &&
           text->data[strlen(entry->mark)] == '\n' && lines == wanted;
}

static int look_json(const struct entry *entry, const struct kept_file *file, enum entry_state *ret,
                     struct err *err)
{
    AUTO_JSON json_t *root = json_edit_parse(file->text.data, file->text.len, err);
    const json_t *there = root ? json_edit_find(root, &entry->place) : NULL;

    if (!root)
        return -1;
    *ret = !there                            ? ENTRY_MISSING
           : json_equal(there, entry->value) ? ENTRY_SAME
           : entry->is_ours(there)           ? ENTRY_OLDER
                                             : ENTRY_FOREIGN;
    return 0;
}

static int look_table(const struct entry *entry, const struct kept_file *file,
                      enum entry_state *ret, struct err *err)
{
    const struct toml_block block = block_of(entry);
    AUTO(buf_done) struct buf with = {.max = SIZE_MAX / 2}, without = {.max = SIZE_MAX / 2};

    if (toml_edit_put(file->text.data, file->text.len, &block, &with, err)) {
        *ret = ENTRY_FOREIGN;
        return err->code == ERR_FORBIDDEN ? 0 : -1;
    }
    if (toml_edit_remove(file->text.data, file->text.len, &block, &without, err))
        return -1;
    *ret = is_text(&with, file->text.data)      ? ENTRY_SAME
           : is_text(&without, file->text.data) ? ENTRY_MISSING
                                                : ENTRY_OLDER;
    return 0;
}

static int look(const struct entry *entry, const struct kept_file *file, enum entry_state *ret,
                struct err *err)
{
    int status = 0;

    if (!file->is_there)
        *ret = ENTRY_MISSING;
    else if (entry->form == ENTRY_JSON)
        status = look_json(entry, file, ret, err);
    else if (entry->form == ENTRY_TABLE)
        status = look_table(entry, file, ret, err);
    else
        *ret = !file->text.len                     ? ENTRY_MISSING
               : is_text(&file->text, entry->text) ? ENTRY_SAME
               : is_our_file(entry, &file->text)   ? ENTRY_OLDER
                                                   : ENTRY_FOREIGN;
    if (status) {
        const struct err found = *err;

        return err_set(err, found.code,
                       "%s: %.120s; nothing was written: mend it, or put the entry there by hand "
                       "(--print shows it)",
                       entry->path, found.msg);
    }
    return 0;
}

int entry_look(const struct entry *entry, enum entry_state *ret, struct err *err)
{
    AUTO(kept_file_done) struct kept_file file = {.path = NULL};

    if (kept_file_read(entry->path, entry->inside, &file, err))
        return -1;
    return look(entry, &file, ret, err);
}

/* Reads the file, and refuses what is not ours. */
static int begin(const struct entry *entry, struct kept_file *ret, enum entry_state *state,
                 struct err *err)
{
    if (kept_file_read(entry->path, entry->inside, ret, err) || look(entry, ret, state, err))
        return -1;
    if (*state != ENTRY_FOREIGN)
        return 0;
    return err_set(err, ERR_FORBIDDEN,
                   "%s has an entry in this place that Cordon did not write, or one around it that "
                   "takes no more: change it by hand (--print shows what it should be)",
                   entry->path);
}

/* --- changing --- */

static int changed_text(const struct entry *entry, const struct kept_file *file, struct buf *ret,
                        struct err *err)
{
    const struct toml_block block = block_of(entry);
    const char *text = file->is_there ? file->text.data : base_text(entry);
    size_t len = file->is_there ? file->text.len : strlen(text);

    if (entry->form == ENTRY_JSON)
        return json_edit_put(text, len, &entry->place, entry->value, ret, err);
    if (entry->form == ENTRY_TABLE)
        return toml_edit_put(text, len, &block, ret, err);
    buf_append_str(ret, entry->text);
    return 0;
}

int entry_put(const struct entry *entry, struct entry_result *ret, struct err *err)
{
    AUTO(kept_file_done) struct kept_file file = {.path = NULL};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    enum entry_state state;

    *ret = (struct entry_result){.done = ENTRY_UNCHANGED};
    if (begin(entry, &file, &state, err))
        return -1;
    if (state == ENTRY_SAME)
        return 0;
    if (changed_text(entry, &file, &text, err))
        return err_wrap(err, "%s", entry->path);
    ret->done = ENTRY_WRITTEN;
    return kept_file_replace(&file, &text, entry->mode, &ret->backup, err);
}

/* What the entry is in was there before it was written: then it stays, empty or not. `first` may have the entry, too. */
static bool had_place(const struct entry *entry, const struct buf *first)
{
    const char *parent[16] = {NULL};
    const struct json_place place = {.keys = parent};
    AUTO(buf_done) struct buf without = {.max = SIZE_MAX / 2};
    struct err ignored; /* of a text that is no JSON nothing is known */
    AUTO_JSON json_t *root = NULL;
    size_t len = 0;

    while (entry->place.keys[len] && len < 15) {
        parent[len] = entry->place.keys[len];
        len++;
    }
    if (!entry->place.is_item && len)
        parent[len - 1] = NULL;
    if (json_edit_remove(first->data ? first->data : "", first->len, &entry->place, true, &without,
                         &ignored) == 0)
        root = json_edit_parse(without.data ? without.data : "", without.len, &ignored);
    return !root || !parent[0] || json_edit_find(root, &place);
}

/* The text that was kept and that this file is, but for our entry: white space and comments that the change moved are
 * back where they were with it. */
static bool kept_without(const struct entry *entry, const struct kept_file *file, struct buf *ret)
{
    struct err ignored; /* then it is not this one */
    AUTO_JSON json_t *root = json_edit_parse(file->text.data, file->text.len, &ignored);
    const json_t *value = json_edit_find(root, &entry->place);
    AUTO(buf_done) struct buf kept = {0};

    for (unsigned i = 0; kept_file_next(file, &i, &kept);) {
        AUTO(buf_done) struct buf with = {.max = SIZE_MAX / 2};
        AUTO_JSON json_t *before = json_edit_parse(kept.data, kept.len, &ignored);

        if (before && !json_edit_find(before, &entry->place) &&
            json_edit_put(kept.data, kept.len, &entry->place, value, &with, &ignored) == 0 &&
            is_text(&with, file->text.data)) {
            buf_append(ret, kept.data, kept.len);
            return true;
        }
    }
    return false;
}

static int without_entry(const struct entry *entry, const struct kept_file *file,
                         const struct buf *first, struct buf *ret, struct err *err)
{
    const struct toml_block block = block_of(entry);

    buf_append_str(ret, "");
    if (entry->form == ENTRY_JSON && first && kept_without(entry, file, ret))
        return 0;
    if (entry->form == ENTRY_JSON)
        return json_edit_remove(file->text.data, file->text.len, &entry->place,
                                !first || !had_place(entry, first), ret, err);
    if (entry->form == ENTRY_TABLE)
        return toml_edit_remove(file->text.data, file->text.len, &block, ret, err);
    return 0;
}

/* Nothing is in it but what every new file has. */
static bool is_base(const struct entry *entry, const struct buf *text)
{
    const char *base = base_text(entry);
    struct err ignored;
    AUTO_JSON json_t *got = NULL, *wanted = NULL;

    if (entry->form != ENTRY_JSON)
        return text->len == 0;
    got = json_edit_parse(text->data, text->len, &ignored);
    wanted = json_edit_parse(base, strlen(base), &ignored);
    return got && json_equal(got, wanted) && !memmem(text->data, text->len, "//", 2) &&
           !memmem(text->data, text->len, "/*", 2);
}

/* Folders of the client that its file alone was in. */
static void remove_empty_folders(const struct entry *entry)
{
    AUTO_FREE char *folder = path_parent(entry->path);

    while (!str_eq(folder, entry->inside) && path_is_within(folder, entry->inside) &&
           rmdir(folder) == 0)
        *strrchr(folder, '/') = '\0';
}

int entry_remove(const struct entry *entry, struct entry_result *ret, struct err *err)
{
    AUTO(kept_file_done) struct kept_file file = {.path = NULL};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2}, first = {.max = SIZE_MAX / 2};
    enum entry_state state;
    unsigned number = 0;
    bool was_there;

    *ret = (struct entry_result){.done = ENTRY_UNCHANGED};
    if (begin(entry, &file, &state, err))
        return -1;
    if (state == ENTRY_MISSING)
        return 0;
    was_there = kept_file_next(&file, &number, &first);
    if (without_entry(entry, &file, was_there ? &first : NULL, &text, err))
        return err_wrap(err, "%s", entry->path);
    if (!was_there && is_base(entry, &text)) {
        bool is_edited = entry->form == ENTRY_FILE && state != ENTRY_SAME;

        ret->done = ENTRY_FILE_REMOVED;
        if (kept_file_remove(&file, is_edited ? &ret->backup : NULL, err))
            return -1;
        remove_empty_folders(entry);
        return 0;
    }
    ret->done = ENTRY_REMOVED;
    if (kept_file_replace(&file, &text, entry->mode, &ret->backup, err))
        return -1;
    if (kept_file_forget(&file, &text) && ret->backup) {
        unlink(ret->backup); /* it has nothing but our entry that the file has not */
        free(TAKE_PTR(ret->backup));
    }
    return 0;
}

/* --- showing --- */

void entry_print(const struct entry *entry, struct buf *ret)
{
    const char *base = base_text(entry);
    const struct toml_block block = block_of(entry);
    struct err ignored; /* our own text */

    if (entry->form == ENTRY_JSON)
        (void)json_edit_put(base, strlen(base), &entry->place, entry->value, ret, &ignored);
    else if (entry->form == ENTRY_TABLE)
        (void)toml_edit_put("", 0, &block, ret, &ignored);
    else
        buf_append_str(ret, entry->text);
}
