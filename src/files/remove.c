/* fs/remove: a file, a link (never what it leads to), a folder, or a whole tree.
 *
 * A tree is taken down while somebody may be changing it. So every name is removed from a folder
 * that is held open, and a folder is entered only if it is no link. The way up again is the
 * descriptor of the folder above, as long as not too many are open; from there on "..", which has
 * to be the folder that we came from. No recursion, and no limit to the depth. */
#include "files/call.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/sys.h"
#include "files/folder.h"
#include "files/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_MAX_LEVELS = 64 };

/* One folder of the way down. */
struct level {
    char *name; /* in the folder above; owned */
    struct folder folder;
    dev_t dev;
    ino_t ino;
};

struct removal {
    int top; /* the folder that the tree's root is in; borrowed */
    struct level *levels;
    size_t len;
    size_t cap;
};

static void level_done(struct level *level)
{
    folder_close(&level->folder);
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
    return dirfd(removal->levels[removal->len - 1].folder.stream);
}

static int removal_enter(struct removal *removal, const char *name, struct err *err)
{
    struct level level = {0};
    struct stat st;

    if (folder_open_at(&level.folder, removal_at(removal), name, err))
        return -1;
    if (sys_fault() || fstat(dirfd(level.folder.stream), &st)) {
        folder_close(&level.folder);
        return err_sys(err, "looking at the folder %s", name);
    }
    level.dev = st.st_dev;
    level.ino = st.st_ino;
    level.name = alloc_str(name);
    removal->levels =
        alloc_grow(removal->levels, removal->len, &removal->cap, sizeof *removal->levels);
    removal->levels[removal->len++] = level;
    if (removal->len > OPEN_MAX_LEVELS)
        folder_close(&removal->levels[removal->len - 1 - OPEN_MAX_LEVELS].folder);
    return 0;
}

/* Opens the folder of `upper` again, from inside the one below it. */
static int reopen(struct level *upper, int below, struct err *err)
{
    AUTO_CLOSE int fd = openat(below, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st))
        return err_sys(err, "going back up to %s", upper->name);
    if (st.st_dev != upper->dev || st.st_ino != upper->ino)
        return err_set(err, ERR_FORBIDDEN, "the folder %s was moved while it was removed",
                       upper->name);
    return folder_open_fd(&upper->folder, TAKE_FD(fd), err);
}

/* The innermost folder is empty: goes up and removes it there. */
static int removal_leave(struct removal *removal, struct err *err)
{
    struct level *level = &removal->levels[removal->len - 1];
    struct level *upper = removal->len > 1 ? level - 1 : NULL;
    AUTO_FREE char *name = NULL;

    if (upper && !upper->folder.stream && reopen(upper, dirfd(level->folder.stream), err))
        return -1;
    name = TAKE_PTR(level->name);
    level_done(level);
    removal->len--;
    if (sys_fault() || unlinkat(removal_at(removal), name, AT_REMOVEDIR))
        return err_sys(err, "removing the folder %s", name);
    return 0;
}

/* Takes names away until there are none (0) or one is a folder that was entered (1). */
static int removal_empty(struct removal *removal, struct err *err)
{
    struct folder *folder = &removal->levels[removal->len - 1].folder;
    const struct dirent *entry = NULL;
    int status;

    while ((status = folder_next(folder, &entry, err)) > 0) {
        if (entry->d_type != DT_DIR && unlinkat(dirfd(folder->stream), entry->d_name, 0) == 0)
            continue;
        if (entry->d_type != DT_DIR && errno == ENOENT) /* somebody else was faster */
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
