/* See granted.h. As in perform.c, with other directories: what was found in the command's view is looked
 * up in the host's, where no mount of the sandbox's is in the way, and it is done there if it is the very
 * same directory, and the very same file in it. */
#include "guard/granted.h"

#include "base/auto.h"
#include "guard/perform.h"
#include "guard/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>

#define AUTO_PLACE AUTO(place_done)
#define NO_PLACE ((struct place){.dir = -1, .lock = -1})

static int flags_of(const struct request *request)
{
    const struct call *call = request->call;

    return call->flags < 0 ? call->fixed_flags : (int)request_argument(request, call->flags);
}

static bool is_file_or_directory(const struct object *object)
{
    return S_ISREG(object->st.st_mode) || S_ISDIR(object->st.st_mode);
}

/* Nothing of the profile's or of Cordon's moves with it, and it is no mount of the sandbox's that
 * may be written to. */
static bool may_go(const struct request *request, const struct object *object)
{
    const struct map *map = &request->command->map;
    int entry = map_find(map, object->path);

    return !map_has_below(map, object->path) && (object->is_denied || entry == GUARD_NO_ENTRY ||
                                                 strcmp(map_path(map, entry), object->path) != 0);
}

enum { XATTR_NAME = 256, XATTR_SIZE = 65536 }; /* linux/limits.h */

/* Those that mean nothing but to who reads them, and the lists that go with a mode, whose numbers of
 * users mean something else in another namespace. */
static bool read_attribute(const struct request *request, char ret[XATTR_NAME])
{
    if (remote_text(request->thread, request_argument(request, 1), ret, XATTR_NAME) <= 0)
        return false;
    return strncmp(ret, "user.", 5) == 0 ||
           (!(request->command->map.header->flags & GUARD_MAP_NESTED) &&
            (strcmp(ret, "system.posix_acl_access") == 0 ||
             strcmp(ret, "system.posix_acl_default") == 0));
}

/* Numbers of users mean something else in another namespace. */
static bool may_own(const struct request *request, int argument)
{
    const uid_t user = (uid_t)request_argument(request, argument);
    const gid_t group = (gid_t)request_argument(request, argument + 1);

    return !(request->command->map.header->flags & GUARD_MAP_NESTED) &&
           (user == (uid_t)-1 || user == geteuid()) && (group == (gid_t)-1 || group == getegid());
}

/* A mode without set-id bits. */
static bool is_plain_mode(const struct request *request, int argument)
{
    return !(request_argument(request, argument) & (S_ISUID | S_ISGID));
}

static bool can_change(const struct request *request, const struct object *object)
{
    const bool is_link = S_ISLNK(object->st.st_mode); /* has an owner and times alone */
    char name[XATTR_NAME];

    if (object->is_name)
        return may_go(request, object);
    if (!is_file_or_directory(object) && !is_link)
        return false;
    switch (request->call->nr) {
#ifdef SYS_chmod
    case SYS_chmod:
#endif
    case SYS_fchmod:
        return !is_link && is_plain_mode(request, 1);
    case SYS_fchmodat:
    case K_SYS_FCHMODAT2:
        return !is_link && is_plain_mode(request, 2);
#ifdef SYS_chown
    case SYS_chown:
    case SYS_lchown:
#endif
    case SYS_fchown:
        return may_own(request, 1);
    case SYS_fchownat:
        return may_own(request, 2);
    case SYS_setxattr:
    case SYS_lsetxattr:
    case SYS_fsetxattr:
    case SYS_removexattr:
    case SYS_lremovexattr:
    case SYS_fremovexattr:
        return !is_link && read_attribute(request, name);
    case SYS_truncate:
        return S_ISREG(object->st.st_mode);
    default:
        return true;
    }
}

bool granted_can(const struct request *request, struct object *const objects[2])
{
    const struct object *first = objects[0];
    const bool ends_in_slash = strchr(first->place.name, '/');

    switch (request->call->kind) {
    case CALL_OPEN:
        return (!first->exists || S_ISREG(first->st.st_mode)) && !ends_in_slash &&
               !(flags_of(request) & (O_PATH | O_DIRECTORY));
    case CALL_ACCESS:
        return is_file_or_directory(first);
    case CALL_MKDIR:
        return true;
    case CALL_MKNOD: {
        const mode_t type = (mode_t)request_argument(request, request->call->mode) & S_IFMT;

        return (!type || type == S_IFREG) && !ends_in_slash;
    }
    case CALL_SYMLINK:
        return !ends_in_slash;
    case CALL_LINK:
        return objects[1] && S_ISREG(objects[1]->st.st_mode) && !flags_of(request) &&
               !ends_in_slash && !strchr(objects[1]->place.name, '/');
    case CALL_RENAME:
        return !(flags_of(request) & ~(int)K_RENAME_NOREPLACE) && may_go(request, first) &&
               may_go(request, objects[1]);
    case CALL_CHANGE:
        return can_change(request, first);
    case CALLS_OF_NO_FILE:
        break;
    }
    return false;
}

/* A descriptor (O_PATH) of the very file that was judged; -1. The caller still waits for it. */
static int pin_object(const struct request *request, const struct object *object,
                      const struct place *place)
{
    char name[NAME_MAX + 2];
    AUTO_CLOSE int pin = -1;
    struct stat st;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(place->name, "/"), place->name);
    pin = openat(place->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return pin >= 0 && fstat(pin, &st) == 0 && st.st_dev == object->st.st_dev &&
                   st.st_ino == object->st.st_ino && request_is_valid(request)
               ? TAKE_FD(pin)
               : -1;
}

static struct answer do_open(const struct request *request, const struct object *object,
                             struct place *place)
{
    const int flags = flags_of(request);
    AUTO_CLOSE int pin = -1;

    if (!object->exists)
        return perform_new_file(request, place, flags,
                                (mode_t)request_argument(request, request->call->mode) & 0777);
    pin = pin_object(request, object, place);
    return pin < 0
               ? answer_continue()
               : perform_existing(request, place, pin, &object->st, flags & ~(O_CREAT | O_EXCL));
}

static struct answer do_symlink(const struct request *request, struct place *place)
{
    struct answer answer;
    place_text target;

    if (remote_text(request->thread, request_argument(request, request->call->path), target,
                    sizeof target) <= 0 ||
        !perform_may_name(request, place, &answer))
        return answer_continue();
    return answer_of(symlinkat(target, place->dir, place->name));
}

/* What may not be moved may have come to be called so a moment ago: then it goes back. All else that it
 * could be used for has to go by us. */
static struct answer do_rename(const struct request *request, const struct object *object,
                               const struct place *from, struct place *to)
{
    const unsigned flags = (unsigned)flags_of(request);
    AUTO_CLOSE int pin = pin_object(request, object, from);
    struct answer answer;
    struct stat st;

    if (pin < 0 || !perform_may_name(request, to, &answer))
        return answer_continue();
    if (syscall(SYS_renameat2, from->dir, from->name, to->dir, to->name, flags))
        return answer_error(errno);
    if (fstatat(to->dir, to->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        st.st_ino == object->st.st_ino && st.st_dev == object->st.st_dev)
        return answer_value(0);
    syscall(SYS_renameat2, to->dir, to->name, from->dir, from->name, K_RENAME_NOREPLACE);
    return answer_error(EACCES);
}

static struct timespec from_microseconds(const struct timeval *time)
{
    return (struct timespec){.tv_sec = time->tv_sec, .tv_nsec = time->tv_usec * 1000};
}

/* As utimensat(2) takes them, from the argument of whichever call. false: EFAULT, or EINVAL. */
static bool read_times(const struct request *request, struct timespec ret[2])
{
    const int nr = request->call->nr;
    const int argument = request->call->dir == CALL_NONE ? 1 : 2;
    const uint64_t address = request_argument(request, argument);
    struct timeval micro[2];

    ret[0] = ret[1] = (struct timespec){.tv_nsec = UTIME_NOW};
    if (!address)
        return true;
    if (nr == SYS_utimensat)
        return !remote_bytes(request->thread, address, ret, 2 * sizeof *ret);
#ifdef SYS_utime
    if (nr == SYS_utime) {
        int64_t seconds[2];

        if (remote_bytes(request->thread, address, seconds, sizeof seconds))
            return false;
        for (int i = 0; i < 2; i++)
            ret[i] = (struct timespec){.tv_sec = seconds[i]};
        return true;
    }
#endif
    if (remote_bytes(request->thread, address, micro, sizeof micro))
        return false;
    for (int i = 0; i < 2; i++) {
        if (micro[i].tv_usec < 0 || micro[i].tv_usec >= 1000000)
            return false;
        ret[i] = from_microseconds(&micro[i]);
    }
    return true;
}

static struct answer do_times(const struct request *request, const char *link)
{
    struct timespec times[2];

    if (!read_times(request, times))
        return answer_continue(); /* the kernel says why */
    return answer_of(utimensat(AT_FDCWD, link, times, 0));
}

static struct answer do_attribute(const struct request *request, const char *link)
{
    const int nr = request->call->nr;
    const uint64_t size = request_argument(request, 3);
    char name[XATTR_NAME];
    AUTO_FREE char *value = NULL;

    if (!read_attribute(request, name))
        return answer_continue();
    if (nr == SYS_removexattr || nr == SYS_lremovexattr || nr == SYS_fremovexattr)
        return answer_of(removexattr(link, name));
    value = size <= XATTR_SIZE ? malloc(size + 1) : NULL;
    if (!value ||
        (size && remote_bytes(request->thread, request_argument(request, 2), value, size)))
        return answer_continue();
    return answer_of(setxattr(link, name, value, size, (int)request_argument(request, 4)));
}

static struct answer do_change(const struct request *request, const struct object *object,
                               const struct place *place)
{
    const int nr = request->call->nr;
    AUTO_CLOSE int pin = pin_object(request, object, place);
    char link[PLACE_LINK];

    if (pin < 0)
        return answer_continue();
    if (object->is_name)
        return answer_of(
            unlinkat(place->dir, place->name, S_ISDIR(object->st.st_mode) ? AT_REMOVEDIR : 0));
    place_link(pin, link);
    switch (nr) {
#ifdef SYS_chmod
    case SYS_chmod:
#endif
    case SYS_fchmod:
        return answer_of(chmod(link, (mode_t)request_argument(request, 1) & 01777));
    case SYS_fchmodat:
    case K_SYS_FCHMODAT2:
        return answer_of(chmod(link, (mode_t)request_argument(request, 2) & 01777));
#ifdef SYS_chown
    case SYS_chown:
    case SYS_lchown:
#endif
    case SYS_fchown:
        return answer_of(
            chown(link, (uid_t)request_argument(request, 1), (gid_t)request_argument(request, 2)));
    case SYS_fchownat:
        return answer_of(
            chown(link, (uid_t)request_argument(request, 2), (gid_t)request_argument(request, 3)));
    case SYS_truncate:
        return answer_of(truncate(link, (off_t)request_argument(request, 1)));
    case SYS_setxattr:
    case SYS_lsetxattr:
    case SYS_fsetxattr:
    case SYS_removexattr:
    case SYS_lremovexattr:
    case SYS_fremovexattr:
        return do_attribute(request, link);
    default:
        return do_times(request, link);
    }
}

static struct answer do_access(const struct request *request, const struct object *object,
                               const struct place *place)
{
    AUTO_CLOSE int pin = pin_object(request, object, place);
    char link[PLACE_LINK];

    return pin < 0 ? answer_continue()
                   : answer_of(faccessat(AT_FDCWD, place_link(pin, link),
                                         (int)request_argument(request, request->call->mode),
                                         AT_EACCESS));
}

static struct answer do_link(const struct request *request, const struct object *from,
                             const struct place *from_place, struct place *to)
{
    AUTO_CLOSE int source = pin_object(request, from, from_place);
    struct answer answer;

    return source < 0 || !perform_may_name(request, to, &answer)
               ? answer_continue()
               : answer_of(perform_link_pinned(source, to->dir, to->name));
}

static struct answer act(const struct request *request, struct object *const objects[2],
                         struct place *first, struct place *second)
{
    const struct call *call = request->call;

    switch (call->kind) {
    case CALL_OPEN:
        return do_open(request, objects[0], first);
    case CALL_ACCESS:
        return do_access(request, objects[0], first);
    case CALL_MKDIR:
    case CALL_MKNOD:
        return perform_at(request, first,
                          (mode_t)request_argument(request, call->mode) &
                              (call->kind == CALL_MKDIR ? 01777 : S_IFMT | 0777));
    case CALL_SYMLINK:
        return do_symlink(request, first);
    case CALL_LINK:
        return do_link(request, objects[1], second, first);
    case CALL_RENAME:
        return do_rename(request, objects[0], first, second);
    case CALL_CHANGE:
        return do_change(request, objects[0], first);
    case CALLS_OF_NO_FILE:
        break;
    }
    return answer_continue();
}

struct answer granted_do(const struct request *request, struct object *const objects[2])
{
    AUTO_PLACE struct place first = NO_PLACE;
    AUTO_PLACE struct place second = NO_PLACE;
    struct answer answer;

    if (!place_outside(request->command, &objects[0]->place, &first) ||
        (objects[1] && !place_outside(request->command, &objects[1]->place, &second)))
        return answer_continue();
    first.is_granted = objects[0]->is_denied;
    second.is_granted = objects[1] && objects[1]->is_denied;
    answer = act(request, objects, &first, &second);
    answer.is_granted = true;
    return answer;
}
