/* change_accept(): from what a layer changed, and what of it was asked for, to a journal; then one path after the other.
 *
 *     choose       those that were asked for, with what has to go along: the folders that a new file is in, and of a
 *                  rename both names; what must not be taken, or not unasked, is left
 *     plan         in the order in which it can be done: deletions, then folders from above, then contents,
 *                  at last permissions of folders; written down
 *     prepare      copies, where contents cannot be moved. What fails here fails with nothing changed: a full disk
 *     decide       written down: from here on it is done, by us or by who opens the layer next
 *     do           swap.c
 *     say          results, and the stamps that were left
 *
 * A path that cannot be done stays in the layer, with the reason; the others are taken nevertheless. */
#include "layer/accept.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "layer/select.h"
#include "layer/work.h"

#include <stdlib.h>

/* --- the plan --- */

/* Whoever has a file of the step open would go on to write in it where it is the real one. */
static bool is_shared(const struct work *work, int step)
{
    size_t len;
    const struct layer_step *steps = layer_steps(work->layer, &len);

    while (len && steps[len - 1].number != step)
        len--;
    return len && steps[len - 1].is_shared;
}

static enum item_how how_of(const struct work *work, const struct change *change)
{
    size_t len;

    if (!layer_roots(work->layer, &len)[change->root].is_near)
        return HOW_FAR;
    return work->is_quiet && !work->text && !is_shared(work, change->step) ? HOW_MOVE : HOW_STAGE;
}

static void plan_item(struct work *work, const struct chosen *chosen)
{
    const struct change *change = chosen->change;
    struct journal_item *item = journal_add(&work->journal);
    const uint32_t mode = chosen->kind == CHANGE_DELETED ? change->real.mode : change->layer.mode;

    *item = (struct journal_item){
        .kind = chosen->kind,
        .how = how_of(work, change),
        .is_dir = S_ISDIR(mode),
        .is_forced = change->marks & MARK_CONFLICT,
        .is_copy = change->is_copy,
        .stays = !work->is_quiet || work->text,
        .root = change->root,
        .step = change->step,
        .first_step = change->first_step,
        .path = alloc_str(chosen->path),
        .state = ITEM_PLANNED,
    };
    if (chosen->kind != CHANGE_DELETED) {
        item->layer = change->layer;
        item->layer_mtime_ns = change->layer_mtime_ns;
    }
    if (chosen->kind != CHANGE_ADDED) {
        item->real = change->real;
        item->real_mtime_ns = change->real_mtime_ns;
    }
    if (!item->is_dir && item->kind != CHANGE_ADDED && item->kind != CHANGE_DELETED)
        item->kind =
            CHANGE_MODIFIED; /* of another type, or with other permissions, just the same */
}

enum rank { RANK_GOES, RANK_FOLDER_GOES, RANK_COMES, RANK_MODE };

static enum rank rank_of(const struct journal_item *item)
{
    if (item->kind == CHANGE_DELETED)
        return item->is_dir ? RANK_FOLDER_GOES : RANK_GOES;
    return item->kind == CHANGE_MODE ? RANK_MODE : RANK_COMES;
}

static int compare_items(const void *one, const void *other)
{
    const struct journal_item *a = one;
    const struct journal_item *b = other;
    const enum rank rank = rank_of(a);
    int order;

    if (rank != rank_of(b))
        return rank < rank_of(b) ? -1 : 1;
    if (a->root != b->root)
        return a->root < b->root ? -1 : 1;
    order = path_compare(a->path, b->path);
    return rank == RANK_FOLDER_GOES || rank == RANK_MODE ? -order : order;
}

static void plan(struct work *work, const struct selection *selection)
{
    struct journal *journal = &work->journal;

    journal->what = JOURNAL_ACCEPT;
    journal->when_ns = clock_wall_ns();
    for (size_t i = 0; i < selection->len; i++)
        plan_item(work, &selection->items[i]);
    if (journal->len)
        qsort(journal->items, journal->len, sizeof *journal->items, compare_items);
}

/* --- doing it --- */

static void withdraw(struct work *work)
{
    struct err ignored;

    for (size_t i = 0; i < work->journal.len; i++)
        swap_withdraw(work, &work->journal.items[i]);
    work_end(work, false, &ignored);
}

/* What conflicts now is left; any other failure is everybody's: the disk is full. */
static int prepare(struct work *work, struct err *err)
{
    for (size_t i = 0; i < work->journal.len; i++) {
        struct journal_item *item = &work->journal.items[i];

        if (swap_prepare(work, item, err) == 0)
            continue;
        if (err->code != ERR_CONFLICT) {
            AUTO_FREE char *path = work_path(work, item->root, item->path);

            return err_wrap(err, "%s: nothing was accepted", path);
        }
        item->state = ITEM_LEFT;
        work_leave(work, item->root, item->path, LEFT_CONFLICT, err->msg);
    }
    return 0;
}

static bool needs_copies(const struct work *work)
{
    for (size_t i = 0; i < work->journal.len; i++)
        if (work->journal.items[i].how != HOW_MOVE && !work->journal.items[i].is_dir)
            return true;
    return false;
}

static int decide(struct work *work, struct err *err)
{
    static journal_put *const all[] = {journal_put_plan, journal_put_decision, NULL};
    static journal_put *const first[] = {journal_put_plan, NULL};
    static journal_put *const second[] = {journal_put_decision, NULL};

    if (!needs_copies(work))
        return work_write(work, all, err);
    work_lend(work);
    if (work_write(work, first, err) || prepare(work, err))
        return -1;
    return work_write(work, second, err);
}

static size_t count_done(const struct work *work)
{
    size_t count = 0;

    for (size_t i = 0; i < work->journal.len; i++)
        count += work->journal.items[i].state == ITEM_DONE;
    return count;
}

/* Who had the old file open may have written to it after it had left its place: then it comes back. */
static void give_back_late(struct work *work)
{
    for (size_t i = 0; i < work->journal.len; i++) {
        struct journal_item *item = &work->journal.items[i];

        if (item->state != ITEM_DONE || !swap_was_written_late(work, item))
            continue;
        work_lend(work);
        swap_back(work, item);
        work_leave(work, item->root, item->path, LEFT_CONFLICT,
                   "somebody was writing to it; look at it again");
    }
}

/* The permissions of folders, or all else. */
static void take(struct work *work, bool takes_modes)
{
    for (size_t i = 0; i < work->journal.len; i++) {
        struct journal_item *item = &work->journal.items[i];

        if ((rank_of(item) == RANK_MODE) != takes_modes)
            continue;
        if (item->state == ITEM_PLANNED && !swap_was_prepared(item))
            item->state = ITEM_LEFT;
        if (item->state == ITEM_PLANNED)
            swap_take(work, item);
    }
}

int accept_carry_out(struct work *work, struct err *err)
{
    static journal_put *const results[] = {journal_put_results, NULL};
    struct journal *journal = &work->journal;
    struct err ignored;

    work_lend(work);
    take(work, false);
    for (size_t i = 0; i < journal->len; i++)
        if (journal->items[i].state == ITEM_LEFT)
            swap_withdraw(work, &journal->items[i]);
    if (trees_give_back(work->trees, err))
        return err_wrap(err, "accepted, but not all of it noted; open the layer again");
    take(work, true);
    if (work_settle_accept(work, err))
        return err_wrap(err, "accepted, but not all of it noted; open the layer again");
    give_back_late(work);
    if (work_write(work, results, err) || work_end(work, count_done(work) > 0, err))
        return err_wrap(err, "accepted, but not all of it noted; open the layer again");
    if (!work->is_quiet)
        layer_refresh(work->layer, &ignored);
    return 0;
}

static void fill_result(const struct work *work, struct accept_result *ret)
{
    for (size_t i = 0; i < work->journal.len; i++) {
        const struct journal_item *item = &work->journal.items[i];

        if (item->state == ITEM_DONE)
            strv_push_take(&ret->done, work_path(work, item->root, item->path));
    }
    ret->accept = ret->done.len ? work->number : 0;
    strv_sort(&ret->done);
}

static int say_what_would_be(const struct work *work, const struct selection *selection,
                             struct accept_result *ret)
{
    for (size_t i = 0; i < selection->len; i++)
        strv_push_take(&ret->done,
                       work_path(work, selection->items[i].change->root, selection->items[i].path));
    strv_sort(&ret->done);
    return 0;
}

static int check_text(const struct accept_request *request, struct err *err)
{
    if (!request->text)
        return 0;
    if (!request->paths || !request->paths[0] || request->paths[1] ||
        !str_eq(request->paths[0], request->text->path))
        return err_set(err, ERR_INVALID, "a part of a file is accepted with its path alone");
    return 0;
}

int change_accept(struct layer *layer, const struct accept_request *request,
                  struct accept_result *ret, struct err *err)
{
    AUTO(work_done) struct work work = {.accepted = -1, .dir = -1};
    AUTO(selection_done) struct selection selection = {0};

    if (check_text(request, err) || accept_recover(layer, err) || work_init(&work, layer, ret, err))
        return -1;
    work.text = request->text;
    if (select_changes(&work, request, SELECT_ACCEPT, &selection, err))
        return -1;
    if (request->flags & ACCEPT_DRY_RUN)
        return say_what_would_be(&work, &selection, ret);
    if (!selection.len)
        return 0;
    plan(&work, &selection);
    if (work.text && (work.journal.len != 1 || work.journal.items[0].is_dir ||
                      work.journal.items[0].kind == CHANGE_DELETED))
        return err_set(err, ERR_INVALID, "only of a file that is changed a part can be accepted");
    work_note_folders(&work);
    if (work_begin(&work, 0, err) || swap_make_folders(&work, err) || decide(&work, err)) {
        if (work.number)
            withdraw(&work);
        return -1;
    }
    if (accept_carry_out(&work, err))
        return -1;
    fill_result(&work, ret);
    return 0;
}
