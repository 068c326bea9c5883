/* See dir.h. Paths are walked by hand, one openat(2) with O_NOFOLLOW for each component, and
 * they are clean: without "..", so there is no way out. (openat2(2) would do it in one call, but
 * does not exist inside Cordon's sandbox, where a patch is applied.)
 *
 * A file is looked at before it is opened for reading, because opening a device or a fifo may
 * already do something.
 *
 * A patch that needs ".." or another directory is meant for another place: refusing such names
 * gives a clear message; that nothing outside can be reached holds without this. */
#include "patch/dir.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- names --- */

static bool has_dot_dot(const char *path)
{
    for (size_t len; *path; path += len, path += strspn(path, "/")) {
        len = strcspn(path, "/");
        if (len == 2 && memcmp(path, "..", 2) == 0)
            return true;
    }
    return false;
}

static bool has_own_name(const char *path)
{
    for (const char *at = path; (at = strstr(at, NAMES_OWN)); at++)
        if (at == path || at[-1] == '/')
            return true;
    return false;
}

static int check_names(const char *path, struct err *err)
{
    if (has_dot_dot(path))
        return err_set(
            err, ERR_FORBIDDEN,
            "%s: a patch may not use \"..\"; name the file from the directory of the patch", path);
    if (has_own_name(path))
        return err_set(err, ERR_FORBIDDEN,
                       "%s: names that begin with " NAMES_OWN " belong to Cordon itself", path);
    if (str_ends(path, "/") || str_ends(path, "/.") || str_eq(path, "."))
        return err_set(err, ERR_INVALID, "%s names a directory; a patch is about files", path);
    return 0;
}

char *names_below(const char *root, const char *path, struct err *err)
{
    AUTO_FREE char *whole = NULL;
    size_t skip = str_eq(root, "/") ? 1 : strlen(root) + 1;

    if (check_names(path, err))
        return NULL;
    whole = path_clean(root, path);
    if (!path_is_within(whole, root) || strlen(whole) <= skip) {
        err_set(err, ERR_FORBIDDEN, "%s is not below the directory of the patch, %s", path, root);
        return NULL;
    }
    return alloc_str(whole + skip);
}

bool names_are_clean(const char *path)
{
    AUTO_FREE char *whole = alloc_strf("/%s", path);

    return *path && path_is_clean(whole) && !has_own_name(path);
}

bool names_within(const char *path, const char *root)
{
    size_t len = strlen(root);

    return strncmp(path, root, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

/* --- files --- */

int patch_dir_open(const char *path, struct patch_dir *ret, struct err *err)
{
    char canonical[PATH_MAX];
    int fd;

    if (!realpath(path, canonical))
        return err_sys(err, "%s", path);
    fd = sys_fault() ? -1 : open(canonical, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "opening the directory %s", canonical);
    *ret = (struct patch_dir){.fd = fd, .path = alloc_str(canonical)};
    return 0;
}

void patch_dir_done(struct patch_dir *root)
{
    auto_close(&root->fd);
    free(root->path);
    *root = (struct patch_dir){.fd = -1};
}

struct stamp stamp_of(const struct stat *st)
{
    return (struct stamp){.inode = st->st_ino,
                          .size = (uint64_t)st->st_size,
                          .mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000U +
                                      (uint64_t)st->st_mtim.tv_nsec};
}

/* What an errno of opening means here. */
static int fail_opening(const char *path, struct err *err)
{
    if (errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "there is no file %s", path);
    return err_sys(err, "opening %s", path);
}

static int fail_kind(const char *path, mode_t mode, struct err *err)
{
    if (S_ISLNK(mode))
        return err_set(err, ERR_FORBIDDEN,
                       "%s is a symbolic link, which a patch does not follow: name the file itself",
                       path);
    if (S_ISDIR(mode))
        return err_set(err, ERR_INVALID, "%s is a directory; a patch is about files", path);
    if (S_ISREG(mode))
        return err_set(err, ERR_INVALID, "%s is a file and not a directory", path);
    return err_set(err, ERR_FORBIDDEN, "%s is not a regular file but a device, socket or pipe",
                   path);
}

/* The directory `part` below `dir`; `len` bytes of `path` name it in messages. */
static int open_dir(int dir, const char *part, const char *path, size_t len, struct err *err)
{
    AUTO_FREE char *shown = alloc_strn(path, len);
    struct stat st;
    int fd = sys_fault() ? -1 : openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0)
        return fd;
    if (errno == ENOTDIR && fstatat(dir, part, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return fail_kind(shown, st.st_mode, err);
    return fail_opening(shown, err);
}

int patch_dir_open_parent(const struct patch_dir *root, const char *path, const char **ret_name,
                          struct err *err)
{
    AUTO_CLOSE int dir = -1;
    const char *name = path;

    for (const char *slash; (slash = strchr(name, '/')); name = slash + 1) {
        AUTO_FREE char *part = alloc_strn(name, (size_t)(slash - name));
        int next = open_dir(dir < 0 ? root->fd : dir, part, path, (size_t)(slash - path), err);

        auto_close(&dir);
        dir = next;
        if (dir < 0)
            return -1;
    }
    if (dir < 0)
        dir = sys_fault() ? -1 : fcntl(root->fd, F_DUPFD_CLOEXEC, 3);
    if (dir < 0)
        return err_sys(err, "opening %s", root->path);
    *ret_name = name;
    return TAKE_FD(dir);
}

static int check_kind(const char *path, const struct stat *st, struct err *err)
{
    if (!S_ISREG(st->st_mode))
        return fail_kind(path, st->st_mode, err);
    if (st->st_mode & (S_ISUID | S_ISGID))
        return err_set(err, ERR_FORBIDDEN,
                       "%s has the set-user-ID or set-group-ID bit; a patch leaves such files "
                       "alone",
                       path);
    return 0;
}

int patch_dir_open_file(const struct patch_dir *root, const char *path, struct stat *ret_st,
                        struct err *err)
{
    const char *name;
    AUTO_CLOSE int dir = patch_dir_open_parent(root, path, &name, err);
    AUTO_CLOSE int fd = -1;
    struct stat st;

    if (dir < 0)
        return -1;
    if (sys_fault() || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return fail_opening(path, err);
    if (check_kind(path, &st, err))
        return -1;
    fd = sys_fault() ? -1
                     : openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return fail_opening(path, err);
    if (sys_fault() || fstat(fd, &st))
        return err_sys(err, "looking at %s", path);
    if (check_kind(path, &st, err))
        return -1;
    *ret_st = st;
    return TAKE_FD(fd);
}

static int source_read(void *data, const char *path, size_t max, struct content *ret,
                       struct err *err)
{
    AUTO(buf_done) struct buf text;
    AUTO_CLOSE int fd = -1;
    struct stat st;

    buf_init(&text, max);
    fd = patch_dir_open_file(data, path, &st, err);
    if (fd < 0 && err->code == ERR_NOT_FOUND) {
        *ret = (struct content){.text = NULL};
        return 0;
    }
    if (fd < 0)
        return -1;
    if (buf_read_fd(&text, fd, err))
        return err_wrap(err, "%s", path);
    *ret = (struct content){.len = text.len, .stamp = stamp_of(&st)};
    ret->text = buf_take(&text);
    return 0;
}

struct source patch_dir_source(struct patch_dir *root)
{
    return (struct source){.data = root, .read = source_read};
}
