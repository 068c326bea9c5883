/* See prepare.h. Files that go into folders which do not exist yet are prepared inside a new
 * folder, the topmost missing one, which then appears at once with all that is in it.
 *
 * A file that replaces another gets its mode, owner, group, access control list and user
 * attributes. What cannot be kept is refused rather than lost: a patch changes lines. New files get
 * the mode that open(2) gives them. */
#include "patch/prepare.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/sys.h"
#include "patch/names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

/* --- planning --- */

static int compare_paths(const void *a, const void *b)
{
    return path_compare((*(struct change *const *)a)->path, (*(struct change *const *)b)->path);
}

static int folder_exists(const struct patch_folder *folder, const char *path, bool *ret,
                         struct err *err)
{
    const char *name;
    AUTO_CLOSE int dir = patch_folder_open_parent(folder, path, &name, err);
    struct stat st;

    if (dir < 0)
        return -1;
    *ret = !sys_fault() && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!*ret && errno != ENOENT)
        return err_sys(err, "looking at %s", path);
    return 0;
}

/* The topmost folder of the path that does not exist; NULL in `*ret` when none is missing. */
static int find_missing(const struct patch_folder *folder, const char *path, char **ret,
                        struct err *err)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        AUTO_FREE char *part = alloc_strn(path, (size_t)(slash - path));
        bool exists;

        if (folder_exists(folder, part, &exists, err))
            return -1;
        if (!exists) {
            *ret = TAKE_PTR(part);
            return 0;
        }
    }
    *ret = NULL;
    return 0;
}

/* Notes the file, and each folder between it and the step's own, once: paths come in order. */
static void add_inside(struct step *step, const char *path)
{
    for (const char *slash = strchr(path + strlen(step->path) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        AUTO_FREE char *part = alloc_strn(path, (size_t)(slash - path));

        if (!step->folders.len || !names_within(step->folders.items[step->folders.len - 1], part))
            strv_push(&step->folders, part);
    }
    strv_push(&step->files, path);
}

static int plan_new_file(const struct patch_folder *folder, const char *path, struct steps *steps,
                         struct err *err)
{
    struct step *last = steps->len ? &steps->items[steps->len - 1] : NULL;
    char *missing = NULL;

    if (!last || !last->is_folder || !names_within(path, last->path)) {
        if (find_missing(folder, path, &missing, err))
            return -1;
        last = steps_add(steps, STEP_ADD, missing ? missing : alloc_str(path));
        last->is_folder = missing != NULL;
    }
    if (last->is_folder)
        add_inside(last, path);
    return 0;
}

int prepare_plan(const struct patch_folder *folder, const struct changes *changes,
                 struct steps *steps, struct err *err)
{
    AUTO_FREE struct change **sorted = alloc_zero(changes->len + 1, sizeof(struct change *));

    memcpy(sorted, changes->items, changes->len * sizeof(struct change *));
    qsort(sorted, changes->len, sizeof(struct change *), compare_paths);
    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = sorted[i];
        bool is_new = !change->before.text;

        if (!change_is_real(change))
            continue;
        if (is_new && plan_new_file(folder, change->path, steps, err))
            return -1;
        if (!is_new)
            steps_add(steps, change->after.text ? STEP_REPLACE : STEP_REMOVE,
                      alloc_str(change->path))
                ->before = change->before.stamp;
    }
    return 0;
}

/* --- permissions --- */

static bool is_kept_attribute(const char *name)
{
    return str_starts(name, "user.") || str_eq(name, "system.posix_acl_access");
}

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
        if (is_kept_attribute(name) && copy_attribute(from, to, name, err))
            return -1;
    return 0;
}

static int copy_owner(const struct stat *old, int to, struct err *err)
{
    struct stat new;

    if (sys_fault() || fstat(to, &new))
        return err_sys(err, "looking at a new file");
    if (old->st_uid == new.st_uid && old->st_gid == new.st_gid)
        return 0;
    if (sys_fault() || fchown(to, old->st_uid, old->st_gid))
        return err_sys(err, "it belongs to another user or group, which cannot be kept");
    return 0;
}

/* From the file at `path`, which has to be as it was read. */
static int copy_permissions(const struct patch_folder *folder, const struct change *old, int to,
                            struct err *err)
{
    struct stat st;
    AUTO_CLOSE int from = patch_folder_open_file(folder, old->path, &st, err);
    struct stamp stamp;

    if (from < 0)
        return -1;
    stamp = stamp_of(&st);
    if (stamp.size != old->before.stamp.size || stamp.mtime_ns != old->before.stamp.mtime_ns)
        return err_set(err, ERR_INVALID,
                       "%s was changed by somebody else in the meantime; try again", old->path);
    if (copy_owner(&st, to, err) || copy_attributes(from, to, err))
        return err_wrap(err, "%s", old->path);
    if (sys_fault() || fchmod(to, st.st_mode & 01777))
        return err_sys(err, "setting the permissions of %s", old->path);
    return 0;
}

/* --- making --- */

/* At the path `own`, for what will be `path`. */
static int make_file(const struct patch_folder *folder, const char *own, const char *path,
                     mode_t mode, struct err *err)
{
    const char *name;
    AUTO_CLOSE int dir = patch_folder_open_parent(folder, own, &name, err);
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

static int make_folder(const struct patch_folder *folder, const char *own, const char *path,
                       struct err *err)
{
    const char *name;
    AUTO_CLOSE int dir = patch_folder_open_parent(folder, own, &name, err);

    if (dir < 0)
        return -1;
    if (sys_fault() || mkdirat(dir, name, 0777))
        return err_sys(err, "making the folder %s", path);
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
static int make_content(const struct patch_folder *folder, const struct changes *changes,
                        const struct change *change, const char *own, struct stamp *ret,
                        struct err *err)
{
    const struct change *from = permissions_from(changes, change);
    AUTO_CLOSE int fd = make_file(folder, own, change->path, from ? 0600 : 0666, err);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fd_write_all(fd, change->after.text, change->after.len, err))
        return err_wrap(err, "%s", change->path);
    if (from && copy_permissions(folder, from, fd, err))
        return -1;
    if (sys_fault() || fstat(fd, &st))
        return err_sys(err, "looking at the new %s", change->path);
    *ret = stamp_of(&st);
    return 0;
}

static int stamp_folder(const struct patch_folder *folder, const char *path, struct stamp *ret,
                        struct err *err)
{
    const char *name;
    AUTO_CLOSE int dir = patch_folder_open_parent(folder, path, &name, err);
    struct stat st;

    if (dir < 0)
        return -1;
    if (sys_fault() || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return err_sys(err, "looking at a new folder");
    *ret = (struct stamp){.inode = st.st_ino};
    return 0;
}

static int make_tree(const struct patch_folder *folder, const struct changes *changes,
                     struct step *step, struct err *err)
{
    AUTO_FREE char *own = step_own_path(step, step->path);
    struct stamp ignored;

    if (make_folder(folder, own, step->path, err))
        return -1;
    for (size_t i = 0; i < step->folders.len; i++) {
        AUTO_FREE char *path = step_own_path(step, step->folders.items[i]);

        if (make_folder(folder, path, step->folders.items[i], err))
            return -1;
    }
    for (size_t i = 0; i < step->files.len; i++) {
        const struct change *change = changes_find(changes, step->files.items[i]);
        AUTO_FREE char *path = step_own_path(step, change->path);

        if (make_content(folder, changes, change, path, &ignored, err))
            return -1;
    }
    return stamp_folder(folder, own, &step->after, err);
}

int prepare_step(const struct patch_folder *folder, const struct changes *changes,
                 struct step *step, struct err *err)
{
    AUTO_FREE char *own = NULL;

    if (step->is_folder)
        return make_tree(folder, changes, step, err);
    own = step_own_path(step, step->path);
    return make_content(folder, changes, changes_find(changes, step->path), own, &step->after, err);
}
