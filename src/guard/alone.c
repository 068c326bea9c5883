/* See alone.h. Elsewhere mounts hold what is narrower, for the guard as for the command, and it need not look at what
 * it does. Here it has to: everything is found, pinned by a descriptor, and judged by the canonical path that the
 * descriptor has, and by its name, which is held for every entry (guard_map.c). A directory that has an entry below it
 * stays where it is, so a path stands for the same place as long as the command runs.
 *
 *     found by a path or descriptor -> the profile lets it be written, by its path
 *                                   -> the kernel would not: done on the pinned file (granted.c)
 *     else                          -> Landlock refuses; what it knows nothing of (modes, owners, times) we do
 *
 * What is made, linked and renamed is done by perform.c, which asks here what may move. Reading comes here where something
 * in a writable directory is denied: no rule of Landlock's covers what comes to be beside it.
 *
 * Not done: set-id bits, and opening what is no regular file for writing (a FIFO that is new would keep us waiting). */
#include "guard/alone.h"

#include "base/auto.h"
#include "guard/descriptor.h"
#include "guard/facts.h"
#include "guard/folder.h"
#include "guard/granted.h"
#include "guard/nested.h"
#include "guard/object.h"
#include "guard/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

static bool is_writable(const struct request *request, const char *path)
{
    const struct map *map = &request->command->map;

    return *path && !map_is_ours(path) && map_access(map, map_find(map, path)) == GUARD_WRITE;
}

/* By its path, and by its name: another spelling may be the same to the file system. */
static bool may_write(const struct request *request, struct place *place, const char *path)
{
    bool is_refused;
    int entry;

    if (request->command->is_broken || !place->is_guarded || !is_writable(request, path) ||
        nested_refuses(request, place, false))
        return false;
    is_refused = folder_refuses(request->command, place, &entry);
    auto_close(&place->lock); /* who makes a name looks again */
    place->lock = -1;
    return !is_refused;
}

bool alone_may_move(const struct request *request, struct place *place)
{
    const struct map *map = &request->command->map;
    char path[PATH_MAX];
    int entry;

    place_path(place, path);
    entry = map_find(map, path);
    return may_write(request, place, path) && !map_has_below(map, path) &&
           (entry == GUARD_NO_ENTRY || strcmp(map_path(map, entry), path) != 0);
}

bool alone_may_link(const struct request *request, int fd)
{
    char path[PATH_MAX];

    return place_path_of(fd, path) && is_writable(request, path) &&
           (!alone_is(request) || folder_is_guarded(request->command, path)) &&
           !(request->nested && nested_refuses_path(request, path, -1, false));
}

static int flags_of(const struct request *request)
{
    const struct call *call = request->call;

    return call->flags < 0 ? call->fixed_flags : (int)request_argument(request, call->flags);
}

/* Whether a file or a directory is removed; -1: neither. */
static int removes(const struct request *request)
{
    switch (request->call->nr) {
#ifdef SYS_unlink
    case SYS_unlink:
        return 0;
    case SYS_rmdir:
        return 1;
#endif
    case SYS_unlinkat:
        return (flags_of(request) & AT_REMOVEDIR) != 0;
    default:
        return -1;
    }
}

/* A path that ends in "." or "..": the text becomes the directory's own path. */
static bool name_directory(const struct request *request, int dir, place_text text)
{
    AUTO(place_done) struct place place = {.dir = -1, .lock = -1};
    const size_t len = strlen(text);

    if (text[len - 1] != '.' || len + sizeof "/x" > sizeof(place_text))
        return false;
    memcpy(text + len, "/x", sizeof "/x"); /* whose place is the directory */
    return place_find(request, dir, text, &place) && place_path_of(place.dir, text);
}

/* The C library changes what it has open by its name in /proc. */
static int find_descriptor(const struct request *request, place_text text, struct object *ret)
{
    AUTO_CLOSE int fd = place_descriptor(request, text);
    struct stat st;

    if (fd < 0)
        return EACCES;
    if (fstat(fd, &st) || !place_path_of(fd, text) ||
        !place_find(request, AT_FDCWD, text, &ret->place) ||
        fstatat(ret->place.dir, ret->place.name, &ret->st, AT_SYMLINK_NOFOLLOW) ||
        st.st_dev != ret->st.st_dev || st.st_ino != ret->st.st_ino)
        return EPERM;
    ret->exists = true;
    place_path(&ret->place, ret->path);
    return 0;
}

/* What the path names, through links if the call `follows` them. 0, or why not. */
static int find(const struct request *request, bool follows, struct object *ret)
{
    const struct call *call = request->call;
    place_text text;
    int len =
        remote_text(request->thread, request_argument(request, call->path), text, sizeof text);
    int error;

    if (len <= 0)
        return len ? -len : ENOENT;
    if (follows && (error = find_descriptor(request, text, ret)) != EACCES)
        return error;
    if (!place_find(request, request_dir(request, call->dir), text, &ret->place) &&
        (errno != EACCES || !name_directory(request, request_dir(request, call->dir), text) ||
         !place_find(request, AT_FDCWD, text, &ret->place)))
        return errno;
    for (int i = 0; i < LINKS_MAX; i++) {
        ret->exists = fstatat(ret->place.dir, ret->place.name, &ret->st, AT_SYMLINK_NOFOLLOW) == 0;
        if (!ret->exists)
            return errno;
        if (!follows || !S_ISLNK(ret->st.st_mode)) {
            place_path(&ret->place, ret->path);
            return 0;
        }
        if (!place_may_follow(&ret->place, &ret->st) || !place_follow(request, &ret->place))
            return EACCES;
    }
    return ELOOP;
}

/* Nothing but the kernel's lack is in the way. */
static struct answer act(const struct request *request, struct object *object)
{
    struct object *const objects[2] = {object, NULL};
    const struct fact fact = {
        .operation = GUARD_OP_WRITE, .path = object->path, .entry = GUARD_NO_ENTRY};
    const bool is_read =
        request->call->kind == CALL_OPEN && !(flags_of(request) & (O_ACCMODE | O_TRUNC));
    struct answer answer;

    object->is_denied = true; /* as if by a yes */
    if (!granted_can(request, objects))
        return answer_continue();
    answer = granted_do(request, objects);
    answer.is_granted = false;
    if (answer.kind == ANSWER_VALUE && request->command->traces_files && !is_read)
        facts_tell_done(request, &fact);
    return answer;
}

static struct answer do_open(const struct request *request)
{
    const int flags = flags_of(request);
    AUTO_OBJECT struct object object = NO_OBJECT;

    if ((flags & (O_PATH | O_DIRECTORY | O_CREAT)) ||
        find(request, !(flags & O_NOFOLLOW), &object) || !S_ISREG(object.st.st_mode) ||
        !may_write(request, &object.place, object.path))
        return answer_continue();
    return act(request, &object);
}

static struct answer do_remove(const struct request *request)
{
    AUTO_OBJECT struct object object = NO_OBJECT;

    if (find(request, false, &object) || !alone_may_move(request, &object.place))
        return answer_continue();
    if (S_ISDIR(object.st.st_mode) != removes(request))
        return answer_error(removes(request) ? ENOTDIR : EISDIR);
    object.is_name = true;
    return act(request, &object);
}

/* Landlock knows of none of these but truncate(2): they never go on. */
static struct answer do_change(const struct request *request)
{
    const bool is_descriptor = descriptor_is_meant(request);
    AUTO_OBJECT struct object object = NO_OBJECT;
    struct answer answer = answer_continue();
    int error = 0;

    if (is_descriptor)
        error = descriptor_find(request, &object) ? 0 : EPERM;
    else
        error = find(request, !(flags_of(request) & AT_SYMLINK_NOFOLLOW), &object);
    if (error)
        return answer_error(error);
    if (!may_write(request, &object.place, object.path))
        return answer_error(EROFS); /* judge.c tells it */
    answer = act(request, &object);
    return answer.kind == ANSWER_CONTINUE ? answer_error(EPERM) : answer;
}

struct answer alone_do(const struct request *request)
{
    switch (request->call->kind) {
    case CALL_OPEN:
        return do_open(request);
    case CALL_CHANGE:
        return removes(request) >= 0 ? do_remove(request) : do_change(request);
    case CALL_MKDIR:
    case CALL_MKNOD:
    case CALL_SYMLINK:
    case CALL_LINK:
    case CALL_RENAME:
    case CALL_ACCESS:
    case CALLS_OF_NO_FILE:
        break;
    }
    return answer_continue();
}
