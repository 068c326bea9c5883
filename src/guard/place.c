/* See place.h. The kernel walks, not we: openat2() in the command's root, which is that of its mount
 * namespace, so that whatever is read-only or covered there is so for us.
 *
 * The magic links of /proc are followed for nobody by that, as they would lead to what is ours. The
 * two that programs use, /proc/self and /dev/fd, are read as what they mean for the caller.
 *
 * There is a short cut, which most calls take: one statx() from the working directory or the root, which
 * are open already. It follows
 * absolute symlinks to our root instead of the command's, and magic links. So what it finds counts only
 * when it lies on the mount of one of the command's roots. A directory that it finds is most often one
 * that is open, too. */
#include "guard/place.h"

#include "base/auto.h"
#include "base/sys.h"
#include "guard/caller.h"
#include "guard/folder.h"
#include "guard/kept.h"
#include "guard/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { AGAIN_MAX = 16 }; /* openat2(2): EAGAIN when something was renamed meanwhile */

static int open_within(int dir, const char *path, uint64_t resolve)
{
    const struct sys_open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve = resolve | SYS_RESOLVE_NO_MAGICLINKS,
    };
    int fd = -1;

    for (int i = 0; i < AGAIN_MAX; i++) {
        fd = sys_openat2(dir, path, &how);
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return fd;
}

enum { IN_PROC = 48 };

static int open_in_proc(const char *what)
{
    char path[sizeof "/proc/" + IN_PROC];

    snprintf(path, sizeof path, "/proc/%s", what);
    return open(path, O_PATH | O_CLOEXEC);
}

/* Whom /proc/self means: a thread may have a working directory of its own. 0: nobody any more. */
static pid_t leader_of(pid_t thread)
{
    long leader = remote_status(thread, "\nTgid:\t", 10);

    return leader < 0 ? 0 : (pid_t)leader;
}

/* The command's root directory: owned by the command, but that of a process which may have changed
 * its own is opened each time, and *ret_owned says so. */
static int open_root(const struct request *request, int *ret_owned)
{
    char what[IN_PROC];

    *ret_owned = -1;
    if (!(request->command->map.header->flags & GUARD_MAP_NESTED))
        return request->command->root;
    snprintf(what, sizeof what, "%d/root", (int)request->thread);
    *ret_owned = open_in_proc(what);
    return *ret_owned;
}

bool place_path_of(int fd, char ret[PATH_MAX])
{
    static const char gone[] = " (deleted)";
    char link[32];
    ssize_t len;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    len = readlink(link, ret, PATH_MAX - 1);
    if (len <= 0 || ret[0] != '/')
        return false;
    ret[len] = '\0';
    return (size_t)len < sizeof gone || strcmp(ret + len + 1 - sizeof gone, gone) != 0;
}

/* How the text begins: at the root, or at a descriptor of the caller's, whose name in /proc is put in
 * `ret_what`; returns the rest of the text, NULL for what we do not follow. */
static const char *split_base(const struct request *request, int dir, const char *text,
                              char ret_what[IN_PROC])
{
    static const char *const magic[] = {"/proc/self/", "/proc/thread-self/", "/dev/"};

    ret_what[0] = '\0';
    if (text[0] != '/') {
        if (dir == AT_FDCWD)
            snprintf(ret_what, IN_PROC, "%d/cwd", (int)request->thread);
        else
            snprintf(ret_what, IN_PROC, "%d/fd/%d", (int)request->thread, dir);
        return text;
    }
    for (size_t i = 0; i < sizeof magic / sizeof *magic; i++) {
        const char *rest = text + strlen(magic[i]);
        size_t len;

        if (strncmp(text, magic[i], strlen(magic[i])) != 0)
            continue;
        len = strspn(rest, "fd/0123456789");
        if (strncmp(rest, "fd/", 3) == 0 && len > 3 && len < 20) {
            len = 3 + strspn(rest + 3, "0123456789");
        } else if (i < 2 && strncmp(rest, "cwd", 3) == 0) {
            len = 3;
        } else {
            continue;
        }
        if (len == 3 && rest[0] == 'f')
            return NULL;
        if (rest[len] != '\0' && rest[len] != '/')
            continue;
        snprintf(ret_what, IN_PROC, "%d/%.*s",
                 (int)(i == 1 ? request->thread : leader_of(request->thread)), (int)len, rest);
        rest += len;
        return rest + strspn(rest, "/");
    }
    return text;
}

/* Opens the directory `path`, relative to `base` unless that is the root. */
static int open_dir(const struct request *request, int root, int base, const char *path)
{
    char whole[PATH_MAX];
    size_t len;
    int fd;

    if (base < 0)
        return open_within(root, path, SYS_RESOLVE_IN_ROOT);
    fd = open_within(base, *path ? path : ".", SYS_RESOLVE_BENEATH);
    if (fd >= 0 || errno != EXDEV)
        return fd;
    /* It leads above, or through an absolute symlink: again from the root. */
    if (!place_path_of(base, whole))
        return -1;
    len = strlen(whole);
    if (snprintf(whole + len, sizeof whole - len, "/%s", path) >= (int)(sizeof whole - len))
        return -1;
    return open_within(root, whole, SYS_RESOLVE_IN_ROOT);
}

/* Cuts the last name off `text`, which becomes the directory's path. */
static bool split_name(char *text, char ret[NAME_MAX + 2])
{
    size_t end = strlen(text);
    size_t start, slash;

    while (end && text[end - 1] == '/')
        end--;
    slash = text[end] == '/';
    for (start = end; start && text[start - 1] != '/'; start--)
        continue;
    if (start == end || end - start > NAME_MAX)
        return false;
    memcpy(ret, text + start, end - start);
    memcpy(ret + (end - start), "/", slash);
    ret[end - start + slash] = '\0';
    text[start] = '\0';
    return strcmp(ret, ".") != 0 && strcmp(ret, "..") != 0 && strcmp(ret, "./") != 0 &&
           strcmp(ret, "../") != 0;
}

static bool identify_path(int dir, const char *path, int flags, struct identity *ret)
{
    struct k_statx st;

    if (syscall(SYS_statx, dir, path, flags, K_STATX_BASIC_STATS | K_STATX_MNT_ID, &st) ||
        !(st.mask & K_STATX_MNT_ID))
        return false;
    ret->device = (uint64_t)st.dev_major << 32 | st.dev_minor;
    ret->inode = st.inode;
    ret->mount = st.mount;
    return true;
}

bool identify(int fd, struct identity *ret)
{
    return identify_path(fd, "", AT_EMPTY_PATH, ret);
}

/* Where the short cut begins, and how it goes on from there. */
struct start {
    int dir;
    const char *path;
    struct kept_dir *cwd; /* whose `dir` it is; NULL */
    char whole[PATH_MAX + 64];
};

#define AUTO_START AUTO(start_done)

static void start_done(struct start *start)
{
    if (start->cwd)
        kept_release(start->cwd);
}

static bool is_from_cwd(int dir, const char *text)
{
    return dir == AT_FDCWD && text[0] != '/';
}

/* `what` in /proc, or the root, and `path` from there. */
static void start_init(struct start *ret, const struct request *request, bool is_cwd,
                       const char *what, const char *path)
{
    ret->cwd = is_cwd ? caller_cwd(request) : NULL;
    ret->dir = ret->cwd ? ret->cwd->fd : AT_FDCWD;
    ret->path = !is_cwd || *path ? path : ".";
    if (ret->cwd)
        return;
    if (*what)
        snprintf(ret->whole, sizeof ret->whole, "/proc/%s/%s", what, path);
    else
        snprintf(ret->whole, sizeof ret->whole, "/proc/%d/root/%s", (int)request->thread, path);
    ret->path = ret->whole;
}

static void place_keep(struct place *place, struct kept_dir *dir)
{
    place->kept = dir;
    place->dir = dir->fd;
    place->identity = dir->identity;
    place->is_guarded = true;
}

/* The directory `path` of what the caller has as `what`; false when it takes the long way. */
static bool open_short(const struct request *request, bool is_cwd, const char *what,
                       const char *path, struct place *ret)
{
    struct command *command = request->command;
    AUTO_START struct start start;
    struct kept_dir *dir;

    start_init(&start, request, is_cwd, what, path);
    if (start.cwd && !*path) {
        place_keep(ret, start.cwd);
        start.cwd = NULL;
        return true;
    }
    if (!identify_path(start.dir, start.path, 0, &ret->identity) ||
        !folder_is_mount_of_root(command, ret->identity.mount))
        return false;
    dir = kept_find(command, &ret->identity);
    if (dir) {
        place_keep(ret, dir);
        return true;
    }
    ret->dir = openat(start.dir, start.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (ret->dir < 0 || !identify(ret->dir, &ret->identity) ||
        !folder_is_mount_of_root(command, ret->identity.mount)) {
        place_done(ret);
        return false;
    }
    ret->is_guarded = true;
    dir = kept_add(command, ret->dir, &ret->identity);
    if (dir)
        place_keep(ret, dir);
    return true;
}

static bool identify_short(const struct request *request, bool is_cwd, const char *what,
                           const char *path, int flags, struct identity *ret)
{
    AUTO_START struct start start;

    start_init(&start, request, is_cwd, what, path);
    return identify_path(start.dir, start.path, flags, ret);
}

bool place_is_free(const struct request *request, int dir, const char *text, int flags)
{
    const struct command *command = request->command;
    char what[IN_PROC];
    const char *rest = command->mounts_len ? split_base(request, dir, text, what) : NULL;
    struct identity identity;

    return rest && identify_short(request, is_from_cwd(dir, text), what, rest, flags, &identity) &&
           folder_is_mount_of_root(command, identity.mount) && !folder_is_root(command, &identity);
}

/* It lies in the command's own tree: the walk may have begun at a descriptor that came from outside, of
 * a mount that the sandbox does not have. A mount that it has stays, so it is looked for once; later a
 * folder above may be closed. */
static bool is_in_tree(struct command *command, int root, const char *path,
                       const struct identity *identity)
{
    AUTO_CLOSE int fd = -1;
    struct identity found;

    for (uint32_t i = 0; i < command->tree_mounts_len; i++)
        if (command->tree_mounts[i] == identity->mount)
            return true;
    fd = open_within(root, path, SYS_RESOLVE_IN_ROOT | SYS_RESOLVE_NO_SYMLINKS);
    if (fd < 0 || !identify(fd, &found) || !is_same_file(&found, identity) ||
        found.mount != identity->mount)
        return false;
    if (!(command->map.header->flags & GUARD_MAP_NESTED) && command->tree_mounts_len < MOUNTS_MAX)
        command->tree_mounts[command->tree_mounts_len++] = identity->mount;
    return true;
}

/* A sandbox within leaves creation to us wherever it holds names, also where the command's own has none. */
static bool is_nested_root(const struct request *request, const char *path)
{
    const struct map *map = &request->command->map;

    return request->nested && !map_is_ours(path) &&
           map_access(map, map_find(map, path)) == GUARD_WRITE;
}

/* It was found by the long way: whether it lies in a root. */
static bool place_judge(const struct request *request, int root, struct place *place)
{
    char path[PATH_MAX];

    if (!identify(place->dir, &place->identity) || !place_path_of(place->dir, path)) {
        place_done(place);
        return false;
    }
    place->is_guarded =
        (folder_is_guarded(request->command, path) || is_nested_root(request, path)) &&
        is_in_tree(request->command, root, path, &place->identity);
    return true;
}

/* `base`: where a relative text starts; -1: at what `dir` is for the caller. */
static bool find(const struct request *request, int dir, int base, const char *text,
                 struct place *ret)
{
    AUTO_CLOSE int own_root = -1;
    AUTO_CLOSE int own_base = -1;
    char what[IN_PROC] = "";
    place_text parent;
    const char *rest = text;
    int root;

    if (base < 0 || text[0] == '/') {
        base = -1;
        rest = split_base(request, dir, text, what);
    }
    *ret = (struct place){.dir = -1, .lock = -1};
    errno = EACCES;
    if (!rest || strlen(rest) >= sizeof parent)
        return false;
    memcpy(parent, rest, strlen(rest) + 1);
    if (!split_name(parent, ret->name))
        return false;
    if (base < 0 && request->command->mounts_len &&
        open_short(request, is_from_cwd(dir, text), what, parent, ret))
        return true;
    root = open_root(request, &own_root);
    if (root < 0)
        return false;
    if (*what) {
        own_base = open_in_proc(what);
        if (own_base < 0)
            return false;
        base = own_base;
    }
    if (*what && !*parent) {
        struct stat st;

        if (fstat(own_base, &st) || !S_ISDIR(st.st_mode))
            return false;
        ret->dir = TAKE_FD(own_base);
    } else {
        ret->dir = open_dir(request, root, base, parent);
    }
    return ret->dir >= 0 && place_judge(request, root, ret);
}

bool place_find(const struct request *request, int dir, const char *text, struct place *ret)
{
    return find(request, dir, -1, text, ret);
}

/* may_follow_link() of the kernel's fs/namei.c */
bool place_may_follow(const struct place *place, const struct stat *st)
{
    static int is_protected = -1; /* fs.protected_symlinks */
    struct stat dir;

    if (is_protected < 0) {
        AUTO_CLOSE int fd = open("/proc/sys/fs/protected_symlinks", O_RDONLY | O_CLOEXEC);
        char digit = '1';

        is_protected = fd < 0 || read(fd, &digit, 1) != 1 || digit != '0';
    }
    return !is_protected || st->st_uid == geteuid() ||
           (fstat(place->dir, &dir) == 0 &&
            ((dir.st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH) ||
             dir.st_uid == st->st_uid));
}

bool place_follow(const struct request *request, struct place *place)
{
    AUTO_CLOSE int base = place_take_dir(place);
    place_text text;
    ssize_t len = readlinkat(base, place->name, text, sizeof text - 1);

    if (len <= 0)
        return false;
    text[len] = '\0';
    return find(request, AT_FDCWD, base, text, place);
}

void place_done(struct place *place)
{
    if (place->kept)
        kept_release(place->kept);
    else
        auto_close(&place->dir);
    auto_close(&place->lock);
    place->kept = NULL;
    place->dir = place->lock = -1;
}

int place_take_dir(struct place *place)
{
    int dir = place->kept ? fcntl(place->dir, F_DUPFD_CLOEXEC, 0) : place->dir;

    if (place->kept)
        kept_release(place->kept);
    place->kept = NULL;
    place->dir = -1;
    return dir;
}

void place_path(const struct place *place, char ret[PATH_MAX])
{
    size_t len = strlen(place->name);
    size_t end;

    ret[0] = '\0';
    if (!place_path_of(place->dir, ret))
        return;
    end = ret[1] ? strlen(ret) : 0;
    len -= len && place->name[len - 1] == '/';
    if (end + 1 + len >= PATH_MAX)
        len = PATH_MAX - 2 - end;
    ret[end] = '/';
    memcpy(ret + end + 1, place->name, len);
    ret[end + 1 + len] = '\0';
}

const char *place_link(int fd, char ret[PLACE_LINK])
{
    snprintf(ret, PLACE_LINK, "/proc/self/fd/%d", fd);
    return ret;
}

int place_open_host(int dir, const char *path, int flags)
{
    const struct sys_open_how how = {
        .flags = (uint64_t)(O_PATH | O_NOFOLLOW | O_CLOEXEC | flags),
        .resolve = SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS,
    };
    int fd = -1;

    path += strspn(path, "/");
    for (int i = 0; i < AGAIN_MAX; i++) {
        fd = sys_openat2(dir, *path ? path : ".", &how);
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return fd;
}

bool place_permits(const struct command *command, const char *path, int mode)
{
    return faccessat(command->outside, path[1] ? path + 1 : ".", mode, AT_EACCESS) == 0;
}

/* The working directory of the guard is the host's root. */
bool place_outside(const struct command *command, const struct place *place, struct place *ret)
{
    char path[PATH_MAX];

    *ret = (struct place){.dir = -1, .lock = -1};
    if (!place_path_of(place->dir, path))
        return false;
    ret->dir = place_open_host(command->outside, path, O_DIRECTORY);
    if (ret->dir < 0 || !identify(ret->dir, &ret->identity) ||
        !is_same_file(&ret->identity, &place->identity)) {
        place_done(ret);
        return false;
    }
    memcpy(ret->name, place->name, sizeof ret->name);
    return true;
}

bool place_is_mount_point(const struct place *place, bool *ret_closed)
{
    char name[NAME_MAX + 2];
    struct k_statx st;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(place->name, "/"), place->name);
    *ret_closed = false;
    if (syscall(SYS_statx, place->dir, name, AT_SYMLINK_NOFOLLOW, K_STATX_MNT_ID, &st)) {
        *ret_closed = errno == EACCES;
        return errno != ENOENT;
    }
    return !(st.mask & K_STATX_MNT_ID) || st.mount != place->identity.mount;
}

int place_open_on_host(const struct command *command, const struct place *place)
{
    const uint32_t flags = command->map.header->flags & (GUARD_MAP_OWN_MOUNTS | GUARD_MAP_NESTED);
    AUTO(place_done) struct place outside = {.dir = -1, .lock = -1};
    struct statvfs fs;

    if (!place->is_guarded || flags != GUARD_MAP_OWN_MOUNTS || fstatvfs(place->dir, &fs) ||
        (fs.f_flag & ST_RDONLY) || !place_outside(command, place, &outside))
        return -1;
    return TAKE_FD(outside.dir);
}

int place_descriptor(const struct request *request, const char *text)
{
    char what[IN_PROC];
    const char *rest = text[0] == '/' ? split_base(request, AT_FDCWD, text, what) : NULL;

    /* with a slash at its end it has to be a directory */
    if (!rest || *rest || text[strlen(text) - 1] == '/' || !strstr(what, "/fd/"))
        return -1;
    return open_in_proc(what);
}
