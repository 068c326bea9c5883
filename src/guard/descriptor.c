/* See descriptor.h. Another thread can put another file in the place of the descriptor at any time. What is
 * found here is one file that it was a moment ago, and what comes of the call is about that one. */
#include "guard/descriptor.h"

#include "base/auto.h"
#include "guard/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

/* Which may as well have been opened for its path alone. */
static bool is_by_empty_path(const struct request *request)
{
    const struct call *call = request->call;
    char first;

    return call->flags >= 0 && (request_argument(request, call->flags) & AT_EMPTY_PATH) &&
           remote_bytes(request->thread, request_argument(request, call->path), &first, 1) == 0 &&
           !first;
}

bool descriptor_is_meant(const struct request *request)
{
    const struct call *call = request->call;

    switch (call->nr) {
    case SYS_fchmod:
    case SYS_fchown:
    case SYS_fsetxattr:
    case SYS_fremovexattr:
        return true;
    case SYS_fchownat:
    case K_SYS_FCHMODAT2:
        return is_by_empty_path(request);
#ifdef SYS_futimesat
    case SYS_futimesat:
        return !request_argument(request, call->path);
#endif
    case SYS_utimensat: /* NULL stands for the descriptor */
        return request_argument(request, call->path) ? is_by_empty_path(request)
                                                     : !request_argument(request, call->flags);
    default:
        return false;
    }
}

bool descriptor_is_read_only(const struct request *request)
{
    char link[64];
    struct statvfs fs;

    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)request->thread,
             request_dir(request, request->call->dir));
    return statvfs(link, &fs) == 0 && (fs.f_flag & ST_RDONLY);
}

/* A copy of the caller's descriptor; or, where a filter around us refuses pidfd_getfd(2) (a container's),
 * one of the file that it has, for its path alone. `*ret_is_path`: the caller has no more than that. */
static int open_copy(const struct request *request, bool *ret_is_path)
{
    const int number = request_dir(request, request->call->dir);
    int copy = remote_fd(request->thread, number);
    char link[64];

    *ret_is_path = copy >= 0 && (fcntl(copy, F_GETFL) & O_PATH);
    if (copy != -EPERM)
        return copy;
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)request->thread, number);
    return open(link, O_PATH | O_CLOEXEC);
}

bool descriptor_find(const struct request *request, struct object *ret)
{
    bool is_path;
    AUTO_CLOSE int copy = open_copy(request, &is_path);
    struct stat st;
    place_text text;

    if (copy < 0 || fstat(copy, &st) || (is_path && !is_by_empty_path(request)) ||
        !place_path_of(copy, text) || !place_find(request, AT_FDCWD, text, &ret->place))
        return false;
    ret->exists = fstatat(ret->place.dir, ret->place.name, &ret->st, AT_SYMLINK_NOFOLLOW) == 0 &&
                  st.st_dev == ret->st.st_dev && st.st_ino == ret->st.st_ino;
    place_path(&ret->place, ret->path);
    return ret->exists && *ret->path && !map_is_ours(ret->path);
}
