/* change_drop(): paths taken out of a layer; and change_settle(): those that are as the real ones anyhow. Both take them out of
 * every step, the oldest first, so that what the layer shows stays what it was until the newest goes, and then is
 * what is real.
 *
 * What is dropped is written down before, as an accept is: who opens the layer after a kill drops the rest. Settling needs
 * no journal, for it changes nothing that anybody sees. On a full disk dropping does without: it makes room, and what a kill
 * leaves of it is in the layer as it was. */
#include "layer/accept.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "layer/inside.h"
#include "layer/select.h"
#include "layer/work.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- drop --- */

static void plan_item(struct work *work, const struct chosen *chosen)
{
    struct journal_item *item = journal_add(&work->journal);

    *item = (struct journal_item){
        .kind = chosen->kind == CHANGE_MODE && S_ISDIR(chosen->change->layer.mode) ? CHANGE_MODE
                                                                                   : CHANGE_DELETED,
        .how = HOW_MOVE,
        .is_dir = chosen->kind == CHANGE_MODE && S_ISDIR(chosen->change->layer.mode),
        .root = chosen->change->root,
        .step = chosen->change->step,
        .first_step = chosen->change->first_step,
        .path = alloc_str(chosen->path),
        .layer = chosen->change->layer,
        .real = chosen->change->real,
        .state = ITEM_PLANNED,
    };
}

static int compare_items(const void *one, const void *other)
{
    const struct journal_item *a = one;
    const struct journal_item *b = other;

    if (a->root != b->root)
        return a->root < b->root ? -1 : 1;
    return path_compare(a->path, b->path);
}

/* The permissions of a folder are again those of the real one. */
static int drop_mode(struct work *work, const struct journal_item *item, struct err *err)
{
    for (size_t i = 0; i < trees_steps(work->trees); i++) {
        const int step = trees_step(work->trees, i);
        const char *name;
        int dir;

        if (trees_folder(work->trees, item->root, step, item->path) < 0)
            continue;
        dir = trees_parent(work->trees, item->root, step, item->path, &name);
        if (dir < 0 || sys_fault() || fchmodat(dir, name, item->real.mode & 07777, 0))
            return err_sys(err, "the permissions of %s in the layer", item->path);
    }
    return 0;
}

static int drop_item(struct work *work, const struct journal_item *item, struct err *err)
{
    if (item->kind == CHANGE_MODE)
        return drop_mode(work, item, err);
    if (upper_expose(work->trees, item->root, item->path, err))
        return -1;
    return upper_lose(work->trees, item->root, item->path, 0, INT_MAX, err);
}

/* The permissions of folders, or all else. */
static void drop_items(struct work *work, bool drops_modes)
{
    struct err err;

    for (size_t i = 0; i < work->journal.len; i++) {
        struct journal_item *item = &work->journal.items[i];

        if ((item->kind == CHANGE_MODE) != drops_modes)
            continue;
        item->state = drop_item(work, item, &err) ? ITEM_LEFT : ITEM_DONE;
        if (item->state == ITEM_LEFT)
            work_leave(work, item->root, item->path, LEFT_FAILED, err.msg);
    }
}

int drop_carry_out(struct work *work, struct err *err)
{
    trees_lend(work->trees, LEND_STEPS);
    drop_items(work, false);
    if (trees_give_back(work->trees, err))
        return -1;
    drop_items(work, true);
    return work_end(work, false, err);
}

int change_drop(struct layer *layer, const struct accept_request *request,
                struct accept_result *ret, struct err *err)
{
    static journal_put *const all[] = {journal_put_plan, journal_put_decision, NULL};
    AUTO(work_done) struct work work = {.accepted = -1, .dir = -1};
    AUTO(selection_done) struct selection selection = {0};
    struct journal *journal = &work.journal;
    const bool is_dry = request->flags & ACCEPT_DRY_RUN;
    struct err ignored;

    if (accept_recover(layer, err) || work_init(&work, layer, ret, err) ||
        select_changes(&work, request, SELECT_DROP, &selection, err))
        return -1;
    for (size_t i = 0; i < selection.len; i++)
        plan_item(&work, &selection.items[i]);
    if (!journal->len)
        return 0;
    qsort(journal->items, journal->len, sizeof *journal->items, compare_items);
    journal->what = JOURNAL_DROP;
    journal->when_ns = clock_wall_ns();
    if (!is_dry && (work_begin(&work, 0, err) || work_write(&work, all, err))) {
        if (work.number > 0)
            work_end(&work, false, &ignored);
        if (!store_is_full(err))
            return -1;
    }
    if (!is_dry && drop_carry_out(&work, err))
        return err_wrap(err, "dropped, but not all cleaned up; open the layer again");
    for (size_t i = 0; i < journal->len; i++)
        if (is_dry || journal->items[i].state == ITEM_DONE)
            strv_push_take(&ret->done,
                           work_path(&work, journal->items[i].root, journal->items[i].path));
    strv_sort(&ret->done);
    return 0;
}

/* --- settle --- */

struct settle {
    struct trees *trees;
    struct changes changes;
    size_t root;
    struct strv folders; /* to come, below the root */
    const char *folder;  /* that is looked at */
    struct strv names;
    size_t settled;
};

static void settle_done(struct settle *settle)
{
    trees_close(settle->trees);
    changes_done(&settle->changes);
    strv_done(&settle->folders);
    strv_done(&settle->names);
}

/* Something is listed there or below. */
static bool is_listed(const struct settle *settle, const char *path)
{
    const struct changes *all = &settle->changes;
    const size_t at = changes_place(all, settle->root, path);

    return at < all->len && all->items[at].root == settle->root &&
           path_is_within(all->items[at].path, path);
}

static int push_name(void *data, const char *name)
{
    strv_push(data, name);
    return 0;
}

/* The names that any step has in the folder. */
static int read_names(struct settle *settle, struct err *err)
{
    strv_done(&settle->names);
    settle->names = (struct strv){0};
    for (size_t i = 0; i < trees_steps(settle->trees); i++) {
        const int step = trees_step(settle->trees, i);
        const int dir = trees_folder(settle->trees, settle->root, step, settle->folder);

        if (dir >= 0 && store_list(dir, ".", push_name, &settle->names, err))
            return -1;
    }
    strv_sort(&settle->names);
    return 0;
}

static int settle_folder(struct settle *settle, struct err *err)
{
    if (read_names(settle, err))
        return -1;
    for (size_t i = 0; i < settle->names.len; i++) {
        const char *name = settle->names.items[i];
        AUTO_FREE char *path = *settle->folder ? path_join(settle->folder, name) : alloc_str(name);

        if (i && str_eq(name, settle->names.items[i - 1]))
            continue;
        if (is_listed(settle, path)) {
            strv_push(&settle->folders, path);
            continue;
        }
        if (upper_expose(settle->trees, settle->root, path, err) ||
            upper_lose(settle->trees, settle->root, path, 0, INT_MAX, err))
            return -1;
        settle->settled++;
    }
    return 0;
}

int change_settle(struct layer *layer, size_t *ret_settled, struct err *err)
{
    const struct change_query query = {.flags = CHANGES_WITHOUT_RENAMES |
                                                CHANGES_WITHOUT_CONFLICTS | CHANGES_OF_GIT};
    AUTO(settle_done) struct settle settle = {0};
    AUTO(strv_done) struct strv problems = {0};
    size_t roots;

    *ret_settled = 0;
    if (!layer_is_quiet(layer))
        return err_set(err, ERR_BUSY, "commands of the layer live");
    settle.trees = accept_recover(layer, err) ? NULL : trees_open(layer, err);
    if (!settle.trees || change_list(layer, &query, &settle.changes, &problems, err))
        return -1;
    layer_roots(layer, &roots);
    layer_unprepare(layer);
    trees_lend(settle.trees, LEND_STEPS);
    for (size_t root = 0; !problems.len && root < roots; root++) {
        settle.root = root;
        strv_push(&settle.folders, "");
        while (settle.folders.len) {
            AUTO_FREE char *folder = settle.folders.items[--settle.folders.len];

            settle.folders.items[settle.folders.len] = NULL;
            settle.folder = folder;
            if (settle_folder(&settle, err))
                return -1;
        }
    }
    *ret_settled = settle.settled;
    if (trees_give_back(settle.trees, err))
        return -1;
    return layer_tidy(layer, err) ? -1 : store_empty_trash(layer, err);
}
