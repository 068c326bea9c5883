/* See mode.h. The umask of whoever something is made for, and set-group-id directories.
 *
 * No file may become set-group-id for root. On a directory the bit gives no rights, it says whose group new
 * files have; but a filter does not see what a path or descriptor is. So it asks for root's calls that set
 * the bit, and these never go on: the guard takes hold of the directory, and changes that. */
#include "guard/mode.h"

#include "base/auto.h"
#include "guard/caller.h"
#include "guard/place.h"
#include "guard/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- the umask --- */

static mode_t own_mask = (mode_t)-1; /* of this process, which is that of the last caller */

bool mode_take_mask(const struct request *request)
{
    int mask = caller_mask(request);

    if (mask < 0)
        return false;
    if ((mode_t)mask != own_mask)
        umask(own_mask = (mode_t)mask);
    return true;
}

/* --- set-group-id directories --- */

/* The directory that a path names, or a negative errno: EPERM for what is none. */
static int open_directory(const struct request *request, unsigned flags)
{
    const int dir = request_dir(request, request->call->dir);
    AUTO(place_done) struct place place = {.dir = -1, .lock = -1};
    AUTO_CLOSE int base = -1;
    place_text text;
    struct stat st;
    int len = remote_text(request->thread, request_argument(request, request->call->path), text,
                          sizeof text);

    if (len < 0)
        return len;
    if (flags & ~(unsigned)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    if (dir != AT_FDCWD && text[0] != '/') {
        base = remote_fd(request->thread, dir);
        if (base < 0)
            return base;
        if (!len && (flags & AT_EMPTY_PATH))
            return TAKE_FD(base);
    }
    if (!len && !(flags & AT_EMPTY_PATH))
        return -ENOENT;
    if ((flags & AT_SYMLINK_NOFOLLOW) && place_find(request, dir, text, &place) &&
        fstatat(place.dir, place.name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
        return -EOPNOTSUPP;
    place_done(&place);
    if ((size_t)len + sizeof "./x" > sizeof text)
        return -ENAMETOOLONG;
    memcpy(text + len, len ? "/x" : "./x", sizeof "./x" - (len ? 1 : 0)); /* its place */
    if (place_find(request, dir, text, &place))
        return place_take_dir(&place);
    if (errno == ENOTDIR && len && text[len - 1] != '/') {
        text[len] = '\0';
        errno = place_find(request, dir, text, &place) ? EPERM : ENOTDIR;
    }
    return errno ? -errno : -EACCES;
}

struct answer mode_change(const struct request *request)
{
    const struct call *call = request->call;
    const mode_t mode = (mode_t)request_argument(request, call->mode) & 07777;
    const bool is_path = call->path >= 0;
    AUTO_CLOSE int fd = -1;
    struct stat st;
    char link[32];

    if (call->mode < 0 || !(mode & S_ISGID) || geteuid() != 0)
        return answer_continue();
    fd = is_path ? open_directory(request, (unsigned)request_argument(request, call->flags))
                 : remote_fd(request->thread, (int)request_argument(request, call->dir));
    if (fd < 0)
        return answer_error(-fd);
    if (request->nested || (mode & S_ISUID) || fstat(fd, &st) || !S_ISDIR(st.st_mode) ||
        !request_is_valid(request))
        return answer_error(EPERM);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    /* not by the C library's fchmod(), which helps itself where a descriptor (O_PATH) does not do */
    if (is_path ? chmod(link, mode) : (int)syscall(SYS_fchmod, fd, mode))
        return answer_error(errno);
    return answer_value(0);
}
