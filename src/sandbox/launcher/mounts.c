/* Building the command's view of the file system.
 *
 * Two ways, decided by the plan. In place: the host's tree stays the root, everything in it is
 * made read-only by one recursive mount_setattr(2), and copies of the writable directories' mounts,
 * taken before, are put over them. From an empty root: a tmpfs gets mount points for what may be
 * read, and becomes the root.
 *
 * Every path is resolved by openat2(2) below a descriptor of the tree and through no symlink at
 * all: the plan holds canonical paths, so a symlink on the way means that something was swapped
 * after the plan was made, and the launch fails. Mounts go by descriptors only.
 *
 * /dev is a small file system of ours with the host's harmless device nodes mounted in it,
 * terminals of its own, and the command's terminal under the name /dev/console.
 */
#include "sandbox/launcher/mounts.h"

#include "base/auto.h"
#include "base/pass.h"
#include "base/sys.h"
#include "guard/guard_format.h"
#include "sandbox/launcher/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* open_tree(2) and move_mount(2), which the C libraries do not wrap. An empty `name` means `to`
 * itself. */
static int tree_copy(int dir, const char *path, unsigned flags)
{
    return (int)syscall(K_SYS_OPEN_TREE, dir, path, flags);
}

static int tree_move(int from, int to, const char *name)
{
    unsigned flags = K_MOVE_MOUNT_F_EMPTY_PATH | (*name ? 0 : K_MOVE_MOUNT_T_EMPTY_PATH);

    return (int)syscall(K_SYS_MOVE_MOUNT, from, "", to, name, flags);
}

/* O_PATH descriptor of an absolute path below the root `tree`; no link may be on the way. */
static int tree_open(int tree, const char *path, struct err *err)
{
    struct sys_open_how how = {
        .flags = O_PATH | O_CLOEXEC, /* O_NOFOLLOW would open a link at the end of the path */
        .resolve = SYS_RESOLVE_IN_ROOT | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS,
    };
    int fd = sys_openat2(tree, path[1] ? path + 1 : ".", &how);

    if (fd < 0)
        return err_sys(err, "opening %s (no link may be on the way)", path);
    return fd;
}

/* A copy of all mounts at the open `at`, which is `path` to people. */
static int tree_copy_all(int at, const char *path, struct err *err)
{
    int fd = tree_copy(at, "",
                       K_OPEN_TREE_CLONE | K_OPEN_TREE_CLOEXEC | K_AT_EMPTY_PATH | K_AT_RECURSIVE);

    if (fd < 0)
        return err_sys(err, "copying the mounts at %s", path);
    return fd;
}

/* Sets mount attributes (K_MOUNT_ATTR_*); `flags` may hold K_AT_RECURSIVE. */
static int tree_set(int fd, uint64_t attributes, unsigned flags, const char *path, struct err *err)
{
    struct k_mount_attr attr = {.attr_set = attributes};

    if (syscall(K_SYS_MOUNT_SETATTR, fd, "", K_AT_EMPTY_PATH | flags, &attr, sizeof attr))
        return err_sys(err, "changing the mount attributes of %s", path);
    return 0;
}

/* Mounts what `fd` holds at `path` below the root `tree`; fails when `fd` is -1 already. */
static int tree_attach(int tree, int fd, const char *path, struct err *err)
{
    AUTO_CLOSE int at = fd < 0 ? -1 : tree_open(tree, path, err);

    if (at < 0)
        return -1;
    if (tree_move(fd, at, ""))
        return err_sys(err, "mounting at %s", path);
    return 0;
}

/* The same, closes `fd`, and fails when that is -1 already. */
static int tree_put(int tree, int fd, bool read_only, const char *path, struct err *err)
{
    AUTO_CLOSE int copy = fd;

    if (copy < 0)
        return -1;
    if (read_only && tree_set(copy, K_MOUNT_ATTR_RDONLY, K_AT_RECURSIVE, path, err))
        return -1;
    return tree_attach(tree, copy, path, err);
}

/* A new file system of `type`, not mounted anywhere yet; `key` may be NULL. */
static int tree_new(const char *type, const char *key, const char *value, uint64_t attributes,
                    struct err *err)
{
    AUTO_CLOSE int fs = (int)syscall(K_SYS_FSOPEN, type, 1 /* FSOPEN_CLOEXEC */);
    int fd;

    if (fs < 0)
        return err_sys(err, "opening the %s file system", type);
    if (key && syscall(K_SYS_FSCONFIG, fs, K_FSCONFIG_SET_STRING, key, value, 0))
        return err_sys(err, "setting %s=%s for %s", key, value, type);
    if (syscall(K_SYS_FSCONFIG, fs, K_FSCONFIG_CMD_CREATE, NULL, NULL, 0))
        return err_sys(err, "making a %s file system", type);
    fd = (int)syscall(K_SYS_FSMOUNT, fs, 1 /* FSMOUNT_CLOEXEC */, attributes);
    if (fd < 0)
        return err_sys(err, "mounting a %s file system", type);
    return fd;
}

/* Makes an empty file; -1 with errno. */
static int tree_make_file(int dir, const char *name, mode_t mode)
{
    return mknodat(dir, name, S_IFREG | mode, 0);
}

static const char *const device_names[MOUNTS_DEVICES] = {
    "null", "zero", "full", "random", "urandom", "tty",
};

static int dev_fill(const struct mounts *mounts, int dev, struct err *err)
{
    static const char *const links[][2] = {
        {"/proc/self/fd", "fd"},       {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"},
        {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"},
    };

    for (int i = 0; i < MOUNTS_DEVICES; i++)
        if (tree_make_file(dev, device_names[i], 0444) ||
            tree_move(mounts->devices[i], dev, device_names[i]))
            return err_sys(err, "mounting /dev/%s", device_names[i]);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (symlinkat(links[i][0], dev, links[i][1]))
            return err_sys(err, "making the link /dev/%s", links[i][1]);
    if (mkdirat(dev, "pts", 0755) || mkdirat(dev, "shm", 01777) || fchmodat(dev, "shm", 01777, 0) ||
        tree_make_file(dev, "console", 0))
        return err_sys(err, "filling /dev");
    return 0;
}

void mounts_hold_console(struct mounts *mounts)
{
    char name[64];
    struct stat by_name;
    struct stat by_fd;
    ssize_t len = readlink("/proc/self/fd/0", name, sizeof name - 1);

    if (len < 0)
        return;
    name[len] = '\0';
    if (stat(name, &by_name) || fstat(0, &by_fd) || by_name.st_rdev != by_fd.st_rdev)
        return;
    mounts->console = tree_copy(AT_FDCWD, name, K_OPEN_TREE_CLONE | K_OPEN_TREE_CLOEXEC);
}

int mounts_show_console(struct mounts *mounts, struct err *err)
{
    AUTO_CLOSE int console = -1;

    if (mounts->console < 0)
        return 0;
    if (tree_put(mounts->root, TAKE_FD(mounts->console), false, "/dev/console", err))
        return -1;
    console = open("/dev/console", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (console < 0)
        return err_sys(err, "opening /dev/console");
    for (int fd = 0; fd < 3; fd++)
        if (isatty(fd) && dup2(console, fd) < 0 /* allow dup2: the command's own stdio */)
            return err_sys(err, "moving the terminal to descriptor %d", fd);
    return 0;
}

int mounts_init(struct mounts *mounts, struct err *err)
{
    memset(mounts, 0xff, sizeof *mounts); /* every descriptor -1 */
    mounts->host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (mounts->host < 0)
        return err_sys(err, "opening /");
    mounts->root = mounts->host;
    return 0;
}

/* The directory of `path`, and in `ret_name` its last component. */
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

/* One record of the plan, and its texts. */
struct step {
    const struct plan_record *record;
    const char *path;
    const char *other;
};

static int op_tree_private(struct mounts *mounts, const struct step *step, struct err *err)
{
    const struct k_mount_attr attr = {.propagation = K_MS_PRIVATE};

    if (syscall(K_SYS_MOUNT_SETATTR, mounts->host, "", K_AT_EMPTY_PATH | K_AT_RECURSIVE, &attr,
                sizeof attr))
        return err_sys(err, "cutting mount events off");
    return 0;
}

/* PLAN_TREE_HARDEN and PLAN_TREE_READ_ONLY */
static int op_tree_set(struct mounts *mounts, const struct step *step, struct err *err)
{
    const uint64_t attributes = step->record->op == PLAN_TREE_HARDEN
                                    ? K_MOUNT_ATTR_NODEV | K_MOUNT_ATTR_NOSUID
                                    : K_MOUNT_ATTR_RDONLY;

    return tree_set(mounts->host, attributes, K_AT_RECURSIVE, "/", err);
}

static int op_hold(struct mounts *mounts, const struct step *step, struct err *err)
{
    mounts->slots[step->record->slot] = mounts_copy(mounts->host, step->path, err);
    return mounts->slots[step->record->slot] < 0 ? -1 : 0;
}

/* The new root has to be a mount of this namespace before anything can be mounted in it; where it
 * stands does not matter, because it is used by descriptor until it becomes the root. */
static int op_empty_root(struct mounts *mounts, const struct step *step, struct err *err)
{
    AUTO_CLOSE int fd =
        tree_new("tmpfs", "mode", "0755", K_MOUNT_ATTR_NODEV | K_MOUNT_ATTR_NOSUID, err);

    if (tree_attach(mounts->root, fd, "/dev", err))
        return -1;
    mounts->root = TAKE_FD(fd);
    return 0;
}

/* Copies can only be taken of what is mounted somewhere; /dev is covered later anyway. */
static int op_masks(struct mounts *mounts, const struct step *step, struct err *err)
{
    AUTO_CLOSE int fd =
        tree_new("tmpfs", "mode", "0755",
                 K_MOUNT_ATTR_NODEV | K_MOUNT_ATTR_NOSUID | K_MOUNT_ATTR_NOEXEC, err);

    if (fd < 0)
        return -1;
    if (mkdirat(fd, "dir", 0) || mkdirat(fd, "empty", 0555) || tree_make_file(fd, "file", 0))
        return err_sys(err, "making the empty things that denied paths are covered with");
    if (tree_set(fd, K_MOUNT_ATTR_RDONLY, 0, "the cover", err) ||
        tree_attach(mounts->root, fd, "/dev", err))
        return -1;
    mounts->mask = TAKE_FD(fd);
    return 0;
}

static int op_mask(struct mounts *mounts, const struct step *step, struct err *err)
{
    const uint32_t flags = step->record->flags;
    const char *name = flags & PLAN_FLAG_FILE ? "file" : flags & PLAN_FLAG_LISTED ? "empty" : "dir";
    AUTO_CLOSE int fd = tree_copy(mounts->mask, name, K_OPEN_TREE_CLONE | K_OPEN_TREE_CLOEXEC);

    if (fd < 0)
        return err_sys(err, "getting a cover for %s", step->path);
    return tree_attach(mounts->root, fd, step->path, err);
}

static int op_mask_tree(struct mounts *mounts, const struct step *step, struct err *err)
{
    AUTO_CLOSE int fd =
        tree_new("tmpfs", "mode", "0111", K_MOUNT_ATTR_NODEV | K_MOUNT_ATTR_NOSUID, err);

    return tree_attach(mounts->root, fd, step->path, err);
}

static int op_memory(struct mounts *mounts, const struct step *step, struct err *err)
{
    AUTO_CLOSE int fd =
        tree_new("tmpfs", "mode", "1777", K_MOUNT_ATTR_NODEV | K_MOUNT_ATTR_NOSUID, err);

    return tree_attach(mounts->root, fd, step->path, err);
}

static int op_seal(struct mounts *mounts, const struct step *step, struct err *err)
{
    AUTO_CLOSE int fd = tree_open(mounts->root, step->path, err);

    return fd < 0 ? -1 : tree_set(fd, K_MOUNT_ATTR_RDONLY, 0, step->path, err);
}

/* PLAN_DIR, PLAN_FILE and PLAN_LINK */
static int op_make(struct mounts *mounts, const struct step *step, struct err *err)
{
    const mode_t mode = (mode_t)step->record->value;
    const char *name;
    AUTO_CLOSE int dir = tree_open_parent(mounts->root, step->path, &name, err);
    bool has_failed;

    if (dir < 0)
        return -1;
    if (step->record->op == PLAN_DIR)
        has_failed = mkdirat(dir, name, mode);
    else if (step->record->op == PLAN_FILE)
        has_failed = tree_make_file(dir, name, mode);
    else
        has_failed = symlinkat(step->other, dir, name);
    if (has_failed && errno != EEXIST)
        return err_sys(err, "making the %s %s",
                       step->record->op == PLAN_DIR    ? "directory"
                       : step->record->op == PLAN_FILE ? "file"
                                                       : "link",
                       step->path);
    return 0;
}

static int op_place(struct mounts *mounts, const struct step *step, struct err *err)
{
    if (mounts->slots[step->record->slot] < 0)
        return err_set(err, ERR_BUG, "nothing is held for %s", step->path);
    return tree_put(mounts->root, TAKE_FD(mounts->slots[step->record->slot]),
                    step->record->flags & PLAN_FLAG_READ_ONLY, step->path, err);
}

static int op_bind(struct mounts *mounts, const struct step *step, struct err *err)
{
    return tree_put(mounts->root, mounts_copy(mounts->host, step->path, err),
                    step->record->flags & PLAN_FLAG_READ_ONLY, step->path, err);
}

/* PLAN_PIN and PLAN_READ_ONLY: mounts `path` on itself, which needs to be looked up only once. */
static int op_cover(struct mounts *mounts, const struct step *step, struct err *err)
{
    AUTO_CLOSE int at = tree_open(mounts->root, step->path, err);
    AUTO_CLOSE int copy = at < 0 ? -1 : tree_copy_all(at, step->path, err);

    if (copy < 0)
        return -1;
    if (step->record->op == PLAN_READ_ONLY &&
        tree_set(copy, K_MOUNT_ATTR_RDONLY, K_AT_RECURSIVE, step->path, err))
        return -1;
    if (tree_move(copy, at, ""))
        return err_sys(err, "mounting at %s", step->path);
    return 0;
}

static int op_proc(struct mounts *mounts, const struct step *step, struct err *err)
{
    AUTO_CLOSE int fd = tree_new(
        "proc", NULL, NULL, K_MOUNT_ATTR_NOSUID | K_MOUNT_ATTR_NODEV | K_MOUNT_ATTR_NOEXEC, err);

    return tree_attach(mounts->root, fd, "/proc", err);
}

/* pivot_root(".", ".") stacks the old root on the new one, from where it can be detached. */
static int op_enter_root(struct mounts *mounts, const struct step *step, struct err *err)
{
    if (fchdir(mounts->root) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) ||
        chdir("/"))
        return err_sys(err, "entering the new root");
    return 0;
}

/* Takes the harmless device nodes aside, before /dev is covered. */
static int op_hold_devices(struct mounts *mounts, const struct step *step, struct err *err)
{
    AUTO_CLOSE int dev = tree_open(mounts->host, "/dev", err);

    if (dev < 0)
        return -1;
    for (int i = 0; i < MOUNTS_DEVICES; i++) {
        mounts->devices[i] =
            tree_copy(dev, device_names[i], K_OPEN_TREE_CLONE | K_OPEN_TREE_CLOEXEC);
        if (mounts->devices[i] < 0)
            return err_sys(err, "taking /dev/%s", device_names[i]);
    }
    return 0;
}

static int op_hold_fuse(struct mounts *mounts, const struct step *step, struct err *err)
{
    AUTO_CLOSE int dev = tree_open(mounts->host, "/dev", err);
    int fd = dev < 0 ? -1 : openat(dev, "fuse", O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

    if (dev >= 0 && fd < 0)
        return err_sys(err, "opening /dev/fuse");
    mounts->slots[step->record->slot] = fd;
    return fd < 0 ? -1 : 0;
}

/* A FUSE file system with the descriptor `fuse` and a root of this mode. Only those in our user
 * namespace and below may use it (allow_other): the guard, which answers, cannot come to wait for
 * itself. */
static int fuse_new(int fuse, mode_t mode, struct err *err)
{
    AUTO_CLOSE int fs = (int)syscall(K_SYS_FSOPEN, "fuse", 1 /* FSOPEN_CLOEXEC */);
    char texts[4][16];
    const char *const settings[][2] = {
        {"source", "cordon"},  {"fd", texts[0]},       {"rootmode", texts[1]},
        {"user_id", texts[2]}, {"group_id", texts[3]},
    };
    int fd = -1;

    snprintf(texts[0], sizeof texts[0], "%d", fuse);
    snprintf(texts[1], sizeof texts[1], "%o", (unsigned)mode);
    snprintf(texts[2], sizeof texts[2], "%u", (unsigned)geteuid());
    snprintf(texts[3], sizeof texts[3], "%u", (unsigned)getegid());
    if (fs < 0)
        return err_sys(err, "opening the fuse file system");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (syscall(K_SYS_FSCONFIG, fs, K_FSCONFIG_SET_STRING, settings[i][0], settings[i][1], 0))
            return err_sys(err, "setting %s for fuse", settings[i][0]);
    if (syscall(K_SYS_FSCONFIG, fs, K_FSCONFIG_SET_FLAG, "allow_other", NULL, 0) ||
        syscall(K_SYS_FSCONFIG, fs, K_FSCONFIG_CMD_CREATE, NULL, NULL, 0))
        return err_sys(err, "making a fuse file system");
    fd = (int)syscall(K_SYS_FSMOUNT, fs, 1 /* FSMOUNT_CLOEXEC */,
                      K_MOUNT_ATTR_NODEV | K_MOUNT_ATTR_NOSUID | K_MOUNT_ATTR_RDONLY);
    return fd < 0 ? err_sys(err, "mounting a fuse file system") : fd;
}

/* The guard gets the descriptor, and what it needs to find who reads and to take the mount away. */
static int watchpoint_send(const struct mounts *mounts, const struct step *step, int fuse,
                           mode_t mode, struct err *err)
{
    static const char *const paths[GUARD_WATCHPOINT_FDS] = {
        [GUARD_WATCHPOINT_USERS] = "proc/self/ns/user",
        [GUARD_WATCHPOINT_MOUNTS] = "proc/self/ns/mnt",
        [GUARD_WATCHPOINT_PROCESSES] = "proc/self/ns/pid",
    };
    const struct guard_order order = {.magic = GUARD_MAGIC,
                                      .kind = GUARD_ORDER_WATCHPOINT,
                                      .number = (uint32_t)step->record->value,
                                      .mode = mode};
    int fds[GUARD_WATCHPOINT_FDS] = {[GUARD_WATCHPOINT_FUSE] = fuse};
    int status = 0;

    for (int i = GUARD_WATCHPOINT_USERS; i < GUARD_WATCHPOINT_FDS; i++) {
        fds[i] = openat(mounts->root, paths[i], O_RDONLY | O_CLOEXEC);
        if (fds[i] < 0 && !status)
            status = err_sys(err, "opening /%s", paths[i]);
    }
    if (!status && pass_send(mounts->channel, &order, sizeof order, fds, GUARD_WATCHPOINT_FDS))
        status = err_sys(err, "handing the watchpoint at %s to the guard", step->path);
    for (int i = GUARD_WATCHPOINT_USERS; i < GUARD_WATCHPOINT_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return status;
}

static int op_watchpoint(struct mounts *mounts, const struct step *step, struct err *err)
{
    AUTO_CLOSE int fuse = TAKE_FD(mounts->slots[step->record->slot]);
    AUTO_CLOSE int at = tree_open(mounts->root, step->path, err);
    AUTO_CLOSE int fd = -1;
    struct stat st;
    mode_t mode;

    if (at < 0)
        return -1;
    if (fuse < 0 || mounts->channel < 0)
        return err_set(err, ERR_BUG, "nobody is there to watch %s", step->path);
    if (fstat(at, &st))
        return err_sys(err, "looking at %s", step->path);
    mode = (step->record->flags & PLAN_FLAG_FILE ? S_IFREG : S_IFDIR) | (st.st_mode & 0777);
    fd = fuse_new(fuse, mode, err);
    if (fd < 0)
        return -1;
    if (tree_move(fd, at, ""))
        return err_sys(err, "mounting at %s", step->path);
    return watchpoint_send(mounts, step, fuse, mode, err);
}

/* Mounts /dev with them. */
static int op_dev(struct mounts *mounts, const struct step *step, struct err *err)
{
    AUTO_CLOSE int dev = tree_new("tmpfs", "mode", "0755", K_MOUNT_ATTR_NOSUID, err);
    AUTO_CLOSE int pts = -1;

    if (tree_attach(mounts->root, dev, "/dev", err) || dev_fill(mounts, dev, err))
        return -1;
    pts = tree_new("devpts", "ptmxmode", "0666", K_MOUNT_ATTR_NOSUID | K_MOUNT_ATTR_NOEXEC, err);
    if (pts < 0)
        return -1;
    if (tree_move(pts, dev, "pts"))
        return err_sys(err, "mounting /dev/pts");
    return 0;
}

/* A kernel without them makes no such file system: there is nothing to be shown. */
static int op_queues(struct mounts *mounts, const struct step *step, struct err *err)
{
    struct err ignored;
    AUTO_CLOSE int fd =
        tree_new("mqueue", NULL, NULL,
                 K_MOUNT_ATTR_NOSUID | K_MOUNT_ATTR_NODEV | K_MOUNT_ATTR_NOEXEC, &ignored);
    AUTO_CLOSE int dev = fd < 0 ? -1 : tree_open(mounts->root, "/dev", err);

    if (fd < 0)
        return 0;
    if (dev < 0)
        return -1;
    if (mkdirat(dev, "mqueue", 0755) || tree_move(fd, dev, "mqueue"))
        return err_sys(err, "mounting /dev/mqueue");
    return 0;
}

static int (*const mount_ops[PLAN_OP_COUNT])(struct mounts *mounts, const struct step *step,
                                             struct err *err) = {
    [PLAN_TREE_PRIVATE] = op_tree_private,
    [PLAN_HOLD_DEVICES] = op_hold_devices,
    [PLAN_HOLD_FUSE] = op_hold_fuse,
    [PLAN_HOLD] = op_hold,
    [PLAN_TREE_HARDEN] = op_tree_set,
    [PLAN_TREE_READ_ONLY] = op_tree_set,
    [PLAN_EMPTY_ROOT] = op_empty_root,
    [PLAN_MASKS] = op_masks,
    [PLAN_DEV] = op_dev,
    [PLAN_QUEUES] = op_queues,
    [PLAN_PROC] = op_proc,
    [PLAN_DIR] = op_make,
    [PLAN_FILE] = op_make,
    [PLAN_LINK] = op_make,
    [PLAN_PLACE] = op_place,
    [PLAN_BIND] = op_bind,
    [PLAN_MEMORY] = op_memory,
    [PLAN_PIN] = op_cover,
    [PLAN_READ_ONLY] = op_cover,
    [PLAN_MASK] = op_mask,
    [PLAN_WATCHPOINT] = op_watchpoint,
    [PLAN_MASK_TREE] = op_mask_tree,
    [PLAN_SEAL] = op_seal,
    [PLAN_ENTER_ROOT] = op_enter_root,
};

int mounts_apply(struct mounts *mounts, const struct plan_view *plan,
                 const struct plan_record *record, struct err *err)
{
    const struct step step = {
        .record = record,
        .path = plan_string(plan, record->path),
        .other = record->op == PLAN_LINK ? plan_string(plan, record->other) : "",
    };

    if (!mount_ops[record->op])
        return err_set(err, ERR_BUG, "operation %u does not belong to the file system", record->op);
    if (step.path[0] != '\0' && step.path[0] != '/')
        return err_set(err, ERR_BUG, "%s is not absolute", step.path);
    return mount_ops[record->op](mounts, &step, err);
}
