/* See tree.h. Everything goes by descriptors: a path is looked up once, by openat2(2) below the
 * root of the tree and through no symlink at all.
 */
#include "sandbox/launcher/tree.h"

#include "base/auto.h"
#include "base/sys.h"
#include "sandbox/launcher/kernel.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int tree_copy(int dir, const char *path, unsigned flags)
{
    return (int)syscall(K_SYS_OPEN_TREE, dir, path, flags);
}

int tree_move(int from, int to, const char *name)
{
    unsigned flags = K_MOVE_MOUNT_F_EMPTY_PATH | (*name ? 0 : K_MOVE_MOUNT_T_EMPTY_PATH);

    return (int)syscall(K_SYS_MOVE_MOUNT, from, "", to, name, flags);
}

int tree_open(int tree, const char *path, struct err *err)
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

int tree_copy_all(int at, const char *path, struct err *err)
{
    int fd = tree_copy(at, "",
                       K_OPEN_TREE_CLONE | K_OPEN_TREE_CLOEXEC | K_AT_EMPTY_PATH | K_AT_RECURSIVE);

    if (fd < 0)
        return err_sys(err, "copying the mounts at %s", path);
    return fd;
}

static int k_mount_setattr(int dir, unsigned flags, const struct k_mount_attr *attr)
{
    return (int)syscall(K_SYS_MOUNT_SETATTR, dir, "", K_AT_EMPTY_PATH | flags, attr, sizeof *attr);
}

int tree_set(int fd, uint64_t attributes, unsigned flags, const char *path, struct err *err)
{
    struct k_mount_attr attr = {.attr_set = attributes};

    if (k_mount_setattr(fd, flags, &attr))
        return err_sys(err, "changing the mount attributes of %s", path);
    return 0;
}

int tree_set_private(int fd, struct err *err)
{
    struct k_mount_attr attr = {.propagation = K_MS_PRIVATE};

    if (k_mount_setattr(fd, K_AT_RECURSIVE, &attr))
        return err_sys(err, "cutting mount events off");
    return 0;
}

int tree_attach(int tree, int fd, const char *path, struct err *err)
{
    AUTO_CLOSE int at = tree_open(tree, path, err);

    if (at < 0)
        return -1;
    if (tree_move(fd, at, ""))
        return err_sys(err, "mounting at %s", path);
    return 0;
}

int tree_put(int tree, int fd, bool read_only, const char *path, struct err *err)
{
    AUTO_CLOSE int copy = fd;

    if (copy < 0)
        return -1;
    if (read_only && tree_set(copy, K_MOUNT_ATTR_RDONLY, K_AT_RECURSIVE, path, err))
        return -1;
    return tree_attach(tree, copy, path, err);
}

int tree_new(const char *type, const char *key, const char *value, uint64_t attributes,
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

int tree_make_file(int dir, const char *name, mode_t mode)
{
    return mknodat(dir, name, S_IFREG | mode, 0);
}
