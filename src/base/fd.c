/* See fd.h. */
#include "base/fd.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEASE_WAIT_NS (250 * CLOCK_NS_PER_MS)

int fd_kind_at(int dir, const char *path, enum fd_kind *ret_kind, struct err *err)
{
    struct stat st;

    if (!sys_fault() && fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        *ret_kind = S_ISDIR(st.st_mode) ? FD_DIR : FD_OTHER;
        return 0;
    }
    if (errno != ENOENT && errno != ENOTDIR)
        return err_sys(err, "looking at %s", path);
    *ret_kind = FD_MISSING;
    return 0;
}

int fd_open_path_strict(const char *path, struct err *err)
{
    struct sys_open_how how = {
        /* without O_NOFOLLOW, which would open a link in the last place instead of refusing it */
        .flags = O_PATH | O_CLOEXEC,
        .resolve = SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS,
    };
    int fd = sys_openat2(AT_FDCWD, path, &how);

    if (fd < 0)
        return err_sys(err, "opening %s without following links", path);
    return fd;
}

int fd_open_file(int dir, const char *path, int flags, struct err *err)
{
    AUTO_CLOSE int name = sys_fault() ? -1 : openat(dir, path, O_PATH | O_CLOEXEC | flags);
    AUTO_CLOSE int fd = -1;
    struct stat st;
    char again[64];

    if (name < 0 || sys_fault() || fstat(name, &st))
        return err_sys(err, "opening %s", path);
    if (S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : ELOOP;
        return err_sys(err, "opening %s", path);
    }
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "%s is not a regular file", path);
    snprintf(again, sizeof again, "/proc/self/fd/%d", name);
    fd = sys_fault() ? -1 : lock_open(again, O_RDONLY, LEASE_WAIT_NS);
    if (fd < 0 && errno == ENOENT)
        errno = EIO; /* the file is there, and /proc is not */
    return fd < 0 ? err_sys(err, "opening %s", path) : TAKE_FD(fd);
}

static int read_whole(int fd, const char *path, size_t max, struct buf *ret, struct err *err)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, max);
    if (buf_read_fd(&text, fd, err))
        return err_wrap(err, "%s", path);
    *ret = text;
    text = (struct buf){0};
    return 0;
}

int fd_read_file(const char *path, size_t max, struct buf *ret, struct err *err)
{
    AUTO_CLOSE int fd = fd_open_file(AT_FDCWD, path, 0, err);

    return fd < 0 ? -1 : read_whole(fd, path, max, ret, err);
}

int fd_read_given(const char *path, size_t max, struct buf *ret, struct err *err)
{
    /* allow blocking open: the person named it, and a pipe is waited for */
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return err_sys(err, "opening %s", path);
    return read_whole(fd, path, max, ret, err);
}

ssize_t fd_read_block(int fd, void *ret, size_t size)
{
    size_t len = 0;

    while (len < size) {
        ssize_t n = sys_fault() ? -1 : read(fd, (char *)ret + len, size - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

/* A home that does not exist ("/nonexistent" of service users, a mistyped one) is not made, by whoever needs
 * a directory in it. */
static int check_home(const char *path, struct err *err)
{
    const char *home = getenv("HOME");
    size_t len = home ? strlen(home) : 0;

    while (len > 1 && home[len - 1] == '/')
        len--;
    if (len > 1 && strncmp(path, home, len) == 0 && (!path[len] || path[len] == '/') &&
        access(home, F_OK))
        return err_sys(err, "the home directory %s", home);
    return 0;
}

int fd_make_dirs(const char *path, mode_t mode, struct err *err)
{
    AUTO_FREE char *copy = alloc_str(path);

    if (check_home(path, err))
        return -1;
    for (char *slash = copy + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        if (mkdir(copy, mode) && errno != EEXIST)
            return err_sys(err, "%s", copy);
    }
    return mkdir(copy, mode) && errno != EEXIST ? err_sys(err, "%s", copy) : 0;
}

int fd_write_all(int fd, const void *data, size_t len, struct err *err)
{
    const char *next = data;

    while (len) {
        ssize_t n = sys_fault() ? -1 : write(fd, next, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "writing");
        next += n;
        len -= (size_t)n;
    }
    return 0;
}

/* What a writer that crashed left beside it is in the way of nobody else's. */
int fd_replace_file(const char *path, const struct buf *text, mode_t mode, struct err *err)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    AUTO_FREE char *temporary = alloc_strf("%s.new", path);
    AUTO_CLOSE int fd = -1;
    struct stat st;

    unlink(temporary);
    if (stat(path, &st) == 0)
        mode = st.st_mode & 07777;
    fd = sys_fault() ? -1 : open(temporary, flags, 0600);
    if (fd < 0)
        return err_sys(err, "making %s", temporary);
    if (fd_write_all(fd, text->data, text->len, err) == 0) {
        if (!sys_fault() && fchmod(fd, mode) == 0 && !sys_fault() && fsync(fd) == 0 &&
            !sys_fault() && rename(temporary, path) == 0)
            return 0;
        err_sys(err, "replacing %s", path);
    }
    unlink(temporary);
    return -1;
}

int fd_sealed_memory(const char *name, const void *data, size_t len, struct err *err)
{
    const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    AUTO_CLOSE int fd = sys_fault() ? -1 : memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return err_sys(err, "making an anonymous file");
    if (fd_write_all(fd, data, len, err))
        return -1;
    if (sys_fault() || fcntl(fd, F_ADD_SEALS, seals) || lseek(fd, 0, SEEK_SET))
        return err_sys(err, "sealing an anonymous file");
    return TAKE_FD(fd);
}

int fd_reopen_for_writing(int fd)
{
    char name[64];

    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int fd_set_nonblocking(int fd, bool on, struct err *err)
{
    int flags = sys_fault() ? -1 : fcntl(fd, F_GETFL);

    if (flags < 0)
        return err_sys(err, "reading the flags of descriptor %d", fd);
    flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    if (sys_fault() || fcntl(fd, F_SETFL, flags))
        return err_sys(err, "setting the flags of descriptor %d", fd);
    return 0;
}

void fd_raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* The kernel gives the lowest number that is free, so that it is enough to ask for a high one. */
bool fd_are_few(void)
{
    enum { FEW = 32, PART = 8, FEW_MAX = 128 };
    AUTO_CLOSE int any = open("/", O_PATH | O_CLOEXEC);
    AUTO_CLOSE int high = -1;
    struct rlimit limit;
    rlim_t few;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT32_MAX)
        return any < 0;
    few = limit.rlim_cur / PART;
    few = few < FEW ? FEW : few > FEW_MAX ? FEW_MAX : few;
    few = few < limit.rlim_cur ? limit.rlim_cur - few : 0;
    high = any < 0 ? -1 : fcntl(any, F_DUPFD_CLOEXEC, (int)few);
    return high != (int)few;
}
