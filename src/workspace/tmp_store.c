/* See tmp_store.h. Everything goes by descriptors and through no link below the folder of caches, since
 * a command may have had that to write in. What cannot be had by these rules is not had: the caller gives the
 * command folders in memory, which keep less and show no more.
 *
 * The folder of a workspace is open only to its user; "tmp" and "var-tmp" in it have the mode that programs
 * expect of a /tmp. Who uses a folder keeps it locked (shared, by flock(2)), so the one who empties takes the lock
 * for himself and leaves it alone when he does not get it. No command can open the folder itself: it sees
 * those in it. */
#include "workspace/tmp_store.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/sys.h"
#include "workspace/folder_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_WAIT_NS 1000000000u /* an emptying takes milliseconds */

enum {
    DAY = 24 * 3600,
    TRIES_MAX = 8, /* at a folder that others remove */
    DEPTH_MAX = 64,
};

static const struct {
    const char *place;
    const char *name;
    int days;
} parts[] = {{"/tmp", "tmp", 10}, {"/var/tmp", "var-tmp", 30}};

enum { PARTS = sizeof parts / sizeof *parts };

#define STAMP "emptied"

/* --- where --- */

/* Of the one who runs Cordon, for all of its faces. NULL: none is known. */
static char *cache_path(void)
{
    const char *home = getenv("HOME");
    const char *cache = getenv("XDG_CACHE_HOME");

    if (cache && cache[0] == '/')
        return path_clean("/", cache);
    if (home && home[0] == '/' && home[1])
        return path_clean(home, ".cache");
    return geteuid() == 0 ? alloc_str("/var/cache") : NULL;
}

static int check_owner(int fd, const char *path, struct stat *ret, struct err *err)
{
    if (fstat(fd, ret))
        return err_sys(err, "%s", path);
    if (ret->st_uid != geteuid())
        return err_set(err, ERR_FORBIDDEN, "%s belongs to the user with id %u", path,
                       (unsigned)ret->st_uid);
    return 0;
}

/* A directory of ours that nobody else may enter; `path` is for messages. */
static int open_own(int dir, const char *name, const char *path, struct err *err)
{
    AUTO_CLOSE int fd = -1;
    struct stat st;

    if (mkdirat(dir, name, 0700) && errno != EEXIST)
        return err_sys(err, "making %s", path);
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "%s", path);
    if (check_owner(fd, path, &st, err))
        return -1;
    if ((st.st_mode & 07777) != 0700 && fchmod(fd, 0700))
        return err_sys(err, "%s", path);
    return TAKE_FD(fd);
}

/* The canonical folder of caches, of the user's own: else root's commands would leave what the user
 * cannot use. */
static int open_cache(const char *path, bool trusts_links, struct tmp_store *store, struct err *err)
{
    AUTO_CLOSE int fd = -1;
    struct stat st;

    if (path_walk(&host_view_real, path, &store->walk, err))
        return -1;
    if (store->walk.links_len && !trusts_links)
        return err_set(err, ERR_FORBIDDEN, "%s leads through a link", path);
    if (store->walk.end == PATH_MISSING && fd_make_dirs(store->walk.path, 0700, err))
        return -1;
    fd = fd_open_path_strict(store->walk.path, err);
    return fd < 0 || check_owner(fd, path, &st, err) ? -1 : TAKE_FD(fd);
}

static int open_base(const char *cache, bool trusts_links, struct tmp_store *store, struct err *err)
{
    AUTO_CLOSE int dir = open_cache(cache, trusts_links, store, err);
    AUTO_CLOSE int own = -1;
    AUTO_FREE char *path = dir < 0 ? NULL : path_join(store->walk.path, "cordon");
    AUTO_FREE char *base = dir < 0 ? NULL : path_join(path, "tmp");
    int fd;

    if (dir < 0)
        return -1;
    if (mkdirat(dir, "cordon", 0700) && errno != EEXIST)
        return err_sys(err, "making %s", path);
    own = openat(dir, "cordon", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (own < 0)
        return err_sys(err, "%s", path);
    fd = open_own(own, "tmp", base, err);
    if (fd >= 0)
        store->base = TAKE_PTR(base);
    return fd;
}

/* Locked, and really the one of that name: who empties may have removed it before the lock was had. */
static int open_locked(int base, const char *name, const char *path, struct err *err)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        AUTO_CLOSE int fd = open_own(base, name, path, err);
        struct stat st;
        struct stat named;

        if (fd < 0)
            return -1;
        if (lock_take(fd, LOCK_SH, LOCK_WAIT_NS))
            return err_sys(err, "%s is being emptied", path);
        if (fstat(fd, &st) == 0 && fstatat(base, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
            st.st_ino == named.st_ino && st.st_dev == named.st_dev)
            return TAKE_FD(fd);
    }
    return err_set(err, ERR_SYSTEM, "%s is removed again and again", path);
}

/* The folder of one workspace in `base`, with its parts, whose mode a command may have changed. */
static int open_folder(int base, const char *name, const char *path, struct err *err)
{
    AUTO_CLOSE int fd = open_locked(base, name, path, err);

    for (int i = 0; fd >= 0 && i < PARTS; i++) {
        const char *part = parts[i].name;
        struct stat st;
        const bool is_there = fstatat(fd, part, &st, AT_SYMLINK_NOFOLLOW) == 0;

        if (is_there && !S_ISDIR(st.st_mode))
            return err_set(err, ERR_FORBIDDEN, "%s/%s is no directory", path, part);
        if (is_there && (st.st_mode & 07777) == 01777)
            continue;
        if ((!is_there && mkdirat(fd, part, 0700) && errno != EEXIST) ||
            fchmodat(fd, part, 01777, 0))
            return err_sys(err, "making %s/%s", path, part);
    }
    return TAKE_FD(fd);
}

/* Most often all of it is there. No link on the way: the path is canonical. */
static int open_known(const char *cache, struct tmp_store *store)
{
    AUTO_FREE char *base = path_join(cache, "cordon/tmp");
    const struct sys_open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
        .resolve = SYS_RESOLVE_NO_SYMLINKS,
    };
    AUTO_CLOSE int fd = sys_openat2(AT_FDCWD, base, &how);
    struct err ignored;
    struct stat st;

    if (fd < 0 || check_owner(fd, base, &st, &ignored) || (st.st_mode & 07777) != 0700)
        return -1;
    store->base = TAKE_PTR(base);
    return TAKE_FD(fd);
}

void tmp_store_open(const char *root, bool trusts_links, struct tmp_store *ret)
{
    AUTO_FREE char *cache = cache_path();
    AUTO_FREE char *name = root ? folder_name(root) : NULL;
    AUTO_CLOSE int base = -1;
    char *folder;

    *ret = (struct tmp_store){.lock = -1};
    if (!cache) {
        err_set(&ret->why, ERR_SYSTEM, "there is no home directory");
        return;
    }
    base = open_known(cache, ret);
    if (base < 0)
        base = open_base(cache, trusts_links, ret, &ret->why);
    if (base < 0)
        return;
    if (!root) {
        err_set(&ret->why, ERR_SYSTEM, "there is no folder that the workspace is known by");
        return;
    }
    folder = path_join(ret->base, name);
    ret->lock = open_folder(base, name, folder, &ret->why);
    if (ret->lock < 0)
        free(folder);
    else
        ret->folder = folder;
}

void tmp_store_close(struct tmp_store *store)
{
    free(store->base);
    free(store->folder);
    path_walk_done(&store->walk);
    if (store->lock >= 0)
        close(store->lock);
    *store = (struct tmp_store){.lock = -1};
}

bool tmp_store_make_dir(const struct tmp_store *store, const char *path)
{
    int part = PARTS;
    AUTO_FREE char *rest = NULL;
    AUTO_CLOSE int at = -1;

    while (part-- > 0 && !path_is_within(path, parts[part].place))
        ;
    if (part < 0 || store->lock < 0)
        return false;
    rest = alloc_str(path + strlen(parts[part].place));
    at = openat(store->lock, parts[part].name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (char *word, *left = rest; at >= 0 && (word = strtok_r(left, "/", &left));) {
        int next;

        if (mkdirat(at, word, 0700) && errno != EEXIST)
            return false;
        next = openat(at, word, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(at);
        at = next;
    }
    return at >= 0;
}

/* --- emptying --- */

struct emptying {
    time_t before; /* what was used last before that goes */
    dev_t device;
    int steps;
    bool has_removed;
};

static time_t last_use(const struct stat *st)
{
    time_t last = st->st_mtime > st->st_ctime ? st->st_mtime : st->st_ctime;

    /* who only looks for what is old reads directories, too */
    return !S_ISDIR(st->st_mode) && st->st_atime > last ? st->st_atime : last;
}

/* With `changes_mode` also one that its mode keeps us from reading or changing: it is ours. */
static DIR *open_old_dir(int dir, const char *name, bool changes_mode)
{
    AUTO_CLOSE int path = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    char self[32];
    int fd;
    DIR *ret;

    if (path < 0)
        return NULL;
    snprintf(self, sizeof self, "/proc/self/fd/%d", path);
    if (changes_mode && fstat(path, &st) == 0 && (st.st_mode & 0700) != 0700)
        chmod(self, 0700);
    fd = openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ret = fd < 0 ? NULL : fdopendir(fd);
    if (!ret && fd >= 0)
        close(fd);
    return ret;
}

static void empty_dir(DIR *at, int depth, struct emptying *run)
{
    const struct dirent *item;

    while (at && run->steps > 0 && (item = readdir(at))) {
        const char *child = item->d_name;
        struct stat st;
        bool is_old;

        if (str_eq(child, ".") || str_eq(child, ".."))
            continue;
        run->steps--;
        if (fstatat(dirfd(at), child, &st, AT_SYMLINK_NOFOLLOW) || st.st_dev != run->device)
            continue;
        is_old = last_use(&st) < run->before;
        if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
            empty_dir(open_old_dir(dirfd(at), child, is_old), depth + 1, run);
        if (is_old && /* not of a directory that is not empty */
            unlinkat(dirfd(at), child, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) == 0)
            run->has_removed = true;
    }
    if (at)
        closedir(at);
}

/* What one workspace has there; what is empty then goes. */
static void empty_workspace(int base, const char *name, time_t now, struct emptying *run)
{
    AUTO_CLOSE int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &st) || st.st_uid != geteuid())
        return;
    run->device = st.st_dev;
    for (int i = 0; i < PARTS; i++) {
        run->before = now - (time_t)parts[i].days * DAY;
        empty_dir(open_old_dir(fd, parts[i].name, true), 0, run);
    }
    for (int i = 0; i < PARTS; i++)
        unlinkat(fd, parts[i].name, AT_REMOVEDIR);
    unlinkat(base, name, AT_REMOVEDIR);
}

bool tmp_store_is_due(const char *base, time_t now)
{
    AUTO_FREE char *stamp = base ? path_join(base, STAMP) : NULL;
    struct stat st;

    return base && (lstat(stamp, &st) || now - st.st_mtime > DAY || st.st_mtime > now);
}

/* What the day's emptying has no steps left for, the next command goes on with, while something goes by that. And
 * it does not begin where the last one did, so that much that is new in one place keeps nothing old elsewhere. */
void tmp_store_empty(const char *base, time_t now, int steps)
{
    struct emptying run = {.steps = steps};
    AUTO(strv_done) struct strv names = {0};
    const struct dirent *item;
    AUTO_CLOSE int stamp = -1;
    DIR *dir = opendir(base);

    if (!dir)
        return;
    stamp =
        openat(dirfd(dir), STAMP, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0200);
    if (stamp >= 0 && flock(stamp, LOCK_EX | LOCK_NB) == 0) {
        while ((item = readdir(dir)))
            if (item->d_name[0] != '.' && !str_eq(item->d_name, STAMP))
                strv_push(&names, item->d_name);
        for (size_t i = 0; i < names.len && run.steps > 0; i++)
            empty_workspace(dirfd(dir), names.items[((size_t)now + i) % names.len], now, &run);
        if (run.steps > 0 || !run.has_removed)
            futimens(stamp, NULL);
    }
    closedir(dir);
}
