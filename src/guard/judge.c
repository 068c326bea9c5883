/* See judge.h. Most calls are over after a look at the text of their path: when it lies in a place
 * that may be written, nothing is looked up. (A symlink there that leads out is followed by the
 * kernel alone; what it refuses then is not told, unless the call might create something, which is
 * looked up anyway.)
 *
 * Of the others each is a fact only if it would have worked without the sandbox: the object is there
 * if the call needs it, and is not if the call makes it, and the permissions allow it. A program that
 * probes for what does not exist has been refused nothing. */
#include "guard/judge.h"

#include "base/auto.h"
#include "guard/facts.h"
#include "guard/place.h"
#include "guard/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { LINKS_MAX = 40 };

/* Absolute, no empty, "." or ".." component. */
static bool is_plain(const char *path)
{
    for (const char *at = path; *at; at += *at == '/' ? 1 : strcspn(at, "/")) {
        if (at != path && at[-1] != '/')
            continue;
        if (at != path &&
            (*at == '/' || (*at == '.' && (!at[1] || at[1] == '/' ||
                                           (at[1] == '.' && (!at[2] || at[2] == '/'))))))
            return false;
    }
    return *path == '/';
}

/* The text of the path, put behind that of the directory that it is relative to. */
static bool whole_text(const struct request *request, int dir, const char *text, char ret[PATH_MAX])
{
    char link[64];
    ssize_t len = 0;

    if (text[0] != '/') {
        if (dir == AT_FDCWD)
            snprintf(link, sizeof link, "/proc/%d/cwd", (int)request->thread);
        else
            snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)request->thread, dir);
        len = readlink(link, ret, PATH_MAX - 1);
        if (len <= 0 || ret[0] != '/')
            return false;
        if (len > 1)
            ret[len++] = '/';
        while (text[0] == '.' && text[1] == '/')
            text += 1 + strspn(text + 1, "/");
    }
    return snprintf(ret + len, PATH_MAX - (size_t)len, "%s", text) < PATH_MAX - len &&
           is_plain(ret);
}

/* Whose files are made for each command: what is refused there is refused everywhere. */
static bool is_ours(const char *path)
{
    return map_is_within(path, "/proc") || map_is_within(path, "/sys") ||
           map_is_within(path, "/dev");
}

static bool is_writable(const struct map *map, const char *path)
{
    return map_access(map, map_find(map, path)) == GUARD_WRITE;
}

/* Follows symlinks at the end; false when the path leads nowhere that we can see. */
static bool follow(const struct request *request, struct place *place, struct stat *ret,
                   bool *ret_exists)
{
    for (int i = 0; i < LINKS_MAX; i++) {
        *ret_exists = fstatat(place->dir, place->name, ret, AT_SYMLINK_NOFOLLOW) == 0;
        if (!*ret_exists || !S_ISLNK(ret->st_mode))
            return *ret_exists || errno == ENOENT;
        if (!place_follow(request, place))
            return false;
    }
    return false;
}

static bool owns(const struct stat *st)
{
    return geteuid() == 0 || st->st_uid == geteuid();
}

/* By the permissions of the files themselves, seen from outside. */
static bool is_permitted(const struct request *request, const char *path, const struct stat *st,
                         bool exists)
{
    char parent[PATH_MAX];
    const struct call *call = request->call;
    struct stat dir;
    size_t len;

    len = (size_t)(strrchr(path, '/') - path);
    snprintf(parent, sizeof parent, "%.*s", (int)(len ? len : 1), path);
    if (call->kind == CALL_OPEN || call->kind == CALL_ACCESS) {
        if (exists)
            return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
    } else if (call->kind == CALL_CHANGE && call->mode == CALL_NONE &&
               (call->fixed_flags & AT_SYMLINK_NOFOLLOW) == 0) {
        return owns(st) || faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
    }
    if (faccessat(AT_FDCWD, parent, W_OK | X_OK, AT_EACCESS))
        return false;
    return !exists || stat(parent, &dir) || !(dir.st_mode & S_ISVTX) || owns(st) || owns(&dir);
}

static int error_of(const struct place *place)
{
    struct statvfs fs;

    return fstatvfs(place->dir, &fs) == 0 && (fs.f_flag & ST_RDONLY) ? EROFS : EACCES;
}

static bool is_removal(const struct call *call)
{
    return call->kind == CALL_CHANGE && (call->fixed_flags & AT_SYMLINK_NOFOLLOW);
}

static bool may_create(const struct request *request)
{
    const struct call *call = request->call;

    return call->kind == CALL_OPEN &&
           (call->flags < 0 || (request_argument(request, call->flags) & O_CREAT));
}

/* The second name of a rename may be there, unless the caller says that it may not. */
static bool replaces(const struct request *request)
{
    const struct call *call = request->call;

    return call->kind == CALL_RENAME &&
           (call->flags < 0 || !(request_argument(request, call->flags) & K_RENAME_NOREPLACE));
}

/* The call's path of these arguments: opened, made or changed there. */
static void judge_path(const struct request *request, int dir, int argument, bool makes)
{
    const struct map *map = &request->command->map;
    AUTO(place_done) struct place place = {.dir = -1, .lock = -1};
    struct fact fact = {.operation = GUARD_OP_WRITE, .place = &place};
    place_text text;
    char path[PATH_MAX];
    bool exists = false;
    struct stat st;

    if (remote_text(request->thread, request_argument(request, argument), text, sizeof text) <= 0)
        return;
    if (whole_text(request, request_dir(request, dir), text, path) &&
        ((is_writable(map, path) && !may_create(request)) || is_ours(path)))
        return;
    if (!place_find(request, request_dir(request, dir), text, &place))
        return;
    if (makes || is_removal(request->call))
        exists = fstatat(place.dir, place.name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    else if (!follow(request, &place, &st, &exists))
        return;
    place_path(&place, path);
    fact.entry = map_find(map, path);
    if (map_access(map, fact.entry) == GUARD_WRITE || is_ours(path))
        return;
    if (request->call->kind == CALL_OPEN)
        makes = !exists && may_create(request);
    else if (exists && makes && replaces(request))
        makes = false;
    if (exists == makes ||
        (exists && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !is_removal(request->call)))
        return;
    if (exists && S_ISDIR(st.st_mode) && request->call->kind == CALL_OPEN)
        return; /* EISDIR */
    if (!is_permitted(request, path, &st, exists) || !request_is_valid(request))
        return;
    fact.operation = makes ? GUARD_OP_CREATE : GUARD_OP_WRITE;
    fact.error = error_of(&place);
    facts_tell(request, &fact);
}

void judge(const struct request *request)
{
    const struct call *call = request->call;

    if (!(request->command->map.header->flags & GUARD_MAP_FACTS))
        return;
    switch (call->kind) {
    case CALL_OPEN:
    case CALL_CHANGE:
    case CALL_ACCESS:
        judge_path(request, call->dir, call->path, false);
        break;
    case CALL_MKDIR:
    case CALL_MKNOD:
        judge_path(request, call->dir, call->path, true);
        break;
    case CALL_SYMLINK:
    case CALL_LINK:
        judge_path(request, call->new_dir, call->new_path, true);
        break;
    case CALL_RENAME:
        judge_path(request, call->dir, call->path, false);
        judge_path(request, call->new_dir, call->new_path, true);
        break;
    case CALL_UMASK:
    case CALL_SOCKET:
    case CALL_CONNECT:
    case CALL_BIND:
        break;
    }
}
