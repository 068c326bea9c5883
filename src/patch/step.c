/* See step.h.
 *
 * RENAME_EXCHANGE is what keeps an old file until all of a patch is done, and shows afterwards
 * whether it was the file that had been read. A file system that cannot do it (NFS, 9p) gets three
 * renames by way of a spare name; between the first two nothing is under the name of the file, and
 * whoever recovers puts that right first. */
#include "patch/step.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "patch/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct step *steps_add(struct steps *steps, enum step_kind kind, char *path)
{
    struct step *step;

    steps->items = alloc_grow(steps->items, steps->len, &steps->cap, sizeof *steps->items);
    step = &steps->items[steps->len];
    *step = (struct step){.kind = kind, .path = path};
    step->own = alloc_strf(NAMES_OWN ".%s.%zu", steps->id, steps->len);
    steps->len++;
    return step;
}

void steps_done(struct steps *steps)
{
    for (size_t i = 0; i < steps->len; i++) {
        free(steps->items[i].path);
        free(steps->items[i].own);
        strv_done(&steps->items[i].folders);
        strv_done(&steps->items[i].files);
    }
    free(steps->items);
    *steps = (struct steps){.items = NULL};
}

char *step_own_path(const struct step *step, const char *path)
{
    size_t folder = (size_t)(path_name(step->path) - step->path);

    return alloc_strf("%.*s%s%s", (int)folder, step->path, step->own, path + strlen(step->path));
}

/* --- the two names --- */

struct pair {
    int dir;
    const char *name;
    const char *own;
    char *spare;
};

static void pair_done(struct pair *pair)
{
    auto_close(&pair->dir);
    free(pair->spare);
}

static int pair_open(const struct patch_folder *folder, const struct step *step, struct pair *ret,
                     struct err *err)
{
    *ret = (struct pair){.own = step->own};
    ret->dir = patch_folder_open_parent(folder, step->path, &ret->name, err);
    if (ret->dir < 0)
        return -1;
    ret->spare = alloc_strf("%s~", step->own);
    return 0;
}

static int rename_in(const struct pair *pair, const char *from, const char *to, unsigned flags)
{
    return sys_fault() ? -1 : renameat2(pair->dir, from, pair->dir, to, flags);
}

/* Kinds of errors with which a file system says that it does not know a flag. */
static bool is_unsupported(void)
{
    return errno == EINVAL || errno == ENOSYS || errno == ENOTSUP;
}

static int exchange(const struct pair *pair)
{
    if (rename_in(pair, pair->own, pair->name, RENAME_EXCHANGE) == 0)
        return 0;
    if (!is_unsupported() || rename_in(pair, pair->name, pair->spare, 0))
        return -1;
    if (rename_in(pair, pair->own, pair->name, 0) == 0)
        return rename_in(pair, pair->spare, pair->own, 0);
    (void)rename_in(pair, pair->spare, pair->name, 0);
    return -1;
}

static int look_at(const struct pair *pair, const char *name, bool *ret_is_there, struct stat *ret,
                   struct err *err)
{
    *ret_is_there = !sys_fault() && fstatat(pair->dir, name, ret, AT_SYMLINK_NOFOLLOW) == 0;
    if (!*ret_is_there && errno != ENOENT)
        return err_sys(err, "looking at %s", name);
    return 0;
}

/* rename(2) to a name that has to be free. */
static int rename_to_free(const struct pair *pair, const char *from, const char *to)
{
    struct stat st;

    if (rename_in(pair, from, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (!is_unsupported())
        return -1;
    if (fstatat(pair->dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return -1;
    }
    return rename_in(pair, from, to, 0);
}

/* After a kill between the renames of an exchange without RENAME_EXCHANGE. */
static int settle_spare(const struct pair *pair, struct err *err)
{
    bool has_spare;
    bool has_name;
    bool has_own;
    struct stat st;

    if (look_at(pair, pair->spare, &has_spare, &st, err))
        return -1;
    if (!has_spare)
        return 0;
    if (look_at(pair, pair->name, &has_name, &st, err) ||
        look_at(pair, pair->own, &has_own, &st, err))
        return -1;
    if (!has_name && rename_in(pair, pair->spare, pair->name, 0))
        return err_sys(err, "putting %s back", pair->name);
    if (has_name && !has_own && rename_in(pair, pair->spare, pair->own, 0))
        return err_sys(err, "keeping the old %s", pair->name);
    return 0;
}

/* --- states --- */

/* What was prepared: the same file, untouched. A folder's size and time say nothing. */
static bool is_prepared(const struct step *step, const struct stat *st)
{
    struct stamp stamp = stamp_of(st);

    if (stamp.inode != step->after.inode)
        return false;
    if (step->is_folder)
        return S_ISDIR(st->st_mode);
    return S_ISREG(st->st_mode) && stamp.size == step->after.size &&
           stamp.mtime_ns == step->after.mtime_ns;
}

/* The file that was read. Not by its inode, which overlayfs changes when it moves a file. */
static bool is_old(const struct step *step, const struct stat *st)
{
    struct stamp stamp = stamp_of(st);

    return S_ISREG(st->st_mode) && stamp.size == step->before.size &&
           stamp.mtime_ns == step->before.mtime_ns;
}

struct view {
    bool has_name;
    bool has_own;
    struct stat name;
    struct stat own;
};

static enum step_state state_of_add(const struct step *step, const struct view *view)
{
    if (view->has_name)
        return is_prepared(step, &view->name) ? STEP_DONE : STEP_LOST;
    return view->has_own && is_prepared(step, &view->own) ? STEP_TODO : STEP_LOST;
}

static enum step_state state_of_replace(const struct step *step, const struct view *view)
{
    if (!view->has_name)
        return STEP_LOST;
    if (is_prepared(step, &view->name))
        return !view->has_own || is_old(step, &view->own) ? STEP_DONE : STEP_WRONG;
    return view->has_own && is_prepared(step, &view->own) ? STEP_TODO : STEP_LOST;
}

static enum step_state state_of_remove(const struct step *step, const struct view *view)
{
    if (!view->has_own)
        return view->has_name ? STEP_LOST : STEP_DONE;
    if (is_prepared(step, &view->own))
        return view->has_name ? STEP_TODO : STEP_LOST;
    if (view->has_name)
        return STEP_LOST;
    return is_old(step, &view->own) ? STEP_DONE : STEP_WRONG;
}

int step_look(const struct patch_folder *folder, const struct step *step, enum step_state *ret,
              struct err *err)
{
    AUTO(pair_done) struct pair pair = {.dir = -1};
    struct view view;

    if (pair_open(folder, step, &pair, err))
        return -1;
    if (step->kind == STEP_REPLACE && settle_spare(&pair, err))
        return -1;
    if (look_at(&pair, pair.name, &view.has_name, &view.name, err) ||
        look_at(&pair, pair.own, &view.has_own, &view.own, err))
        return -1;
    *ret = step->kind == STEP_ADD       ? state_of_add(step, &view)
           : step->kind == STEP_REPLACE ? state_of_replace(step, &view)
                                        : state_of_remove(step, &view);
    return 0;
}

/* --- there and back --- */

static int undo_in(const struct pair *pair, const struct step *step)
{
    switch (step->kind) {
    case STEP_ADD:
        return rename_to_free(pair, pair->name, pair->own);
    case STEP_REPLACE:
        return exchange(pair);
    case STEP_REMOVE:
        return rename_to_free(pair, pair->own, pair->name);
    }
    return 0;
}

int step_undo(const struct patch_folder *folder, const struct step *step, struct err *err)
{
    AUTO(pair_done) struct pair pair = {.dir = -1};

    if (pair_open(folder, step, &pair, err))
        return -1;
    if (undo_in(&pair, step))
        return err_sys(err, "putting %s back", step->path);
    return 0;
}

/* What now stands under the name of ours has to be the file that was read. */
static int check_old(const struct pair *pair, const struct step *step, struct err *err)
{
    struct stat st;
    bool is_there;

    if (look_at(pair, pair->own, &is_there, &st, err))
        return -1;
    if (is_there && is_old(step, &st))
        return 0;
    return err_set(err, ERR_INVALID, "%s was changed by somebody else in the meantime; try again",
                   step->path);
}

static int fail_doing(const struct step *step, struct err *err)
{
    if (errno == EEXIST)
        return err_set(err, ERR_INVALID, "%s was made by somebody else in the meantime; try again",
                       step->path);
    return err_sys(err, step->kind == STEP_REMOVE ? "removing %s" : "writing %s", step->path);
}

int step_do(const struct patch_folder *folder, const struct step *step, struct err *err)
{
    AUTO(pair_done) struct pair pair = {.dir = -1};
    int status;

    if (pair_open(folder, step, &pair, err))
        return -1;
    status = step->kind == STEP_ADD       ? rename_to_free(&pair, pair.own, pair.name)
             : step->kind == STEP_REPLACE ? exchange(&pair)
                                          : rename_in(&pair, pair.name, pair.own, 0);
    if (status)
        return fail_doing(step, err);
    if (step->kind == STEP_ADD || check_old(&pair, step, err) == 0)
        return 0;
    (void)undo_in(&pair, step); /* else whoever looks at it finds it WRONG */
    return -1;
}

/* --- cleaning up --- */

static int remove_at(const struct patch_folder *folder, const char *path, int flags,
                     struct err *err)
{
    const char *name;
    AUTO_CLOSE int dir = patch_folder_open_parent(folder, path, &name, err);
    struct stat st;
    int why;

    if (dir < 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    if (!sys_fault() && unlinkat(dir, name, flags) == 0)
        return 0;
    why = errno;
    /* of what is not there, a read-only file system says that it is read-only */
    if (why == ENOENT || (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT))
        return 0;
    errno = why;
    return err_sys(err, "removing %s", path);
}

/* Only what the step made; a folder with anything else in it stays, and is an error. */
static int discard_folder(const struct patch_folder *folder, const struct step *step,
                          struct err *err)
{
    AUTO_FREE char *own = step_own_path(step, step->path);

    for (size_t i = 0; i < step->files.len; i++) {
        AUTO_FREE char *path = step_own_path(step, step->files.items[i]);

        if (remove_at(folder, path, 0, err))
            return -1;
    }
    for (size_t i = step->folders.len; i-- > 0;) {
        AUTO_FREE char *path = step_own_path(step, step->folders.items[i]);

        if (remove_at(folder, path, AT_REMOVEDIR, err))
            return -1;
    }
    return remove_at(folder, own, AT_REMOVEDIR, err);
}

int step_discard(const struct patch_folder *folder, const struct step *step, struct err *err)
{
    AUTO_FREE char *own = step_own_path(step, step->path);

    if (step->is_folder)
        return discard_folder(folder, step, err);
    return remove_at(folder, own, 0, err);
}
