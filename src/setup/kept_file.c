/* See kept_file.h. A client may write its own file at any time, without a lock that others know. So what is replaced is
 * looked at once more directly before, and what came between is an error; a window of some microseconds stays,
 * and what was in the file then is lost as it would be with two editors. */
#include "setup/kept_file.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE_LIMIT = 64 << 20, BACKUPS_MAX = 1000, GAP_MAX = 16 };

void kept_file_done(struct kept_file *file)
{
    free(file->path);
    buf_done(&file->text);
    *file = (struct kept_file){.path = NULL};
}

/* --- whose it is --- */

static int refuse_owner(const char *path, uid_t owner, struct err *err)
{
    return err_set(err, ERR_FORBIDDEN, "%s belongs to another user (uid %u): run this as that user",
                   path, (unsigned)owner);
}

/* The folder, or of those above it the first that is there: what is missing would be made in it. Only with the first
 * `*ret_is_there`. */
static int check_folder(const char *path, const char *inside, bool *ret_is_there, struct err *err)
{
    AUTO_FREE char *folder = path_parent(path);
    AUTO_FREE char *top = realpath(inside, NULL);
    AUTO_FREE char *real = NULL;
    struct stat st;

    *ret_is_there = false;
    if (!top && errno == ENOENT)
        return 0; /* then all of it is */
    while (!(real = realpath(folder, NULL)) && errno == ENOENT) {
        char *above = path_parent(folder);

        free(folder);
        folder = above;
    }
    if (!real || !top || stat(real, &st))
        return err_sys(err, "%s", folder);
    if (!path_is_within(real, top))
        return err_set(err, ERR_FORBIDDEN,
                       "%s leads to %s, out of %s: change the file there by hand (--print)", folder,
                       real, top);
    if (st.st_uid != geteuid())
        return refuse_owner(real, st.st_uid, err);
    if (st.st_mode & S_IWOTH)
        return err_set(err, ERR_FORBIDDEN, "everybody may write to %s: chmod o-w it first", real);
    free(folder);
    folder = path_parent(path);
    *ret_is_there = access(folder, F_OK) == 0;
    return 0;
}

static int check_file(const char *path, const struct stat *st, struct err *err)
{
    char target[PATH_MAX] = "";

    if (S_ISLNK(st->st_mode)) {
        (void)!readlink(path, target, sizeof target - 1);
        return err_set(err, ERR_FORBIDDEN,
                       "%s is a symlink to %.80s: put the entry there by hand (--print shows it)",
                       path, target);
    }
    if (!S_ISREG(st->st_mode))
        return err_set(err, ERR_FORBIDDEN, "%s is no regular file: move it away first", path);
    if (st->st_uid != geteuid())
        return refuse_owner(path, st->st_uid, err);
    if (st->st_nlink > 1)
        return err_set(err, ERR_FORBIDDEN,
                       "%s has other names (hard links), which would part from it: put the entry "
                       "there by hand (--print shows it)",
                       path);
    return 0;
}

int kept_file_read(const char *path, const char *inside, struct kept_file *ret, struct err *err)
{
    AUTO(kept_file_done) struct kept_file file = {.path = alloc_str(path)};
    AUTO_CLOSE int fd = -1;
    bool has_folder;

    if (check_folder(path, inside, &has_folder, err))
        return -1;
    file.text.max = SIZE_LIMIT;
    buf_append_str(&file.text, "");
    file.is_there = has_folder && lstat(path, &file.st) == 0;
    if (has_folder && !file.is_there && errno != ENOENT)
        return err_sys(err, "%s", path);
    if (file.is_there) {
        if (check_file(path, &file.st, err))
            return -1;
        fd = fd_open_file(AT_FDCWD, path, O_NOFOLLOW, err);
        if (fd < 0)
            return -1;
        if (fstat(fd, &file.st))
            return err_sys(err, "%s", path);
        if (check_file(path, &file.st, err) || buf_read_fd(&file.text, fd, err))
            return -1;
    }
    *ret = file;
    file = (struct kept_file){.path = NULL};
    return 0;
}

/* --- what was kept --- */

static char *backup_name(const struct kept_file *file, unsigned number)
{
    return alloc_strf("%s.cordon-backup-%u", file->path, number);
}

bool kept_file_next(const struct kept_file *file, unsigned *at, struct buf *ret)
{
    for (unsigned i = *at + 1; i < BACKUPS_MAX && i <= *at + GAP_MAX; i++) {
        AUTO_FREE char *name = backup_name(file, i);
        struct err ignored; /* then another one may do */

        buf_done(ret);
        *ret = (struct buf){.max = SIZE_LIMIT};
        if (fd_read_file(name, SIZE_LIMIT, ret, &ignored) == 0) {
            buf_append_str(ret, ""); /* it may be empty */
            *at = i;
            return true;
        }
    }
    return false;
}

bool kept_file_forget(const struct kept_file *file, const struct buf *text)
{
    AUTO(buf_done) struct buf kept = {.max = SIZE_LIMIT};
    bool had_some = false;

    for (unsigned i = 0; kept_file_next(file, &i, &kept);) {
        AUTO_FREE char *name = backup_name(file, i);

        if (kept.len == text->len && !memcmp(kept.data, text->data, text->len))
            had_some |= unlink(name) == 0;
    }
    return had_some;
}

/* A file beside it with this text, whole, whose name nobody else has; caller frees. NULL: nothing is left. */
static char *stage(const struct kept_file *file, const struct buf *text, mode_t mode,
                   struct err *err)
{
    AUTO_FREE char *name = alloc_strf("%s.cordon-new-XXXXXX", file->path);
    AUTO_CLOSE int fd = mkostemp(name, O_CLOEXEC);
    int failed;

    if (fd < 0) {
        err_sys(err, "making a file beside %s", file->path);
        return NULL;
    }
    if (file->is_there && file->st.st_gid != getegid())
        (void)!fchown(fd, (uid_t)-1, file->st.st_gid); /* as far as this user may */
    failed = fd_write_all(fd, text->data, text->len, err);
    if (!failed && (fchmod(fd, mode) || fsync(fd)))
        failed = err_sys(err, "writing");
    if (failed) {
        unlink(name);
        err_wrap(err, "%s", name);
        return NULL;
    }
    return TAKE_PTR(name);
}

/* Gives it a name that nothing has (EEXIST). */
static int give_name(const char *staged, const char *name)
{
    if (renameat2(AT_FDCWD, staged, AT_FDCWD, name, RENAME_NOREPLACE) == 0)
        return 0;
    if ((errno != EINVAL && errno != ENOSYS) || link(staged, name))
        return -1;
    return unlink(staged); /* NFS, say, where a rename cannot tell */
}

static int keep(const struct kept_file *file, char **ret, struct err *err)
{
    AUTO_FREE char *staged = stage(file, &file->text, file->st.st_mode & 07777, err);
    AUTO_FREE char *name = NULL;

    if (!staged)
        return -1;
    for (unsigned i = 1; i < BACKUPS_MAX; i++) {
        free(name);
        name = backup_name(file, i);
        if (give_name(staged, name) == 0) {
            *ret = TAKE_PTR(name);
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    err_sys(err, "making %s", name);
    unlink(staged);
    return -1;
}

/* --- changes --- */

static int refuse_changed(const struct kept_file *file, struct err *err)
{
    return err_set(err, ERR_FORBIDDEN,
                   "%s was changed meanwhile; nothing was written: try again, with the client "
                   "closed",
                   file->path);
}

/* It is as it was read. */
static int check_same(const struct kept_file *file, struct err *err)
{
    struct stat st;
    bool is_there = lstat(file->path, &st) == 0;
    bool is_same = is_there == file->is_there &&
                   (!is_there || (st.st_ino == file->st.st_ino && st.st_dev == file->st.st_dev &&
                                  st.st_size == file->st.st_size &&
                                  st.st_mtim.tv_sec == file->st.st_mtim.tv_sec &&
                                  st.st_mtim.tv_nsec == file->st.st_mtim.tv_nsec));

    return is_same ? 0 : refuse_changed(file, err);
}

static int put(const struct kept_file *file, const char *staged, struct err *err)
{
    if ((file->is_there ? rename(staged, file->path) : give_name(staged, file->path)) == 0)
        return 0;
    return errno == EEXIST ? refuse_changed(file, err) : err_sys(err, "replacing %s", file->path);
}

int kept_file_replace(const struct kept_file *file, const struct buf *text, mode_t mode,
                      char **ret_backup, struct err *err)
{
    AUTO_FREE char *folder = path_parent(file->path);
    AUTO_FREE char *backup = NULL;
    AUTO_FREE char *staged = NULL;
    AUTO_CLOSE int dir = -1;

    if (fd_make_dirs(folder, mode & 044 ? 0755 : 0700, err))
        return -1;
    staged = stage(file, text, file->is_there ? file->st.st_mode & 07777 : mode, err);
    if (!staged)
        return -1;
    if ((file->is_there && keep(file, &backup, err)) || check_same(file, err) ||
        put(file, staged, err)) {
        unlink(staged);
        if (backup)
            unlink(backup);
        return -1;
    }
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0)
        (void)fsync(dir);
    *ret_backup = TAKE_PTR(backup);
    return 0;
}

int kept_file_remove(const struct kept_file *file, char **ret_backup, struct err *err)
{
    AUTO_FREE char *backup = NULL;

    if ((ret_backup && keep(file, &backup, err)) || check_same(file, err)) {
        if (backup)
            unlink(backup);
        return -1;
    }
    if (unlink(file->path))
        return err_sys(err, "removing %s", file->path);
    if (ret_backup)
        *ret_backup = TAKE_PTR(backup);
    return 0;
}
