/* See target.h. Whether a link may be followed is left to the kernel (O_NOFOLLOW), in the very call
 * that opens, from one directory to the next, so no process can put a link there between a check and
 * its use. (openat2(2) would do it at once, but commands in a sandbox do not have it: its arguments
 * are out of the sight of seccomp.) The checks that do come before an open keep us from opening what
 * is no file (a pipe, a device); the answer counts only once the open file itself was looked at. */
#include "files/target.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MODE = 0666 };

void target_done(struct target *target)
{
    free(target->path);
    target->path = NULL;
}

json_t *target_uri_to_json(const char *path)
{
    AUTO_FREE char *uri = file_uri_format(path);

    return json_string(uri);
}

int target_flag(const struct json_at *params, const char *key, bool *ret, struct err *err)
{
    struct json_at flag = json_at_field(params, key);

    return json_at_is_given(&flag) ? json_at_bool(&flag, ret, err) : 0;
}

int target_read(const struct json_at *params, const char *key, struct target *ret, struct err *err)
{
    struct json_at at = json_at_field(params, key);
    AUTO_FREE char *path = NULL;
    const char *uri = NULL;
    bool follows = true;

    if (json_at_string(&at, &uri, err) || target_flag(params, "followSymlinks", &follows, err))
        return -1;
    path = file_uri_parse(uri, err);
    if (!path)
        return -1;
    *ret = (struct target){.path = path_clean("/", path), .no_follow = !follows};
    return 0;
}

/* Never waits for the other end of a pipe, and takes no terminal. */
static int with_care(int flags)
{
    return flags | (flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY);
}

/* The last component. With O_PATH a link opens as itself. */
static int open_last(int dir, const char *name, int flags, mode_t mode)
{
    int how = with_care(flags) | O_CLOEXEC | O_NOFOLLOW;
    /* allow blocking openat: with_care() */
    AUTO_CLOSE int fd = sys_fault() ? -1 : openat(dir, *name ? name : ".", how, mode);
    struct stat st;

    if (fd >= 0 && (flags & O_PATH) && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode)) {
        errno = ELOOP;
        return -1;
    }
    return TAKE_FD(fd);
}

int target_open_strict(int dir, const char *path, int flags, mode_t mode)
{
    AUTO_CLOSE int here = -1; /* -1: still in `dir` */

    for (;;) {
        size_t len = strcspn(path, "/");
        AUTO_FREE char *name = NULL;
        int next;

        if (!path[len])
            return open_last(here < 0 ? dir : here, path, flags, mode);
        name = alloc_strn(path, len);
        next = openat(here < 0 ? dir : here, *name ? name : "/",
                      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return -1;
        if (here >= 0)
            close(here);
        here = next;
        path += len + 1;
    }
}

static int open_at(const struct target *target, const char *path, int flags, mode_t mode)
{
    if (target->no_follow)
        return target_open_strict(AT_FDCWD, path, flags, mode);
    /* allow blocking openat: with_care() */
    return sys_fault() ? -1 : openat(AT_FDCWD, path, with_care(flags) | O_CLOEXEC, mode);
}

int target_open(const struct target *target, int flags, mode_t mode, struct err *err)
{
    int fd = open_at(target, target->path, flags, mode);

    return fd < 0 ? err_sys(err, "opening %s", target->path) : fd;
}

int target_stat(const struct target *target, struct stat *ret, struct err *err)
{
    AUTO_CLOSE int fd = target_open(target, O_PATH, 0, err);

    if (fd < 0)
        return -1;
    if (sys_fault() || fstat(fd, ret))
        return err_sys(err, "looking at %s", target->path);
    return 0;
}

static int check_file(const struct target *target, const struct stat *st, int flags,
                      struct err *err)
{
    if (S_ISREG(st->st_mode))
        return 0;
    if (S_ISDIR(st->st_mode) && (flags & O_ACCMODE) != O_RDONLY) {
        errno = EISDIR;
        return err_sys(err, "opening %s", target->path);
    }
    return err_set(err, ERR_INVALID, "path `%s` is not a file", target->path);
}

int target_open_file(const struct target *target, int flags, struct err *err)
{
    struct err missing;
    struct stat st;
    AUTO_CLOSE int fd = -1;

    if (target_stat(target, &st, &missing) == 0) {
        if (check_file(target, &st, flags, err))
            return -1;
    } else if (missing.sys != ENOENT || !(flags & O_CREAT)) {
        *err = missing;
        return -1;
    }
    fd = target_open(target, flags, FILE_MODE, err);
    if (fd < 0)
        return -1;
    if (sys_fault() || fstat(fd, &st))
        return err_sys(err, "looking at %s", target->path);
    return check_file(target, &st, flags, err) ? -1 : TAKE_FD(fd);
}

int target_open_parent(const struct target *target, const char **ret_name, struct err *err)
{
    AUTO_FREE char *parent = path_parent(target->path);
    struct target dir = {.path = parent, .no_follow = target->no_follow};
    int fd;

    if (path_depth(target->path) == 0)
        return err_set(err, ERR_INVALID, "path `/` is the root directory");
    fd = open_at(&dir, parent, O_PATH | O_DIRECTORY, 0);
    if (fd < 0)
        return err_sys(err, "opening %s", parent);
    *ret_name = path_name(target->path);
    return fd;
}

/* --- reading a directory --- */

int dir_open_fd(struct dir *ret, int fd, struct err *err)
{
    DIR *stream = sys_fault() ? NULL : fdopendir(fd);

    if (!stream) {
        err_sys(err, "reading a directory");
        close(fd);
        return -1;
    }
    ret->stream = stream;
    return 0;
}

int dir_open(struct dir *ret, const struct target *target, struct err *err)
{
    int fd = target_open(target, O_RDONLY | O_DIRECTORY, 0, err);

    return fd < 0 ? -1 : dir_open_fd(ret, fd, err);
}

int dir_open_at(struct dir *ret, int dir, const char *name, struct err *err)
{
    int fd = sys_fault() ? -1 : openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return err_sys(err, "opening the directory %s", name);
    return dir_open_fd(ret, fd, err);
}

void dir_close(struct dir *dir)
{
    if (dir->stream)
        closedir(dir->stream);
    dir->stream = NULL;
}

int dir_next(struct dir *dir, const struct dirent **ret, struct err *err)
{
    for (;;) {
        const struct dirent *entry;

        errno = 0;
        entry = readdir(dir->stream);
        if (!entry)
            return errno ? err_sys(err, "reading a directory") : 0;
        if (str_eq(entry->d_name, ".") || str_eq(entry->d_name, ".."))
            continue;
        *ret = entry;
        return 1;
    }
}
