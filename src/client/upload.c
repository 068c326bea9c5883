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
        progress_add(&cp->progress, 0, (size_t)n);
    }
}

static int upload_contents(struct cp *cp, int fd, const char *name, const struct remote_file *file,
                           struct err *err)
{
    if (remote_open(file, REMOTE_REPLACE, err) ||
        remote_close(file, send_blocks(cp, fd, name, file, err), err))
        return -1;
    progress_add(&cp->progress, 1, 0);
    return 0;
}

/* --- one entry --- */

/* An entry of the directory that is being read. */
struct item {
    int dir;
    const char *name;
    const char *local;
    const char *remote;
    struct stat st;
};

/* A server without modes is reported once. */
static int set_mode(struct cp_tree *tree, const struct remote_file *file, mode_t mode,
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

static int upload_file(struct cp_tree *tree, const struct item *item, struct err *err)
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

static int upload_link(struct cp_tree *tree, const struct item *item, struct err *err)
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

/* The directory is made at the server and is the next to be read. */
static int upload_enter(struct cp_tree *tree, const struct item *item, int flags, struct err *err)
{
    const struct remote_file file = cp_remote(tree->cp, item->remote);
    struct cp_level level = {
        .dir = openat(item->dir, item->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags)};
    struct stat st;

    if (level.dir >= 0 && fstat(level.dir, &st) == 0)
        level.stream = fdopendir(level.dir);
    if (!level.stream) {
        err_sys(err, "%s", item->local);
    } else if (tree->depth == CP_DEPTH_MAX) {
        err_set(err, ERR_LIMIT, "more than %d directories deep, and not copied: %s", CP_DEPTH_MAX,
                item->local);
    } else if (remote_make_dir(&file, err) == 0) {
        level.local = alloc_str(item->local);
        level.remote = alloc_str(item->remote);
        level.mode = st.st_mode;
        tree->levels[tree->depth++] = level;
        return 0;
    }
    cp_level_done(&level);
    return -1;
}

static int upload_item(struct cp_tree *tree, const struct item *item, struct err *err)
{
    mode_t mode = item->st.st_mode;

    if (S_ISDIR(mode))
        return upload_enter(tree, item, O_NOFOLLOW, err);
    if (S_ISREG(mode))
        return upload_file(tree, item, err);
    if (S_ISLNK(mode))
        return upload_link(tree, item, err);
    return err_set(err, ERR_INVALID, "%s is not copied: it is %s", item->local,
                   S_ISFIFO(mode)                   ? "a named pipe"
                   : S_ISSOCK(mode)                 ? "a socket"
                   : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                                                    : "neither file nor directory nor link");
}

/* --- all of them --- */

static void upload_name(struct cp_tree *tree, const struct cp_level *level, const char *name)
{
    AUTO_FREE char *local = path_join(level->local, name);
    AUTO_FREE char *remote = path_join(level->remote, name);
    struct item item = {.dir = level->dir, .name = name, .local = local, .remote = remote};
    struct err err;

    if (fstatat(item.dir, name, &item.st, AT_SYMLINK_NOFOLLOW))
        err_sys(&err, "%s", local);
    else if (upload_item(tree, &item, &err) == 0)
        return;
    cp_report(tree->cp, &err);
}

static void upload_step(struct cp_tree *tree)
{
    struct cp_level *level = &tree->levels[tree->depth - 1];
    const struct remote_file file = cp_remote(tree->cp, level->remote);
    const struct dirent *entry;
    struct err err;

    errno = 0;
    entry = readdir(level->stream);
    if (entry) {
        if (!str_eq(entry->d_name, ".") && !str_eq(entry->d_name, ".."))
            upload_name(tree, level, entry->d_name);
        return;
    }
    if (errno) {
        err_sys(&err, "%s", level->local);
        cp_report(tree->cp, &err);
    }
    if ((tree->depth > 1 || !tree->keeps_root) && set_mode(tree, &file, level->mode, &err))
        cp_report(tree->cp, &err);
    cp_level_done(level);
    tree->depth--;
}

static int upload_tree(struct cp *cp, const char *from, const struct remote_file *to,
                       struct err *err)
{
    AUTO(cp_tree_done) struct cp_tree tree = {.cp = cp};
    const struct item root = {.dir = AT_FDCWD, .name = from, .local = from, .remote = to->path};
    struct remote_info info;

    if (remote_stat(to, &info, err) || upload_enter(&tree, &root, 0, err))
        return -1;
    tree.keeps_root = info.kind == REMOTE_DIR;
    return cp_tree_walk(&tree, upload_step, err);
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

int upload(struct cp *cp, const char *from, const struct remote_file *to, struct err *err)
{
    AUTO_CLOSE int fd = str_eq(from, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                          /* allow blocking open: the person named it */
                                          : open(from, O_RDONLY | O_CLOEXEC);
    AUTO_FREE char *path = NULL;
    struct remote_file file = *to;
    struct stat info;

    if (fd < 0 || fstat(fd, &info))
        return err_sys(err, "%s", from);
    path = upload_path(to, from, err);
    if (!path)
        return -1;
    file.path = path;
    return S_ISDIR(info.st_mode) ? upload_tree(cp, from, &file, err)
                                 : upload_contents(cp, fd, from, &file, err);
}
