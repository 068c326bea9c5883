/* The /dev of the sandbox: a small file system of ours with the host's harmless device nodes
 * mounted in it, terminals of its own, and the command's terminal under the name /dev/console.
 */
#include "sandbox/launcher/devices.h"

#include "base/auto.h"
#include "sandbox/launcher/kernel.h"
#include "sandbox/launcher/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const device_names[MOUNTS_DEVICES] = {
    "null", "zero", "full", "random", "urandom", "tty",
};

int devices_hold(struct mounts *mounts, struct err *err)
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

int devices_mount(struct mounts *mounts, struct err *err)
{
    AUTO_CLOSE int dev = tree_new("tmpfs", "mode", "0755", K_MOUNT_ATTR_NOSUID, err);
    AUTO_CLOSE int pts = -1;

    if (dev < 0 || tree_attach(mounts->root, dev, "/dev", err) || dev_fill(mounts, dev, err))
        return -1;
    pts = tree_new("devpts", "ptmxmode", "0666", K_MOUNT_ATTR_NOSUID | K_MOUNT_ATTR_NOEXEC, err);
    if (pts < 0)
        return -1;
    if (tree_move(pts, dev, "pts"))
        return err_sys(err, "mounting /dev/pts");
    return 0;
}

void devices_hold_console(struct mounts *mounts)
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

int devices_show_console(struct mounts *mounts, struct err *err)
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
