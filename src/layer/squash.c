/* Old steps become one, so that mounts stay short: a step is merged into the one after it.
 *
 * What the newer step has at a name stands. What it has not is moved there by one rename, with all that is below; only
 * where both have the same directory, and the newer one is not to hide the older, the two are gone through. What stays
 * behind goes with the older step. So the work is some renames, however much was written.
 *
 *     steps/N.json of the newer: "merging": M, and the base time of the older      now it is decided
 *     renames                                                                      can be done again
 *     the older goes, then "merging"
 *
 * It is the same when it is done twice: what was moved is not there any more, and what decides is only set when the
 * moves that it decides about are over: a directory of the newer step in the place of something else, or of a directory
 * that hid what was below, hides that, too (opaque), and a directory that hides is never gone through.
 *
 * A command may have left directories in which nobody may write, and moving one needs that (lent.h).
 *
 * When there are STEPS_MAX, half of them become one, in pairs and pairs of pairs: so nothing is moved often. */
#include "layer/inside.h"
#include "layer/lent.h"
#include "layer/overlaid.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- modes --- */

static int chmod_dir(int dir, const char *path, mode_t mode)
{
    AUTO_CLOSE int fd = openat(dir, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char name[64];

    if (fd < 0)
        return -1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return sys_fault() ? -1 : chmod(name, mode);
}

/* One merge of one root. */
struct merge {
    const struct layer *layer;
    size_t root;
    int older, newer; /* steps */
    struct lent lent;
    struct strv todo;   /* directories that both have, relative to theirs; "" is the root */
    struct strv hiding; /* those of the older step that hide what is below */
    struct err *err;
};

static void merge_done(struct merge *merge)
{
    auto_close(&merge->lent.notes);
    strv_done(&merge->todo);
    strv_done(&merge->hiding);
}

/* In the layer's folder; the caller frees. */
static char *path_in(const struct merge *merge, int step, const char *path)
{
    char up[STORE_NAME_MAX];

    store_step_dir(merge->root, step, "up", up);
    return *path ? alloc_strf("%s/%s", up, path) : alloc_str(up);
}

/* We may write in the directory of the newer step until the end of the merge. */
static int relax(struct merge *merge, int dir, const char *name, mode_t mode, const char *path)
{
    AUTO_FREE char *now = path_in(merge, merge->newer, path);

    if ((mode & 0700) == 0700)
        return 0;
    if (lent_note(&merge->lent, mode, now, merge->err))
        return -1;
    return chmod_dir(dir, name, mode | 0700)
               ? err_sys(merge->err, "step %d: %s", merge->newer, path)
               : 0;
}

/* --- directories that hide --- */

static int hide(const struct merge *merge, int dir, const char *name, const char *path)
{
    return overlaid_set_opaque(dir, name) ? err_sys(merge->err, "step %d: %s", merge->newer, path)
                                          : 0;
}

/* --- one directory --- */

struct both {
    struct merge *merge;
    const char *path;
    int from, to;
};

static int move(const struct both *both, const char *name, const struct stat *st, const char *path)
{
    struct merge *merge = both->merge;
    bool is_closed = S_ISDIR(st->st_mode) && !(st->st_mode & 0200);

    if (is_closed) {
        AUTO_FREE char *was = path_in(merge, merge->older, path);

        if (lent_note(&merge->lent, st->st_mode, was, merge->err) ||
            relax(merge, both->from, name, st->st_mode, path))
            return -1;
    }
    if (sys_fault() || renameat2(both->from, name, both->to, name, RENAME_NOREPLACE))
        return err_sys(merge->err, "merging step %d into step %d: %s", merge->older, merge->newer,
                       path);
    return 0;
}

static int merge_name(const struct both *both, const char *name)
{
    struct merge *merge = both->merge;
    AUTO_FREE char *path = *both->path ? path_join(both->path, name) : alloc_str(name);
    struct stat older, newer;

    if (sys_fault() || fstatat(both->from, name, &older, AT_SYMLINK_NOFOLLOW))
        return err_sys(merge->err, "step %d: %s", merge->older, path);
    if (sys_fault() || fstatat(both->to, name, &newer, AT_SYMLINK_NOFOLLOW)) {
        if (errno != ENOENT)
            return err_sys(merge->err, "step %d: %s", merge->newer, path);
        return move(both, name, &older, path);
    }
    if (!S_ISDIR(newer.st_mode))
        return 0;
    if (relax(merge, both->to, name, newer.st_mode, path))
        return -1;
    if (overlaid_is_opaque(both->to, name))
        return 0;
    if (!S_ISDIR(older.st_mode))
        return hide(merge, both->to, name, path);
    if ((older.st_mode & 0700) != 0700 && chmod_dir(both->from, name, 0700))
        return err_sys(merge->err, "step %d: %s", merge->older, path);
    strv_push(&merge->todo, path);
    if (overlaid_is_opaque(both->from, name))
        strv_push(&merge->hiding, path);
    return 0;
}

static int add_name(void *data, const char *name)
{
    strv_push(data, name);
    return 0;
}

static int open_part(const struct merge *merge, int step, const char *path)
{
    const struct sys_open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
        .resolve = SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_XDEV,
    };
    AUTO_FREE char *whole = path_in(merge, step, path);
    int fd = sys_openat2(merge->layer->fd, whole, &how);

    return fd < 0 ? err_sys(merge->err, "step %d: %s", step, path) : fd;
}

static int merge_dir(struct merge *merge, const char *path)
{
    AUTO_CLOSE int from = open_part(merge, merge->older, path);
    AUTO_CLOSE int to = from < 0 ? -1 : open_part(merge, merge->newer, path);
    const struct both both = {.merge = merge, .path = path, .from = from, .to = to};
    AUTO(strv_done) struct strv names = {0};

    if (to < 0 || store_list(from, ".", add_name, &names, merge->err))
        return -1;
    for (size_t i = 0; i < names.len; i++)
        if (merge_name(&both, names.items[i]))
            return -1;
    return 0;
}

/* --- one root --- */

static int relax_root(struct merge *merge)
{
    static const mode_t all = 0700;

    for (int i = 0; i < 2; i++) {
        int step = i ? merge->newer : merge->older;
        AUTO_FREE char *path = path_in(merge, step, "");
        struct stat st;

        if (sys_fault() || fstatat(merge->layer->fd, path, &st, AT_SYMLINK_NOFOLLOW))
            return err_sys(merge->err, "%s", path);
        if ((st.st_mode & all) == all)
            continue;
        if (i && lent_note(&merge->lent, st.st_mode, path, merge->err))
            return -1;
        if (chmod_dir(merge->layer->fd, path, st.st_mode | all))
            return err_sys(merge->err, "%s", path);
    }
    return 0;
}

static int merge_todo(struct merge *merge)
{
    strv_push(&merge->todo, "");
    while (merge->todo.len) {
        AUTO_FREE char *path = merge->todo.items[--merge->todo.len];

        merge->todo.items[merge->todo.len] = NULL;
        if (merge_dir(merge, path))
            return -1;
    }
    for (size_t i = 0; i < merge->hiding.len; i++) {
        const char *path = merge->hiding.items[i];
        AUTO_CLOSE int dir = open_part(merge, merge->newer, path);

        if (dir < 0 || hide(merge, dir, NULL, path))
            return -1;
    }
    return 0;
}

/* What only one of the two steps has wrote nothing in the other. */
static int merge_root(const struct layer *layer, size_t root, int older, int newer, struct err *err)
{
    AUTO(merge_done)
    struct merge merge = {.layer = layer,
                          .root = root,
                          .older = older,
                          .newer = newer,
                          .lent = {layer, -1},
                          .err = err};
    char from[STORE_NAME_MAX], to[STORE_NAME_MAX];

    store_step_dir(root, older, NULL, from);
    store_step_dir(root, newer, NULL, to);
    if (faccessat(layer->fd, from, F_OK, AT_SYMLINK_NOFOLLOW))
        return 0;
    if (faccessat(layer->fd, to, F_OK, AT_SYMLINK_NOFOLLOW)) {
        if (sys_fault() || renameat(layer->fd, from, layer->fd, to))
            return err_sys(err, "moving %s", from);
        return 0;
    }
    if (relax_root(&merge) || merge_todo(&merge)) {
        struct err ignored;

        lent_return(&merge.lent, &ignored);
        return -1;
    }
    return lent_return(&merge.lent, err);
}

/* --- steps --- */

static int merge_steps(struct layer *layer, int older, int newer, struct err *err)
{
    struct step_record *record;

    for (size_t i = 0; i < layer->record.roots_len; i++)
        if (merge_root(layer, i, older, newer, err))
            return -1;
    if (layer_step_find(layer, older) && step_remove(layer, older, err))
        return -1;
    record = layer_step_find(layer, newer);
    record->merging = 0;
    if (layer_save_step(layer, record, err)) {
        record->merging = older;
        return -1;
    }
    layer_steps_changed(layer);
    return 0;
}

/* The base time of the older one counts: with what it may conflict the two together may. */
static int decide(const struct layer *layer, const struct step_record *older,
                  struct step_record *newer, struct err *err)
{
    const struct step_record before = *newer;

    newer->merging = older->step.number;
    newer->step.squashed_from =
        older->step.squashed_from ? older->step.squashed_from : older->step.number;
    newer->step.begun = older->step.begun;
    newer->step.commands += older->step.commands;
    newer->step.is_shared |= older->step.is_shared;
    newer->clock = older->clock;
    if (!str_eq(older->boot, store_boot()))
        memcpy(newer->boot, older->boot, sizeof newer->boot);
    if (layer_save_step(layer, newer, err) == 0)
        return 0;
    *newer = before;
    return -1;
}

/* The step at `index` goes into the one after it. */
static int squash_pair(struct layer *layer, size_t index, struct err *err)
{
    struct step_record *older = &layer->records[index];
    struct step_record *newer = &layer->records[index + 1];

    if (decide(layer, older, newer, err))
        return -1;
    return merge_steps(layer, older->step.number, newer->step.number, err);
}

int squash_steps(struct layer *layer, struct err *err)
{
    size_t many = layer->records_len / 2;

    layer_unprepare(layer);
    /* From the newest pair on, so that the indices of those before stay. */
    while (many > 1) {
        for (size_t i = many / 2; i-- > 0;)
            if (squash_pair(layer, 2 * i + many % 2, err))
                return err_wrap(err, "layer %s", layer_name(layer));
        many -= many / 2;
    }
    return 0;
}

int layer_squash(struct layer *layer, struct err *err)
{
    return layer_is_quiet(layer) && layer->records_len >= LAYER_STEPS_MANY
               ? squash_steps(layer, err)
               : 0;
}

/* A merge that fails once more stays half done: seen from inside the two steps are the same all the time. */
int squash_recover(struct layer *layer, struct err *err)
{
    struct err ignored;

    if (lent_return(&(struct lent){layer, -1}, err))
        return -1;
    for (size_t i = layer->records_len; i-- > 0;) {
        int number = layer->records[i].step.number;
        int older = layer->records[i].merging;

        if (older && merge_steps(layer, older, number, &ignored) == 0 && i > layer->records_len)
            i = layer->records_len;
    }
    return 0;
}
