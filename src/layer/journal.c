/* See journal.h. Records with a NUL behind each (records.h):
 *
 *     cordon-accept 1, what, when
 *     i, then the item: its letters, root, steps, path, stamps, times             for each item
 *     f, then the folder: root, path, stamp, time                                 for each folder
 *     =                                                                            the plan is whole
 *     +, the inodes of the copies, +                                               it is decided
 *     *, state and stamp of each item, stamp of each folder, *                     it is done
 *     u, the numbers of items, =                                                   the same for an undo, then + and *
 *
 * It is only ever appended to, a part at a time and each with one write, so that after a kill it ends within one part at
 * most. What was not written whole did not happen; who goes on cuts it off first.
 *
 * The folder is the user's and no command can write there; but a damaged disk can say anything, and paths are
 * therefore checked as if a stranger had written them: below their root, and clean. */
#include "layer/journal.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "layer/records.h"

#include <stdlib.h>
#include <string.h>

static const char journal_head[] = "cordon-accept 1";

struct journal_item *journal_add(struct journal *journal)
{
    journal->items =
        alloc_grow(journal->items, journal->len, &journal->cap, sizeof *journal->items);
    journal->items[journal->len] = (struct journal_item){.state = ITEM_PLANNED};
    return &journal->items[journal->len++];
}

void journal_done(struct journal *journal)
{
    for (size_t i = 0; i < journal->len; i++)
        free(journal->items[i].path);
    for (size_t i = 0; i < journal->folders_len; i++)
        free(journal->folders[i].path);
    free(journal->items);
    free(journal->folders);
    *journal = (struct journal){0};
}

/* --- writing --- */

static bool put_item(struct buf *text, const struct journal_item *item)
{
    const char letters[] = {(char)item->kind,
                            (char)item->how,
                            item->is_dir ? 'd' : '-',
                            item->is_forced ? 'f' : '-',
                            item->is_copy ? 'c' : '-',
                            item->stays ? 's' : '-',
                            '\0'};

    return record_put(text, "i") && record_put(text, letters) &&
           record_put_number(text, item->root) && record_put_number(text, (uint64_t)item->step) &&
           record_put_number(text, (uint64_t)item->first_step) && record_put(text, item->path) &&
           record_put_stamp(text, &item->layer) && record_put_stamp(text, &item->real) &&
           record_put_number(text, (uint64_t)item->layer_mtime_ns) &&
           record_put_number(text, (uint64_t)item->real_mtime_ns);
}

bool journal_put_plan(struct buf *text, const struct journal *journal)
{
    const char what[] = {(char)journal->what, '\0'};
    bool fits = record_put(text, journal_head) && record_put(text, what) &&
                record_put_number(text, journal->when_ns);

    for (size_t i = 0; fits && i < journal->len; i++)
        fits = put_item(text, &journal->items[i]);
    for (size_t i = 0; fits && i < journal->folders_len; i++) {
        const struct journal_folder *folder = &journal->folders[i];

        fits = record_put(text, "f") && record_put_number(text, folder->root) &&
               record_put(text, folder->path) && record_put_stamp(text, &folder->before) &&
               record_put_number(text, (uint64_t)folder->mtime_ns);
    }
    return fits && record_put(text, "=");
}

bool journal_put_decision(struct buf *text, const struct journal *journal)
{
    bool fits = record_put(text, "+");

    for (size_t i = 0; fits && i < journal->len; i++) {
        const struct journal_item *item = &journal->items[i];

        fits = record_put_number(text, item->staged) &&
               (!item->staged || (record_put_number(text, item->layer.size) &&
                                  record_put_number(text, (uint64_t)item->layer_mtime_ns)));
    }
    return fits && record_put(text, "+");
}

bool journal_put_results(struct buf *text, const struct journal *journal)
{
    bool fits = record_put(text, "*");

    for (size_t i = 0; fits && i < journal->len; i++) {
        const char state[] = {(char)journal->items[i].state, '\0'};

        fits = record_put(text, state) && record_put_stamp(text, &journal->items[i].after);
    }
    for (size_t i = 0; fits && i < journal->folders_len; i++)
        fits = record_put_stamp(text, &journal->folders[i].after);
    return fits && record_put(text, "*");
}

bool journal_put_undo(struct buf *text, const struct journal *journal)
{
    bool fits = record_put(text, "u");

    for (size_t i = 0; fits && i < journal->len; i++)
        if (journal->items[i].is_undoing)
            fits = record_put_number(text, i);
    return fits && record_put(text, "=");
}

/* --- reading --- */

/* Whether a part was whole, was cut, or is nothing of ours. */
enum read { READ_WHOLE, READ_CUT, READ_WRONG };

static enum read failed(const struct records *records)
{
    const size_t left = (size_t)(records->end - records->next);

    return left && memchr(records->next, '\0', left) ? READ_WRONG : READ_CUT;
}

/* Relative to a root, which itself is "". */
static bool is_path(const char *path, bool may_be_root)
{
    AUTO_FREE char *whole = alloc_strf("/%s", path);

    return *path ? path_is_clean(whole) : may_be_root;
}

static bool take_int(struct records *records, int *ret)
{
    uint64_t value;

    if (!record_take_number(records, &value) || value > INT32_MAX)
        return false;
    *ret = (int)value;
    return true;
}

static bool take_letters(struct records *records, struct journal_item *item)
{
    const char *letters = record_take(records);

    if (!letters || strlen(letters) != 6 || !strchr("AMDm", letters[0]) ||
        !strchr("msf", letters[1]) || !strchr("d-", letters[2]) || !strchr("f-", letters[3]) ||
        !strchr("c-", letters[4]) || !strchr("s-", letters[5]) ||
        (letters[0] == 'm' && letters[2] != 'd') || (letters[0] == 'M' && letters[2] == 'd'))
        return false;
    item->kind = (enum change_kind)letters[0];
    item->how = (enum item_how)letters[1];
    item->is_dir = letters[2] == 'd';
    item->is_forced = letters[3] == 'f';
    item->is_copy = letters[4] == 'c';
    item->stays = letters[5] == 's';
    return true;
}

/* The whole of it is there, or the last record is its beginning. */
static enum read read_item(struct records *records, struct journal *journal)
{
    struct journal_item item = {.state = ITEM_PLANNED};
    uint64_t root, times[2];
    const char *path;

    if (!take_letters(records, &item) || !record_take_number(records, &root) ||
        !take_int(records, &item.step) || !take_int(records, &item.first_step))
        return READ_WRONG;
    path = record_take(records);
    if (!path || !is_path(path, false) || !record_take_stamp(records, &item.layer) ||
        !record_take_stamp(records, &item.real) || !record_take_number(records, &times[0]) ||
        !record_take_number(records, &times[1]))
        return READ_WRONG;
    item.root = root;
    item.layer_mtime_ns = (int64_t)times[0];
    item.real_mtime_ns = (int64_t)times[1];
    item.path = alloc_str(path);
    *journal_add(journal) = item;
    return READ_WHOLE;
}

static enum read read_folder(struct records *records, struct journal *journal)
{
    struct journal_folder folder = {0};
    uint64_t root, time;
    const char *path;

    if (!record_take_number(records, &root))
        return READ_WRONG;
    path = record_take(records);
    if (!path || !is_path(path, true) || !record_take_stamp(records, &folder.before) ||
        !record_take_number(records, &time))
        return READ_WRONG;
    folder.root = root;
    folder.mtime_ns = (int64_t)time;
    folder.path = alloc_str(path);
    journal->folders = alloc_grow(journal->folders, journal->folders_len, &journal->folders_cap,
                                  sizeof *journal->folders);
    journal->folders[journal->folders_len++] = folder;
    return READ_WHOLE;
}

static enum read read_plan(struct records *records, struct journal *journal)
{
    const char *head = record_take(records);
    const char *what;
    const char *kind;
    enum read got;

    if (!head)
        return READ_CUT;
    if (!str_eq(head, journal_head))
        return READ_WRONG;
    what = record_take(records);
    if (!what || !record_take_number(records, &journal->when_ns))
        return failed(records);
    if (!str_eq(what, "a") && !str_eq(what, "d"))
        return READ_WRONG;
    journal->what = (enum journal_what) * what;
    while ((kind = record_take(records))) {
        if (str_eq(kind, "="))
            return READ_WHOLE;
        if (!str_eq(kind, "i") && !str_eq(kind, "f"))
            return READ_WRONG;
        got = *kind == 'i' ? read_item(records, journal) : read_folder(records, journal);
        if (got != READ_WHOLE)
            return failed(records);
    }
    return READ_CUT;
}

static bool takes_mark(struct records *records, const char *mark)
{
    const char *text = record_take(records);

    return text && str_eq(text, mark);
}

/* A part that was cut changes nothing: it is read once for its form, and then for what it says. */
static enum read read_decision(struct records *records, struct journal *journal, bool takes)
{
    for (size_t i = 0; i < journal->len; i++) {
        struct journal_item *item = &journal->items[i];
        uint64_t staged, size = item->layer.size, mtime_ns = (uint64_t)item->layer_mtime_ns;

        if (!record_take_number(records, &staged) ||
            (staged &&
             (!record_take_number(records, &size) || !record_take_number(records, &mtime_ns))))
            return failed(records);
        if (!takes)
            continue;
        item->staged = staged;
        item->layer.size = size; /* the copy may be of a part of it */
        item->layer_mtime_ns = (int64_t)mtime_ns;
    }
    return takes_mark(records, "+") ? READ_WHOLE : failed(records);
}

static enum read read_results(struct records *records, struct journal *journal, bool takes)
{
    struct change_stamp stamp;

    for (size_t i = 0; i < journal->len; i++) {
        const char *state = record_take(records);

        if (!state)
            return READ_CUT;
        if (strlen(state) != 1 || !strchr("pdlu", *state))
            return READ_WRONG;
        if (!record_take_stamp(records, &stamp))
            return failed(records);
        if (takes) {
            journal->items[i].state = (enum item_state) * state;
            journal->items[i].after = stamp;
        }
    }
    for (size_t i = 0; i < journal->folders_len; i++) {
        if (!record_take_stamp(records, &stamp))
            return failed(records);
        if (takes)
            journal->folders[i].after = stamp;
    }
    return takes_mark(records, "*") ? READ_WHOLE : failed(records);
}

static enum read read_twice(struct records *records, struct journal *journal,
                            enum read (*part)(struct records *, struct journal *, bool takes))
{
    struct records ahead = *records;
    const enum read got = part(&ahead, journal, false);

    if (got == READ_WHOLE)
        part(records, journal, true);
    else
        *records = ahead;
    return got;
}

static enum read read_undo(struct records *records, struct journal *journal)
{
    for (size_t i = 0; i < journal->len; i++)
        journal->items[i].is_undoing = false;
    for (;;) {
        struct records ahead = *records;
        const char *mark = record_take(&ahead);
        uint64_t i;

        if (!mark)
            return READ_CUT;
        if (str_eq(mark, "=")) {
            *records = ahead;
            return READ_WHOLE;
        }
        if (!record_take_number(records, &i) || i >= journal->len)
            return READ_WRONG;
        journal->items[i].is_undoing = true;
    }
}

/* The part that comes next; READ_CUT also where there is none. */
static enum read read_part(struct records *records, struct journal *journal,
                           enum journal_phase *phase)
{
    const char *mark = record_take(records);
    enum read got = READ_WRONG;

    if (!mark)
        return READ_CUT;
    if (str_eq(mark, "+") && (*phase == JOURNAL_PLANNED || *phase == JOURNAL_UNDO_PLANNED)) {
        got = read_twice(records, journal, read_decision);
        *phase = *phase == JOURNAL_PLANNED ? JOURNAL_DECIDED : JOURNAL_UNDO_DECIDED;
    } else if (str_eq(mark, "*") && (*phase == JOURNAL_DECIDED || *phase == JOURNAL_UNDO_DECIDED)) {
        got = read_twice(records, journal, read_results);
        *phase = JOURNAL_DONE;
    } else if (str_eq(mark, "u") && *phase == JOURNAL_DONE) {
        got = read_undo(records, journal);
        *phase = JOURNAL_UNDO_PLANNED;
    }
    return got;
}

int journal_parse(const char *text, size_t len, struct journal *ret, struct err *err)
{
    AUTO(journal_done) struct journal journal = {0};
    struct records records = {.next = text, .end = text + len};
    enum journal_phase phase = JOURNAL_PLANNED;
    enum read got = len ? read_plan(&records, &journal) : READ_CUT;

    while (got == READ_WHOLE) {
        journal.phase = phase;
        journal.whole = (size_t)(records.next - text);
        if (phase == JOURNAL_DONE)
            journal.settled = journal.whole;
        got = read_part(&records, &journal, &phase);
    }
    if (got == READ_WRONG)
        return err_set(err, ERR_INVALID, "the journal of an accept is damaged at byte %zu",
                       (size_t)(records.next - text));
    *ret = journal;
    journal = (struct journal){0};
    return 0;
}
