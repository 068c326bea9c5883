/* See grant.h. What a yes opens is decided by the paths that were shown and by the files themselves,
 * both: the path of a place says whether an entry, Cordon's own or the grant's directory is about it,
 * and a walk from the grant's own descriptor, beneath it and through no link, has to arrive at the
 * place. Where something has been moved, one of the two fails, and the grant is none. */
#include "guard/grant.h"

#include "base/auto.h"
#include "guard/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Without the slash that ended the path, if one did. */
static size_t name_len(const struct object *object)
{
    return strcspn(object->place.name, "/");
}

/* No yes opens it. What lies above a path of Cordon's, or of an entry, does not go, nor comes to be but
 * as a directory: it would lead elsewhere then. */
static bool is_closed(const struct request *request, const struct object *object)
{
    const struct map *map = &request->command->map;

    return object->is_closed || map_is_ours(object->path) || map_is_own(map, object->path) ||
           map_access(map, object->entry) == GUARD_DENY ||
           ((object->is_name || !object->exists) && request->call->kind != CALL_MKDIR &&
            map_has_below(map, object->path));
}

static bool is_file_of(const struct object *object, const struct identity *identity)
{
    return object->exists && identity->inode == object->st.st_ino &&
           identity->device ==
               ((uint64_t)major(object->st.st_dev) << 32 | minor(object->st.st_dev));
}

/* --- what is asked about --- */

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* A moment to which the times of files can be compared. They come from a clock that is some milliseconds late, so
 * what was made just before could pass for younger than the clock's own now. But a file that changes twice, and was looked at in
 * between, gets the very time (multigrain timestamps, Linux 6.13), and no other file gets an earlier one from
 * then on. Without that, what is made in the next milliseconds passes for older. */
static struct timespec moment_of_files(void)
{
    AUTO_CLOSE int fd = memfd_create("moment", MFD_CLOEXEC);
    struct timespec now;
    struct stat st;

    clock_gettime(CLOCK_REALTIME, &now);
    for (mode_t mode = 0600; mode <= 0700 && fstat(fd, &st) == 0; mode += 0100)
        if (fchmod(fd, mode) || fstat(fd, &st))
            break;
        else if (!is_before(&st.st_ctim, &now))
            return st.st_ctim;
    return now;
}

/* `fd` is what is granted; taken over. */
static bool grant_init(struct grant *ret, enum grant_kind kind, int fd, const char *path)
{
    *ret = (struct grant){.kind = kind, .fd = fd, .path = strdup(path), .since = moment_of_files()};
    if (fd >= 0 && ret->path && identify(fd, &ret->identity))
        return true;
    auto_close(&fd);
    free(ret->path);
    *ret = (struct grant){.fd = -1};
    return false;
}

static void grant_done(struct grant *grant)
{
    auto_close(&grant->fd);
    free(grant->path);
    free(grant->name);
    *grant = (struct grant){.fd = -1};
}

bool grant_wanted_file(const struct request *request, const struct object *object,
                       struct grant *ret)
{
    if (!grant_init(ret, GRANT_FILE, place_open_host(request->command->outside, object->path, 0),
                    object->path))
        return false;
    if (is_file_of(object, &ret->identity))
        return true;
    grant_done(ret);
    return false;
}

/* The directory that the object's name is in, and the name unless it is all of the directory. */
static bool wanted_in_directory(const struct request *request, const struct object *object,
                                bool is_whole, struct grant *ret)
{
    struct place outside;
    char path[PATH_MAX];

    if (!place_outside(request->command, &object->place, &outside) ||
        !place_path_of(outside.dir, path) || (is_whole && !path[1])) {
        place_done(&outside);
        return false;
    }
    if (!grant_init(ret, is_whole ? GRANT_CONTENTS : GRANT_NAME, outside.dir, path))
        return false;
    if (!is_whole)
        ret->name = strndup(object->place.name, name_len(object));
    if (is_whole || ret->name)
        return true;
    grant_done(ret);
    return false;
}

bool grant_wanted(const struct request *request, const struct object *object, struct grant *ret)
{
    const struct map *map = &request->command->map;
    char parent[PATH_MAX];
    size_t len = (size_t)(strrchr(object->path, '/') - object->path);

    *ret = (struct grant){.fd = -1};
    if (is_closed(request, object))
        return false;
    if (object->exists && !object->is_name) {
        if (!grant_wanted_file(request, object, ret))
            return false;
        if (S_ISDIR(object->st.st_mode) && request->call->kind == CALL_ACCESS)
            ret->kind = GRANT_CONTENTS;
        return true;
    }
    /* A new name opens its directory; not if that is open already, the name has its own entry, or is_apart(). */
    snprintf(parent, sizeof parent, "%.*s", (int)(len ? len : 1), object->path);
    return wanted_in_directory(request, object,
                               !object->exists &&
                                   !map_is_believed(map, object->place.name, name_len(object)) &&
                                   map_access(map, map_find(map, parent)) != GUARD_WRITE &&
                                   (object->entry == GUARD_NO_ENTRY ||
                                    strcmp(map_path(map, object->entry), object->path) != 0),
                               ret);
}

/* --- what is covered --- */

static bool is_where_it_was(const struct grant *grant)
{
    char path[PATH_MAX];

    return place_path_of(grant->fd, path) && strcmp(path, grant->path) == 0;
}

/* The object's directory is what lies at its path, seen from the grant. */
static bool leads_to(const struct grant *grant, const struct object *object)
{
    size_t start = grant->path[1] ? strlen(grant->path) : 0;
    size_t end = (size_t)(strrchr(object->path, '/') - object->path);
    char rest[PATH_MAX];
    struct identity identity;
    AUTO_CLOSE int fd = -1;

    snprintf(rest, sizeof rest, "%.*s", (int)(end > start ? end - start : 0), object->path + start);
    fd = place_open_host(grant->fd, rest, O_DIRECTORY);
    return fd >= 0 && identify(fd, &identity) && is_same_file(&identity, &object->place.identity);
}

/* Who opened a git directory did not open what git runs or obeys in it. */
static bool is_git_setting(const char *root, const char *path)
{
    static const char *const names[] = {"hooks",   "config",    "config.worktree", "info",
                                        "modules", "commondir", "gitdir"};
    const size_t len = strlen(root);
    const char *last = strrchr(path, '/') + 1;
    const char *rest = path + len + 1;

    if (len < 5 || strcmp(root + len - 5, "/.git") != 0 || path[len] != '/')
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(last, names[i]) == 0 ||
            (strncmp(rest, names[i], strlen(names[i])) == 0 && rest[strlen(names[i])] == '/'))
            return true;
    return false;
}

/* What is called `path` is older than the grant, or cannot be said to be younger. */
static bool was_there(const struct grant *grant, const char *path)
{
    const char *rest = path + (grant->path[1] ? strlen(grant->path) : 0);
    AUTO_CLOSE int fd = place_open_host(grant->fd, rest, 0);
    struct k_statx st;

    if (fd < 0)
        return errno != ENOENT;
    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, K_STATX_BTIME, &st) || !(st.mask & K_STATX_BTIME))
        return true;
    return is_before(
        &(struct timespec){.tv_sec = st.btime.seconds, .tv_nsec = st.btime.nanoseconds},
        &grant->since);
}

/* A name below `root` that its yes does not cover: it needs one of its own, if there is one for it. */
static bool is_apart(const struct map *map, const struct grant *grant, const char *root,
                     const struct object *object)
{
    const char *const path = object->path;
    const char *const begin = path + (root[1] ? strlen(root) : 0) + 1;
    char prefix[PATH_MAX], above[PATH_MAX];

    for (const char *at = begin; at[-1] && *at; at += strcspn(at, "/") + 1) {
        size_t len = strcspn(at, "/");
        bool is_git = len == 4 && memcmp(at, ".git", len) == 0;
        bool is_last = !at[len];

        snprintf(prefix, sizeof prefix, "%.*s", (int)(at + len - path), path);
        snprintf(above, sizeof above, "%.*s", (int)(at - 1 - path), path);
        if ((is_git || map_is_believed(map, at, len)) &&
            (was_there(grant, prefix)
                 ? !is_git || (is_last ? object->is_name : is_git_setting(prefix, path))
                 : was_there(grant, above)))
            return true;
        if (is_last)
            break;
    }
    return false;
}

static bool covers(const struct map *map, const struct grant *grant, const struct object *object)
{
    char root[PATH_MAX];
    int entry = map_find(map, object->path);
    bool is_root;

    if (grant->kind != GRANT_NAME && !object->is_name && is_file_of(object, &grant->identity))
        return is_where_it_was(grant);
    if (grant->kind == GRANT_FILE)
        return false;
    if (snprintf(root, sizeof root, "%s%s%s", grant->path, grant->name && grant->path[1] ? "/" : "",
                 grant->name ? grant->name : "") >= (int)sizeof root ||
        !map_is_within(object->path, root))
        return false;
    is_root = strcmp(object->path, root) == 0;
    if (entry != GUARD_NO_ENTRY && map_is_within(map_path(map, entry), root) &&
        strcmp(map_path(map, entry), root) != 0)
        return false;
    if ((grant->kind == GRANT_CONTENTS && is_git_setting(root, object->path)) ||
        is_apart(map, grant, root, object))
        return false;
    /* The directory's own name is not its contents; and what has other names is more than the name. */
    if (is_root && (grant->kind == GRANT_CONTENTS ||
                    (object->exists && !object->is_name && object->st.st_nlink > 1 &&
                     !S_ISDIR(object->st.st_mode))))
        return false;
    return is_where_it_was(grant) && leads_to(grant, object);
}

bool grants_cover(const struct request *request, const struct grants *grants,
                  const struct object *object)
{
    if (!grants->len || is_closed(request, object))
        return false;
    for (uint32_t i = 0; i < grants->len; i++)
        if (covers(&request->command->map, &grants->items[i], object))
            return true;
    return false;
}

bool grants_add(struct grants *grants, struct grants *from)
{
    struct grant *items;

    if (grants->len + from->len > GRANTS_MAX)
        return false;
    items = realloc(grants->items, (grants->len + from->len) * sizeof *items);
    if (!items)
        return false;
    memcpy(items + grants->len, from->items, from->len * sizeof *items);
    grants->items = items;
    grants->len += from->len;
    free(from->items);
    *from = (struct grants){0};
    return true;
}

void grants_done(struct grants *grants)
{
    for (uint32_t i = 0; i < grants->len; i++)
        grant_done(&grants->items[i]);
    free(grants->items);
    *grants = (struct grants){0};
}
