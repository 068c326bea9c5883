/* See copy.h. A copy is made where its contents cannot be moved: to another file system, or while commands of the layer have it
 * open. The mode and the times come last, for writing would take them away again. */
#include "layer/copy.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum {
    SMALL = 16 * 1024, /* is rather copied than looked through for holes */
    BLOCK = 128 * 1024,
    NAMES_MAX = 65536,
    VALUE_MAX = 65536,
};

static const char overlay_prefix[] = "user.overlay.";

static void fd_link(int fd, char ret[64])
{
    snprintf(ret, 64, "/proc/self/fd/%d", fd);
}

/* --- attributes --- */

static int copy_attribute(const char *from, const char *to, const char *name, char *value)
{
    ssize_t len = getxattr(from, name, value, VALUE_MAX);

    if (len < 0)
        return errno == ENODATA ? 0 : -1;
    if (!sys_fault() && setxattr(to, name, value, (size_t)len, 0) == 0)
        return 0;
    /* what only the kernel or root sets: labels, capabilities */
    return str_starts(name, "user.") || str_starts(name, "system.posix_acl") ? -1 : 0;
}

/* The descriptors may be O_PATH. */
static int copy_attributes(int from, int to)
{
    char source[64], target[64];
    AUTO_FREE char *names = NULL;
    AUTO_FREE char *value = NULL;
    ssize_t len;

    fd_link(from, source);
    fd_link(to, target);
    len = listxattr(source, NULL, 0);
    if (len <= 0)
        return len < 0 && errno != ENOTSUP ? -1 : 0;
    names = alloc_zero(NAMES_MAX + 1, 1);
    value = alloc_zero(VALUE_MAX, 1);
    len = listxattr(source, names, NAMES_MAX);
    for (const char *name = names; len > 0 && name < names + len; name += strlen(name) + 1)
        if (!str_starts(name, overlay_prefix) && !str_starts(name, "security.capability") &&
            copy_attribute(source, target, name, value))
            return -1;
    return len < 0 ? -1 : 0;
}

int copy_clean(const struct place *place, struct err *err)
{
    char path[64 + NAME_MAX];
    char names[4096];
    ssize_t len;

    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", place->dir, place->name);
    len = sys_fault() ? -1 : llistxattr(path, names, sizeof names);
    if (len < 0 && errno != ENOTSUP && errno != ERANGE)
        return err_sys(err, "looking at the attributes of %s", place->name);
    for (const char *name = names; len > 0 && name < names + len; name += strlen(name) + 1)
        if (str_starts(name, overlay_prefix) && (sys_fault() || lremovexattr(path, name)) &&
            errno != ENODATA)
            return err_sys(err, "removing an attribute of %s", place->name);
    return 0;
}

/* --- contents --- */

static int copy_bytes(int from, int to, off_t at, off_t end)
{
    AUTO_FREE char *block = NULL;

    while (at < end) {
        off_t in = at, out = at;
        const size_t want = end - at > INT_MAX ? INT_MAX : (size_t)(end - at);
        ssize_t len = block || sys_fault() ? -1 : copy_file_range(from, &in, to, &out, want, 0);

        if (len < 0 && !block && (errno == ENOSPC || errno == EDQUOT || errno == EIO))
            return -1;
        if (len < 0) { /* two file systems that do not know each other */
            if (!block)
                block = alloc_zero(BLOCK, 1);
            len = sys_fault() ? -1 : pread(from, block, want < BLOCK ? want : BLOCK, at);
            if (len > 0)
                len = sys_fault() ? -1 : pwrite(to, block, (size_t)len, at);
        }
        if (len < 0)
            return -1;
        if (len == 0)
            break; /* it is shorter now: whoever called sees that */
        at += len;
    }
    return 0;
}

/* What becomes shorter meanwhile, whoever called sees. */
static int copy_small(int from, int to, size_t size)
{
    char block[SMALL];
    const ssize_t len = sys_fault() ? -1 : pread(from, block, size, 0);
    const ssize_t written = len <= 0 ? len : sys_fault() ? -1 : pwrite(to, block, (size_t)len, 0);

    if (written >= 0 && written < len)
        errno = ENOSPC;
    return written == len && len >= 0 ? 0 : -1;
}

static int copy_contents(int from, int to, off_t size)
{
    off_t at = 0;

    if (!size)
        return 0;
    if (size <= SMALL)
        return copy_small(from, to, (size_t)size);
    if (!sys_fault() && ioctl(to, FICLONE, from) == 0)
        return 0;
    if (sys_fault() || ftruncate(to, size))
        return -1;
    while (at < size) {
        off_t data = lseek(from, at, SEEK_DATA);
        off_t hole;

        if (data < 0 && errno == ENXIO)
            break;
        if (data < 0)
            data = at; /* knows of no holes */
        hole = lseek(from, data, SEEK_HOLE);
        if (hole < 0 || hole > size)
            hole = size;
        if (copy_bytes(from, to, data, hole))
            return -1;
        at = hole;
    }
    return 0;
}

static int open_path(const struct place *place)
{
    return sys_fault() ? -1 : openat(place->dir, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

/* Not by fchmodat(2): that goes through links, and among the real files somebody else may put one there at any moment. */
int copy_mode(const struct place *to, mode_t mode)
{
    AUTO_CLOSE int fd = open_path(to);
    char path[64];
    struct stat st;

    if (fd < 0 || fstat(fd, &st))
        return -1;
    if (S_ISLNK(st.st_mode)) {
        errno = ELOOP;
        return -1;
    }
    fd_link(fd, path);
    return sys_fault() ? -1 : chmod(path, mode & (S_ISDIR(st.st_mode) ? 07777 : 01777));
}

/* A file of ours, that is open. */
static int dress_file(const struct stat *st, int fd)
{
    const struct timespec times[] = {st->st_atim, st->st_mtim};

    if (geteuid() == 0 && (sys_fault() || fchown(fd, st->st_uid, st->st_gid)))
        return -1;
    if (sys_fault() || fchmod(fd, st->st_mode & 01777))
        return -1;
    return sys_fault() ? -1 : futimens(fd, times);
}

/* A folder, or a link. */
static int dress(const struct stat *st, const struct place *to)
{
    const struct timespec times[] = {st->st_atim, st->st_mtim};

    if (geteuid() == 0 &&
        (sys_fault() || fchownat(to->dir, to->name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW)))
        return -1;
    if (!S_ISLNK(st->st_mode) && copy_mode(to, st->st_mode & 07777))
        return -1;
    return sys_fault() ? -1 : utimensat(to->dir, to->name, times, AT_SYMLINK_NOFOLLOW);
}

static int copy_link(const struct place *from, const struct place *to, const struct stat *st,
                     struct stat *ret_made)
{
    char text[PATH_MAX];
    ssize_t len = sys_fault() ? -1 : readlinkat(from->dir, from->name, text, sizeof text - 1);

    if (len < 0)
        return -1;
    text[len] = '\0';
    if (sys_fault() || symlinkat(text, to->dir, to->name) || dress(st, to))
        return -1;
    return sys_fault() ? -1 : fstatat(to->dir, to->name, ret_made, AT_SYMLINK_NOFOLLOW);
}

static int open_new(const struct place *to)
{
    return sys_fault()
               ? -1
               : openat(to->dir, to->name,
                        O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

static int copy_regular(const struct place *from, const struct place *to, const struct stat *st,
                        struct stat *ret_made)
{
    AUTO_CLOSE int in = sys_fault()
                            ? -1
                            : openat(from->dir, from->name,
                                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    AUTO_CLOSE int out = in < 0 ? -1 : open_new(to);
    struct stat now;

    if (out < 0)
        return -1;
    if (fstat(in, &now) || now.st_ino != st->st_ino || now.st_dev != st->st_dev) {
        errno = ESTALE;
        return -1;
    }
    if (copy_contents(in, out, st->st_size) || copy_attributes(in, out) || dress_file(st, out))
        return -1;
    return sys_fault() ? -1 : fstat(out, ret_made);
}

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_ino == other->st_ino && one->st_dev == other->st_dev &&
           one->st_size == other->st_size && one->st_mode == other->st_mode &&
           one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
           one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

static int fail(const struct place *to, const char *name, struct err *err)
{
    const int error = errno;

    if (error != EEXIST)
        unlinkat(to->dir, to->name, 0);
    if (error == ESTALE)
        return err_set(err, ERR_CONFLICT, "%s changed while it was copied", name);
    errno = error;
    return err_sys(err, "copying %s", name);
}

int copy_file(const struct place *from, const struct place *to, struct stat *ret_from,
              struct stat *ret_made, struct err *err)
{
    struct stat st, again;
    int failed;

    if (sys_fault() || fstatat(from->dir, from->name, &st, AT_SYMLINK_NOFOLLOW))
        return err_sys(err, "copying %s", from->name);
    if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return err_set(err, ERR_CONFLICT, "%s is neither a file nor a link", from->name);
    failed = S_ISLNK(st.st_mode) ? copy_link(from, to, &st, ret_made)
                                 : copy_regular(from, to, &st, ret_made);
    if (failed || sys_fault() || fstatat(from->dir, from->name, &again, AT_SYMLINK_NOFOLLOW))
        return fail(to, from->name, err);
    if (!is_same(&st, &again)) {
        errno = ESTALE;
        return fail(to, from->name, err);
    }
    *ret_from = st;
    return 0;
}

int copy_text(const struct place *like, const char *text, size_t len, const struct place *to,
              struct stat *ret_made, struct err *err)
{
    AUTO_CLOSE int in = open_path(like);
    AUTO_CLOSE int out = -1;
    struct stat st;

    if (in < 0 || sys_fault() || fstat(in, &st))
        return err_sys(err, "copying %s", like->name);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_CONFLICT, "%s is no file", like->name);
    out = open_new(to);
    if (out < 0)
        return err_sys(err, "copying %s", like->name);
    if (fd_write_all(out, text, len, err)) {
        unlinkat(to->dir, to->name, 0);
        return -1;
    }
    clock_gettime(CLOCK_REALTIME, &st.st_mtim);
    if (copy_attributes(in, out) || dress_file(&st, out) || sys_fault() || fstat(out, ret_made))
        return fail(to, like->name, err);
    return 0;
}

int copy_folder(const struct place *from, const struct place *to, struct err *err)
{
    AUTO_CLOSE int in = open_path(from);
    AUTO_CLOSE int out = in < 0 ? -1 : open_path(to);
    struct stat st;

    if (out < 0 || sys_fault() || fstat(in, &st) || copy_attributes(in, out) || dress(&st, to))
        return err_sys(err, "the permissions of the folder %s", from->name);
    return 0;
}
