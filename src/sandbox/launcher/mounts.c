/* Building the command's view of the file system.
 *
 * Two ways, decided by the plan. In place: the host's tree stays the root, everything in it is
 * made read-only by one recursive mount_setattr(2), and copies of the writable folders' mounts,
 * taken before, are put over them. From an empty root: a tmpfs gets mount points for what may be
 * read, and becomes the root.
 *
 * Every path is resolved by openat2(2) below a descriptor of the tree and through no symlink at
 * all: the plan holds canonical paths, so a symlink on the way means that somebody swapped
 * something after the plan was made, and the launch fails. Mounts go by descriptors only.
 */
#include "sandbox/launcher/mounts.h"

#include "base/auto.h"
#include "sandbox/launcher/devices.h"
#include "sandbox/launcher/kernel.h"
#include "sandbox/launcher/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

int mounts_init(struct mounts *mounts, struct err *err)
{
    memset(mounts, 0xff, sizeof *mounts); /* every descriptor -1 */
    mounts->host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (mounts->host < 0)
        return err_sys(err, "opening /");
    mounts->root = mounts->host;
    return 0;
}

/* The folder of `path`, and in `ret_name` its last component. */
static int tree_open_parent(int tree, const char *path, const char **ret_name, struct err *err)
{
    const char *slash = strrchr(path, '/');
    char parent[4096];
    size_t len = (size_t)(slash - path);

    if (len >= sizeof parent)
        return err_set(err, ERR_LIMIT, "%.64s...: the path is too long", path);
    memcpy(parent, path, len);
    parent[len] = '\0';
    *ret_name = slash + 1;
    return tree_open(tree, len ? parent : "/", err);
}

static int mounts_copy(int tree, const char *path, struct err *err)
{
    AUTO_CLOSE int at = tree_open(tree, path, err);

    return at < 0 ? -1 : tree_copy_all(at, path, err);
}

static int op_tree_private(struct mounts *mounts, const struct plan_record *record,
                           const char *path, const char *other, struct err *err)
{
    return tree_set_private(mounts->host, err);
}

static int op_tree_harden(struct mounts *mounts, const struct plan_record *record, const char *path,
                          const char *other, struct err *err)
{
    return tree_set(mounts->host, K_MOUNT_ATTR_NODEV | K_MOUNT_ATTR_NOSUID, K_AT_RECURSIVE, "/",
                    err);
}

static int op_tree_read_only(struct mounts *mounts, const struct plan_record *record,
                             const char *path, const char *other, struct err *err)
{
    return tree_set(mounts->host, K_MOUNT_ATTR_RDONLY, K_AT_RECURSIVE, "/", err);
}

static int op_hold(struct mounts *mounts, const struct plan_record *record, const char *path,
                   const char *other, struct err *err)
{
    mounts->slots[record->slot] = mounts_copy(mounts->host, path, err);
    return mounts->slots[record->slot] < 0 ? -1 : 0;
}

/* The new root has to be a mount of this namespace before anything can be mounted in it; where it
 * stands does not matter, because it is used by descriptor until it becomes the root. */
static int op_empty_root(struct mounts *mounts, const struct plan_record *record, const char *path,
                         const char *other, struct err *err)
{
    int fd = tree_new("tmpfs", "mode", "0755", K_MOUNT_ATTR_NODEV | K_MOUNT_ATTR_NOSUID, err);

    if (fd < 0)
        return -1;
    if (tree_attach(mounts->root, fd, "/dev", err)) {
        close(fd);
        return -1;
    }
    mounts->root = fd;
    return 0;
}

/* Copies can only be taken of what is mounted somewhere; /dev is covered later anyway. */
static int op_masks(struct mounts *mounts, const struct plan_record *record, const char *path,
                    const char *other, struct err *err)
{
    AUTO_CLOSE int fd =
        tree_new("tmpfs", "mode", "0755",
                 K_MOUNT_ATTR_NODEV | K_MOUNT_ATTR_NOSUID | K_MOUNT_ATTR_NOEXEC, err);

    if (fd < 0)
        return -1;
    if (mkdirat(fd, "dir", 0) || tree_make_file(fd, "file", 0))
        return err_sys(err, "making the empty things that denied paths are covered with");
    if (tree_set(fd, K_MOUNT_ATTR_RDONLY, 0, "the cover", err) ||
        tree_attach(mounts->root, fd, "/dev", err))
        return -1;
    mounts->mask = TAKE_FD(fd);
    return 0;
}

static int op_mask(struct mounts *mounts, const struct plan_record *record, const char *path,
                   const char *other, struct err *err)
{
    const char *name = record->flags & PLAN_FLAG_FILE ? "file" : "dir";
    AUTO_CLOSE int fd = tree_copy(mounts->mask, name, K_OPEN_TREE_CLONE | K_OPEN_TREE_CLOEXEC);

    if (fd < 0)
        return err_sys(err, "getting a cover for %s", path);
    return tree_attach(mounts->root, fd, path, err);
}

static int op_mask_tree(struct mounts *mounts, const struct plan_record *record, const char *path,
                        const char *other, struct err *err)
{
    AUTO_CLOSE int fd =
        tree_new("tmpfs", "mode", "0111", K_MOUNT_ATTR_NODEV | K_MOUNT_ATTR_NOSUID, err);

    if (fd < 0)
        return -1;
    return tree_attach(mounts->root, fd, path, err);
}

static int op_seal(struct mounts *mounts, const struct plan_record *record, const char *path,
                   const char *other, struct err *err)
{
    AUTO_CLOSE int fd = tree_open(mounts->root, path, err);

    if (fd < 0)
        return -1;
    return tree_set(fd, K_MOUNT_ATTR_RDONLY, 0, path, err);
}

static int op_dir(struct mounts *mounts, const struct plan_record *record, const char *path,
                  const char *other, struct err *err)
{
    const char *name;
    AUTO_CLOSE int dir = tree_open_parent(mounts->root, path, &name, err);

    if (dir < 0)
        return -1;
    if (mkdirat(dir, name, (mode_t)record->value) && errno != EEXIST)
        return err_sys(err, "making the folder %s", path);
    return 0;
}

static int op_file(struct mounts *mounts, const struct plan_record *record, const char *path,
                   const char *other, struct err *err)
{
    const char *name;
    AUTO_CLOSE int dir = tree_open_parent(mounts->root, path, &name, err);

    if (dir < 0)
        return -1;
    if (tree_make_file(dir, name, (mode_t)record->value) && errno != EEXIST)
        return err_sys(err, "making the file %s", path);
    return 0;
}

static int op_link(struct mounts *mounts, const struct plan_record *record, const char *path,
                   const char *other, struct err *err)
{
    const char *name;
    AUTO_CLOSE int dir = tree_open_parent(mounts->root, path, &name, err);

    if (dir < 0)
        return -1;
    if (symlinkat(other, dir, name) && errno != EEXIST)
        return err_sys(err, "making the link %s", path);
    return 0;
}

static int op_place(struct mounts *mounts, const struct plan_record *record, const char *path,
                    const char *other, struct err *err)
{
    if (mounts->slots[record->slot] < 0)
        return err_set(err, ERR_BUG, "nothing is held for %s", path);
    return tree_put(mounts->root, TAKE_FD(mounts->slots[record->slot]),
                    record->flags & PLAN_FLAG_READ_ONLY, path, err);
}

static int op_bind(struct mounts *mounts, const struct plan_record *record, const char *path,
                   const char *other, struct err *err)
{
    return tree_put(mounts->root, mounts_copy(mounts->host, path, err),
                    record->flags & PLAN_FLAG_READ_ONLY, path, err);
}

/* Mounts `path` on itself, which needs to be looked up only once. */
static int mounts_cover(const struct mounts *mounts, const char *path, bool read_only,
                        struct err *err)
{
    AUTO_CLOSE int at = tree_open(mounts->root, path, err);
    AUTO_CLOSE int copy = at < 0 ? -1 : tree_copy_all(at, path, err);

    if (copy < 0)
        return -1;
    if (read_only && tree_set(copy, K_MOUNT_ATTR_RDONLY, K_AT_RECURSIVE, path, err))
        return -1;
    if (tree_move(copy, at, ""))
        return err_sys(err, "mounting at %s", path);
    return 0;
}

static int op_pin(struct mounts *mounts, const struct plan_record *record, const char *path,
                  const char *other, struct err *err)
{
    return mounts_cover(mounts, path, false, err);
}

static int op_read_only(struct mounts *mounts, const struct plan_record *record, const char *path,
                        const char *other, struct err *err)
{
    return mounts_cover(mounts, path, true, err);
}

static int op_proc(struct mounts *mounts, const struct plan_record *record, const char *path,
                   const char *other, struct err *err)
{
    AUTO_CLOSE int fd = tree_new(
        "proc", NULL, NULL, K_MOUNT_ATTR_NOSUID | K_MOUNT_ATTR_NODEV | K_MOUNT_ATTR_NOEXEC, err);

    if (fd < 0)
        return -1;
    return tree_attach(mounts->root, fd, "/proc", err);
}

/* pivot_root(".", ".") stacks the old root on the new one, from where it can be detached. */
static int op_enter_root(struct mounts *mounts, const struct plan_record *record, const char *path,
                         const char *other, struct err *err)
{
    if (fchdir(mounts->root) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) ||
        chdir("/"))
        return err_sys(err, "entering the new root");
    return 0;
}

static int op_hold_devices(struct mounts *mounts, const struct plan_record *record,
                           const char *path, const char *other, struct err *err)
{
    return devices_hold(mounts, err);
}

static int op_dev(struct mounts *mounts, const struct plan_record *record, const char *path,
                  const char *other, struct err *err)
{
    return devices_mount(mounts, err);
}

typedef int mount_op(struct mounts *mounts, const struct plan_record *record, const char *path,
                     const char *other, struct err *err);

static mount_op *const mount_ops[PLAN_OP_COUNT] = {
    [PLAN_TREE_PRIVATE] = op_tree_private,
    [PLAN_HOLD_DEVICES] = op_hold_devices,
    [PLAN_HOLD] = op_hold,
    [PLAN_TREE_HARDEN] = op_tree_harden,
    [PLAN_TREE_READ_ONLY] = op_tree_read_only,
    [PLAN_EMPTY_ROOT] = op_empty_root,
    [PLAN_MASKS] = op_masks,
    [PLAN_DEV] = op_dev,
    [PLAN_PROC] = op_proc,
    [PLAN_DIR] = op_dir,
    [PLAN_FILE] = op_file,
    [PLAN_LINK] = op_link,
    [PLAN_PLACE] = op_place,
    [PLAN_BIND] = op_bind,
    [PLAN_PIN] = op_pin,
    [PLAN_READ_ONLY] = op_read_only,
    [PLAN_MASK] = op_mask,
    [PLAN_MASK_TREE] = op_mask_tree,
    [PLAN_SEAL] = op_seal,
    [PLAN_ENTER_ROOT] = op_enter_root,
};

int mounts_apply(struct mounts *mounts, const struct plan_record *record, const char *path,
                 const char *other, struct err *err)
{
    mount_op *op = mount_ops[record->op];

    if (!op)
        return err_set(err, ERR_BUG, "operation %u is none of the file system's", record->op);
    if (path[0] != '\0' && path[0] != '/')
        return err_set(err, ERR_BUG, "%s is not absolute", path);
    return op(mounts, record, path, other, err);
}
