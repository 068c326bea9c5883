/* One path of an accept taken back: see swap.c, whose calls these are in the other direction.
 *
 * What comes back to its place was kept since, so this needs no room there. What goes is put into the layer again, into the
 * step that it came from, unless the layer has something at the path by now: that is newer, and stays. */
#include "layer/swap.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/sys.h"
#include "layer/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Of what an accept left; what its mtime was is not noted. */
static bool is_as_left(const struct stat *st, const struct change_stamp *stamp)
{
    struct change_stamp now;

    change_stamp_of(st, &now);
    if (st->st_nlink > 1 && S_ISREG(st->st_mode))
        now.ctime_ns = stamp->ctime_ns;
    return change_stamp_equal(&now, stamp);
}

/* --- the layer --- */

/* The layer says nothing of the path, not even that it is gone: what is taken back belongs there. */
static bool needs_layer(struct work *work, const struct journal_item *item)
{
    return trees_steps(work->trees) && upper_is_silent(work->trees, item->root, item->path);
}

/* Room for the path in the step: the folders above it, and nothing that hides it. */
static int make_room(struct work *work, const struct journal_item *item, struct swap_ends *ends,
                     struct err *err)
{
    if (swap_expose(work, item, err) ||
        upper_make_parents(work->trees, item->root, ends->step, item->path, err))
        return -1;
    ends->up.dir = trees_parent(work->trees, item->root, ends->step, item->path, &ends->up.name);
    return ends->up.dir < 0 ? err_sys(err, "opening a folder of the layer") : 0;
}

static int put_into_layer(struct work *work, const struct journal_item *item,
                          struct swap_ends *ends, const struct place *from, struct err *err)
{
    char path[64 + NAME_MAX];

    if (make_room(work, item, ends, err))
        return -1;
    if (swap_move(from, &ends->up))
        return err_sys(err, "putting %s into the layer", item->path);
    if (item->is_copy && S_ISREG(item->layer.mode)) {
        snprintf(path, sizeof path, "/proc/self/fd/%d/%s", ends->up.dir, ends->up.name);
        lsetxattr(path, "user.overlay.origin", "", 0, 0);
    }
    return 0;
}

/* An accept after it has been taken back since: then it is not quite as this one left it, but as we did, and nobody else was
 * there. */
static bool is_as_we_left(struct work *work, const struct journal_item *item, const struct stat *st)
{
    const struct change_stamp *known;
    struct change_stamp now;

    change_stamp_of(st, &now);
    if (now.size != item->after.size || now.mode != item->after.mode ||
        (item->how == HOW_FAR ? change_ns_of(&st->st_mtim) != item->layer_mtime_ns
                              : now.ino != item->after.ino))
        return false;
    known = known_find(work_known(work), item->root, item->path);
    return known && change_stamp_equal(known, &now);
}

static bool check_left(struct work *work, struct journal_item *item, const struct swap_ends *ends,
                       struct stat *ret)
{
    const bool is_there = swap_look(&ends->real, ret);

    if (item->kind == CHANGE_DELETED
            ? !is_there && ends->real.dir >= 0
            : is_there && (is_as_left(ret, &item->after) || is_as_we_left(work, item, ret)))
        return true;
    swap_leave(work, item, LEFT_LATER, "it was changed since; what is there now stays");
    return false;
}

/* Far: the layer gets its copy first, for it takes a name from nobody. */
static bool fill_layer(struct work *work, struct journal_item *item, struct swap_ends *ends)
{
    struct err err;

    if (item->how == HOW_FAR && needs_layer(work, item) &&
        put_into_layer(work, item, ends, &ends->away, &err)) {
        swap_leave(work, item, LEFT_FAILED, err.msg);
        return false;
    }
    swap_find_ends(work, item, ends);
    return true;
}

/* It is where it was; our renames have moved its ctime. */
static void stamp_again(struct journal_item *item, const struct swap_ends *ends,
                        const struct stat *before)
{
    struct stat st;

    if (swap_look(&ends->real, &st) && st.st_ino == before->st_ino &&
        st.st_size == before->st_size && st.st_mode == before->st_mode &&
        change_ns_of(&st.st_mtim) == change_ns_of(&before->st_mtim))
        change_stamp_of(&st, &item->after);
}

/* What came out is at accepted/N/I, and goes into the layer. */
static int give_back(struct work *work, struct journal_item *item, struct swap_ends *ends)
{
    struct err err;

    if (item->how == HOW_FAR || !needs_layer(work, item) ||
        put_into_layer(work, item, ends, &ends->own, &err) == 0) {
        item->state = ITEM_UNDONE;
        return 0;
    }
    swap_leave(work, item, LEFT_FAILED, err.msg);
    swap_find_ends(work, item, ends);
    return -1;
}

/* What came out is the accepted one: `from` has it now. */
static void back_changed(struct work *work, struct journal_item *item, struct swap_ends *ends)
{
    const bool is_far = item->how == HOW_FAR;
    const struct place *from = is_far ? &ends->temp : &ends->own;
    const uint64_t old = is_far ? item->staged : item->real.ino;
    bool done = work->is_going_on && swap_has_inode(&ends->real, old) && !swap_has_inode(from, old);
    struct stat st = {0};
    struct change_stamp now;

    if (!done) {
        if (!check_left(work, item, ends, &st) || !fill_layer(work, item, ends))
            return;
        change_stamp_of(&st, &now);
        if (!swap_exchange_checked(from, &ends->real, old, &now, change_ns_of(&st.st_mtim))) {
            stamp_again(item, ends, &st);
            swap_leave(work, item, LEFT_LATER, "it was changed since; what is there now stays");
            return;
        }
    }
    if (is_far) {
        unlinkat(ends->temp.dir, ends->temp.name, 0);
        unlinkat(ends->own.dir, ends->own.name, 0);
    }
    if (give_back(work, item, ends) && swap_exchange(&ends->own, &ends->real) == 0)
        stamp_again(item, ends, &st);
}

static void back_added(struct work *work, struct journal_item *item, struct swap_ends *ends)
{
    const bool is_far = item->how == HOW_FAR;
    const struct place *to = is_far ? &ends->temp : &ends->own;
    bool done = work->is_going_on && !swap_has_inode(&ends->real, item->after.ino);
    struct stat st = {0};
    struct change_stamp now;

    if (!done) {
        if (!check_left(work, item, ends, &st) || !fill_layer(work, item, ends))
            return;
        change_stamp_of(&st, &now);
        if (!swap_remove_checked(&ends->real, to, &now, change_ns_of(&st.st_mtim))) {
            stamp_again(item, ends, &st);
            swap_leave(work, item, LEFT_LATER, "it was changed since; what is there now stays");
            return;
        }
    }
    if (is_far)
        unlinkat(ends->temp.dir, ends->temp.name, 0);
    if (give_back(work, item, ends) && swap_move(&ends->own, &ends->real) == 0)
        stamp_again(item, ends, &st);
}

/* Before the real one is there again: then it hides nothing yet. */
static bool whiteout_again(struct work *work, struct journal_item *item, struct swap_ends *ends,
                           bool needs)
{
    struct err err;

    if (needs && upper_whiteout(work->trees, item->root, ends->step, item->path, &err)) {
        swap_leave(work, item, LEFT_FAILED, err.msg);
        return false;
    }
    swap_find_ends(work, item, ends);
    return true;
}

/* It did not come back, by errno: what is there must show. */
static void leave_shown(struct work *work, struct journal_item *item, const struct swap_ends *ends,
                        bool has_whiteout)
{
    const int error = errno;

    if (has_whiteout)
        unlinkat(ends->up.dir, ends->up.name, 0);
    trees_forget(work->trees);
    errno = error;
    if (error == EEXIST)
        swap_leave(work, item, LEFT_LATER, "there is something of that name now");
    else
        swap_leave_by_errno(work, item);
}

static void back_deleted(struct work *work, struct journal_item *item, struct swap_ends *ends)
{
    const struct place *from = item->how == HOW_FAR ? &ends->temp : &ends->own;
    const uint64_t old = item->how == HOW_FAR ? item->staged : item->real.ino;
    const bool needs = needs_layer(work, item);
    struct stat st;

    if (!(work->is_going_on && swap_has_inode(&ends->real, old))) {
        if (!check_left(work, item, ends, &st) || !whiteout_again(work, item, ends, needs))
            return;
        if (swap_move(from, &ends->real)) {
            leave_shown(work, item, ends, needs);
            return;
        }
    }
    if (item->how == HOW_FAR)
        unlinkat(ends->own.dir, ends->own.name, 0);
    item->state = ITEM_UNDONE;
}

/* --- taking back directories --- */

/* The folder in the layer again, as the real one is now. */
static bool make_itself(struct work *work, struct journal_item *item, struct swap_ends *ends)
{
    AUTO_FREE char *inside = alloc_strf("%s/x", item->path); /* any name in it */
    struct err err;

    if (needs_layer(work, item) &&
        (upper_expose(work->trees, item->root, inside, &err) ||
         upper_make_parents(work->trees, item->root, ends->step, inside, &err))) {
        swap_leave(work, item, LEFT_FAILED, err.msg);
        return false;
    }
    swap_find_ends(work, item, ends); /* others were opened meanwhile */
    return true;
}

static void back_folder_added(struct work *work, struct journal_item *item, struct swap_ends *ends)
{
    struct stat st;

    if (!(work->is_going_on && !swap_look(&ends->real, &st))) {
        if (!swap_look(&ends->real, &st) || st.st_ino != item->after.ino || !S_ISDIR(st.st_mode)) {
            swap_leave(work, item, LEFT_LATER, "it was changed since; what is there now stays");
            return;
        }
        if (!make_itself(work, item, ends))
            return;
        if (sys_fault() || unlinkat(ends->real.dir, ends->real.name, AT_REMOVEDIR)) {
            if (errno == ENOTEMPTY || errno == EEXIST)
                swap_leave(work, item, LEFT_LATER,
                           "something is in it that the accept did not make");
            else
                swap_leave_by_errno(work, item);
            return;
        }
    }
    trees_forget_below(work->trees, item->root, item->path);
    item->state = ITEM_UNDONE;
}

static void back_folder_deleted(struct work *work, struct journal_item *item,
                                struct swap_ends *ends)
{
    const bool needs = needs_layer(work, item);
    struct err err;

    swap_find_ends(work, item, ends);
    if (ends->real.dir < 0) {
        swap_leave(work, item, LEFT_LATER, "the folder that it was in is gone");
        return;
    }
    if (!whiteout_again(work, item, ends, needs))
        return;
    if ((sys_fault() || mkdirat(ends->real.dir, ends->real.name, 0700)) &&
        !(errno == EEXIST && work->is_going_on)) {
        leave_shown(work, item, ends, needs);
        return;
    }
    trees_forget_below(work->trees, item->root, item->path);
    swap_find_ends(work, item, ends);
    if (copy_folder(&ends->own, &ends->real, &err) && copy_folder(&ends->own, &ends->real, &err))
        work_leave(work, item->root, item->path, LEFT_FAILED, err.msg);
    unlinkat(ends->own.dir, ends->own.name, AT_REMOVEDIR);
    item->state = ITEM_UNDONE;
}

static void back_folder_mode(struct work *work, struct journal_item *item, struct swap_ends *ends)
{
    struct stat st;

    if (!swap_look(&ends->real, &st) || st.st_ino != item->after.ino ||
        (st.st_mode != item->after.mode && !work->is_going_on)) {
        swap_leave(work, item, LEFT_LATER, "it was changed since; what is there now stays");
        return;
    }
    /* made as the real one is now, which is what the layer had */
    if (!make_itself(work, item, ends))
        return;
    if (copy_mode(&ends->real, item->real.mode & 07777))
        swap_leave_by_errno(work, item);
    else
        item->state = ITEM_UNDONE;
}

void swap_back(struct work *work, struct journal_item *item)
{
    struct swap_ends ends;

    swap_find_ends(work, item, &ends);
    if (!work->is_quiet && needs_layer(work, item)) {
        swap_leave(work, item, LEFT_BUSY, "commands of the layer live; wait for them, or end them");
        return;
    }
    if (item->is_dir && item->kind == CHANGE_ADDED)
        back_folder_added(work, item, &ends);
    else if (item->is_dir && item->kind == CHANGE_DELETED)
        back_folder_deleted(work, item, &ends);
    else if (item->is_dir)
        back_folder_mode(work, item, &ends);
    else if (item->kind == CHANGE_ADDED)
        back_added(work, item, &ends);
    else if (item->kind == CHANGE_DELETED)
        back_deleted(work, item, &ends);
    else
        back_changed(work, item, &ends);
}

/* Far: what was there before, beside its place again, and what is there now, ready for the layer. */
int swap_prepare_back(struct work *work, struct journal_item *item, struct err *err)
{
    struct swap_ends ends;
    struct stat from, made;

    if (item->is_dir || item->how != HOW_FAR)
        return 0;
    swap_find_ends(work, item, &ends);
    if (item->kind != CHANGE_DELETED && needs_layer(work, item)) {
        if (ends.real.dir < 0)
            return err_set(err, ERR_CONFLICT, "the folder that it was in is gone");
        if (copy_file(&ends.real, &ends.away, &from, &made, err))
            return -1;
    }
    if (item->kind == CHANGE_ADDED)
        return 0;
    item->staged = 0;
    if (ends.temp.dir >= 0 && copy_file(&ends.own, &ends.temp, &from, &made, err) == 0) {
        item->staged = made.st_ino;
        return 0;
    }
    unlinkat(ends.away.dir, ends.away.name, 0);
    return ends.temp.dir < 0 ? err_set(err, ERR_CONFLICT, "the folder that it was in is gone") : -1;
}
