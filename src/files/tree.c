/* fs/copy and fs/remove: a file, a link (as a link, never what it leads to), a directory, or a whole
 * tree, while another process may be changing it.
 *
 * A tree is copied directory by directory from a list of what is still to be done, each a path
 * relative to the two roots, which are held open. Paths are opened below them without following any
 * link, so a link that appears on the way does not lead the copy out. What is neither file,
 * directory nor link is left out of trees. Modes are copied, without the set-id bits.
 *
 * For removing, every name is removed from a directory that is held open, and a directory is entered
 * only if it is no link. The way up again is the descriptor of the directory above, as long as not
 * too many are open; from there on "..", which has to be the directory that we came from. No
 * recursion, and no limit to the depth. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/sys.h"
#include "files/call.h"
#include "files/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- copying --- */

enum { COPY_MODE = 0777, COPY_STEP = 1 << 30 };

/* Where a thing is copied from and to. */
struct way {
    int from;
    const char *name;
    int to;
    const char *new_name;
};

/* --- one file, one link --- */

/* In the kernel, by whatever means both file systems have; sendfile(2) for the others. */
static int copy_bytes(int from, int to, const char *name, struct err *err)
{
    ssize_t n = 1;
    bool by_range = true;

    while (n > 0) {
        n = sys_fault() ? -1
            : by_range  ? copy_file_range(from, NULL, to, NULL, COPY_STEP, 0)
                        : sendfile(to, from, NULL, COPY_STEP);
        if (n < 0 && errno == EINTR) {
            n = 1;
        } else if (by_range && (n == 0 || (n < 0 && (errno == EXDEV || errno == EINVAL ||
                                                     errno == EOPNOTSUPP || errno == ENOSYS)))) {
            by_range = false; /* files of /proc end at once when copied by range */
            n = 1;
        }
    }
    return n < 0 ? err_sys(err, "copying %s", name) : 0;
}

/* The source, once more looked at now that it is open. */
static int open_source(const struct way *way, struct stat *ret, struct err *err)
{
    AUTO_CLOSE int fd =
        openat(way->from, way->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (sys_fault() || fd < 0 || fstat(fd, ret))
        return err_sys(err, "opening %s", way->name);
    if (!S_ISREG(ret->st_mode))
        return err_set(err, ERR_INVALID, "path `%s` is not a file", way->name);
    return TAKE_FD(fd);
}

/* Not truncated yet: it could be the source itself. */
static int open_copy(const struct way *way, const struct stat *source, int flags, struct err *err)
{
    AUTO_CLOSE int fd = openat(way->to, way->new_name,
                               O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags,
                               source->st_mode & COPY_MODE);
    struct stat st;

    if (sys_fault() || fd < 0 || fstat(fd, &st))
        return err_sys(err, "opening %s", way->new_name);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "path `%s` is not a file", way->new_name);
    if (st.st_dev == source->st_dev && st.st_ino == source->st_ino)
        return err_set(err, ERR_INVALID, "`%s` is the file that is to be copied", way->new_name);
    if (sys_fault() || ftruncate(fd, 0))
        return err_sys(err, "emptying %s", way->new_name);
    return TAKE_FD(fd);
}

/* `flags`: O_NOFOLLOW when the copy may not be written through a link. */
static int copy_file(const struct way *way, int flags, struct err *err)
{
    struct stat st;
    AUTO_CLOSE int from = open_source(way, &st, err);
    AUTO_CLOSE int to = from < 0 ? -1 : open_copy(way, &st, flags, err);

    if (to < 0 || copy_bytes(from, to, way->name, err))
        return -1;
    if ((sys_fault() || fchmod(to, st.st_mode & COPY_MODE)) &&
        errno != EPERM) /* another user's file stays so */
        return err_sys(err, "setting the mode of %s", way->new_name);
    return 0;
}

static int copy_link(const struct way *way, struct err *err)
{
    char text[PATH_MAX];
    ssize_t len = readlinkat(way->from, way->name, text, sizeof text - 1);

    if (len < 0)
        return err_sys(err, "reading the link %s", way->name);
    text[len] = '\0';
    if (sys_fault() || symlinkat(text, way->to, way->new_name))
        return err_sys(err, "making the link %s", way->new_name);
    return 0;
}

/* --- a tree --- */

/* A directory of the tree; what is copied meanwhile into a place below itself ends here. */
static int copy_dir(struct strv *todo, const char *path, const struct way *way, struct err *err)
{
    struct stat st;

    if ((sys_fault() || mkdirat(way->to, way->new_name, COPY_MODE)) && errno != EEXIST)
        return err_sys(err, "making the directory %s", way->new_name);
    if (fstatat(way->to, way->new_name, &st, AT_SYMLINK_NOFOLLOW))
        return err_sys(err, "looking at %s", way->new_name);
    if (!S_ISDIR(st.st_mode)) {
        errno = S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
        return err_sys(err, "making the directory %s", way->new_name);
    }
    strv_push_take(todo, path_join(path, way->name));
    return 0;
}

/* Directories are added to `todo`, relative to the roots. */
static int copy_name(struct strv *todo, const char *path, const struct way *way, struct err *err)
{
    struct stat st;

    if (fstatat(way->from, way->name, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? 0 : err_sys(err, "looking at %s", way->name);
    if (S_ISDIR(st.st_mode))
        return copy_dir(todo, path, way, err);
    if (S_ISLNK(st.st_mode))
        return copy_link(way, err);
    return S_ISREG(st.st_mode) ? copy_file(way, O_NOFOLLOW, err) : 0;
}

/* One directory of a tree, between two roots. */
static int copy_level(const struct way *roots, struct strv *todo, struct err *err)
{
    const char *path = roots->name;
    AUTO(dir_close) struct dir dir = {0};
    int from = target_open_strict(roots->from, path, O_RDONLY | O_DIRECTORY, 0);
    AUTO_CLOSE int to = -1;
    const struct dirent *entry = NULL;
    int status;

    if (from < 0)
        return err_sys(err, "opening the directory %s", path);
    if (dir_open_fd(&dir, from, err))
        return -1;
    to = target_open_strict(roots->to, path, O_PATH | O_DIRECTORY, 0);
    if (to < 0)
        return err_sys(err, "opening the directory %s of the copy", path);
    while ((status = dir_next(&dir, &entry, err)) > 0) {
        const struct way way = {
            .from = dirfd(dir.stream), .name = entry->d_name, .to = to, .new_name = entry->d_name};

        if (copy_name(todo, path, &way, err))
            return -1;
    }
    return status;
}

/* --- the call --- */

/* What a path will mean once its missing directories are made; NULL with errno. Caller frees. */
static char *would_be(const char *path)
{
    AUTO_FREE char *rest = alloc_str(path_name(path));
    AUTO_FREE char *above = path_parent(path);

    for (;;) {
        AUTO_FREE char *real = realpath(above, NULL);
        char *longer;

        if (real)
            return path_join(real, rest);
        if (errno != ENOENT || str_eq(above, "/"))
            return NULL;
        longer = path_join(path_name(above), rest);
        free(rest);
        rest = longer;
        longer = path_parent(above);
        free(above);
        above = longer;
    }
}

/* A directory is not to be copied to where it is, or below. */
static int check_apart(const struct target *from, const struct target *to, struct err *err)
{
    AUTO_FREE char *source = realpath(from->path, NULL);
    AUTO_FREE char *copy = NULL;

    if (!source)
        return err_sys(err, "resolving %s", from->path);
    copy = realpath(to->path, NULL);
    if (!copy) /* where it would be: below the first directory that is there */
        copy = would_be(to->path);
    if (!copy)
        return err_sys(err, "resolving %s", to->path);
    if (path_is_within(copy, source))
        return err_set(err, ERR_INVALID,
                       "fs/copy cannot copy a directory to itself or one of its descendants");
    return 0;
}

/* As the original makes them for a directory; a file wants its own to be there. */
static int make_parents(const struct target *to, struct err *err)
{
    AUTO_FREE char *parent = path_parent(to->path);

    if (to->no_follow || access(parent, F_OK) == 0)
        return 0; /* or it is an error of what comes next */
    return fd_make_dirs(parent, COPY_MODE, err);
}

static int copy_root(const struct target *from, const struct target *to, struct err *err)
{
    AUTO_CLOSE int source = -1;
    AUTO_CLOSE int copy = -1;
    AUTO(strv_done) struct strv todo = {0};

    if (check_apart(from, to, err) || make_parents(to, err))
        return -1;
    source = target_open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, err);
    if (source < 0)
        return -1;
    if ((sys_fault() || mkdir(to->path, COPY_MODE)) && errno != EEXIST)
        return err_sys(err, "making the directory %s", to->path);
    copy = target_open(to, O_PATH | O_DIRECTORY, 0, err);
    if (copy < 0)
        return -1;
    strv_push(&todo, ".");
    for (size_t next = 0; next < todo.len; next++) {
        AUTO_FREE char *path = alloc_str(todo.items[next]);
        const struct way way = {.from = source, .name = path, .to = copy, .new_name = path};

        if (copy_level(&way, &todo, err))
            return -1;
    }
    return 0;
}

static int copy_target(const struct target *from, const struct target *to, bool recursive,
                       struct err *err)
{
    const struct way way = {
        .from = AT_FDCWD, .name = from->path, .to = AT_FDCWD, .new_name = to->path};
    struct stat st;

    if (sys_fault() || lstat(from->path, &st))
        return err_sys(err, "looking at %s", from->path);
    if (S_ISLNK(st.st_mode))
        return copy_link(&way, err);
    if (S_ISREG(st.st_mode))
        return copy_file(&way, 0, err);
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_INVALID,
                       "fs/copy only supports regular files, directories, and symlinks");
    if (!recursive)
        return err_set(err, ERR_INVALID,
                       "fs/copy requires recursive: true when sourcePath is a directory");
    return copy_root(from, to, err);
}

int files_copy(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target from = {0};
    AUTO(target_done) struct target to = {0};
    struct json_at flag = json_at_field(&request->params, "recursive");
    bool recursive = false;

    if (target_read(&request->params, "sourcePath", &from, err) ||
        target_read(&request->params, "destinationPath", &to, err) ||
        json_at_bool(&flag, &recursive, err) || copy_target(&from, &to, recursive, err))
        return -1;
    return reply_str(reply, "{}", err);
}

/* --- removing --- */

enum { OPEN_MAX_LEVELS = 64 };

/* One directory of the way down. */
struct level {
    char *name; /* in the directory above; owned */
    struct dir dir;
    dev_t dev;
    ino_t ino;
};

struct removal {
    int top; /* the directory that the tree's root is in; borrowed */
    struct level *levels;
    size_t len;
    size_t cap;
};

static void level_done(struct level *level)
{
    dir_close(&level->dir);
    free(level->name);
}

static void removal_done(struct removal *removal)
{
    while (removal->len)
        level_done(&removal->levels[--removal->len]);
    free(removal->levels);
}

static int removal_at(const struct removal *removal)
{
    if (removal->len == 0)
        return removal->top;
    return dirfd(removal->levels[removal->len - 1].dir.stream);
}

static int removal_enter(struct removal *removal, const char *name, struct err *err)
{
    struct level level = {0};
    struct stat st;

    if (dir_open_at(&level.dir, removal_at(removal), name, err))
        return -1;
    if (sys_fault() || fstat(dirfd(level.dir.stream), &st)) {
        dir_close(&level.dir);
        return err_sys(err, "looking at the directory %s", name);
    }
    level.dev = st.st_dev;
    level.ino = st.st_ino;
    level.name = alloc_str(name);
    removal->levels =
        alloc_grow(removal->levels, removal->len, &removal->cap, sizeof *removal->levels);
    removal->levels[removal->len++] = level;
    if (removal->len > OPEN_MAX_LEVELS)
        dir_close(&removal->levels[removal->len - 1 - OPEN_MAX_LEVELS].dir);
    return 0;
}

/* Opens the directory of `upper` again, from inside the one below it. */
static int reopen(struct level *upper, int below, struct err *err)
{
    AUTO_CLOSE int fd = openat(below, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st))
        return err_sys(err, "going back up to %s", upper->name);
    if (st.st_dev != upper->dev || st.st_ino != upper->ino)
        return err_set(err, ERR_FORBIDDEN, "the directory %s was moved while it was removed",
                       upper->name);
    return dir_open_fd(&upper->dir, TAKE_FD(fd), err);
}

/* The innermost directory is empty: goes up and removes it there. */
static int removal_leave(struct removal *removal, struct err *err)
{
    struct level *level = &removal->levels[removal->len - 1];
    struct level *upper = removal->len > 1 ? level - 1 : NULL;
    AUTO_FREE char *name = NULL;

    if (upper && !upper->dir.stream && reopen(upper, dirfd(level->dir.stream), err))
        return -1;
    name = TAKE_PTR(level->name);
    level_done(level);
    removal->len--;
    if (sys_fault() || unlinkat(removal_at(removal), name, AT_REMOVEDIR))
        return err_sys(err, "removing the directory %s", name);
    return 0;
}

/* Takes names away until there are none (0) or one is a directory that was entered (1). */
static int removal_empty(struct removal *removal, struct err *err)
{
    struct dir *dir = &removal->levels[removal->len - 1].dir;
    const struct dirent *entry = NULL;
    int status;

    while ((status = dir_next(dir, &entry, err)) > 0) {
        if (entry->d_type != DT_DIR && unlinkat(dirfd(dir->stream), entry->d_name, 0) == 0)
            continue;
        if (entry->d_type != DT_DIR && errno == ENOENT) /* another process was faster */
            continue;
        if (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
            return err_sys(err, "removing %s", entry->d_name);
        return removal_enter(removal, entry->d_name, err) ? -1 : 1;
    }
    return status;
}

static int remove_tree(int dir, const char *name, struct err *err)
{
    AUTO(removal_done) struct removal removal = {.top = dir};

    if (removal_enter(&removal, name, err))
        return -1;
    while (removal.len) {
        int status = removal_empty(&removal, err);

        if (status < 0 || (status == 0 && removal_leave(&removal, err)))
            return -1;
    }
    return 0;
}

static int remove_target(const struct target *target, bool recursive, struct err *err)
{
    const char *name = NULL;
    AUTO_CLOSE int dir = target_open_parent(target, &name, err);
    struct stat st;

    if (dir < 0)
        return -1;
    if (sys_fault() || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return err_sys(err, "looking at %s", target->path);
    if (S_ISDIR(st.st_mode) && recursive)
        return remove_tree(dir, name, err);
    if (unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0))
        return err_sys(err, "removing %s", target->path);
    return 0;
}

int files_remove(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target target = {0};
    bool recursive = true;
    bool force = true;
    struct err failure;

    if (target_read(&request->params, "path", &target, err) ||
        target_flag(&request->params, "recursive", &recursive, err) ||
        target_flag(&request->params, "force", &force, err))
        return -1;
    if (remove_target(&target, recursive, &failure) == 0 || (force && failure.sys == ENOENT))
        return reply_str(reply, "{}", err);
    *err = failure;
    return -1;
}
