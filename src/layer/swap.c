/* One path of an accept, or of the taking back of one (work.h).
 *
 * Old and new change places in one call (RENAME_EXCHANGE), so that nobody ever finds the path missing or half written. Only
 * afterwards it is certain what came out: it is held against what was seen when the change was listed, and where it
 * is another, because somebody saved the file in between, the two change back. A name that is new is made by a
 * rename that replaces nothing; one that goes is renamed away, looked at, and put back where it is another.
 *
 * Where the new one comes from, and where the old one goes, depends on the way (enum item_how):
 *
 *     move    the layer's own file and the real one change places; the old one is then renamed to accepted/N/I
 *     stage   a copy lies at accepted/N/I and changes places with the real one: the old one is there already
 *     far     copies of both are made before: of the new one beside the real one, of the old one at accepted/N/I
 *
 * Where there are many items, most are in folders of accepted/N (own_name()). After a kill the same functions are called
 * again. Which names have which inodes says how far they had come. */
#include "layer/swap.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/sys.h"
#include "layer/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MORE "m%zx" /* in accepted/N, for those of which I is high */

enum {
    SET_ID = 06000,
    TOGETHER = 64, /* items in one folder */
};

/* --- looking --- */

bool swap_look(const struct place *place, struct stat *ret)
{
    return place->dir >= 0 && !sys_fault() &&
           fstatat(place->dir, place->name, ret, AT_SYMLINK_NOFOLLOW) == 0;
}

bool swap_has_inode(const struct place *place, uint64_t inode)
{
    struct stat st;

    return inode && swap_look(place, &st) && st.st_ino == inode;
}

/* The same file, and nobody wrote it; a rename of our own may have moved its ctime. */
static bool is_same(const struct stat *st, const struct change_stamp *stamp, int64_t mtime_ns)
{
    return st->st_ino == stamp->ino && st->st_dev == stamp->dev &&
           (uint64_t)st->st_size == stamp->size &&
           ((st->st_mode ^ stamp->mode) & ~(unsigned)SET_ID) == 0 &&
           change_ns_of(&st->st_mtim) == mtime_ns;
}

/* The very state: nothing was done to it since. Names of one file that are exchanged before it move its ctime, too. */
static bool is_untouched(const struct stat *st, const struct change_stamp *stamp, int64_t mtime_ns)
{
    struct change_stamp now;

    change_stamp_of(st, &now);
    return change_stamp_equal(&now, stamp) || (st->st_nlink > 1 && is_same(st, stamp, mtime_ns));
}

/* The folder beside or above which the temporary name is: those that are still to be made have none. */
static int temp_folder(struct work *work, const struct journal_item *item, const char *name)
{
    AUTO_FREE char *path = alloc_str(item->path);
    AUTO_FREE char *first = NULL;
    char *slash;

    do {
        struct stat st;
        int dir;

        slash = strrchr(path, '/');
        path[slash ? slash - path : 0] = '\0';
        dir = trees_folder(work->trees, item->root, TREE_REAL, path);
        if (dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return dir;
        if (dir >= 0 && !first)
            first = alloc_str(path);
    } while (slash);
    return first ? trees_folder(work->trees, item->root, TREE_REAL, first) : -1;
}

/* File systems search a folder name by name, as far as one block of it has them: so there are not too many in one. */
static void own_name(const struct work *work, const struct journal_item *item, const char *end,
                     char ret[SWAP_NAME_MAX])
{
    const size_t i = (size_t)(item - work->journal.items);

    if (i < TOGETHER)
        snprintf(ret, SWAP_NAME_MAX, "%zx%s", i, end);
    else
        snprintf(ret, SWAP_NAME_MAX, MORE "/%zx%s", i / TOGETHER, i, end);
}

int swap_make_folders(const struct work *work, struct err *err)
{
    for (size_t i = TOGETHER; i < work->journal.len; i += TOGETHER) {
        char name[SWAP_NAME_MAX];

        snprintf(name, sizeof name, MORE, i / TOGETHER);
        if (sys_fault() || mkdirat(work->dir, name, 0700))
            return err_sys(err, "making a folder of accept %d", work->number);
    }
    return 0;
}

void swap_find_ends(struct work *work, const struct journal_item *item, struct swap_ends *ret)
{
    const bool is_far = item->how == HOW_FAR;

    own_name(work, item, "", ret->names[0]);
    ret->own = (struct place){.dir = work->dir, .name = ret->names[0]};
    ret->away = ret->temp = (struct place){.dir = -1};
    if (is_far) {
        own_name(work, item, ".new", ret->names[1]);
        snprintf(ret->names[2], SWAP_NAME_MAX, OWN_PREFIX "%s-%d-%zx", layer_id(work->layer),
                 work->number, (size_t)(item - work->journal.items));
        ret->away = (struct place){.dir = work->dir, .name = ret->names[1]};
        ret->temp.name = ret->names[2];
    }
    ret->step = trees_step_now(work->trees, item->step);
    ret->up.dir = trees_parent(work->trees, item->root, ret->step, item->path, &ret->up.name);
    if (is_far)
        ret->temp.dir = temp_folder(work, item, ret->names[2]);
    ret->real.dir = trees_parent(work->trees, item->root, TREE_REAL, item->path, &ret->real.name);
}

/* --- moving names --- */

int swap_exchange(const struct place *one, const struct place *other)
{
    return sys_fault() ? -1
                       : renameat2(one->dir, one->name, other->dir, other->name, RENAME_EXCHANGE);
}

int swap_move(const struct place *from, const struct place *to)
{
    return sys_fault() ? -1 : renameat2(from->dir, from->name, to->dir, to->name, RENAME_NOREPLACE);
}

void swap_leave(struct work *work, struct journal_item *item, enum left_why why, const char *detail)
{
    if (item->state == ITEM_PLANNED)
        item->state = ITEM_LEFT;
    item->is_undoing = false;
    work_leave(work, item->root, item->path, why, detail);
}

/* By the errno of a call that went to the real files. */
void swap_leave_by_errno(struct work *work, struct journal_item *item)
{
    const int error = errno;
    AUTO_FREE char *why = alloc_str(strerror(error));

    if (error == EEXIST || error == ENOENT)
        swap_leave(work, item, LEFT_CONFLICT, "it was made or removed just now; look at it again");
    else if (error == ENOTDIR || error == ELOOP)
        swap_leave(work, item, LEFT_CONFLICT, "a folder on the way is none any more");
    else
        swap_leave(work, item, LEFT_FAILED, why);
}

/* Exchanges, and holds what came out at `from` against the stamp; back again where it is another, unless somebody has put a
 * newer one in the place of ours (which is inode `ours`) by then. */
bool swap_exchange_checked(const struct place *from, const struct place *real, uint64_t ours,
                           const struct change_stamp *stamp, int64_t mtime_ns)
{
    struct stat st;

    if (swap_exchange(from, real))
        return false;
    if (swap_look(from, &st) && is_same(&st, stamp, mtime_ns))
        return true;
    if (swap_has_inode(real, ours))
        swap_exchange(from, real);
    errno = EEXIST;
    return false;
}

/* The same for a name that goes. */
bool swap_remove_checked(const struct place *real, const struct place *to,
                         const struct change_stamp *stamp, int64_t mtime_ns)
{
    struct stat st;

    if (swap_move(real, to))
        return false;
    if (swap_look(to, &st) && is_same(&st, stamp, mtime_ns))
        return true;
    swap_move(to, real);
    errno = EEXIST;
    return false;
}

/* --- taking: the layer afterwards --- */

/* The steps lose the path. A path that is left there shows what is real: no harm, but a list that says less. */
static int settle(struct work *work, const struct journal_item *item, const struct swap_ends *ends,
                  struct err *err)
{
    const int first = trees_step_now(work->trees, item->first_step);
    struct stat st;

    if (item->stays)
        return 0;
    if (item->kind == CHANGE_DELETED) {
        if (ends->up.dir < 0 || trees_stat(work->trees, item->root, ends->step, item->path, &st) ||
            !is_whiteout(&st))
            return 0;
        return upper_lose(work->trees, item->root, item->path, first, ends->step, err);
    }
    if (item->is_dir || (first == ends->step && item->how == HOW_MOVE))
        return 0;
    return upper_lose(work->trees, item->root, item->path, first, ends->step, err);
}

static void finish(struct work *work, struct journal_item *item, const struct swap_ends *ends)
{
    struct err err;

    item->state = ITEM_DONE;
    if (item->kind != CHANGE_DELETED && !item->is_dir && item->how == HOW_MOVE &&
        S_ISREG(item->layer.mode) && copy_clean(&ends->real, &err))
        copy_clean(&ends->real, &err); /* attributes that mean nothing there */
    settle(work, item, ends, &err);
}

/* --- taking --- */

/* What the layer has is what was listed, and may go where the path is. */
static bool check_source(struct work *work, struct journal_item *item, const struct swap_ends *ends)
{
    struct stat st;

    if (!swap_look(&ends->up, &st) || !is_same(&st, &item->layer, item->layer_mtime_ns)) {
        swap_leave(work, item, LEFT_CHANGED,
                   "the layer has something else there now; list it again");
        return false;
    }
    if ((st.st_mode & SET_ID) && S_ISREG(st.st_mode) && copy_mode(&ends->up, st.st_mode & 07777)) {
        swap_leave_by_errno(work, item);
        return false;
    }
    return true;
}

static bool check_real(struct work *work, struct journal_item *item, const struct swap_ends *ends)
{
    struct stat st;

    if (ends->real.dir < 0) {
        errno = ENOTDIR;
        swap_leave_by_errno(work, item);
        return false;
    }
    if (!item->real.mode ||
        (swap_look(&ends->real, &st) && is_untouched(&st, &item->real, item->real_mtime_ns)))
        return true;
    swap_leave(work, item, LEFT_CONFLICT, "somebody changed it just now; look at it again");
    return false;
}

/* After a kill: the two have changed places, and the old one is where the new one was. */
static bool is_exchanged(const struct place *from, const struct swap_ends *ends,
                         const struct journal_item *item)
{
    return swap_has_inode(from, item->real.ino) &&
           swap_has_inode(&ends->real, item->how == HOW_MOVE ? item->layer.ino : item->staged);
}

/* It is where it was; our renames have moved its ctime, which is no conflict. */
static void note_again(struct work *work, const struct journal_item *item,
                       const struct swap_ends *ends)
{
    struct change_stamp stamp;
    struct stat st;

    if (!swap_look(&ends->real, &st) || st.st_ino != item->real.ino)
        return;
    change_stamp_of(&st, &stamp);
    known_note(work_known(work), item->root, item->path, &stamp);
}

static void take_move_changed(struct work *work, struct journal_item *item,
                              const struct swap_ends *ends)
{
    const bool goes_on = work->is_going_on;

    if (goes_on && swap_has_inode(&ends->own, item->real.ino)) {
        finish(work, item, ends);
        return;
    }
    if (!goes_on || !is_exchanged(&ends->up, ends, item)) {
        if (!check_source(work, item, ends) || !check_real(work, item, ends))
            return;
        if (!swap_exchange_checked(&ends->up, &ends->real, item->layer.ino, &item->real,
                                   item->real_mtime_ns)) {
            swap_leave_by_errno(work, item);
            return;
        }
    }
    if (swap_move(&ends->up, &ends->own)) {
        const int error = errno;

        if (swap_exchange(&ends->up, &ends->real) == 0)
            note_again(work, item, ends);
        errno = error;
        swap_leave_by_errno(work, item);
        return;
    }
    finish(work, item, ends);
}

static void take_move_added(struct work *work, struct journal_item *item,
                            const struct swap_ends *ends)
{
    if (work->is_going_on && swap_has_inode(&ends->real, item->layer.ino)) {
        finish(work, item, ends);
        return;
    }
    if (!check_real(work, item, ends) || !check_source(work, item, ends))
        return;
    if (swap_move(&ends->up, &ends->real))
        swap_leave_by_errno(work, item);
    else
        finish(work, item, ends);
}

/* From a copy: that lies at accepted/N/I, or beside the real one. */
static void take_copy(struct work *work, struct journal_item *item, const struct swap_ends *ends)
{
    const struct place *from = item->how == HOW_FAR ? &ends->temp : &ends->own;
    const bool is_far = item->how == HOW_FAR;
    bool done = work->is_going_on && swap_has_inode(&ends->real, item->staged);

    if (!done && !check_real(work, item, ends))
        return;
    if (!done && item->kind == CHANGE_ADDED)
        done = swap_move(from, &ends->real) == 0;
    else if (!done)
        done = swap_exchange_checked(from, &ends->real, item->staged, &item->real,
                                     item->real_mtime_ns);
    if (!done) {
        swap_leave_by_errno(work, item);
        return;
    }
    if (is_far && item->kind != CHANGE_ADDED && from->dir >= 0)
        unlinkat(from->dir, from->name, 0);
    finish(work, item, ends);
}

static void take_deleted(struct work *work, struct journal_item *item, const struct swap_ends *ends)
{
    const struct place *to = item->how == HOW_FAR ? &ends->temp : &ends->own;
    const bool is_away = work->is_going_on && swap_has_inode(to, item->real.ino);
    struct stat st;

    if (!is_away && work->is_going_on && item->how == HOW_FAR &&
        !(swap_look(&ends->real, &st) && is_same(&st, &item->real, item->real_mtime_ns))) {
        finish(work, item, ends);
        return;
    }
    if (!is_away && !check_real(work, item, ends))
        return;
    if (!is_away && !swap_remove_checked(&ends->real, to, &item->real, item->real_mtime_ns)) {
        swap_leave_by_errno(work, item);
        return;
    }
    if (item->how == HOW_FAR && to->dir >= 0)
        unlinkat(to->dir, to->name, 0);
    finish(work, item, ends);
}

/* --- taking directories --- */

static void take_folder_added(struct work *work, struct journal_item *item,
                              const struct swap_ends *ends)
{
    struct stat st;

    if (!check_real(work, item, ends))
        return;
    if (sys_fault() || mkdirat(ends->real.dir, ends->real.name, 0700)) {
        const bool is_there = errno == EEXIST && swap_look(&ends->real, &st) && S_ISDIR(st.st_mode);

        if (!is_there) {
            swap_leave_by_errno(work, item);
            return;
        }
        if (!work->is_going_on) { /* somebody else's, and as good */
            item->state = ITEM_LEFT;
            return;
        }
    }
    trees_forget_below(work->trees, item->root, item->path);
    item->state = ITEM_DONE; /* its permissions come when all is in it: swap_dress() */
}

/* Its owner and attributes stay in an empty folder beside the journal, for an undo. */
static void take_folder_deleted(struct work *work, struct journal_item *item,
                                const struct swap_ends *ends)
{
    const bool is_gone = work->is_going_on && !swap_has_inode(&ends->real, item->real.ino);
    struct err err;
    struct stat st;

    if (!is_gone) {
        if (!swap_look(&ends->real, &st) || st.st_ino != item->real.ino || !S_ISDIR(st.st_mode)) {
            errno = ENOENT;
            swap_leave_by_errno(work, item);
            return;
        }
        if ((mkdirat(ends->own.dir, ends->own.name, 0700) && errno != EEXIST) ||
            copy_folder(&ends->real, &ends->own, &err) ||
            copy_mode(&ends->own, item->real.mode & 07777) || sys_fault() ||
            unlinkat(ends->real.dir, ends->real.name, AT_REMOVEDIR)) {
            if (errno == ENOTEMPTY || errno == EEXIST)
                swap_leave(work, item, LEFT_CONFLICT, "the folder is not empty");
            else
                swap_leave_by_errno(work, item);
            return;
        }
    }
    trees_forget_below(work->trees, item->root, item->path);
    finish(work, item, ends);
}

void swap_dress(struct work *work, const struct journal_item *item)
{
    struct swap_ends ends;
    struct err err;

    swap_find_ends(work, item, &ends);
    if (ends.real.dir < 0 || ends.up.dir < 0 ||
        (copy_folder(&ends.up, &ends.real, &err) && copy_folder(&ends.up, &ends.real, &err)))
        work_leave(work, item->root, item->path, LEFT_FAILED,
                   "its permissions could not be set; set them with chmod");
}

static void take_folder_mode(struct work *work, struct journal_item *item,
                             const struct swap_ends *ends)
{
    struct stat st;

    if (!swap_look(&ends->real, &st) || st.st_ino != item->real.ino ||
        (st.st_mode != item->real.mode && !work->is_going_on)) {
        swap_leave(work, item, LEFT_CONFLICT, "somebody changed it just now; look at it again");
        return;
    }
    if (copy_mode(&ends->real, item->layer.mode & 07777 & ~(mode_t)S_ISUID))
        swap_leave_by_errno(work, item);
    else
        finish(work, item, ends);
}

/* What is above it in the layer will hide nothing that is real and not hidden now. Paths come sorted: mostly that was done for
 * the one before. */
int swap_expose(struct work *work, const struct journal_item *item, struct err *err)
{
    const char *slash = strrchr(item->path, '/');
    const size_t len = slash ? (size_t)(slash - item->path) : 0;

    if (!len || (work->exposed && work->exposed_root == item->root &&
                 strlen(work->exposed) == len && memcmp(work->exposed, item->path, len) == 0))
        return 0;
    if (upper_expose(work->trees, item->root, item->path, err))
        return -1;
    free(work->exposed);
    work->exposed = alloc_strn(item->path, len);
    work->exposed_root = item->root;
    return 0;
}

void swap_take(struct work *work, struct journal_item *item)
{
    struct swap_ends ends;
    struct err err;

    if (!item->stays && item->kind != CHANGE_DELETED && swap_expose(work, item, &err)) {
        swap_leave(work, item, LEFT_FAILED, err.msg);
        return;
    }
    swap_find_ends(work, item, &ends);
    if (item->is_dir && item->kind == CHANGE_ADDED)
        take_folder_added(work, item, &ends);
    else if (item->is_dir && item->kind == CHANGE_DELETED)
        take_folder_deleted(work, item, &ends);
    else if (item->is_dir)
        take_folder_mode(work, item, &ends);
    else if (item->kind == CHANGE_DELETED)
        take_deleted(work, item, &ends);
    else if (item->how != HOW_MOVE)
        take_copy(work, item, &ends);
    else if (item->kind == CHANGE_ADDED)
        take_move_added(work, item, &ends);
    else
        take_move_changed(work, item, &ends);
}

bool swap_was_written_late(struct work *work, const struct journal_item *item)
{
    char name[SWAP_NAME_MAX];
    struct stat st;

    if (item->is_dir || item->how == HOW_FAR || item->kind == CHANGE_ADDED)
        return false;
    own_name(work, item, "", name);
    return swap_look(&(struct place){.dir = work->dir, .name = name}, &st) &&
           !is_same(&st, &item->real, item->real_mtime_ns);
}

/* --- copies --- */

static int copy_new(struct work *work, struct journal_item *item, const struct swap_ends *ends,
                    struct err *err)
{
    const struct place *to = item->how == HOW_FAR ? &ends->temp : &ends->own;
    struct stat from = {0}, made;

    if (to->dir < 0 || ends->up.dir < 0)
        return err_set(err, ERR_CONFLICT, "a folder on the way is none any more");
    if (work->text) {
        if (copy_text(&ends->up, work->text->text, work->text->len, to, &made, err))
            return -1;
    } else if (copy_file(&ends->up, to, &from, &made, err)) {
        return -1;
    } else if (!is_same(&from, &item->layer, item->layer_mtime_ns)) {
        unlinkat(to->dir, to->name, 0);
        return err_set(err, ERR_CONFLICT, "the layer has something else there now; list it again");
    }
    item->staged = made.st_ino;
    item->layer.size = (uint64_t)made.st_size;
    item->layer_mtime_ns = change_ns_of(&made.st_mtim);
    return 0;
}

int swap_prepare(struct work *work, struct journal_item *item, struct err *err)
{
    struct swap_ends ends;
    struct stat from, made;

    if (item->is_dir || item->how == HOW_MOVE)
        return 0;
    swap_find_ends(work, item, &ends);
    if (item->how == HOW_FAR && item->kind != CHANGE_ADDED) {
        if (ends.real.dir < 0)
            return err_set(err, ERR_CONFLICT, "a folder on the way is none any more");
        if (copy_file(&ends.real, &ends.own, &from, &made, err))
            return -1;
        if (!is_untouched(&from, &item->real, item->real_mtime_ns)) {
            unlinkat(ends.own.dir, ends.own.name, 0);
            return err_set(err, ERR_CONFLICT, "somebody changed it just now; look at it again");
        }
        item->staged = made.st_ino;
    }
    if (item->kind == CHANGE_DELETED)
        return 0;
    if (copy_new(work, item, &ends, err) == 0)
        return 0;
    unlinkat(ends.own.dir, ends.own.name, 0);
    return -1;
}

/* Those that could not be prepared were left. */
bool swap_was_prepared(const struct journal_item *item)
{
    return item->is_dir || item->how == HOW_MOVE || item->staged ||
           (item->how == HOW_STAGE && item->kind == CHANGE_DELETED);
}

void swap_withdraw(struct work *work, const struct journal_item *item)
{
    struct swap_ends ends;

    if (item->how != HOW_FAR || item->is_dir)
        return;
    swap_find_ends(work, item, &ends);
    if (ends.temp.dir >= 0)
        unlinkat(ends.temp.dir, ends.temp.name, 0);
    unlinkat(ends.away.dir, ends.away.name, 0);
}
