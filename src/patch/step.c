/* See step.h.
 *
 * RENAME_EXCHANGE is what keeps an old file until all of a patch is done, and shows afterwards
 * whether it was the file that had been read. A file system that cannot do it (NFS, 9p) gets three
 * renames by way of a spare name; between the first two nothing is under the name of the file, and
 * a recovery puts that right first.
 *
 * Files that go into directories which do not exist yet are prepared inside a new directory, the
 * topmost missing one, which then appears at once with all that is in it.
 *
 * A file that replaces another gets its mode, owner, group, access control list and user
 * attributes. What cannot be kept is refused rather than lost: a patch changes lines. New files get
 * the mode that open(2) gives them. */
#include "patch/step.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/sys.h"
#include "patch/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
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
        strv_done(&steps->items[i].dirs);
        strv_done(&steps->items[i].files);
    }
    free(steps->items);
    *steps = (struct steps){.items = NULL};
}

char *step_own_path(const struct step *step, const char *path)
{
    size_t root = (size_t)(path_name(step->path) - step->path);

    return alloc_strf("%.*s%s%s", (int)root, step->path, step->own, path + strlen(step->path));
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

static int pair_open(const struct patch_dir *root, const struct step *step, struct pair *ret,
                     struct err *err)
{
    *ret = (struct pair){.own = step->own};
    ret->dir = patch_dir_open_parent(root, step->path, &ret->name, err);
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

static int stat_name(const struct pair *pair, const char *name, bool *ret_is_there,
                     struct stat *ret, struct err *err)
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
static int restore_spare(const struct pair *pair, struct err *err)
{
    bool has_spare;
    bool has_name;
    bool has_own;
    struct stat st;

    if (stat_name(pair, pair->spare, &has_spare, &st, err))
        return -1;
    if (!has_spare)
        return 0;
    if (stat_name(pair, pair->name, &has_name, &st, err) ||
        stat_name(pair, pair->own, &has_own, &st, err))
        return -1;
    if (!has_name && rename_in(pair, pair->spare, pair->name, 0))
        return err_sys(err, "putting %s back", pair->name);
    if (has_name && !has_own && rename_in(pair, pair->spare, pair->own, 0))
        return err_sys(err, "keeping the old %s", pair->name);
    return 0;
}

/* --- states --- */

/* What was prepared: the same file, untouched. A directory's size and time say nothing. */
static bool is_prepared(const struct step *step, const struct stat *st)
{
    struct stamp stamp = stamp_of(st);

    if (stamp.inode != step->after.inode)
        return false;
    if (step->is_dir)
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

static enum step_state state_of(const struct step *step, const struct view *view)
{
    bool own_is_prepared = view->has_own && is_prepared(step, &view->own);
    bool name_is_prepared = view->has_name && is_prepared(step, &view->name);

    switch (step->kind) {
    case STEP_ADD:
        if (view->has_name)
            return name_is_prepared ? STEP_DONE : STEP_LOST;
        return own_is_prepared ? STEP_TODO : STEP_LOST;
    case STEP_REPLACE:
        if (name_is_prepared)
            return !view->has_own || is_old(step, &view->own) ? STEP_DONE : STEP_WRONG;
        return view->has_name && own_is_prepared ? STEP_TODO : STEP_LOST;
    case STEP_REMOVE:
        if (view->has_name)
            return own_is_prepared ? STEP_TODO : STEP_LOST;
        if (own_is_prepared)
            return STEP_LOST;
        return !view->has_own || is_old(step, &view->own) ? STEP_DONE : STEP_WRONG;
    }
    return STEP_LOST;
}

int step_check(const struct patch_dir *root, const struct step *step, enum step_state *ret,
               struct err *err)
{
    AUTO(pair_done) struct pair pair = {.dir = -1};
    struct view view;

    if (pair_open(root, step, &pair, err))
        return -1;
    if (step->kind == STEP_REPLACE && restore_spare(&pair, err))
        return -1;
    if (stat_name(&pair, pair.name, &view.has_name, &view.name, err) ||
        stat_name(&pair, pair.own, &view.has_own, &view.own, err))
        return -1;
    *ret = state_of(step, &view);
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

int step_undo(const struct patch_dir *root, const struct step *step, struct err *err)
{
    AUTO(pair_done) struct pair pair = {.dir = -1};

    if (pair_open(root, step, &pair, err))
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

    if (stat_name(pair, pair->own, &is_there, &st, err))
        return -1;
    if (is_there && is_old(step, &st))
        return 0;
    return err_set(err, ERR_INVALID, "%s was changed by another process in the meantime; try again",
                   step->path);
}

int step_do(const struct patch_dir *root, const struct step *step, struct err *err)
{
    AUTO(pair_done) struct pair pair = {.dir = -1};
    int status;

    if (pair_open(root, step, &pair, err))
        return -1;
    status = step->kind == STEP_ADD       ? rename_to_free(&pair, pair.own, pair.name)
             : step->kind == STEP_REPLACE ? exchange(&pair)
                                          : rename_in(&pair, pair.name, pair.own, 0);
    if (status && errno == EEXIST)
        return err_set(err, ERR_INVALID,
                       "%s was made by another process in the meantime; try again", step->path);
    if (status)
        return err_sys(err, step->kind == STEP_REMOVE ? "removing %s" : "writing %s", step->path);
    if (step->kind == STEP_ADD || check_old(&pair, step, err) == 0)
        return 0;
    (void)undo_in(&pair, step); /* if that fails, the next step_check() finds it WRONG */
    return -1;
}

/* --- cleaning up --- */

static int remove_at(const struct patch_dir *root, const char *path, int flags, struct err *err)
{
    const char *name;
    AUTO_CLOSE int dir = patch_dir_open_parent(root, path, &name, err);
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

/* Only what the step made; a directory with anything else in it stays, and is an error. */
static int discard_dir(const struct patch_dir *root, const struct step *step, struct err *err)
{
    AUTO_FREE char *own = step_own_path(step, step->path);

    for (size_t i = 0; i < step->files.len; i++) {
        AUTO_FREE char *path = step_own_path(step, step->files.items[i]);

        if (remove_at(root, path, 0, err))
            return -1;
    }
    for (size_t i = step->dirs.len; i-- > 0;) {
        AUTO_FREE char *path = step_own_path(step, step->dirs.items[i]);

        if (remove_at(root, path, AT_REMOVEDIR, err))
            return -1;
    }
    return remove_at(root, own, AT_REMOVEDIR, err);
}

int step_discard(const struct patch_dir *root, const struct step *step, struct err *err)
{
    AUTO_FREE char *own = step_own_path(step, step->path);

    if (step->is_dir)
        return discard_dir(root, step, err);
    return remove_at(root, own, 0, err);
}

/* --- planning --- */

static int compare_paths(const void *a, const void *b)
{
    return path_compare((*(struct change *const *)a)->path, (*(struct change *const *)b)->path);
}

static int dir_exists(const struct patch_dir *root, const char *path, bool *ret, struct err *err)
{
    const char *name;
    AUTO_CLOSE int dir = patch_dir_open_parent(root, path, &name, err);
    struct stat st;

    if (dir < 0)
        return -1;
    *ret = !sys_fault() && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!*ret && errno != ENOENT)
        return err_sys(err, "looking at %s", path);
    return 0;
}

/* The topmost directory of the path that does not exist; NULL in `*ret` when none is missing. */
static int find_missing(const struct patch_dir *root, const char *path, char **ret, struct err *err)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        AUTO_FREE char *part = alloc_strn(path, (size_t)(slash - path));
        bool exists;

        if (dir_exists(root, part, &exists, err))
            return -1;
        if (!exists) {
            *ret = TAKE_PTR(part);
            return 0;
        }
    }
    *ret = NULL;
    return 0;
}

/* Notes the file, and each directory between it and the step's own, once: paths come in order. */
static void add_inside(struct step *step, const char *path)
{
    for (const char *slash = strchr(path + strlen(step->path) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        AUTO_FREE char *part = alloc_strn(path, (size_t)(slash - path));

        if (!step->dirs.len || !names_within(step->dirs.items[step->dirs.len - 1], part))
            strv_push(&step->dirs, part);
    }
    strv_push(&step->files, path);
}

static int plan_new_file(const struct patch_dir *root, const char *path, struct steps *steps,
                         struct err *err)
{
    struct step *last = steps->len ? &steps->items[steps->len - 1] : NULL;
    char *missing = NULL;

    if (!last || !last->is_dir || !names_within(path, last->path)) {
        if (find_missing(root, path, &missing, err))
            return -1;
        last = steps_add(steps, STEP_ADD, missing ? missing : alloc_str(path));
        last->is_dir = missing != NULL;
    }
    if (last->is_dir)
        add_inside(last, path);
    return 0;
}

int steps_plan(const struct patch_dir *root, const struct changes *changes, struct steps *steps,
               struct err *err)
{
    AUTO_FREE struct change **sorted = alloc_zero(changes->len + 1, sizeof(struct change *));

    memcpy(sorted, changes->items, changes->len * sizeof(struct change *));
    qsort(sorted, changes->len, sizeof(struct change *), compare_paths);
    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = sorted[i];
        bool is_new = !change->before.text;

        if (!change_is_real(change))
            continue;
        if (is_new && plan_new_file(root, change->path, steps, err))
            return -1;
        if (!is_new)
            steps_add(steps, change->after.text ? STEP_REPLACE : STEP_REMOVE,
                      alloc_str(change->path))
                ->before = change->before.stamp;
    }
    return 0;
}

/* --- permissions --- */

static int copy_attribute(int from, int to, const char *name, struct err *err)
{
    AUTO_FREE char *value = alloc_zero(XATTR_SIZE_MAX, 1);
    ssize_t len = sys_fault() ? -1 : fgetxattr(from, name, value, XATTR_SIZE_MAX);

    if (len < 0 || sys_fault() || fsetxattr(to, name, value, (size_t)len, 0))
        return err_sys(err, "keeping the attribute %s", name);
    return 0;
}

static int copy_attributes(int from, int to, struct err *err)
{
    AUTO_FREE char *names = NULL;
    ssize_t len = sys_fault() ? -1 : flistxattr(from, NULL, 0);

    if (len == 0 || (len < 0 && errno == ENOTSUP))
        return 0;
    if (len > 0) {
        names = alloc_zero((size_t)len + 1, 1);
        len = flistxattr(from, names, (size_t)len);
    }
    if (len < 0)
        return err_sys(err, "reading its attributes");
    for (const char *name = names; name < names + len; name += strlen(name) + 1)
        if ((str_starts(name, "user.") || str_eq(name, "system.posix_acl_access")) &&
            copy_attribute(from, to, name, err))
            return -1;
    return 0;
}

/* From the file at `path`, which has to be as it was read. */
static int copy_permissions(const struct patch_dir *root, const struct change *old, int to,
                            struct err *err)
{
    struct stat st;
    struct stat new;
    AUTO_CLOSE int from = patch_dir_open_file(root, old->path, &st, err);
    struct stamp stamp;

    if (from < 0)
        return -1;
    stamp = stamp_of(&st);
    if (stamp.size != old->before.stamp.size || stamp.mtime_ns != old->before.stamp.mtime_ns)
        return err_set(err, ERR_INVALID,
                       "%s was changed by another process in the meantime; try again", old->path);
    if (sys_fault() || fstat(to, &new))
        return err_sys(err, "looking at the new %s", old->path);
    if ((st.st_uid != new.st_uid || st.st_gid != new.st_gid) &&
        (sys_fault() || fchown(to, st.st_uid, st.st_gid)))
        return err_sys(err, "%s: it belongs to another user or group, which cannot be kept",
                       old->path);
    if (copy_attributes(from, to, err))
        return err_wrap(err, "%s", old->path);
    if (sys_fault() || fchmod(to, st.st_mode & 01777))
        return err_sys(err, "setting the permissions of %s", old->path);
    return 0;
}

/* --- making --- */

/* At the path `own`, for what will be `path`. */
static int make_file(const struct patch_dir *root, const char *own, const char *path, mode_t mode,
                     struct err *err)
{
    const char *name;
    AUTO_CLOSE int dir = patch_dir_open_parent(root, own, &name, err);
    int fd;

    if (dir < 0)
        return -1;
    fd = sys_fault()
             ? -1
             : openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return err_sys(err, "writing %s", path);
    return fd;
}

static int make_dir(const struct patch_dir *root, const char *own, const char *path,
                    struct err *err)
{
    const char *name;
    AUTO_CLOSE int dir = patch_dir_open_parent(root, own, &name, err);

    if (dir < 0)
        return -1;
    if (sys_fault() || mkdirat(dir, name, 0777))
        return err_sys(err, "making the directory %s", path);
    return 0;
}

/* The file whose permissions the new one gets; NULL: none. */
static const struct change *permissions_from(const struct changes *changes,
                                             const struct change *change)
{
    if (change->moved_from)
        return changes_find(changes, change->moved_from);
    return change->before.text && change->after.text ? change : NULL;
}

/* What is at the path of `change` afterwards, or in place of nothing an empty file, at `own`. */
static int make_content(const struct patch_dir *root, const struct changes *changes,
                        const struct change *change, const char *own, struct stamp *ret,
                        struct err *err)
{
    const struct change *from = permissions_from(changes, change);
    AUTO_CLOSE int fd = make_file(root, own, change->path, from ? 0600 : 0666, err);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fd_write_all(fd, change->after.text, change->after.len, err))
        return err_wrap(err, "%s", change->path);
    if (from && copy_permissions(root, from, fd, err))
        return -1;
    if (sys_fault() || fstat(fd, &st))
        return err_sys(err, "looking at the new %s", change->path);
    *ret = stamp_of(&st);
    return 0;
}

static int stamp_dir(const struct patch_dir *root, const char *path, struct stamp *ret,
                     struct err *err)
{
    const char *name;
    AUTO_CLOSE int dir = patch_dir_open_parent(root, path, &name, err);
    struct stat st;

    if (dir < 0)
        return -1;
    if (sys_fault() || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return err_sys(err, "looking at a new directory");
    *ret = (struct stamp){.inode = st.st_ino};
    return 0;
}

static int make_tree(const struct patch_dir *root, const struct changes *changes, struct step *step,
                     struct err *err)
{
    AUTO_FREE char *own = step_own_path(step, step->path);
    struct stamp ignored;

    if (make_dir(root, own, step->path, err))
        return -1;
    for (size_t i = 0; i < step->dirs.len; i++) {
        AUTO_FREE char *path = step_own_path(step, step->dirs.items[i]);

        if (make_dir(root, path, step->dirs.items[i], err))
            return -1;
    }
    for (size_t i = 0; i < step->files.len; i++) {
        const struct change *change = changes_find(changes, step->files.items[i]);
        AUTO_FREE char *path = step_own_path(step, change->path);

        if (make_content(root, changes, change, path, &ignored, err))
            return -1;
    }
    return stamp_dir(root, own, &step->after, err);
}

int step_prepare(const struct patch_dir *root, const struct changes *changes, struct step *step,
                 struct err *err)
{
    AUTO_FREE char *own = NULL;

    if (step->is_dir)
        return make_tree(root, changes, step, err);
    own = step_own_path(step, step->path);
    return make_content(root, changes, changes_find(changes, step->path), own, &step->after, err);
}
