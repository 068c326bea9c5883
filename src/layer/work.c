/* See work.h. The folder accepted/ of a layer has one folder for each accept, by its number, and while one is under way (or was when
 * a kill came) the file "under-way" with that number: so that opening a layer costs one look when there is nothing to do.
 *
 * A part of the journal is written with one write and never synced: what has to survive is a killed program, and after
 * the machine went down a layer is suspect anyhow. */
#include "layer/work.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "layer/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char accepted_name[] = "accepted";
static const char under_way[] = "under-way";
static const char journal_name[] = "journal";

static void number_name(int number, char ret[16])
{
    snprintf(ret, 16, "%04d", number);
}

int work_init(struct work *work, struct layer *layer, struct accept_result *result, struct err *err)
{
    *work = (struct work){.layer = layer, .accepted = -1, .dir = -1, .result = result};
    work->is_quiet = layer_is_quiet(layer);
    if (work->is_quiet)
        layer_unprepare(layer);
    work->trees = trees_open(layer, err);
    if (!work->trees)
        return -1;
    work->accepted = store_make_dir(layer_fd(layer), accepted_name, 0700, err);
    return work->accepted < 0 ? -1 : 0;
}

void work_done(struct work *work)
{
    trees_close(work->trees);
    known_free(work->known);
    journal_done(&work->journal);
    free(work->exposed);
    auto_close(&work->accepted);
    auto_close(&work->dir);
    *work = (struct work){.accepted = -1, .dir = -1};
}

/* --- numbers --- */

static int push_number(void *data, const char *name)
{
    if (store_step_number(name, ""))
        strv_push(data, name);
    return 0;
}

int work_numbers(const struct work *work, struct strv *ret, struct err *err)
{
    return store_list(work->accepted, ".", push_number, ret, err);
}

static int next_number(const struct work *work, struct err *err)
{
    AUTO(strv_done) struct strv names = {0};
    int last = 0;

    if (work_numbers(work, &names, err))
        return -1;
    for (size_t i = 0; i < names.len; i++) {
        const int number = store_step_number(names.items[i], "");

        last = number > last ? number : last;
    }
    return last + 1;
}

int work_under_way(const struct work *work, struct err *err)
{
    AUTO(buf_done) struct buf text = {0};

    if (store_read(work->accepted, under_way, &text, err))
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    return text.len ? store_step_number(text.data, "") : 0;
}

static int say_under_way(const struct work *work, struct err *err)
{
    AUTO(buf_done) struct buf text = {.max = 32};
    char name[16];

    number_name(work->number, name);
    buf_append_str(&text, name);
    return store_write(work->accepted, under_way, &text, err);
}

int work_begin(struct work *work, int number, struct err *err)
{
    char name[16];

    work->number = number ? number : next_number(work, err);
    if (work->number < 0)
        return -1;
    number_name(work->number, name);
    if (say_under_way(work, err))
        return -1;
    work->dir = store_make_dir(work->accepted, name, 0700, err);
    return work->dir < 0 ? -1 : 0;
}

void work_lend(struct work *work)
{
    trees_lend(work->trees, LEND_REAL | (work->is_quiet ? LEND_STEPS : 0u));
}

int work_end(struct work *work, bool keeps, struct err *err)
{
    char name[16];

    number_name(work->number, name);
    if (trees_give_back(work->trees, err))
        return -1;
    if (!keeps && store_discard(work->layer, work->accepted, name, err))
        return -1;
    if ((sys_fault() || unlinkat(work->accepted, under_way, 0)) && errno != ENOENT)
        return err_sys(err, "ending an accept");
    return keeps ? 0 : store_empty_trash(work->layer, err);
}

/* --- the journal --- */

int work_read(struct work *work, struct err *err)
{
    AUTO(buf_done) struct buf text = {.max = JOURNAL_MAX};
    AUTO_CLOSE int fd = -1;

    fd = sys_fault() ? -1
                     : openat(work->dir, journal_name,
                              O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return err_sys(err, "opening the journal of accept %d", work->number);
    if (buf_read_fd(&text, fd, err) || journal_parse(text.data, text.len, &work->journal, err))
        return err_wrap(err, "accept %d", work->number);
    if (work->journal.whole < text.len &&
        (sys_fault() || ftruncate(fd, (off_t)work->journal.whole)))
        return err_sys(err, "the journal of accept %d", work->number);
    for (size_t i = 0; i < work->journal.len; i++) {
        size_t roots;

        layer_roots(work->layer, &roots);
        if (work->journal.items[i].root >= roots)
            return err_set(err, ERR_INVALID, "the journal of accept %d names no root of the layer",
                           work->number);
    }
    return 0;
}

int work_cut(struct work *work, size_t len, struct err *err)
{
    AUTO_CLOSE int fd = sys_fault() ? -1
                                    : openat(work->dir, journal_name,
                                             O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 || sys_fault() || ftruncate(fd, (off_t)len))
        return err_sys(err, "the journal of accept %d", work->number);
    return 0;
}

int work_write(struct work *work, journal_put *const *parts, struct err *err)
{
    const int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    AUTO(buf_done) struct buf text = {.max = JOURNAL_MAX};
    AUTO_CLOSE int fd = -1;

    for (; *parts; parts++)
        if (!(*parts)(&text, &work->journal))
            return err_set(err, ERR_LIMIT, "too many paths for one accept; take some at a time");
    fd = sys_fault() ? -1 : openat(work->dir, journal_name, flags, 0600);
    if (fd < 0)
        return err_sys(err, "writing the journal of accept %d", work->number);
    if (fd_write_all(fd, text.data, text.len, err))
        return err_wrap(err, "the journal of accept %d", work->number);
    return 0;
}

/* --- results --- */

struct known *work_known(struct work *work)
{
    if (!work->known)
        work->known = known_load(work->layer);
    return work->known;
}

char *work_path(const struct work *work, size_t root, const char *path)
{
    size_t len;
    const struct layer_root *roots = layer_roots(work->layer, &len);

    return *path ? path_join(roots[root].path, path) : alloc_str(roots[root].path);
}

void work_leave(struct work *work, size_t root, const char *path, enum left_why why,
                const char *detail)
{
    struct accept_result *result = work->result;

    result->left =
        alloc_grow(result->left, result->left_len, &result->left_cap, sizeof *result->left);
    result->left[result->left_len++] =
        (struct left){.path = work_path(work, root, path), .why = why, .detail = alloc_str(detail)};
}

/* --- folders --- */

static int compare_folders(const void *one, const void *other)
{
    const struct journal_folder *a = one;
    const struct journal_folder *b = other;

    if (a->root != b->root)
        return a->root < b->root ? -1 : 1;
    return strcmp(a->path, b->path);
}

void work_note_folders(struct work *work)
{
    struct journal *journal = &work->journal;
    struct journal_folder *all = alloc_zero(journal->len + 1, sizeof *all);
    size_t len = 0;

    for (size_t i = 0; i < journal->len; i++) {
        const char *slash = strrchr(journal->items[i].path, '/');
        const size_t path_len = slash ? (size_t)(slash - journal->items[i].path) : 0;

        if (len && all[len - 1].root == journal->items[i].root &&
            strlen(all[len - 1].path) == path_len &&
            memcmp(all[len - 1].path, journal->items[i].path, path_len) == 0)
            continue;
        all[len++] = (struct journal_folder){.root = journal->items[i].root,
                                             .path = alloc_strn(journal->items[i].path, path_len)};
    }
    if (len)
        qsort(all, len, sizeof *all, compare_folders);
    for (size_t i = 0; i < len; i++) {
        struct stat st;

        if ((i && compare_folders(&all[i - 1], &all[i]) == 0) ||
            trees_stat(work->trees, all[i].root, TREE_REAL, all[i].path, &st))
            continue; /* there twice, or to be made */
        change_stamp_of(&st, &all[i].before);
        all[i].mtime_ns = change_ns_of(&st.st_mtim);
        journal->folders = alloc_grow(journal->folders, journal->folders_len, &journal->folders_cap,
                                      sizeof *journal->folders);
        journal->folders[journal->folders_len] = all[i];
        journal->folders[journal->folders_len++].path = alloc_str(all[i].path);
    }
    for (size_t i = 0; i < len; i++)
        free(all[i].path);
    free(all);
}

static void set_mtime(struct work *work, size_t root, const char *path, int64_t mtime_ns)
{
    const struct timespec times[] = {
        {.tv_nsec = UTIME_OMIT},
        change_time_of(mtime_ns),
    };
    const char *name;
    int dir;

    if (*path) {
        dir = trees_parent(work->trees, root, TREE_REAL, path, &name);
        if (dir >= 0 && !sys_fault())
            utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
    } else {
        char self[64];

        dir = trees_folder(work->trees, root, TREE_REAL, "");
        snprintf(self, sizeof self, "/proc/self/fd/%d", dir);
        if (dir >= 0 && !sys_fault())
            utimensat(AT_FDCWD, self, times, 0);
    }
}

/* --- afterwards --- */

static struct change_stamp stamp_now(struct work *work, size_t root, const char *path,
                                     struct stat *ret)
{
    struct change_stamp stamp = {0};

    *ret = (struct stat){0};
    if (trees_stat(work->trees, root, TREE_REAL, path, ret) && errno != ENOENT &&
        trees_stat(work->trees, root, TREE_REAL, path, ret))
        return stamp;
    if (ret->st_mode)
        change_stamp_of(ret, &stamp);
    return stamp;
}

/* What an accept has left at the path; who changed it in between gets no stamp that says it is ours. Nor does a part that was
 * taken over a conflict: the rest of the layer's still is without what somebody wrote there. */
static void note_taken(struct work *work, struct journal_item *item)
{
    const uint64_t wanted = item->how == HOW_MOVE ? item->layer.ino : item->staged;
    struct stat st;

    item->after = stamp_now(work, item->root, item->path, &st);
    if (item->kind == CHANGE_DELETED) {
        if (item->after.mode)
            return;
    } else if (!item->is_dir &&
               (item->after.ino != wanted || item->after.size != item->layer.size ||
                change_ns_of(&st.st_mtim) != item->layer_mtime_ns)) {
        item->after = (struct change_stamp){0};
        return;
    }
    if (!item->is_forced || !item->stays)
        known_note(work_known(work), item->root, item->path, &item->after);
}

int work_settle_accept(struct work *work, struct err *err)
{
    struct journal *journal = &work->journal;
    struct stat st;

    if (trees_give_back(work->trees, err))
        return -1;
    for (size_t i = journal->len; i > 0; i--) {
        const struct journal_item *item = &journal->items[i - 1];

        if (item->state != ITEM_DONE || !item->is_dir || item->kind != CHANGE_ADDED)
            continue;
        swap_dress(work, item);
        set_mtime(work, item->root, item->path, item->layer_mtime_ns);
    }
    for (size_t i = 0; i < journal->len; i++)
        if (journal->items[i].state == ITEM_DONE)
            note_taken(work, &journal->items[i]);
    for (size_t i = 0; i < journal->folders_len; i++)
        journal->folders[i].after =
            stamp_now(work, journal->folders[i].root, journal->folders[i].path, &st);
    return known_save(work_known(work), work->layer, err);
}

/* Whether something that the accept did in each folder itself still stands. */
static bool *find_standing(const struct journal *journal)
{
    bool *standing = alloc_zero(journal->folders_len + 1, sizeof *standing);

    for (size_t i = 0; i < journal->len; i++) {
        const struct journal_item *item = &journal->items[i];
        AUTO_FREE char *parent = alloc_str(item->path);
        char *slash = strrchr(parent, '/');
        struct journal_folder wanted = {.root = item->root, .path = parent};
        const struct journal_folder *found;

        parent[slash ? slash - parent : 0] = '\0';
        found = item->state != ITEM_DONE || !journal->folders_len
                    ? NULL
                    : bsearch(&wanted, journal->folders, journal->folders_len, sizeof wanted,
                              compare_folders);
        if (found)
            standing[found - journal->folders] = true;
    }
    return standing;
}

int work_settle_undo(struct work *work, struct err *err)
{
    struct journal *journal = &work->journal;
    AUTO_FREE bool *standing = find_standing(journal);
    struct stat st;

    if (trees_give_back(work->trees, err))
        return -1;
    for (size_t i = 0; i < journal->len; i++) {
        const struct journal_item *item = &journal->items[i];

        if (item->state == ITEM_UNDONE && item->is_undoing && item->is_dir &&
            item->kind == CHANGE_DELETED)
            set_mtime(work, item->root, item->path, item->real_mtime_ns);
    }
    for (size_t i = 0; i < journal->folders_len; i++) {
        struct journal_folder *folder = &journal->folders[i];

        if (!standing[i] && folder->after.mode)
            set_mtime(work, folder->root, folder->path, folder->mtime_ns);
        if (folder->after.mode)
            folder->after = stamp_now(work, folder->root, folder->path, &st);
        if (!standing[i] && folder->after.mode)
            known_note(work_known(work), folder->root, folder->path, &folder->after);
    }
    for (size_t i = 0; i < journal->len; i++) {
        const struct journal_item *item = &journal->items[i];

        if (item->state == ITEM_UNDONE && item->is_undoing && !item->is_forced) {
            const struct change_stamp stamp = stamp_now(work, item->root, item->path, &st);

            known_note(work_known(work), item->root, item->path, &stamp);
        }
    }
    return known_save(work_known(work), work->layer, err);
}
