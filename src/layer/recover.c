/* After a kill: what was decided is done, what was not is taken back. And the accepts of a layer: which there are, and that
 * old ones go. */
#include "layer/accept.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "layer/inside.h"
#include "layer/lent.h"
#include "layer/work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* --- recovery --- */

static int take_back(struct work *work, bool keeps, struct err *err)
{
    work_lend(work);
    for (size_t i = 0; i < work->journal.len; i++)
        swap_withdraw(work, &work->journal.items[i]);
    if (keeps && work_cut(work, work->journal.settled, err))
        return -1;
    return work_end(work, keeps, err);
}

static int go_on(struct work *work, struct err *err)
{
    work->is_going_on = true;
    switch (work->journal.phase) {
    case JOURNAL_PLANNED:
        return take_back(work, false, err);
    case JOURNAL_DECIDED:
        return work->journal.what == JOURNAL_DROP ? drop_carry_out(work, err)
                                                  : accept_carry_out(work, err);
    case JOURNAL_UNDO_PLANNED:
        return take_back(work, true, err);
    case JOURNAL_UNDO_DECIDED:
        return undo_carry_out(work, err);
    case JOURNAL_DONE:
        break;
    }
    return work_end(work, true, err);
}

/* What was planned while nothing lived is moved, which has to wait until nothing does. */
static bool may_go_on(const struct work *work)
{
    const struct journal *journal = &work->journal;

    if (work->is_quiet || journal->phase != JOURNAL_DECIDED)
        return true;
    for (size_t i = 0; i < journal->len; i++)
        if (journal->what == JOURNAL_DROP || journal->items[i].how == HOW_MOVE)
            return false;
    return true;
}

int accept_recover(struct layer *layer, struct err *err)
{
    AUTO(accept_result_done) struct accept_result result = {0};
    AUTO(work_done) struct work work = {.accepted = -1, .dir = -1};
    AUTO_CLOSE int accepted = -1;
    int number;

    if (lent_return(&(struct lent){layer, -1}, err))
        return -1;
    accepted = openat(layer_fd(layer), "accepted", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (accepted < 0 && errno == ENOENT)
        return 0;
    if (faccessat(accepted, "under-way", F_OK, AT_SYMLINK_NOFOLLOW) && errno == ENOENT)
        return 0;
    if (work_init(&work, layer, &result, err))
        return err->code == ERR_CONFLICT ? 0 : -1; /* a root has gone: nothing can be done there */
    number = work_under_way(&work, err);
    if (number < 0)
        return -1;
    if (work_begin(&work, number, err) || work_read(&work, err))
        return err_wrap(err, "reading accept %d of the layer, which was cut off", number);
    if (!may_go_on(&work))
        return err_set(err, ERR_BUSY,
                       "accept %d of the layer was cut off, and goes on when nothing runs in it",
                       number);
    if (go_on(&work, err))
        return err_wrap(err, "going on with accept %d of the layer, which was cut off",
                        work.number);
    return 0;
}

/* --- which there are --- */

static size_t count_state(const struct journal *journal, enum item_state state)
{
    size_t count = 0;

    for (size_t i = 0; i < journal->len; i++)
        count += journal->items[i].state == state;
    return count;
}

static int read_journal(int accepted, const char *name, struct journal *ret, struct err *err)
{
    AUTO_FREE char *path = alloc_strf("%s/journal", name);
    AUTO(buf_done) struct buf text = {.max = JOURNAL_MAX};
    AUTO_CLOSE int fd = fd_open_file(accepted, path, O_NOFOLLOW, err);

    if (fd < 0 || buf_read_fd(&text, fd, err))
        return -1;
    return journal_parse(text.data, text.len, ret, err);
}

static int by_newest(const void *one, const void *other)
{
    const struct accept_info *a = one;
    const struct accept_info *b = other;

    return a->number < b->number ? 1 : a->number > b->number ? -1 : 0;
}

static int push_number(void *data, const char *name)
{
    if (store_step_number(name, ""))
        strv_push(data, name);
    return 0;
}

int layer_accepts(const struct layer *layer, struct accept_info **ret, size_t *ret_len,
                  struct err *err)
{
    AUTO_CLOSE int accepted =
        openat(layer_fd(layer), "accepted", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO(strv_done) struct strv names = {0};
    AUTO_FREE struct accept_info *infos = NULL;
    size_t len = 0;

    if (accepted < 0 && errno != ENOENT)
        return err_sys(err, "what was accepted from the layer");
    if (accepted >= 0 && store_list(accepted, ".", push_number, &names, err))
        return -1;
    infos = alloc_zero(names.len + 1, sizeof *infos);
    for (size_t i = 0; i < names.len; i++) {
        AUTO(journal_done) struct journal journal = {0};
        struct err ignored;

        if (read_journal(accepted, names.items[i], &journal, &ignored) ||
            journal.phase < JOURNAL_DONE || journal.what != JOURNAL_ACCEPT)
            continue;
        infos[len++] = (struct accept_info){
            .number = store_step_number(names.items[i], ""),
            .when = change_time_of((int64_t)journal.when_ns),
            .paths = count_state(&journal, ITEM_DONE) + count_state(&journal, ITEM_UNDONE),
            .is_undone = count_state(&journal, ITEM_DONE) == 0,
        };
    }
    if (len)
        qsort(infos, len, sizeof *infos, by_newest);
    *ret = TAKE_PTR(infos);
    *ret_len = len;
    return 0;
}

int layer_forget_accepts(struct layer *layer, size_t keep, struct err *err)
{
    AUTO_FREE struct accept_info *infos = NULL;
    AUTO_CLOSE int accepted = -1;
    size_t len = 0, kept = 0;

    if (layer_accepts(layer, &infos, &len, err))
        return -1;
    if (!len)
        return 0;
    accepted = openat(layer_fd(layer), "accepted", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (accepted < 0)
        return err_sys(err, "what was accepted from the layer");
    for (size_t i = 0; i < len; i++) {
        AUTO_FREE char *name = alloc_strf("%04d", infos[i].number);

        if (!infos[i].is_undone && kept++ < keep)
            continue;
        if (store_discard(layer, accepted, name, err))
            return -1;
    }
    return store_empty_trash(layer, err);
}
