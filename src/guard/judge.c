/* See judge.h. Each is a fact only if it would have worked without the sandbox: the object is there if
 * the call needs it, is of the right kind, and is not there if the call makes it; and the permissions
 * allow it. A program that probes for what does not exist has been refused nothing.
 *
 * Most calls are about what may be written. There the directory alone is looked up, by the short cut of
 * place.h: a symlink may lead out of there, whatever the text of the path says. */
#include "guard/judge.h"

#include "base/auto.h"
#include "guard/descriptor.h"
#include "guard/facts.h"
#include "guard/folder.h"
#include "guard/git.h"
#include "guard/grant.h"
#include "guard/granted.h"
#include "guard/hold.h"
#include "guard/learn.h"
#include "guard/object.h"
#include "guard/remote.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static bool is_writable(const struct map *map, const char *path)
{
    return map_access(map, map_find(map, path)) == GUARD_WRITE;
}

/* Who decides about a name that comes, goes or moves: that of a writable directory belongs to the
 * directory above it. */
static int decides_name(const struct map *map, const char *path)
{
    int entry = map_find(map, path);
    char parent[PATH_MAX];

    if (map_access(map, entry) != GUARD_WRITE || entry == GUARD_NO_ENTRY ||
        strcmp(map_path(map, entry), path) != 0)
        return entry;
    snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, '/') - path), path);
    return map_find(map, *parent ? parent : "/");
}

/* --- what a call is about --- */

/* Follows symlinks at the end; false when the path leads nowhere that we can see. */
static bool follow(const struct request *request, struct object *object)
{
    for (int i = 0; i < LINKS_MAX; i++) {
        object->exists =
            fstatat(object->place.dir, object->place.name, &object->st, AT_SYMLINK_NOFOLLOW) == 0;
        if (!object->exists || !S_ISLNK(object->st.st_mode))
            return object->exists || errno == ENOENT;
        if (!place_follow(request, &object->place))
            return false;
    }
    return false;
}

/* On the mount of a root, with nothing mounted on the name: whatever was said about a path that leads
 * there, this may be written to. */
static bool is_free(const struct request *request, const struct place *place)
{
    bool is_closed;

    return place->is_guarded && folder_is_mount_of_root(request->command, place->identity.mount) &&
           !place_is_mount_point(place, &is_closed);
}

static unsigned flags_of(const struct request *request)
{
    const struct call *call = request->call;

    return call->flags < 0 ? (unsigned)call->fixed_flags
                           : (unsigned)request_argument(request, call->flags);
}

static bool removes(const struct call *call)
{
    static const int calls[] = {
        SYS_unlinkat,
#ifdef SYS_unlink
        SYS_unlink,
        SYS_rmdir,
#endif
    };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (call->nr == calls[i])
            return true;
    return false;
}

/* What is open, created or asked about is what a symlink at the end leads to. */
static bool follows_end(const struct request *request)
{
    return request->call->kind != CALL_CHANGE ||
           (!removes(request->call) && !(flags_of(request) & AT_SYMLINK_NOFOLLOW));
}

/* Most calls: what is there is opened or changed where the sandbox refuses nothing. */
static bool is_plainly_free(const struct request *request)
{
    const struct call *call = request->call;
    int flags = follows_end(request) ? 0 : AT_SYMLINK_NOFOLLOW;
    place_text text;

    return !request->command->traces_files &&
           (call->kind == CALL_OPEN || call->kind == CALL_ACCESS || call->kind == CALL_CHANGE) &&
           request_argument(request, call->path) &&
           remote_text(request->thread, request_argument(request, call->path), text, sizeof text) >
               0 &&
           place_is_free(request, request_dir(request, call->dir), text, flags);
}

/* By the profile, or because of a name that is kept out of the place. */
static bool is_denied(const struct request *request, struct object *object)
{
    const struct map *map = &request->command->map;

    object->entry = object->is_name ? decides_name(map, object->path) : map_find(map, object->path);
    object->is_denied =
        map_access(map, object->entry) != GUARD_WRITE || git_is_left(request, object);
    if (object->is_denied || !object->is_refused || !object->place.is_guarded)
        return object->is_denied;
    object->is_closed = object->is_denied =
        folder_refuses(request->command, &object->place, &object->entry);
    return object->is_denied;
}

/* What the kernel does is to be told of. */
static bool is_traced(const struct request *request, const struct answer *answer)
{
    return answer->kind == ANSWER_CONTINUE && request->command->traces_files &&
           request->call->kind != CALL_ACCESS;
}

/* It is refused, or to be told of. */
static bool matters(const struct request *request, struct object *object,
                    const struct answer *answer)
{
    return is_denied(request, object) || is_traced(request, answer);
}

/* --- what would have worked --- */

static bool owns(const struct stat *st)
{
    return geteuid() == 0 || st->st_uid == geteuid();
}

/* By the permissions of the files themselves, seen from outside. */
static bool is_permitted(const struct request *request, const struct object *object)
{
    const struct call *call = request->call;
    char parent[PATH_MAX];
    struct stat dir;
    size_t len;

    if (object->exists && (call->kind == CALL_OPEN || call->kind == CALL_ACCESS))
        return place_permits(request->command, object->path, W_OK);
    if (!object->is_name && object->exists)
        return owns(&object->st) || place_permits(request->command, object->path, W_OK);
    len = (size_t)(strrchr(object->path, '/') - object->path);
    snprintf(parent, sizeof parent, "%.*s", (int)(len ? len : 1), object->path);
    if (!place_permits(request->command, parent, W_OK | X_OK))
        return false;
    return !object->exists ||
           fstatat(request->command->outside, parent[1] ? parent + 1 : ".", &dir, 0) ||
           !(dir.st_mode & S_ISVTX) || owns(&object->st) || owns(&dir);
}

static int error_of(const struct place *place)
{
    struct statvfs fs;

    return fstatvfs(place->dir, &fs) == 0 && (fs.f_flag & ST_RDONLY) ? EROFS : EACCES;
}

/* --- what comes of it --- */

static struct fact fact_of(const struct object *object, const struct answer *answer)
{
    return (struct fact){
        .operation = object->exists ? GUARD_OP_WRITE : GUARD_OP_CREATE,
        .path = object->path,
        .entry = object->entry,
        .error = answer->kind == ANSWER_ERROR ? answer->number : error_of(&object->place),
    };
}

static bool is_covered(const struct request *request, const struct object *object)
{
    return !object->is_denied || grants_cover(request, &request->command->grants, object);
}

static void tell_done(const struct request *request, struct object *const objects[2])
{
    const struct fact fact = {
        .operation = objects[0]->exists ? GUARD_OP_WRITE : GUARD_OP_CREATE,
        .path = objects[0]->path,
        .other_path = objects[1] ? objects[1]->path : NULL,
        .entry = GUARD_NO_ENTRY,
    };

    if (request_is_valid(request))
        facts_tell_done(request, &fact);
}

/* The sandbox refuses one of the `objects` of the call, or both. */
static struct answer refuse(const struct request *request, struct object *const objects[2],
                            struct answer answer)
{
    struct object *first = objects[0]->is_denied ? objects[0] : objects[1];
    struct object *const sorted[2] = {first, first == objects[0] ? objects[1] : objects[0]};
    struct fact fact = fact_of(first, &answer);

    if (sorted[1])
        fact.other_path = sorted[1]->path;
    if (!request->nested && git_allows(request, objects)) {
        struct answer done = git_do(request, objects);

        if (done.kind == ANSWER_VALUE && request->command->traces_files)
            tell_done(request, objects);
        if (done.kind != ANSWER_CONTINUE)
            return done;
    } else if (!request->nested && granted_can(request, objects)) {
        if (!is_covered(request, first) || (sorted[1] && !is_covered(request, sorted[1]))) {
            if (hold_call(request, &fact, sorted, answer))
                return (struct answer){.kind = ANSWER_HELD};
        } else {
            struct answer done = granted_do(request, objects);

            if (done.kind == ANSWER_VALUE && request->attempt == ATTEMPT_FIRST &&
                request->command->traces_files)
                tell_done(request, objects);
            if (done.kind != ANSWER_CONTINUE)
                return done;
        }
    }
    for (int i = 0; i < 2 && sorted[i] && request_is_valid(request); i++) {
        fact = fact_of(sorted[i], &answer);
        if (i == 0 || (sorted[i]->is_denied && sorted[i]->is_name)) /* of a link the new name */
            facts_tell(request, &fact);
    }
    return answer;
}

/* Nothing but the sandbox is in the way of the call, if that is. */
static struct answer settle(const struct request *request, struct object *const objects[2],
                            struct answer answer)
{
    if (objects[0]->is_denied || (objects[1] && objects[1]->is_denied))
        return refuse(request, objects, answer);
    if (is_traced(request, &answer))
        tell_done(request, objects);
    return answer;
}

static struct answer settle_one(const struct request *request, struct object *object,
                                struct answer answer)
{
    return settle(request, (struct object *const[2]){object, NULL}, answer);
}

/* A directory that rmdir(2) and rename(2) take. */
static bool is_empty(const struct object *object)
{
    int fd = openat(object->place.dir, object->place.name,
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *item;
    int items = 0;

    if (!dir) {
        auto_close(&fd);
        return true; /* as far as we can see */
    }
    while (items <= 2 && (item = readdir(dir)))
        items++;
    closedir(dir);
    return items <= 2; /* "." and ".." */
}

/* --- what is named by something else than its path ---
 *
 * Only looked for where calls may be held: a program that carries on has to find all of it done. */

static bool asks(const struct request *request)
{
    return request->command->ends >= 0 || request->command->has_git;
}

/* Where the caller's descriptor, or working directory, leads to. */
static bool read_descriptor(const struct request *request, int fd, place_text ret)
{
    char link[64];
    ssize_t len;

    if (fd == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/%d/cwd", (int)request->thread);
    else
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)request->thread, fd);
    len = readlink(link, ret, sizeof(place_text) - 1);
    ret[len > 0 ? len : 0] = '\0';
    return ret[0] == '/';
}

/* The N of "/proc/self/fd/N", as the C library names a file that it has opened to change it; -1. */
static int descriptor_of(const char *text)
{
    static const char start[] = "/proc/self/fd/";
    int number = 0;

    if (strncmp(text, start, sizeof start - 1) != 0)
        return -1;
    text += sizeof start - 1;
    for (const char *digit = text; *digit; digit++) {
        if (*digit < '0' || *digit > '9' || number > INT_MAX / 16)
            return -1;
        number = 10 * number + (*digit - '0');
    }
    return *text ? number : -1;
}

/* Cuts "/." off its end; false when nothing else is left. */
static bool cut_dots(char *text)
{
    for (size_t len = strlen(text); len && text[len - 1] == '.'; len = strlen(text)) {
        if (len == 1)
            return false;
        if (text[len - 2] != '/')
            return true;
        for (len--; len > 1 && text[len - 1] == '/'; len--)
            continue;
        text[len] = '\0';
    }
    return true;
}

/* The path of the call. `*ret_fd`: the descriptor whose file it has to name; -1: whatever is there. */
static bool read_path(const struct request *request, int dir, int argument, place_text ret,
                      int *ret_fd)
{
    *ret_fd = -1;
    if (remote_text(request->thread, request_argument(request, argument), ret,
                    sizeof(place_text)) <= 0)
        return false;
    if (!asks(request) || request->call->kind != CALL_CHANGE || removes(request->call))
        return true;
    *ret_fd = descriptor_of(ret);
    if (*ret_fd >= 0)
        return read_descriptor(request, *ret_fd, ret);
    return cut_dots(ret) || read_descriptor(request, request_dir(request, dir), ret);
}

static bool is_that_file(const struct request *request, int fd, const struct object *object)
{
    char link[64];
    struct stat st;

    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)request->thread, fd);
    return stat(link, &st) == 0 && object->exists && !S_ISLNK(object->st.st_mode) &&
           st.st_dev == object->st.st_dev && st.st_ino == object->st.st_ino;
}

/* Finds what the call's path of these arguments names; false when nothing can be said of it, or when
 * it lies where all may be done. */
static bool look(const struct request *request, int dir, int argument, bool follows,
                 struct object *ret)
{
    const struct map *map = &request->command->map;
    const enum call_kind kind = request->call->kind;
    place_text text;
    bool seems_writable;
    int fd;

    if (argument < 0 || !read_path(request, dir, argument, text, &fd))
        return false;
    follows = follows && fd < 0;
    seems_writable = whole_text(request, request_dir(request, dir), text, ret->path);
    if (!seems_writable)
        *ret->path = '\0';
    if (seems_writable && map_is_ours(ret->path))
        return false;
    seems_writable = seems_writable && !ret->is_refused && is_writable(map, ret->path) &&
                     !request->command->traces_files &&
                     (kind == CALL_CHANGE || kind == CALL_OPEN || kind == CALL_ACCESS);
    if (!place_find(request, request_dir(request, dir), text, &ret->place))
        return false;
    if (seems_writable && !follows && is_free(request, &ret->place))
        return false;
    if (!follows)
        ret->exists = fstatat(ret->place.dir, ret->place.name, &ret->st, AT_SYMLINK_NOFOLLOW) == 0;
    else if (!follow(request, ret))
        return false;
    if (seems_writable && follows && is_free(request, &ret->place))
        return false;
    if (fd >= 0 && !is_that_file(request, fd, ret))
        return false;
    place_path(&ret->place, ret->path);
    return *ret->path && !map_is_ours(ret->path);
}

static bool removes_directory(const struct request *request)
{
#ifdef SYS_rmdir
    if (request->call->nr == SYS_rmdir)
        return true;
#endif
    return request->call->nr == SYS_unlinkat && (flags_of(request) & AT_REMOVEDIR);
}

/* --- the calls --- */

/* It fails in any case. Of a mount that is read-only the kernel says that before it looks; who carries on
 * with what was granted is told what it would be told without a sandbox. */
static struct answer fail(const struct request *request, struct object *object,
                          struct answer answer, int error)
{
    return asks(request) && error && answer.kind == ANSWER_CONTINUE && is_denied(request, object)
               ? answer_error(error)
               : answer;
}

/* Nothing is at the end of a path that leads there. */
static int missing_error(const struct object *object)
{
    struct stat st;

    return fstatat(object->place.dir, object->place.name, &st, AT_SYMLINK_NOFOLLOW) &&
                   errno == ENOENT
               ? ENOENT
               : 0;
}

/* Of what is there; 0: it can be removed. */
static int removal_error(const struct request *request, const struct object *object)
{
    bool is_dir = S_ISDIR(object->st.st_mode);

    if (removes_directory(request) != is_dir)
        return is_dir ? EISDIR : ENOTDIR;
    return is_dir && !is_empty(object) ? ENOTEMPTY : 0;
}

static struct answer judge_open(const struct request *request, struct answer answer)
{
    const struct call *call = request->call;
    const unsigned flags = call->kind == CALL_OPEN ? flags_of(request) : 0;
    const bool creates = flags & O_CREAT;
    const bool is_exclusive = creates && (flags & O_EXCL);
    const bool only_reads = call->kind == CALL_OPEN && !(flags & (O_ACCMODE | O_TRUNC));
    AUTO_OBJECT struct object object = NO_OBJECT;
    bool is_known;

    if (flags & O_PATH) /* nothing is opened */
        return answer;
    object.is_refused = answer.kind == ANSWER_ERROR;
    is_known =
        look(request, call->dir, call->path, !is_exclusive && !(flags & O_NOFOLLOW), &object);
    if (only_reads && (object.exists || !creates)) {
        if (request->command->traces_files && !is_exclusive)
            learn_read(request, &object, flags);
        return answer;
    }
    if (!is_known || !matters(request, &object, &answer))
        return answer;
    if (object.exists) {
        if (is_exclusive || !(S_ISREG(object.st.st_mode) ||
                              (S_ISDIR(object.st.st_mode) && call->kind == CALL_ACCESS)))
            return answer;
    } else if (!creates) {
        return answer;
    }
    return is_permitted(request, &object) ? settle_one(request, &object, answer) : answer;
}

static struct answer judge_change(const struct request *request, struct answer answer)
{
    const struct call *call = request->call;
    bool is_removal = removes(call);
    AUTO_OBJECT struct object object = {
        .place = {.dir = -1, .lock = -1},
        .is_name = is_removal,
        .is_refused = answer.kind == ANSWER_ERROR,
    };

    if (call->nr == SYS_truncate && (int64_t)request_argument(request, 1) < 0)
        return answer; /* EINVAL */
    if (!look(request, call->dir, call->path, follows_end(request), &object))
        return answer;
    if (!object.exists)
        return is_removal ? fail(request, &object, answer, missing_error(&object)) : answer;
    if (!matters(request, &object, &answer) || !is_permitted(request, &object))
        return answer;
    if (is_removal && removal_error(request, &object))
        return fail(request, &object, answer, removal_error(request, &object));
    return settle_one(request, &object, answer);
}

static struct answer judge_descriptor(const struct request *request, struct answer answer)
{
    const bool is_refused = descriptor_is_read_only(request);
    AUTO_OBJECT struct object object = NO_OBJECT;

    if (!(is_refused || is_traced(request, &answer)) || !descriptor_find(request, &object) ||
        !is_permitted(request, &object) || (is_refused && !is_denied(request, &object)))
        return answer;
    return settle_one(request, &object, answer);
}

#define NEW_NAME(answer)                                                                           \
    ((struct object){.place = {.dir = -1, .lock = -1},                                             \
                     .is_name = true,                                                              \
                     .is_refused = (answer).kind == ANSWER_ERROR})

/* A new name, which is not there yet. */
static struct answer judge_new(const struct request *request, int dir, int argument,
                               struct answer answer)
{
    AUTO_OBJECT struct object object = NEW_NAME(answer);

    if (!look(request, dir, argument, false, &object))
        return answer;
    if (object.exists) /* a name that was kept out, but is there: the kernel would say that first */
        return answer.kind == ANSWER_ERROR ? answer_error(EEXIST) : answer;
    return matters(request, &object, &answer) && is_permitted(request, &object)
               ? settle_one(request, &object, answer)
               : answer;
}

/* By their directories: on an overlay of several file systems each file has a device of its own. */
static bool is_same_device(const struct object *from, const struct object *to)
{
    struct stat from_dir, to_dir;

    return fstat(from->place.dir, &from_dir) == 0 && fstat(to->place.dir, &to_dir) == 0 &&
           from_dir.st_dev == to_dir.st_dev;
}

static struct answer judge_link(const struct request *request, struct answer answer)
{
    const struct call *call = request->call;
    AUTO_OBJECT struct object from = NO_OBJECT;
    AUTO_OBJECT struct object to = NEW_NAME(answer);
    bool is_known = look(request, call->dir, call->path, false, &from);

    if (is_known && (!from.exists || S_ISDIR(from.st.st_mode)))
        return answer;
    if (!look(request, call->new_dir, call->new_path, false, &to) || to.exists ||
        (is_known && !is_same_device(&from, &to)) || !matters(request, &to, &answer) ||
        !is_permitted(request, &to))
        return answer;
    if (!to.is_denied)
        return settle(request, (struct object *const[2]){&to, is_known ? &from : NULL}, answer);
    if (!is_known) /* what is not known is not linked by us */
        to.is_closed = true;
    else
        is_denied(request, &from);
    return refuse(request, (struct object *const[2]){&to, is_known ? &from : NULL}, answer);
}

/* Whether the kernel would do it, but for the sandbox. */
static bool is_possible(const struct request *request, const struct object *from,
                        const struct object *to)
{
    unsigned flags = flags_of(request);
    bool is_dir = S_ISDIR(from->st.st_mode);

    if (!from->exists || !is_same_device(from, to) || map_is_within(to->path, from->path))
        return false;
    if (flags & K_RENAME_EXCHANGE)
        return to->exists;
    if (!to->exists)
        return true;
    return !(flags & K_RENAME_NOREPLACE) && is_dir == S_ISDIR(to->st.st_mode) &&
           (!is_dir || is_empty(to)) && from->st.st_ino != to->st.st_ino;
}

/* What the kernel says where is_possible() is false; 0: that is for it to say. */
static int rename_error(const struct request *request, const struct object *from,
                        const struct object *to)
{
    bool is_dir = S_ISDIR(from->st.st_mode);

    if (flags_of(request) & ~K_RENAME_NOREPLACE || !is_same_device(from, to) ||
        strcmp(from->path, to->path) == 0)
        return 0;
    if (to->exists && flags_of(request) & K_RENAME_NOREPLACE)
        return EEXIST;
    if (map_is_within(to->path, from->path))
        return EINVAL;
    if (map_is_within(from->path, to->path))
        return ENOTEMPTY;
    if (!to->exists)
        return 0;
    if (is_dir != S_ISDIR(to->st.st_mode))
        return is_dir ? ENOTDIR : EISDIR;
    return is_dir && !is_empty(to) ? ENOTEMPTY : 0;
}

static struct answer judge_rename(const struct request *request, struct answer answer)
{
    const struct call *call = request->call;
    AUTO_OBJECT struct object from = NEW_NAME(answer);
    AUTO_OBJECT struct object to = NEW_NAME(answer);

    if (!look(request, call->dir, call->path, false, &from) ||
        !look(request, call->new_dir, call->new_path, false, &to))
        return answer;
    if (!from.exists)
        return fail(request, &from, answer, missing_error(&from));
    if (is_permitted(request, &from) && is_permitted(request, &to) &&
        rename_error(request, &from, &to))
        return fail(request, is_denied(request, &from) ? &from : &to, answer,
                    rename_error(request, &from, &to));
    if (!is_possible(request, &from, &to) || !is_permitted(request, &from) ||
        !is_permitted(request, &to))
        return answer;
    is_denied(request, &from);
    is_denied(request, &to);
    return settle(request, (struct object *const[2]){&from, &to}, answer);
}

struct answer judge(const struct request *request, struct answer answer)
{
    const struct call *call = request->call;

    if (!(request->command->map.header->flags & GUARD_MAP_FACTS) || is_plainly_free(request))
        return answer;
    switch (call->kind) {
    case CALL_OPEN:
    case CALL_ACCESS:
        return judge_open(request, answer);
    case CALL_CHANGE:
        return descriptor_is_meant(request) ? judge_descriptor(request, answer)
                                            : judge_change(request, answer);
    case CALL_MKDIR:
    case CALL_MKNOD:
        return judge_new(request, call->dir, call->path, answer);
    case CALL_SYMLINK:
        return judge_new(request, call->new_dir, call->new_path, answer);
    case CALL_LINK:
        return judge_link(request, answer);
    case CALL_RENAME:
        return judge_rename(request, answer);
    case CALLS_OF_NO_FILE:
        break;
    }
    return answer;
}
