/* change_undo(): an accept taken back, from its journal. Old files come back to their places and the accepted ones go back into
 * the layer, in the opposite order: so contents go before the folders that they are in, and what was a folder is one again
 * before its files come. A path that is not as the accept left it was changed by somebody, and stays as it is.
 *
 * At last the mtimes of folders come back, where everything that the accept did in them was taken back and nobody else
 * had a hand in it: so taking back all of it leaves the very tree that was there. */
#include "layer/accept.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "layer/inside.h"
#include "layer/work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- which accept --- */

static bool has_done(const struct journal *journal)
{
    for (size_t i = 0; i < journal->len; i++)
        if (journal->items[i].state == ITEM_DONE)
            return true;
    return false;
}

static int open_number(struct work *work, int number, struct err *err)
{
    AUTO_FREE char *name = alloc_strf("%04d", number);

    journal_done(&work->journal);
    auto_close(&work->dir);
    work->number = number;
    work->dir = store_make_dir(work->accepted, name, 0700, err);
    return work->dir < 0 ? -1 : work_read(work, err);
}

/* The last one of which something can be taken back. */
static int open_last(struct work *work, struct err *err)
{
    AUTO(strv_done) struct strv names = {0};

    if (work_numbers(work, &names, err))
        return -1;
    strv_sort(&names);
    for (size_t i = names.len; i > 0; i--) {
        if (open_number(work, store_step_number(names.items[i - 1], ""), err))
            return -1;
        if (work->journal.phase == JOURNAL_DONE && has_done(&work->journal))
            return 0;
    }
    return err_set(err, ERR_NOT_FOUND, "nothing was accepted from this layer that can be undone");
}

static int open_accept(struct work *work, int number, struct err *err)
{
    AUTO(strv_done) struct strv names = {0};
    AUTO_FREE char *name = alloc_strf("%04d", number);

    if (!number)
        return open_last(work, err);
    if (work_numbers(work, &names, err))
        return -1;
    if (!strv_has(&names, name))
        return err_set(err, ERR_NOT_FOUND, "this layer has no accept %d", number);
    return open_number(work, number, err);
}

/* --- which paths --- */

static bool is_asked(const struct work *work, const struct journal_item *item, char *const *paths)
{
    AUTO_FREE char *path = work_path(work, item->root, item->path);

    if (!paths)
        return true;
    for (; *paths; paths++)
        if (path_is_within(path, *paths))
            return true;
    return false;
}

/* Relative paths below one root. */
static bool is_within(const struct journal_item *item, const struct journal_item *above)
{
    const size_t len = strlen(above->path);

    return item->root == above->root && strncmp(item->path, above->path, len) == 0 &&
           (!item->path[len] || item->path[len] == '/');
}

/* Folders that went come back before what was in them, and what came to be where they were goes. */
static void choose_along(struct journal *journal, const struct journal_item *chosen)
{
    for (size_t i = 0; i < journal->len; i++) {
        struct journal_item *item = &journal->items[i];

        if (item->state != ITEM_DONE || item->is_undoing)
            continue;
        if ((item->kind == CHANGE_DELETED && item->is_dir && is_within(chosen, item)) ||
            (item->kind != CHANGE_DELETED && chosen->kind == CHANGE_DELETED &&
             is_within(item, chosen)))
            item->is_undoing = true;
    }
}

static size_t choose(struct work *work, const struct accept_request *request)
{
    struct journal *journal = &work->journal;
    size_t count = 0;

    for (size_t i = 0; i < journal->len; i++)
        journal->items[i].is_undoing = journal->items[i].state == ITEM_DONE &&
                                       is_asked(work, &journal->items[i], request->paths);
    for (size_t i = 0; request->paths && i < journal->len; i++)
        if (journal->items[i].is_undoing)
            choose_along(journal, &journal->items[i]);
    for (size_t i = 0; i < journal->len; i++)
        count += journal->items[i].is_undoing;
    return count;
}

/* --- doing it --- */

/* Those of folders that somebody else has changed are not ours to bring back. */
static void look_at_folders(struct work *work)
{
    struct journal *journal = &work->journal;

    for (size_t i = 0; i < journal->folders_len; i++) {
        struct journal_folder *folder = &journal->folders[i];
        const struct change_stamp *known;
        struct change_stamp now = {0};
        struct stat st;

        if (trees_stat(work->trees, folder->root, TREE_REAL, folder->path, &st) == 0)
            change_stamp_of(&st, &now);
        if (now.ino == folder->after.ino && now.ctime_ns == folder->after.ctime_ns)
            continue;
        /* a later accept was taken back since: that was us, too */
        known = known_find(work_known(work), folder->root, folder->path);
        if (now.ino == folder->after.ino && known && change_stamp_equal(known, &now))
            continue;
        folder->after = (struct change_stamp){0};
    }
}

static int prepare(struct work *work, struct err *err)
{
    work_lend(work);
    for (size_t i = 0; i < work->journal.len; i++) {
        struct journal_item *item = &work->journal.items[i];

        if (!item->is_undoing || swap_prepare_back(work, item, err) == 0)
            continue;
        if (err->code != ERR_CONFLICT)
            return err_wrap(err, "nothing was taken back: %s", item->path);
        item->is_undoing = false;
        work_leave(work, item->root, item->path, LEFT_LATER, err->msg);
    }
    return 0;
}

/* The permissions of folders, or all else. */
static void bring_back(struct work *work, bool brings_modes)
{
    for (size_t i = work->journal.len; i > 0; i--) {
        struct journal_item *item = &work->journal.items[i - 1];

        if (item->is_undoing && (item->kind == CHANGE_MODE) == brings_modes)
            swap_back(work, item);
    }
}

int undo_carry_out(struct work *work, struct err *err)
{
    static journal_put *const results[] = {journal_put_results, NULL};
    struct journal *journal = &work->journal;
    struct err ignored;

    if (trees_give_back(work->trees, err))
        return -1;
    trees_lend(work->trees, work->is_quiet ? LEND_STEPS : 0);
    bring_back(work, true);
    work_lend(work);
    bring_back(work, false);
    for (size_t i = 0; i < journal->len; i++)
        if (journal->items[i].state == ITEM_DONE)
            swap_withdraw(work, &journal->items[i]);
    if (work_settle_undo(work, err) || work_write(work, results, err) || work_end(work, true, err))
        return err_wrap(err, "taken back, but not all of it noted; open the layer again");
    if (!work->is_quiet)
        layer_refresh(work->layer, &ignored);
    return 0;
}

static void withdraw(struct work *work)
{
    struct err ignored;

    for (size_t i = 0; i < work->journal.len; i++)
        swap_withdraw(work, &work->journal.items[i]);
    work_cut(work, work->journal.settled, &ignored);
    work_end(work, true, &ignored);
}

static void say_chosen(struct work *work, struct strv *ret, bool is_done)
{
    for (size_t i = 0; i < work->journal.len; i++) {
        const struct journal_item *item = &work->journal.items[i];

        if (item->is_undoing && (!is_done || item->state == ITEM_UNDONE))
            strv_push_take(ret, work_path(work, item->root, item->path));
    }
    strv_sort(ret);
}

int change_undo(struct layer *layer, int accept, const struct accept_request *request,
                struct accept_result *ret, struct err *err)
{
    static journal_put *const both[] = {journal_put_undo, NULL};
    static journal_put *const decision[] = {journal_put_decision, NULL};
    AUTO(work_done) struct work work = {.accepted = -1, .dir = -1};

    if (accept_recover(layer, err) || work_init(&work, layer, ret, err) ||
        open_accept(&work, accept, err))
        return -1;
    if (work.journal.phase != JOURNAL_DONE || work.journal.what != JOURNAL_ACCEPT)
        return err_set(err, ERR_NOT_FOUND, "accept %d cannot be undone", work.number);
    ret->accept = work.number;
    if (!choose(&work, request))
        return request->paths
                   ? 0
                   : err_set(err, ERR_NOT_FOUND, "accept %d is undone already", work.number);
    if (request->flags & ACCEPT_DRY_RUN) {
        say_chosen(&work, &ret->done, false);
        return 0;
    }
    look_at_folders(&work);
    auto_close(&work.dir);
    work.dir = -1;
    if (work_begin(&work, work.number, err))
        return -1;
    if (work_write(&work, both, err) || prepare(&work, err) || work_write(&work, decision, err)) {
        withdraw(&work);
        return -1;
    }
    if (undo_carry_out(&work, err))
        return -1;
    say_chosen(&work, &ret->done, true);
    return 0;
}
