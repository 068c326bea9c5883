/* Attacks on the mount tree: whoever can mount, bind, move or unmount in the sandbox's mount
 * namespace undoes the read-only tree and the masks. Each tries one way and then writes to the
 * file that it wants (or reads it). */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* bind SOURCE TARGET NAME: writes to TARGET/NAME */
static int run_bind(int argc, char **argv)
{
    (void)argc;
    if (mount(argv[0], argv[1], NULL, MS_BIND, NULL) < 0)
        return lost("bind mount");
    if (chdir(argv[1]) < 0)
        return lost("chdir");
    return overwrite(argv[2]);
}

/* remount MOUNT FILE */
static int run_remount(int argc, char **argv)
{
    (void)argc;
    if (mount(NULL, argv[0], NULL, MS_REMOUNT | MS_BIND, NULL) < 0)
        return lost("remount");
    return overwrite(argv[1]);
}

/* setattr MOUNT FILE: mount_setattr(2) clears the read-only flag */
static int run_setattr(int argc, char **argv)
{
    (void)argc;
    struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY};
    if (syscall(SYS_mount_setattr, AT_FDCWD, argv[0], 0, &attr, sizeof attr) < 0)
        return lost("mount_setattr");
    return overwrite(argv[1]);
}

/* open-tree SOURCE NAME: a detached copy of a mount, used by descriptor */
static int run_open_tree(int argc, char **argv)
{
    (void)argc;
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, argv[0], OPEN_TREE_CLONE | O_CLOEXEC);
    if (tree < 0)
        return lost("open_tree");
    struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY};
    syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof attr);
    if (fchdir(tree) < 0)
        return lost("fchdir");
    return overwrite(argv[1]);
}

/* move-mount MOUNT TARGET: moves a mask away from what it hides */
static int run_move_mount(int argc, char **argv)
{
    (void)argc;
    return judge(syscall(SYS_move_mount, AT_FDCWD, argv[0], AT_FDCWD, argv[1], 0), "move_mount");
}

/* unmask PATH FILE: takes the topmost mount at PATH away and reads FILE */
static int run_unmask(int argc, char **argv)
{
    (void)argc;
    if (umount2(argv[0], MNT_DETACH) < 0)
        return lost("umount2");
    return show(open(argv[1], O_RDONLY | O_CLOEXEC), "read");
}

static int run_fsopen(int argc, char **argv)
{
    (void)argc;
    int fs = (int)syscall(SYS_fsopen, argv[0], 0);
    if (fs < 0)
        return lost("fsopen %s", argv[0]);
    if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return lost("fsconfig");
    return judge(syscall(SYS_fsmount, fs, 0, 0), "fsmount");
}

/* mount TYPE TARGET */
static int run_mount(int argc, char **argv)
{
    (void)argc;
    return judge(mount("none", argv[1], argv[0], 0, NULL), "mount");
}

/* overlay LOWER UPPER WORK TARGET */
static int run_overlay(int argc, char **argv)
{
    (void)argc;
    char options[4096];
    snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s,userxattr", argv[0],
             argv[1], argv[2]);
    return judge(mount("none", argv[3], "overlay", 0, options), "mount overlay");
}

/* pivot FOLDER */
static int run_pivot(int argc, char **argv)
{
    (void)argc;
    if (mount(argv[0], argv[0], NULL, MS_BIND, NULL) < 0 || chdir(argv[0]) < 0)
        return lost("making the folder a mount");
    return judge(syscall(SYS_pivot_root, ".", "."), "pivot_root");
}

static int run_chroot(int argc, char **argv)
{
    (void)argc;
    return judge(chroot(argv[0]), "chroot");
}

const struct attack mount_attacks[] = {
    {"bind", 3, run_bind},           {"remount", 2, run_remount},       {"setattr", 2, run_setattr},
    {"open-tree", 2, run_open_tree}, {"move-mount", 2, run_move_mount}, {"unmask", 2, run_unmask},
    {"fsopen", 1, run_fsopen},       {"mount", 2, run_mount},           {"overlay", 4, run_overlay},
    {"pivot", 1, run_pivot},         {"chroot", 1, run_chroot},         {NULL, 0, NULL},
};
