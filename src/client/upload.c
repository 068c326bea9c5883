/* A file or directory of this machine to the server. The directories from the first one to the one
 * that is being read are open, so that no other process can put a link in the way; links themselves
 * are copied as links. A directory gets its mode when it is finished: it may be one that cannot be
 * written to. */
#include "client/cp.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/file_uri.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "client/client.h"
#include "client/connection.h"
#include "client/remote_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- contents --- */

static int send_blocks(struct cp *cp, int fd, const char *name, const struct remote_file *file,
                       struct err *err)
{
    uint64_t offset = 0;

    for (;;) {
        ssize_t n = fd_read_block(fd, cp->block, REMOTE_BLOCK);

        if (n < 0)
            return err_sys(err, "reading %s", name);
        if (n == 0)
            return 0;
        if (remote_write(file, offset, cp->block, (size_t)n, err))
            return -1;
        offset += (uint64_t)n;
        progress_add_bytes(&cp->progress, (size_t)n);
    }
}

static int upload_contents(struct cp *cp, int fd, const char *name, const struct remote_file *file,
                           struct err *err)
{
    if (remote_open(file, REMOTE_REPLACE, err) ||
        cp_close(file, send_blocks(cp, fd, name, file, err), err))
        return -1;
    progress_add_file(&cp->progress);
    return 0;
}

/* --- a directory --- */

struct level {
    DIR *stream;
    char *local; /* for messages */
    char *remote;
    mode_t mode;
};

struct upload_tree {
    struct cp *cp;
    struct level levels[CP_DEPTH_MAX];
    size_t depth;
    bool keeps_root; /* its mode: it was there before */
};

static void level_done(struct level *level)
{
    if (level->stream)
        closedir(level->stream);
    free(level->local);
    free(level->remote);
    *level = (struct level){0};
}

static void upload_tree_done(struct upload_tree *tree)
{
    while (tree->depth)
        level_done(&tree->levels[--tree->depth]);
}

/* A server without modes is reported once. */
static int set_mode(struct upload_tree *tree, const struct remote_file *file, mode_t mode,
                    struct err *err)
{
    struct cp *cp = tree->cp;

    if (cp->has_warned || remote_set_mode(file, mode, err) == 0)
        return 0;
    if (err->code != ERR_UNSUPPORTED)
        return -1;
    cp->has_warned = true;
    progress_clear(&cp->progress);
    cp->console->say("this server sets no modes: what is copied gets its usual ones");
    return 0;
}

/* --- one entry --- */

/* An entry of the directory that is being read. */
struct item {
    int dir;
    const char *name;
    char *local;
    char *remote;
    struct stat st;
};

static int upload_file(struct upload_tree *tree, const struct item *item, struct err *err)
{
    const struct remote_file file = cp_remote(tree->cp, item->remote);
    AUTO_CLOSE int fd =
        openat(item->dir, item->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(err, "%s", item->local);
    if (upload_contents(tree->cp, fd, item->local, &file, err))
        return -1;
    return set_mode(tree, &file, item->st.st_mode, err);
}

static int upload_link(struct upload_tree *tree, const struct item *item, struct err *err)
{
    const struct remote_file file = cp_remote(tree->cp, item->remote);
    char target[PATH_MAX];
    ssize_t len = readlinkat(item->dir, item->name, target, sizeof target - 1);

    if (len < 0)
        return err_sys(err, "%s", item->local);
    target[len] = '\0';
    if (!utf8_is_valid(target, (size_t)len))
        return err_set(err, ERR_INVALID, "%s is not copied: where the link leads is no UTF-8",
                       item->local);
    if (remote_make_link(&file, target, err) == 0)
        return 0;
    return err->code == ERR_UNSUPPORTED
               ? err_set(err, ERR_UNSUPPORTED, "%s is not copied: this server makes no links",
                         item->local)
               : -1;
}

/* Takes over what `level` owns, also on failure. */
static int upload_push(struct upload_tree *tree, struct level level, struct err *err)
{
    const struct remote_file file = cp_remote(tree->cp, level.remote);

    if (tree->depth == CP_DEPTH_MAX)
        err_set(err, ERR_LIMIT, "more than %d directories deep, and not copied: %s", CP_DEPTH_MAX,
                level.local);
    else if (remote_make_dir(&file, err) == 0) {
        tree->levels[tree->depth++] = level;
        return 0;
    }
    level_done(&level);
    return -1;
}

/* Takes `fd`, also on failure. */
static int upload_enter(struct upload_tree *tree, int fd, const char *local, const char *remote,
                        struct err *err)
{
    struct level level = {.local = alloc_str(local), .remote = alloc_str(remote)};
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0)
        level.stream = fdopendir(fd);
    if (!level.stream) {
        err_sys(err, "%s", local);
        if (fd >= 0)
            close(fd);
        level_done(&level);
        return -1;
    }
    level.mode = st.st_mode;
    return upload_push(tree, level, err);
}

static const char *special_name(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFIFO:
        return "a named pipe";
    case S_IFSOCK:
        return "a socket";
    case S_IFCHR:
    case S_IFBLK:
        return "a device";
    default:
        return "neither file nor directory nor link";
    }
}

static int upload_item(struct upload_tree *tree, const struct item *item, struct err *err)
{
    switch (item->st.st_mode & S_IFMT) {
    case S_IFDIR:
        return upload_enter(
            tree, openat(item->dir, item->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
            item->local, item->remote, err);
    case S_IFREG:
        return upload_file(tree, item, err);
    case S_IFLNK:
        return upload_link(tree, item, err);
    default:
        return err_set(err, ERR_INVALID, "%s is not copied: it is %s", item->local,
                       special_name(item->st.st_mode));
    }
}

/* --- all of them --- */

static void upload_name(struct upload_tree *tree, const struct level *level, const char *name)
{
    AUTO_FREE char *local = path_join(level->local, name);
    AUTO_FREE char *remote = path_join(level->remote, name);
    struct item item = {
        .dir = dirfd(level->stream), .name = name, .local = local, .remote = remote};
    struct err err;

    if (fstatat(item.dir, name, &item.st, AT_SYMLINK_NOFOLLOW))
        err_sys(&err, "%s", local);
    else if (upload_item(tree, &item, &err) == 0)
        return;
    cp_report(tree->cp, &err);
}

/* The directory is finished. */
static void upload_leave(struct upload_tree *tree)
{
    struct level *level = &tree->levels[tree->depth - 1];
    const struct remote_file file = cp_remote(tree->cp, level->remote);
    struct err err;

    if ((tree->depth > 1 || !tree->keeps_root) && set_mode(tree, &file, level->mode, &err))
        cp_report(tree->cp, &err);
    level_done(level);
    tree->depth--;
}

static void upload_step(struct upload_tree *tree)
{
    const struct level *level = &tree->levels[tree->depth - 1];
    const struct dirent *entry;
    struct err err;

    errno = 0;
    entry = readdir(level->stream);
    if (entry && (entry->d_name[0] != '.' ||
                  (entry->d_name[1] && (entry->d_name[1] != '.' || entry->d_name[2])))) {
        upload_name(tree, level, entry->d_name);
    } else if (!entry) {
        if (errno) {
            err_sys(&err, "%s", level->local);
            cp_report(tree->cp, &err);
        }
        upload_leave(tree);
    }
}

static int upload_tree_copy(struct cp *cp, const char *from, const struct remote_file *to,
                            struct err *err)
{
    AUTO(upload_tree_done) struct upload_tree tree = {.cp = cp};
    struct remote_info info;

    if (remote_stat(to, &info, err) ||
        upload_enter(&tree, open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC), from, to->path, err))
        return -1;
    tree.keeps_root = info.kind == REMOTE_DIR;
    while (tree.depth && !connection_is_lost(cp->connection))
        upload_step(&tree);
    return tree.depth ? err_set(err, ERR_SYSTEM, "the server is gone") : 0;
}

/* --- the way up --- */

/* Where it goes: `path`, or under its own name in the directory `path`. Caller frees. */
static char *upload_path(const struct remote_file *file, const char *from, struct err *err)
{
    AUTO_FREE char *name = cp_own_name(from);
    struct remote_info info;

    if (remote_stat(file, &info, err))
        return NULL;
    if (info.kind != REMOTE_DIR)
        return alloc_str(file->path);
    if (str_eq(from, "-")) {
        err_set(err, ERR_INVALID, "remote:%s is a directory; what comes from stdin needs a name",
                file->shown);
        return NULL;
    }
    return *name ? path_join(file->path, name) : alloc_str(file->path);
}

static int open_source(const char *path, bool *ret_is_dir, struct err *err)
{
    struct stat info;
    AUTO_CLOSE int fd = str_eq(path, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                          : open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &info))
        return err_sys(err, "%s", path);
    *ret_is_dir = S_ISDIR(info.st_mode);
    return TAKE_FD(fd);
}

int upload(struct cp *cp, const char *from, const struct remote_file *to, struct err *err)
{
    bool is_dir = false;
    AUTO_CLOSE int fd = open_source(from, &is_dir, err);
    AUTO_FREE char *path = fd < 0 ? NULL : upload_path(to, from, err);
    struct remote_file file = {.connection = cp->connection, .path = path, .shown = to->shown};

    if (!path)
        return -1;
    return is_dir ? upload_tree_copy(cp, from, &file, err)
                  : upload_contents(cp, fd, from, &file, err);
}
