/* What the sandbox around this process keeps, seen from within: by its mounts, which nobody in it can change.
 *
 * Its guard is told our map (launcher/restrict.c) and keeps to that, too. What its mounts let be written is all that a call which
 * no Landlock of ours knows (modes, owners, times) could reach. */
#include "sandbox/linux/host.h"

#include "base/auto.h"
#include "base/path.h"
#include "guard/guard_format.h"
#include "sandbox/linux/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Without one the kernel looks for a path. */
bool around_has_guard(void)
{
    return syscall(SYS_mkdirat, AT_FDCWD, NULL, GUARD_NESTED_MODE) < 0 && errno == EPERM;
}

static bool is_not_writable_within(void *data, const struct mount_seen *mount)
{
    const char *const *path = data;

    return !mount->is_writable || !path_is_within(mount->path, *path);
}

bool around_holds(const char *path, bool is_denied)
{
    AUTO_CLOSE int fd = -1;
    struct statvfs fs;

    if (statvfs(path, &fs))
        return is_denied && errno == EACCES;
    if (!(fs.f_flag & ST_RDONLY) || !mounts_each(is_not_writable_within, &path))
        return false;
    if (is_denied)
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY |
                            O_CLOEXEC); /* allow blocking open: O_NONBLOCK */
    return !is_denied || (fd < 0 && errno == EACCES);
}

/* What a sandbox has of its own is nobody else's. */
static bool is_in_map(void *data, const struct mount_seen *mount)
{
    const struct access_map *const *map = data;

    return !mount->is_writable || path_is_within(mount->path, "/dev") ||
           path_is_within(mount->path, "/proc") ||
           access_map_check(*map, mount->path) == ACCESS_WRITE;
}

bool around_writes_no_more(const struct access_map *map)
{
    return mounts_each(is_in_map, &map);
}
