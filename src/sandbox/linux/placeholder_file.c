/* What makes a file a stand-in is that it is empty and has the sticky bit and nobody's right to
 * write, with which it is born: there is no moment at which it could be left behind unrecognised.
 * Removal is rmdir(2) or unlink(2) of an empty file with these marks, under an exclusive lock, so
 * at worst nothing of value goes.
 */
#include "sandbox/linux/placeholder_file.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK_MODE 01000 /* the sticky bit, and nobody may write */
#define MARK_MODE_MASK 07222

static bool has_marks(const struct stat *st)
{
    if ((st->st_mode & MARK_MODE_MASK) != MARK_MODE)
        return false;
    return S_ISDIR(st->st_mode) || (S_ISREG(st->st_mode) && st->st_size == 0);
}

int standin_file_open_parent(const char *path, const char **ret_name, struct err *err)
{
    AUTO_FREE char *parent = path_parent(path);

    *ret_name = path_name(path);
    return fd_open_path_strict(parent, err);
}

/* In a sticky folder a holder of another user cannot remove what is ours. */
static bool is_sticky(int folder)
{
    struct stat st;

    return fstat(folder, &st) == 0 && (st.st_mode & S_ISVTX);
}

bool standin_file_remove(int parent, const char *name, int fd)
{
    /* First of all: while it is not held, its holder may remove it, and make it again. */
    bool is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    struct stat by_fd;
    struct stat by_name;

    if (fstat(fd, &by_fd) || fstatat(parent, name, &by_name, AT_SYMLINK_NOFOLLOW) ||
        by_fd.st_ino != by_name.st_ino || by_fd.st_dev != by_name.st_dev || !has_marks(&by_fd))
        return true;
    if (!is_locked)
        return !is_sticky(parent);
    return unlinkat(parent, name, S_ISDIR(by_fd.st_mode) ? AT_REMOVEDIR : 0) == 0 ||
           errno == ENOTEMPTY || errno == ENOENT;
}

int standin_file_open(int parent, const char *name)
{
    struct stat st;
    int fd;

    errno = 0;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) || !has_marks(&st))
        return -1;
    fd = openat(parent, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &st) || !has_marks(&st))) {
        close(fd);
        fd = -1;
        errno = 0;
    }
    return fd;
}

int standin_file_make(int parent, const char *name, bool is_file)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW;
    mode_t mask = umask(0); /* the marks are a mode, and we have to be able to open it */
    int fd = -1;

    if (is_file)
        fd = openat(parent, name, flags | O_CREAT | O_EXCL, 01444);
    else if (mkdirat(parent, name, 01555) == 0)
        fd = openat(parent, name, flags | O_DIRECTORY);
    umask(mask);
    return fd;
}

bool standin_file_is(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && has_marks(&st);
}
