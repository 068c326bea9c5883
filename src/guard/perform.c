/* See perform.h. The order in each: copy the arguments, find the places and pin them by a
 * descriptor, judge what is pinned, make sure that the caller is still the one that asked, act on the
 * pinned directory, answer.
 *
 * What the kernel would do by itself is left to it, and so are most errors: a path that leads nowhere
 * fails there as it fails here. Only under the roots, where Landlock refuses every new name, the call
 * is made here, as the same user, with the caller's umask; so modes, owners, access control lists and
 * quota come out as if the caller had made it. */
#include "guard/perform.h"

#include "base/auto.h"
#include "guard/alone.h"
#include "guard/caller.h"
#include "guard/facts.h"
#include "guard/folder.h"
#include "guard/git.h"
#include "guard/mode.h"
#include "guard/nested.h"
#include "guard/place.h"
#include "guard/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define AUTO_PLACE AUTO(place_done)
#define NO_PLACE ((struct place){.dir = -1, .lock = -1})

/* Of the kernel's, whichever way the C library was built. */
#define FLAG_TMPFILE 020000000

/* --- what all have in common --- */

static int text_read(const struct request *request, int argument, place_text ret)
{
    return remote_text(request->thread, request_argument(request, argument), ret,
                       sizeof(place_text));
}

/* What the kernel says by itself is said by it; unless it would allow what was asked for: then it is
 * `error`. */
static struct answer leave(const struct request *request, int error)
{
    if (request->command->map.header->flags & GUARD_MAP_NO_LANDLOCK)
        return answer_error(error);
    return answer_continue();
}

/* The answer, of which the timeline is told if it was done. `other`: the second name; NULL. */
static struct answer told(const struct request *request, enum guard_operation operation,
                          const struct place *place, const struct place *other,
                          struct answer answer)
{
    struct fact fact = {.operation = operation, .place = place, .entry = GUARD_NO_ENTRY};
    char path[PATH_MAX];

    if (!request->command->traces_files || answer.kind != ANSWER_VALUE)
        return answer;
    if (other) {
        place_path(other, path);
        fact.other_path = path;
    }
    facts_tell_done(request, &fact);
    return answer;
}

bool perform_may_name(const struct request *request, struct place *place, struct answer *ret)
{
    int entry;

    if (request->command->is_broken) {
        *ret = answer_error(EACCES);
        return false;
    }
    if ((!place->is_granted && folder_refuses(request->command, place, &entry)) ||
        nested_refuses(request, place, false)) {
        *ret = answer_error(EACCES); /* judge.c tells it */
        return false;
    }
    *ret = leave(request, EACCES);
    return request_is_valid(request);
}

/* The same for a file or directory, with the caller's umask. */
static bool may_create(const struct request *request, struct place *place, struct answer *ret)
{
    *ret = leave(request, EACCES);
    return mode_take_mask(request) && perform_may_name(request, place, ret);
}

/* Cuts the last name off; false when there is nothing left. */
static bool cut_name(char *text)
{
    size_t end = strlen(text);

    while (end && text[end - 1] == '/')
        end--;
    while (end && text[end - 1] != '/')
        end--;
    while (end > 1 && text[end - 1] == '/')
        end--;
    text[end] = '\0';
    return end && strcmp(text, "/") != 0;
}

enum presence { IS_THERE, IS_MISSING, IS_UNKNOWN };

/* Whether something is missing on the way to the last name of `text`, and would be made in a root. */
static enum presence way_to(const struct request *request, int dir, const char *text)
{
    place_text way;

    memcpy(way, text, strlen(text) + 1);
    while (cut_name(way)) {
        AUTO_PLACE struct place place = NO_PLACE;
        struct stat st;

        if (place_find(request, dir, way, &place)) {
            if (fstatat(place.dir, place.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                return IS_THERE;
            return place.is_guarded && errno == ENOENT ? IS_MISSING : IS_UNKNOWN;
        }
        if (errno != ENOENT)
            break;
    }
    return IS_UNKNOWN;
}

/* It lies in a repository that is open for commits, or is to become one. */
static bool is_of_git(const struct request *request, const struct place *place)
{
    char path[PATH_MAX];

    if (!request->command->has_git)
        return false;
    place_path(place, path);
    return git_has(request->command, path);
}

/* Reads a path and finds its place. false: `ret_answer` is the answer. A place outside of the roots
 * is the kernel's; but that a directory in them is missing is said here: when the kernel looks,
 * another thread may have had it made, and Landlock would refuse what should have been missing. */
static bool find(const struct request *request, int dir, int path, struct place *ret,
                 struct answer *ret_answer)
{
    const int base = request_dir(request, dir);
    place_text text;
    int len = text_read(request, path, text);
    int error;

    *ret = NO_PLACE;
    *ret_answer = leave(request, -len);
    for (int i = 0; len >= 0 && i < LINKS_MAX; i++) {
        enum presence presence;

        if (place_find(request, base, text, ret)) {
            if (!is_of_git(request, ret))
                return true;
            place_done(ret); /* judge.c knows what may be done there */
            *ret_answer = answer_continue();
            return false;
        }
        error = errno;
        *ret_answer = leave(request, error);
        presence = error == ENOENT ? way_to(request, base, text) : IS_UNKNOWN;
        if (presence == IS_MISSING)
            *ret_answer = answer_error(ENOENT);
        if (presence != IS_THERE)
            break;
    }
    return false;
}

/* --- open --- */

/* In a directory like /tmp the kernel may let nobody open another user's file as if to create it
 * (fs.protected_regular); here it would be us who does. */
static bool is_strangers(const struct place *place, const struct stat *st)
{
    struct stat dir;

    return fstat(place->dir, &dir) ||
           ((dir.st_mode & S_ISVTX) && (dir.st_mode & 022) && st->st_uid != geteuid());
}

static struct answer give(const struct request *request, int fd, int flags)
{
    int status;

    /* What is to be told of it comes before its answer. And what can be written to is closed here before:
     * until then nobody could execute it (ETXTBSY). */
    if (request->attempt != ATTEMPT_FIRST || request->command->traces_files ||
        (flags & O_ACCMODE) != O_RDONLY) {
        status = request_lend(request, fd, flags & O_CLOEXEC);
        return status < 0 ? answer_error(-status) : answer_value(status);
    }
    status = request_give(request, fd, flags & O_CLOEXEC);
    return status ? answer_error(status) : (struct answer){.kind = ANSWER_LATER};
}

/* The pinned file, for the caller; -1. That O_NOFOLLOW was asked for stays with a descriptor, and the
 * link to the pin cannot be opened with it. */
static int open_pinned(const struct place *place, int pin, int flags)
{
    char link[32];
    struct stat pinned, st;
    int fd;

    flags = (flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_NONBLOCK | O_CLOEXEC;
    if (!(flags & O_NOFOLLOW)) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", pin);
        return open(link, flags);
    }
    fd = openat(place->dir, place->name, flags);
    if (fd >= 0 && (fstat(pin, &pinned) || fstat(fd, &st) || st.st_dev != pinned.st_dev ||
                    st.st_ino != pinned.st_ino)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Whoever has no room for one more descriptor keeps what is in the file. So the caller has its
 * descriptor before the file is emptied. */
static struct answer empty(const struct request *request, int pin, int fd, int flags)
{
    AUTO_CLOSE int own = -1;
    char link[32];
    int writable = fd;
    int number;

    if ((flags & O_ACCMODE) != O_WRONLY && (flags & O_ACCMODE) != O_RDWR) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", pin);
        writable = own = open(link, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (own < 0)
            return leave(request, EACCES);
    }
    number = request_lend(request, fd, flags & O_CLOEXEC);
    if (number < 0)
        return answer_error(-number);
    return ftruncate(writable, 0) ? answer_error(errno) : answer_value(number);
}

/* Of those that every command has, and anybody may open: null, zero, full, random, urandom (admin-guide/devices.txt). Where
 * the kernel would make names nothing goes on that might make one (`> /dev/null`). */
static bool is_harmless_device(const struct stat *st)
{
    const unsigned number = minor(st->st_rdev);

    return S_ISCHR(st->st_mode) && major(st->st_rdev) == 1 &&
           (number == 3 || number == 5 || (number >= 7 && number <= 9));
}

struct answer perform_existing(const struct request *request, const struct place *place, int pin,
                               const struct stat *st, int flags)
{
    AUTO_CLOSE int fd = -1;

    /* A FIFO would keep us waiting, /dev/tty is another one here, and a directory is an error. */
    if (is_strangers(place, st) || !request_is_valid(request) ||
        !(is_harmless_device(st) ||
          (S_ISREG(st->st_mode) && !nested_refuses(request, place, false))))
        return leave(request, EACCES);
    fd = open_pinned(place, pin, flags);
    if (fd < 0) /* a lease, too: the caller may wait, we may not */
        return leave(request, EACCES);
    if (!(flags & O_NONBLOCK))
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK & (O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME));
    if ((flags & O_TRUNC) && S_ISREG(st->st_mode))
        return empty(request, pin, fd, flags);
    return give(request, fd, flags);
}

/* The caller has no room for its descriptor, so there is no file either. */
static void take_back(const struct place *place, int fd)
{
    struct stat made, st;

    if (fstat(fd, &made) == 0 && fstatat(place->dir, place->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        st.st_dev == made.st_dev && st.st_ino == made.st_ino)
        unlinkat(place->dir, place->name, 0);
}

struct answer perform_new_file(const struct request *request, struct place *place, int flags,
                               mode_t mode)
{
    AUTO_CLOSE int fd = -1;
    struct answer answer;

    if (!may_create(request, place, &answer))
        return answer;
    fd = openat(place->dir, place->name, flags | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) /* before the kernel says EACCES it looks for room for a descriptor */
        return errno == EACCES ? leave(request, EACCES) : answer_error(errno);
    answer = give(request, fd, flags);
    if (answer.kind == ANSWER_ERROR && answer.number == EMFILE)
        take_back(place, fd);
    return answer;
}

/* Something is there, or was a moment ago. *ret_again: the place is another one now, or is empty. */
static struct answer open_there(const struct request *request, struct place *place, int flags,
                                bool *ret_again)
{
    AUTO_CLOSE int pin = openat(place->dir, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    *ret_again = pin < 0 && errno == ENOENT;
    if (pin < 0 || fstat(pin, &st))
        return leave(request, EACCES);
    if (!S_ISLNK(st.st_mode))
        return perform_existing(request, place, pin, &st, flags);
    if ((flags & O_NOFOLLOW) || !place_may_follow(place, &st) || !place_follow(request, place))
        return leave(request, EACCES);
    *ret_again = true;
    return answer_continue();
}

static struct answer open_any(const struct request *request)
{
    const struct call *call = request->call;
    int flags = call->flags < 0 ? call->fixed_flags : (int)request_argument(request, call->flags);
    mode_t mode = (mode_t)request_argument(request, call->mode) & 07777;
    AUTO_PLACE struct place place = NO_PLACE;
    struct answer answer;
    bool again;

    if (!(flags & O_CREAT) || (flags & (O_PATH | FLAG_TMPFILE | O_DIRECTORY)))
        return answer_continue();
    if (!find(request, call->dir, call->path, &place, &answer))
        return answer;
    for (int i = 0; i <= LINKS_MAX; i++) {
        if (!place.is_guarded || strchr(place.name, '/'))
            return leave(request, EACCES);
        answer = perform_new_file(request, &place, flags, mode);
        if (answer.kind != ANSWER_ERROR || answer.number != EEXIST || (flags & O_EXCL))
            return told(request, GUARD_OP_CREATE, &place, NULL, answer);
        answer = open_there(request, &place, flags, &again);
        if (!again)
            return flags & (O_WRONLY | O_RDWR | O_TRUNC)
                       ? told(request, GUARD_OP_WRITE, &place, NULL, answer)
                       : answer;
    }
    return leave(request, EACCES);
}

static bool is_full(const struct request *request)
{
    struct rlimit limit;
    struct stat st; /* the size is how many are open (Linux 6.2) */
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd", (int)request->thread);
    return prlimit(request->thread, RLIMIT_NOFILE, NULL, &limit) == 0 && stat(path, &st) == 0 &&
           (rlim_t)st.st_size >= limit.rlim_cur;
}

/* That there is no room for one more descriptor is what the kernel says before anything else. */
static struct answer perform_open(const struct request *request)
{
    struct answer answer = open_any(request);

    return answer.kind == ANSWER_ERROR && is_full(request) ? leave(request, EMFILE) : answer;
}

/* --- the others --- */

/* may_mknod() of the kernel's fs/namei.c, which comes before it looks for the place. */
static int type_error(mode_t mode)
{
    switch (mode & S_IFMT) {
    case 0:
    case S_IFREG:
    case S_IFCHR:
    case S_IFBLK:
    case S_IFIFO:
    case S_IFSOCK:
        return 0;
    case S_IFDIR:
        return EPERM;
    default:
        return EINVAL;
    }
}

struct answer perform_at(const struct request *request, struct place *place, mode_t mode)
{
    const struct call *call = request->call;
    struct answer answer;

    if (!may_create(request, place, &answer))
        return answer;
    if (call->kind == CALL_MKDIR)
        return answer_of(mkdirat(place->dir, place->name, mode));
    /* A device needs a privilege, unless it is none (a whiteout, 0:0). */
    if ((S_ISCHR(mode) || S_ISBLK(mode)) && request_argument(request, call->mode + 1))
        return answer_error(EPERM);
    return answer_of(mknodat(place->dir, place->name, mode, 0));
}

static struct answer perform_make(const struct request *request)
{
    const struct call *call = request->call;
    const mode_t mode = (mode_t)request_argument(request, call->mode);
    AUTO_PLACE struct place place = NO_PLACE;
    struct answer answer;

    if (call->kind == CALL_MKNOD && type_error(mode))
        return answer_error(type_error(mode));
    if (!find(request, call->dir, call->path, &place, &answer))
        return answer;
    if (!place.is_guarded)
        return leave(request, EACCES);
    return told(request, GUARD_OP_CREATE, &place, NULL, perform_at(request, &place, mode));
}

static struct answer perform_symlink(const struct request *request)
{
    const struct call *call = request->call;
    AUTO_PLACE struct place place = NO_PLACE;
    struct answer answer;
    place_text target;
    int len = text_read(request, call->path, target);

    if (len <= 0) /* the kernel says why not, before it looks for the place */
        return leave(request, len ? -len : ENOENT);
    if (!find(request, call->new_dir, call->new_path, &place, &answer))
        return answer;
    if (!place.is_guarded)
        return leave(request, EACCES);
    if (!perform_may_name(request, &place, &answer))
        return answer;
    return told(request, GUARD_OP_CREATE, &place, NULL,
                answer_of(symlinkat(target, place.dir, place.name)));
}

static bool is_directory_path(const char *text)
{
    const char *name = strrchr(text, '/');

    name = name ? name + 1 : text;
    return !*name || !strcmp(name, ".") || !strcmp(name, "..");
}

/* No link is made of a directory, but it is the kernel that says why. Such a path may end in a slash,
 * "." or "..", or in a link to one that does. */
static int directory_source(const struct request *request, int dir, place_text text, int len,
                            struct place *ret)
{
    place_done(ret);
    if (len == 0 || len + 2 >= PATH_MAX)
        return -1;
    memcpy(text + len, "/x", sizeof "/x"); /* whose place is the directory */
    return place_find(request, dir, text, ret) ? place_take_dir(ret) : -1;
}

/* A descriptor of a file in the place of a directory. With AT_EMPTY_PATH the kernel looks first at who
 * has opened it, which may have been us. */
static bool is_no_directory(const struct request *request, int dir)
{
    char what[64];
    AUTO_CLOSE int fd = -1;
    struct stat st;

    snprintf(what, sizeof what, "/proc/self/fd/%d", dir);
    fd = place_descriptor(request, what);
    return fd >= 0 && fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* A name, or what it leads to. */
static int file_source(const struct request *request, int flags, const place_text text,
                       struct place *ret)
{
    if (!place_find(request, request_dir(request, request->call->dir), text, ret))
        return -1;
    for (int i = 0; i <= LINKS_MAX; i++) {
        struct stat st;
        int fd;

        if (strchr(ret->name, '/'))
            return -1;
        fd = openat(ret->dir, ret->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || !(flags & AT_SYMLINK_FOLLOW) || fstat(fd, &st) || !S_ISLNK(st.st_mode))
            return fd;
        close(fd);
        if (!place_may_follow(ret, &st) || !place_follow(request, ret))
            return -1;
    }
    return -1;
}

/* What a link is made of: a name, a name that is followed if it is a symlink, or a descriptor.
 * -1: it is `ret_answer`. */
static int link_source(const struct request *request, int flags, struct place *ret,
                       struct answer *ret_answer)
{
    const struct call *call = request->call;
    place_text text;
    char what[64];
    const int dir = request_dir(request, call->dir);
    int len = text_read(request, call->path, text);
    int fd = -1;

    *ret_answer = leave(request, EACCES);
    if (len < 0 || (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)))
        return -1;
    if (len == 0 && (flags & AT_EMPTY_PATH) && dir != AT_FDCWD) {
        snprintf(what, sizeof what, "/proc/self/fd/%d", dir);
        return place_descriptor(request, what);
    }
    if (len == 0 && (flags & AT_EMPTY_PATH))
        text[len++] = '.';
    else if ((flags & AT_EMPTY_PATH) && text[0] != '/' && is_no_directory(request, dir))
        *ret_answer = answer_error(ENOTDIR);
    text[len] = '\0';
    if (flags & AT_SYMLINK_FOLLOW) {
        fd = place_descriptor(request, text);
        if (fd >= 0)
            return fd;
    }
    fd = file_source(request, flags, text, ret);
    return fd < 0 && ((flags & AT_SYMLINK_FOLLOW) || is_directory_path(text))
               ? directory_source(request, dir, text, len, ret)
               : fd;
}

int perform_link_pinned(int source, int dir, const char *name)
{
    char link[PLACE_LINK];

    return linkat(AT_FDCWD, place_link(source, link), dir, name, AT_SYMLINK_FOLLOW);
}

/* What is linked and where to lie in two roots. `source`, under its name, is not what is mounted there. */
static int link_between_roots(const struct request *request, const struct place *from, int source,
                              const struct place *to)
{
    AUTO_CLOSE int from_dir = from->dir < 0 ? -1 : place_open_on_host(request->command, from);
    AUTO_CLOSE int to_dir = place_open_on_host(request->command, to);
    AUTO_CLOSE int fd = -1;
    struct identity wanted, found;
    struct stat st;

    if (from_dir >= 0 && to_dir >= 0)
        fd = openat(from_dir, from->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) || !identify(fd, &found) || !identify(source, &wanted) ||
        !is_same_file(&found, &wanted) || wanted.mount != from->identity.mount) {
        errno = EXDEV;
        return -1;
    }
    if (S_ISLNK(st.st_mode))
        return linkat(from_dir, from->name, to_dir, to->name, 0);
    return perform_link_pinned(fd, to_dir, to->name);
}

static struct answer perform_link(const struct request *request)
{
    const struct call *call = request->call;
    const int flags = (int)request_argument(request, call->flags);
    AUTO_PLACE struct place from = NO_PLACE;
    AUTO_PLACE struct place place = NO_PLACE;
    struct answer answer;
    AUTO_CLOSE int source = link_source(request, flags, &from, &answer);
    char path[PATH_MAX];
    int status;
    struct stat st;

    if (source < 0 || !find(request, call->new_dir, call->new_path, &place, &answer))
        return answer;
    if (request->command->has_git &&
        (!place_path_of(source, path) || git_has(request->command, path)))
        return answer_continue();
    if (!place.is_guarded ||
        ((alone_is(request) || request->nested) && !alone_may_link(request, source)))
        return leave(request, EACCES);
    if (!perform_may_name(request, &place, &answer))
        return answer;
    if (fstat(source, &st) == 0 && S_ISLNK(st.st_mode)) /* it cannot be linked by descriptor */
        status = linkat(from.dir, from.name, place.dir, place.name, 0);
    else
        status = perform_link_pinned(source, place.dir, place.name);
    if (status < 0 && errno == EXDEV)
        status = link_between_roots(request, &from, source, &place);
    return told(request, GUARD_OP_CREATE, &place, from.dir >= 0 ? &from : NULL, answer_of(status));
}

static bool may_move(const struct request *request, struct place *place, struct answer *ret_answer)
{
    char path[PATH_MAX];
    bool is_closed;

    if (nested_refuses(request, place, true)) {
        *ret_answer = answer_error(EACCES);
        return false;
    }
    if (alone_is(request)) {
        *ret_answer = answer_error(EACCES); /* judge.c tells it */
        return alone_may_move(request, place);
    }
    if (!place_is_mount_point(place, &is_closed))
        return true;
    *ret_answer = leave(request, EACCES);
    if (is_closed)
        return false;
    *ret_answer = answer_error(EBUSY);
    place_path(place, path);
    if (map_access(&request->command->map, map_find(&request->command->map, path)) != GUARD_WRITE)
        return false; /* judge.c tells it */
    facts_tell(request, &(struct fact){.operation = GUARD_OP_WRITE,
                                       .place = place,
                                       .entry = map_find(&request->command->map, path),
                                       .error = EBUSY});
    return false;
}

static bool is_searchable(const struct place *place)
{
    return faccessat(place->dir, ".", X_OK, 0) == 0;
}

/* Nothing is mounted on either name. */
static int rename_between_roots(const struct request *request, const struct place *from,
                                const struct place *to, unsigned flags)
{
    AUTO_CLOSE int from_dir = place_open_on_host(request->command, from);
    AUTO_CLOSE int to_dir = place_open_on_host(request->command, to);

    if (from_dir < 0 || to_dir < 0) {
        errno = EXDEV;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_dir, from->name, to_dir, to->name, flags);
}

static struct answer perform_rename(const struct request *request)
{
    const struct call *call = request->call;
    const unsigned flags = (unsigned)request_argument(request, call->flags);
    AUTO_PLACE struct place from = NO_PLACE;
    AUTO_PLACE struct place to = NO_PLACE;
    struct answer answer;
    int status;

    if ((flags & ~(K_RENAME_NOREPLACE | K_RENAME_EXCHANGE | K_RENAME_WHITEOUT)) ||
        ((flags & K_RENAME_EXCHANGE) && flags != K_RENAME_EXCHANGE))
        return answer_error(EINVAL);
    if (!find(request, call->dir, call->path, &from, &answer))
        return answer;
    if (!find(request, call->new_dir, call->new_path, &to, &answer))
        return is_searchable(&from) ? answer : leave(request, EACCES);
    if ((!from.is_guarded && !to.is_guarded) || (flags & K_RENAME_WHITEOUT))
        return leave(request, EACCES);
    if (!may_move(request, &from, &answer) || !may_move(request, &to, &answer) ||
        !perform_may_name(request, &to, &answer) ||
        ((flags & K_RENAME_EXCHANGE) && !perform_may_name(request, &from, &answer)))
        return answer;
    status = (int)syscall(SYS_renameat2, from.dir, from.name, to.dir, to.name, flags);
    if (status < 0 && errno == EXDEV)
        status = rename_between_roots(request, &from, &to, flags);
    return told(request, GUARD_OP_WRITE, &from, &to, answer_of(status));
}

struct answer perform(const struct request *request)
{
    switch (request->call->kind) {
    case CALL_OPEN:
        return perform_open(request);
    case CALL_MKDIR:
    case CALL_MKNOD:
        return perform_make(request);
    case CALL_SYMLINK:
        return perform_symlink(request);
    case CALL_LINK:
        return perform_link(request);
    case CALL_RENAME:
        return perform_rename(request);
    case CALL_CHANGE:
    case CALL_ACCESS:
    case CALLS_OF_NO_FILE:
        break;
    }
    return answer_continue();
}
