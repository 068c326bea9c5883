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
#include "guard/facts.h"
#include "guard/folder.h"
#include "guard/place.h"
#include "guard/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINKS_MAX = 40 };

#define AUTO_PLACE AUTO(place_done)
#define NO_PLACE ((struct place){.dir = -1, .lock = -1})

/* Of the kernel's, whichever way the C library was built. */
#define FLAG_TMPFILE 020000000

/* --- the umask --- */

/* Pid numbers come round after more than this. */
#define MASK_AGE_NS 1000000000u

static mode_t own_mask = (mode_t)-1; /* of this process, which is that of the last caller */

static struct mask *mask_find(struct command *command, pid_t thread)
{
    for (int i = 0; i < MASKS_MAX; i++)
        if (command->masks[i].thread == thread)
            return &command->masks[i];
    return NULL;
}

/* The caller's, from /proc, which takes as long as making a file; so it is remembered for a while. */
static const struct mask *mask_read(const struct request *request)
{
    struct command *command = request->command;
    struct mask *mask = mask_find(command, request->thread);
    uint64_t now = now_ns();
    char path[64], text[512];
    const char *found;
    ssize_t len;
    AUTO_CLOSE int fd = -1;

    if (mask && now - mask->read_ns < MASK_AGE_NS)
        return mask;
    if (!mask) {
        mask = &command->masks[0];
        for (int i = 1; i < MASKS_MAX; i++)
            if (command->masks[i].read_ns < mask->read_ns)
                mask = &command->masks[i];
    }
    snprintf(path, sizeof path, "/proc/%d/status", (int)request->thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (len <= 0)
        return NULL;
    text[len] = '\0';
    *mask = (struct mask){.thread = request->thread, .read_ns = now};
    found = strstr(text, "\nUmask:\t");
    if (!found)
        return NULL;
    mask->mask = (mode_t)strtoul(found + 8, NULL, 8);
    found = strstr(text, "\nTgid:\t");
    if (!found)
        return NULL;
    mask->process = (pid_t)strtol(found + 7, NULL, 10);
    return mask;
}

void perform_umask(const struct request *request)
{
    const struct mask *mask = mask_read(request);
    pid_t process = mask ? mask->process : 0;

    /* Its threads share it; another process that shares it (CLONE_FS) is rare enough to be read
     * again with the next call. */
    for (int i = 0; i < MASKS_MAX; i++) {
        struct mask *other = &request->command->masks[i];

        if (!mask || other->process != process)
            continue;
        other->mask = (mode_t)request->notif->data.args[0] & 0777;
        other->read_ns = now_ns();
    }
}

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

static struct answer refuse(const struct request *request, const struct place *place, int entry)
{
    facts_tell(request,
               &(struct fact){
                   .operation = GUARD_OP_CREATE, .place = place, .entry = entry, .error = EACCES});
    return answer_error(EACCES);
}

static struct answer result(int status)
{
    return status < 0 ? answer_error(errno) : answer_value(status);
}

/* A name may come to be at `place`, and the caller still waits for it. */
static bool may_name(const struct request *request, struct place *place, struct answer *ret)
{
    int entry;

    if (request->command->is_broken) {
        *ret = answer_error(EACCES);
        return false;
    }
    if (folder_refuses(request->command, place, &entry)) {
        *ret = refuse(request, place, entry);
        return false;
    }
    *ret = leave(request, EACCES);
    return request_is_valid(request);
}

/* The same for a file or directory, with the caller's umask. */
static bool may_create(const struct request *request, struct place *place, struct answer *ret)
{
    const struct mask *mask = mask_read(request);

    *ret = leave(request, EACCES);
    if (!mask || !may_name(request, place, ret))
        return false;
    if (mask->mask != own_mask)
        umask(own_mask = mask->mask);
    return true;
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

        if (place_find(request, base, text, ret))
            return true;
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

/* In a directory like /tmp the kernel lets nobody follow another user's link, or open another user's
 * file as if to create it (fs.protected_symlinks, fs.protected_regular); here it would be us who does. */
static bool is_strangers(const struct place *place, const struct stat *st)
{
    struct stat dir;

    return fstat(place->dir, &dir) ||
           ((dir.st_mode & S_ISVTX) && (dir.st_mode & 022) && st->st_uid != geteuid());
}

static struct answer opened(int fd, int flags)
{
    if (!(flags & O_NONBLOCK))
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK & (O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME));
    return (struct answer){.kind = ANSWER_FD, .number = fd, .is_cloexec = flags & O_CLOEXEC};
}

static struct answer open_existing(const struct request *request, int pin, const struct stat *st,
                                   bool is_stranger, int flags)
{
    char link[32];
    int fd;

    /* A FIFO would keep us waiting, /dev/tty is another one here, and a directory is an error. */
    if (!S_ISREG(st->st_mode) || is_stranger || !request_is_valid(request))
        return leave(request, EACCES);
    snprintf(link, sizeof link, "/proc/self/fd/%d", pin);
    fd = open(link, (flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW)) | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == EWOULDBLOCK) /* a lease: the caller may wait, we may not */
        return leave(request, EACCES);
    return fd < 0 ? answer_error(errno) : opened(fd, flags);
}

static struct answer open_new(const struct request *request, struct place *place, int flags,
                              mode_t mode)
{
    struct answer answer;
    int fd;

    if (!may_create(request, place, &answer))
        return answer;
    fd = openat(place->dir, place->name, flags | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return answer_error(errno);
    return (struct answer){.kind = ANSWER_FD, .number = fd, .is_cloexec = flags & O_CLOEXEC};
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
        return open_existing(request, pin, &st, is_strangers(place, &st), flags);
    if ((flags & O_NOFOLLOW) || is_strangers(place, &st) || !place_follow(request, place))
        return leave(request, EACCES);
    *ret_again = true;
    return answer_continue();
}

static struct answer perform_open(const struct request *request)
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
    for (int i = 0; i < LINKS_MAX; i++) {
        if (!place.is_guarded || strchr(place.name, '/'))
            return leave(request, EACCES);
        answer = open_new(request, &place, flags, mode);
        if (answer.kind != ANSWER_ERROR || answer.number != EEXIST || (flags & O_EXCL))
            return answer;
        answer = open_there(request, &place, flags, &again);
        if (!again)
            return answer;
    }
    return leave(request, EACCES);
}

/* --- the others --- */

static struct answer perform_make(const struct request *request)
{
    const struct call *call = request->call;
    const mode_t mode = (mode_t)request_argument(request, call->mode);
    AUTO_PLACE struct place place = NO_PLACE;
    struct answer answer;

    if (!find(request, call->dir, call->path, &place, &answer))
        return answer;
    if (!place.is_guarded)
        return leave(request, EACCES);
    if (!may_create(request, &place, &answer))
        return answer;
    if (call->kind == CALL_MKDIR)
        return result(mkdirat(place.dir, place.name, mode));
    /* A device needs a privilege, unless it is none (a whiteout, 0:0). */
    if ((S_ISCHR(mode) || S_ISBLK(mode)) && request_argument(request, call->mode + 1))
        return answer_error(EPERM);
    return result(mknodat(place.dir, place.name, mode, 0));
}

static struct answer perform_symlink(const struct request *request)
{
    const struct call *call = request->call;
    AUTO_PLACE struct place place = NO_PLACE;
    struct answer answer;
    place_text target;

    if (!find(request, call->new_dir, call->new_path, &place, &answer))
        return answer;
    if (!place.is_guarded || text_read(request, call->path, target) < 0)
        return leave(request, EACCES);
    if (!may_name(request, &place, &answer))
        return answer;
    return result(symlinkat(target, place.dir, place.name));
}

/* What a link is made of: a name, a name that is followed if it is a symlink, or a descriptor. */
static int link_source(const struct request *request, int flags, struct place *ret)
{
    const struct call *call = request->call;
    place_text text;
    char what[64];
    int len = text_read(request, call->path, text);
    int fd = -1;

    if (len < 0)
        return -1;
    if (len == 0 && (flags & AT_EMPTY_PATH)) {
        snprintf(what, sizeof what, "/proc/self/fd/%d", request_dir(request, call->dir));
        return place_descriptor(request, what);
    }
    if (flags & AT_SYMLINK_FOLLOW) {
        fd = place_descriptor(request, text);
        if (fd >= 0)
            return fd;
    }
    if (!place_find(request, request_dir(request, call->dir), text, ret))
        return -1;
    for (int i = 0; i < LINKS_MAX; i++) {
        struct stat st;

        if (strchr(ret->name, '/'))
            return -1;
        fd = openat(ret->dir, ret->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || !(flags & AT_SYMLINK_FOLLOW) || fstat(fd, &st) || !S_ISLNK(st.st_mode))
            return fd;
        close(fd);
        if (is_strangers(ret, &st) || !place_follow(request, ret))
            return -1;
    }
    return -1;
}

static struct answer perform_link(const struct request *request)
{
    const struct call *call = request->call;
    const int flags = (int)request_argument(request, call->flags);
    AUTO_PLACE struct place from = NO_PLACE;
    AUTO_PLACE struct place place = NO_PLACE;
    AUTO_CLOSE int source = link_source(request, flags, &from);
    struct answer answer;
    char link[32];
    struct stat st;

    if (!find(request, call->new_dir, call->new_path, &place, &answer))
        return answer;
    if (!place.is_guarded || source < 0 || (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)))
        return leave(request, EACCES);
    if (!may_name(request, &place, &answer))
        return answer;
    snprintf(link, sizeof link, "/proc/self/fd/%d", source);
    if (fstat(source, &st) == 0 && S_ISLNK(st.st_mode)) /* it cannot be linked by descriptor */
        return result(linkat(from.dir, from.name, place.dir, place.name, 0));
    return result(linkat(AT_FDCWD, link, place.dir, place.name, AT_SYMLINK_FOLLOW));
}

/* Something of the sandbox is mounted on the name: what is read-only, hidden or a root. The kernel keeps
 * such a name where it is only for those who see the mount; for us, outside, it would be moved away
 * with the mount, and the name be free. What is mounted does not change while the command runs. */
static bool is_mount_point(const struct place *place)
{
    AUTO_CLOSE int fd = -1;
    char name[NAME_MAX + 2];
    struct identity identity;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(place->name, "/"), place->name);
    fd = openat(place->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT;
    return !identify(fd, &identity) || identity.mount != place->identity.mount;
}

static struct answer refuse_move(const struct request *request, const struct place *place)
{
    char path[PATH_MAX];

    place_path(place, path);
    facts_tell(request, &(struct fact){.operation = GUARD_OP_WRITE,
                                       .place = place,
                                       .entry = map_find(&request->command->map, path),
                                       .error = EBUSY});
    return answer_error(EBUSY);
}

static struct answer perform_rename(const struct request *request)
{
    const struct call *call = request->call;
    const unsigned flags = (unsigned)request_argument(request, call->flags);
    AUTO_PLACE struct place from = NO_PLACE;
    AUTO_PLACE struct place to = NO_PLACE;
    struct answer answer;

    if (!find(request, call->dir, call->path, &from, &answer) ||
        !find(request, call->new_dir, call->new_path, &to, &answer))
        return answer;
    if ((!from.is_guarded && !to.is_guarded) || (flags & K_RENAME_WHITEOUT))
        return leave(request, EACCES);
    if (is_mount_point(&from))
        return refuse_move(request, &from);
    if (is_mount_point(&to))
        return refuse_move(request, &to);
    if (!may_name(request, &to, &answer) ||
        ((flags & K_RENAME_EXCHANGE) && !may_name(request, &from, &answer)))
        return answer;
    return result((int)syscall(SYS_renameat2, from.dir, from.name, to.dir, to.name, flags));
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
    case CALL_UMASK:
    case CALL_SOCKET:
    case CALL_CONNECT:
    case CALL_BIND:
        break;
    }
    return answer_continue();
}
