/* A folder of this machine to the server. The folders from the first one to the one that is being
 * read are open, so that nobody can put a link in the way; links themselves are copied as links.
 * A folder gets its mode when it is finished: it may be one that cannot be written to. */
#include "client/cp_tree.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/utf8.h"
#include "client/connection.h"
#include "client/face.h"
#include "client/remote_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct level {
    DIR *stream;
    char *local; /* for messages */
    char *remote;
    mode_t mode;
};

struct sending {
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

static void sending_done(struct sending *sending)
{
    while (sending->depth)
        level_done(&sending->levels[--sending->depth]);
}

static struct remote_file remote_at(const struct sending *sending, const char *path)
{
    return (struct remote_file){.connection = sending->cp->connection, .path = path, .shown = path};
}

/* A server without modes is told of once. */
static int set_mode(struct sending *sending, const struct remote_file *file, mode_t mode,
                    struct err *err)
{
    struct cp *cp = sending->cp;

    if (cp->has_warned || remote_set_mode(file, mode, err) == 0)
        return 0;
    if (err->code != ERR_UNSUPPORTED)
        return -1;
    cp->has_warned = true;
    progress_clear(&cp->progress);
    cp->face->say("this server sets no modes: what is copied gets its usual ones");
    return 0;
}

/* --- one entry --- */

/* An entry of the folder that is being read. */
struct item {
    int dir;
    const char *name;
    char *local;
    char *remote;
    struct stat st;
};

static int send_file(struct sending *sending, const struct item *item, struct err *err)
{
    const struct remote_file file = remote_at(sending, item->remote);
    AUTO_CLOSE int fd =
        openat(item->dir, item->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(err, "%s", item->local);
    if (cp_send(sending->cp, fd, item->local, &file, err))
        return -1;
    return set_mode(sending, &file, item->st.st_mode, err);
}

static int send_link(struct sending *sending, const struct item *item, struct err *err)
{
    const struct remote_file file = remote_at(sending, item->remote);
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
static int push(struct sending *sending, struct level level, struct err *err)
{
    const struct remote_file file = remote_at(sending, level.remote);

    if (sending->depth == CP_DEPTH_MAX)
        err_set(err, ERR_LIMIT, "more than %d folders deep, and not copied: %s", CP_DEPTH_MAX,
                level.local);
    else if (remote_make_folder(&file, err) == 0) {
        sending->levels[sending->depth++] = level;
        return 0;
    }
    level_done(&level);
    return -1;
}

/* Takes `fd`, also on failure. */
static int enter(struct sending *sending, int fd, const char *local, const char *remote,
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
    return push(sending, level, err);
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
        return "neither file nor folder nor link";
    }
}

static int send_item(struct sending *sending, const struct item *item, struct err *err)
{
    switch (item->st.st_mode & S_IFMT) {
    case S_IFDIR:
        return enter(sending,
                     openat(item->dir, item->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                     item->local, item->remote, err);
    case S_IFREG:
        return send_file(sending, item, err);
    case S_IFLNK:
        return send_link(sending, item, err);
    default:
        return err_set(err, ERR_INVALID, "%s is not copied: it is %s", item->local,
                       special_name(item->st.st_mode));
    }
}

/* --- all of them --- */

static void send_name(struct sending *sending, const struct level *level, const char *name)
{
    AUTO_FREE char *local = path_join(level->local, name);
    AUTO_FREE char *remote = path_join(level->remote, name);
    struct item item = {
        .dir = dirfd(level->stream), .name = name, .local = local, .remote = remote};
    struct err err;

    if (fstatat(item.dir, name, &item.st, AT_SYMLINK_NOFOLLOW))
        err_sys(&err, "%s", local);
    else if (send_item(sending, &item, &err) == 0)
        return;
    cp_complain(sending->cp, &err);
}

/* The folder is finished. */
static void leave(struct sending *sending)
{
    struct level *level = &sending->levels[sending->depth - 1];
    const struct remote_file file = remote_at(sending, level->remote);
    struct err err;

    if ((sending->depth > 1 || !sending->keeps_root) && set_mode(sending, &file, level->mode, &err))
        cp_complain(sending->cp, &err);
    level_done(level);
    sending->depth--;
}

static void step(struct sending *sending)
{
    const struct level *level = &sending->levels[sending->depth - 1];
    const struct dirent *entry;
    struct err err;

    errno = 0;
    entry = readdir(level->stream);
    if (entry && (entry->d_name[0] != '.' ||
                  (entry->d_name[1] && (entry->d_name[1] != '.' || entry->d_name[2])))) {
        send_name(sending, level, entry->d_name);
    } else if (!entry) {
        if (errno) {
            err_sys(&err, "%s", level->local);
            cp_complain(sending->cp, &err);
        }
        leave(sending);
    }
}

int cp_tree_there(struct cp *cp, const char *from, const struct remote_file *to, struct err *err)
{
    AUTO(sending_done) struct sending sending = {.cp = cp};
    struct remote_info info;

    if (remote_look(to, &info, err) ||
        enter(&sending, open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC), from, to->path, err))
        return -1;
    sending.keeps_root = info.kind == REMOTE_FOLDER;
    while (sending.depth && !connection_is_lost(cp->connection))
        step(&sending);
    return sending.depth ? err_set(err, ERR_SYSTEM, "the server is gone") : 0;
}
