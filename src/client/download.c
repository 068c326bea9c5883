/* A file or directory of the server to this machine. What a server names is not trusted: a name is
 * one component, every directory is opened from the one before and never through a link, and a file
 * or link is made under a name of ours and then takes its place. So nothing is written outside of
 * the directory that the copy goes to, whatever links the server sends before.
 *
 * A single file is made beside the old one, so that it is on the same file system, and renamed over
 * it: no reader sees half of it. It gets the mode of the old one, or what the umask leaves. A
 * symbolic link is followed first, so that it stays. */
#include "client/cp.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "client/client.h"
#include "client/connection.h"
#include "client/remote_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- contents --- */

static int receive_blocks(struct cp *cp, const struct remote_file *file, int fd, const char *name,
                          struct err *err)
{
    uint64_t offset = 0;
    bool is_end = false;

    while (!is_end) {
        size_t len = 0;

        if (remote_read(file, offset, cp->block, &len, &is_end, err))
            return -1;
        if (fd_write_all(fd, cp->block, len, err))
            return err_wrap(err, "writing %s", name);
        offset += len;
        progress_add(&cp->progress, 0, len);
    }
    return 0;
}

static int download_contents(struct cp *cp, const struct remote_file *file, int fd,
                             const char *name, struct err *err)
{
    if (remote_open(file, REMOTE_READ, err) ||
        remote_close(file, receive_blocks(cp, file, fd, name, err), err))
        return -1;
    progress_add(&cp->progress, 1, 0);
    return 0;
}

/* --- a file of this machine that is written as a whole --- */

struct local_file {
    int fd;
    char *path;   /* NULL: what cannot be replaced, a terminal, a pipe, "-" */
    char *making; /* beside it; NULL: written in place */
};

/* What the umask leaves. */
static mode_t usual_mode(mode_t mode)
{
    mode_t mask = umask(0);

    umask(mask);
    return mode & ~mask;
}

static int open_beside(struct local_file *file, const char *path, mode_t mode, struct err *err)
{
    file->path = alloc_str(path);
    file->making = alloc_strf("%s.XXXXXX", path);
    file->fd = mkostemp(file->making, O_CLOEXEC);
    if (file->fd < 0) {
        free(TAKE_PTR(file->making));
        return err_sys(err, "making a file beside %s", path);
    }
    if (fchmod(file->fd, mode))
        return err_sys(err, "%s", file->making);
    return 0;
}

/* What is to be in it is written to `fd`. `path` is "-" for stdout, a directory, in which the file
 * gets `name`, or the file; what is there already decides. */
static int local_file_open(struct local_file *file, const char *path, const char *name,
                           struct err *err)
{
    struct stat info;
    char real[PATH_MAX];
    AUTO_FREE char *inside = NULL;

    if (str_eq(path, "-")) {
        file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        return file->fd < 0 ? err_sys(err, "stdout") : 0;
    }
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        path = inside = path_join(path, name);
    if (stat(path, &info))
        return errno == ENOENT ? open_beside(file, path, usual_mode(0666), err)
                               : err_sys(err, "%s", path);
    if (S_ISDIR(info.st_mode))
        return err_set(err, ERR_INVALID, "%s is a directory", path);
    if (!S_ISREG(info.st_mode)) {
        /* allow blocking open: the person named it, perhaps a pipe */
        file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return file->fd < 0 ? err_sys(err, "%s", path) : 0;
    }
    if (!realpath(path, real))
        return err_sys(err, "%s", path);
    return open_beside(file, real, info.st_mode & 0777, err);
}

/* What is not in its place by then is taken away. */
static void local_file_done(struct local_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->making)
        unlink(file->making);
    free(file->making);
    free(file->path);
}

/* --- a directory --- */

#define MAKING ".cordon-cp-making"

enum { MODE_UNKNOWN = -1 };

/* --- one entry --- */

struct item {
    int dir;
    const json_t *entry;
    char *name; /* one component; of the first directory a path */
    char *local;
    char *remote;
    int mode;
};

static void item_done(struct item *item)
{
    free(item->name);
    free(item->local);
    free(item->remote);
}

/* By its URI, which has any bytes; a plain Codex server gives the name only. Caller frees. */
static char *name_of(const json_t *entry, struct err *err)
{
    const char *uri = json_string_value(json_object_get(entry, "uri"));
    const char *name = json_string_value(json_object_get(entry, "fileName"));
    AUTO_FREE char *path = uri ? file_uri_parse(uri, err) : NULL;
    const char *found = path ? path_name(path) : uri ? NULL : name;

    if (found && *found && !strchr(found, '/') && !str_eq(found, ".") && !str_eq(found, ".."))
        return alloc_str(found);
    err_set(err, ERR_INVALID, "fs/readDirectory: the server gives an entry without a right name");
    return NULL;
}

static int item_read(const struct cp_level *level, const json_t *entry, struct item *ret,
                     struct err *err)
{
    const json_t *mode = json_object_get(entry, "mode");

    *ret = (struct item){.dir = level->dir, .entry = entry, .mode = MODE_UNKNOWN};
    ret->name = name_of(entry, err);
    if (!ret->name)
        return -1;
    ret->local = path_join(level->local, ret->name);
    ret->remote = path_join(level->remote, ret->name);
    if (json_is_integer(mode))
        ret->mode = (int)(json_integer_value(mode) & 0777);
    return 0;
}

/* What was made beside takes its place. */
static int download_settle(const struct item *item, struct err *err)
{
    if (renameat(item->dir, MAKING, item->dir, item->name) == 0)
        return 0;
    err_sys(err, "putting %s in its place", item->local);
    unlinkat(item->dir, MAKING, 0);
    return -1;
}

static int download_file(struct cp_tree *tree, const struct item *item, struct err *err)
{
    const struct remote_file file = cp_remote(tree->cp, item->remote);
    mode_t mode = item->mode == MODE_UNKNOWN ? 0666 : (mode_t)item->mode;
    AUTO_CLOSE int fd = -1;

    unlinkat(item->dir, MAKING, 0); /* of a copy that was killed */
    fd = openat(item->dir, MAKING, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, "making %s", item->local);
    if (download_contents(tree->cp, &file, fd, item->local, err) == 0) {
        if (fchmod(fd, mode & tree->usual) == 0)
            return download_settle(item, err);
        err_sys(err, "%s", item->local);
    }
    unlinkat(item->dir, MAKING, 0);
    return -1;
}

static int download_link(const struct item *item, struct err *err)
{
    const char *target = json_string_value(json_object_get(item->entry, "linkTarget"));

    if (!target)
        return err_set(err, ERR_INVALID,
                       "remote:%s is not copied: where the link leads is no UTF-8", item->remote);
    unlinkat(item->dir, MAKING, 0);
    if (symlinkat(target, item->dir, MAKING))
        return err_sys(err, "making the link %s", item->local);
    return download_settle(item, err);
}

/* The directory is made here, or there already, and is the next to be filled. */
static int download_enter(struct cp_tree *tree, const struct item *item, int flags, struct err *err)
{
    const struct remote_file file = cp_remote(tree->cp, item->remote);
    mode_t wanted = item->mode == MODE_UNKNOWN ? 0777 : (mode_t)item->mode;
    bool is_new = mkdirat(item->dir, item->name, 0700) == 0;
    struct cp_level level = {.mode = wanted & tree->usual};
    struct stat st;

    if (!is_new && errno != EEXIST)
        return err_sys(err, "making the directory %s", item->local);
    level.dir = openat(item->dir, item->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    if (level.dir < 0)
        return err_sys(err, "%s", item->local);
    if (!is_new && fstat(level.dir, &st) == 0) /* stays as open as it was */
        level.mode = st.st_mode & 07777;
    if (tree->depth == CP_DEPTH_MAX)
        err_set(err, ERR_LIMIT, "more than %d directories deep, and not copied: remote:%s",
                CP_DEPTH_MAX, item->remote);
    else
        level.entries = remote_list(&file, err);
    if (!level.entries) {
        close(level.dir);
        return -1;
    }
    level.local = alloc_str(item->local);
    level.remote = alloc_str(item->remote);
    tree->levels[tree->depth++] = level;
    return 0;
}

static int download_item(struct cp_tree *tree, const struct item *item, struct err *err)
{
    if (json_is_true(json_object_get(item->entry, "isSymlink")))
        return download_link(item, err);
    if (json_is_true(json_object_get(item->entry, "isDirectory")))
        return download_enter(tree, item, O_NOFOLLOW, err);
    if (json_is_true(json_object_get(item->entry, "isFile")))
        return download_file(tree, item, err);
    return err_set(err, ERR_INVALID,
                   "remote:%s is not copied: it is neither file nor directory nor link",
                   item->remote);
}

/* --- all of them --- */

static void download_step(struct cp_tree *tree)
{
    struct cp *cp = tree->cp;
    struct cp_level *level = &tree->levels[tree->depth - 1];
    const json_t *entry = json_array_get(level->entries, level->next++);
    AUTO(item_done) struct item item = {0};
    struct err err;

    if (!entry) {
        if (fchmod(level->dir, level->mode)) {
            err_sys(&err, "%s", level->local);
            cp_report(cp, &err);
        }
        cp_level_done(level);
        tree->depth--;
        return;
    }
    if (!cp->has_warned && !json_object_get(entry, "mode")) { /* both come with "details" */
        cp->has_warned = true;
        progress_clear(&cp->progress);
        cp->console->say(
            "this server tells neither modes nor links: what is copied gets the usual modes, "
            "and what a link leads to is copied in its place");
    }
    if (item_read(level, entry, &item, &err) || download_item(tree, &item, &err))
        cp_report(cp, &err);
}

/* --- the way down --- */

static int download_single(struct cp *cp, const struct remote_file *from, const char *to,
                           struct err *err)
{
    AUTO(local_file_done) struct local_file file = {.fd = -1};

    const char *name;

    if (local_file_open(&file, to, path_name(from->path), err))
        return -1;
    name = file.path ? file.path : "the copy";
    if (download_contents(cp, from, file.fd, name, err))
        return -1;
    if (close(TAKE_FD(file.fd)))
        return err_sys(err, "writing %s", name);
    if (file.making && rename(file.making, file.path))
        return err_sys(err, "putting %s in its place", name);
    free(TAKE_PTR(file.making));
    return 0;
}

/* Into a directory that is there it goes under its own name. The directory that all goes to may be
 * reached by a link: a person named it. */
static int download_tree(struct cp *cp, const struct remote_file *from, int mode, const char *to,
                         struct err *err)
{
    AUTO(cp_tree_done) struct cp_tree tree = {.cp = cp, .usual = usual_mode(0777)};
    AUTO_FREE char *name = cp_own_name(from->shown);
    AUTO_FREE char *inside = NULL;
    struct item root = {.dir = AT_FDCWD, .remote = (char *)from->path, .mode = mode};
    struct stat info;

    if (str_eq(to, "-"))
        return err_set(err, ERR_INVALID, "remote:%s is a directory, which stdout cannot take",
                       from->shown);
    if (stat(to, &info) == 0 && *name)
        to = inside = path_join(to, name);
    root.name = root.local = (char *)to;
    if (download_enter(&tree, &root, 0, err))
        return -1;
    return cp_tree_walk(&tree, download_step, err);
}

int download(struct cp *cp, const struct remote_file *from, const char *to, struct err *err)
{
    struct remote_info info;

    if (remote_stat(from, &info, err))
        return -1;
    return info.kind == REMOTE_DIR ? download_tree(cp, from, info.mode, to, err)
                                   : download_single(cp, from, to, err);
}
