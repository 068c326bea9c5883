/* fs/getMetadata, fs/canonicalize, fs/readDirectory: what is there. */
#include "files/call.h"

#include "base/auto.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/utf8.h"
#include "files/folder.h"
#include "files/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t milliseconds(const struct statx_timestamp *time)
{
    return time->tv_sec * 1000 + time->tv_nsec / 1000000;
}

/* Of the last component alone. */
static bool is_link(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static int open_to_look(const struct target *target, struct err *err)
{
    struct err failure;
    int fd = target_open(target, O_PATH, 0, &failure);

    if (fd >= 0)
        return fd;
    if (target->no_follow && failure.sys == ELOOP)
        return err_set(err, ERR_INVALID, "path contains a symbolic link");
    *err = failure;
    return -1;
}

int files_get_metadata(const struct files_request *request, struct reply *reply, struct err *err)
{
    const unsigned wanted = STATX_TYPE | STATX_MODE | STATX_SIZE | STATX_MTIME | STATX_BTIME;
    AUTO(target_done) struct target target = {0};
    AUTO_CLOSE int fd = -1;
    bool has_details = false;
    struct statx st;

    if (target_read(&request->params, "path", &target, err) ||
        target_flag(&request->params, "details", &has_details, err))
        return -1;
    fd = open_to_look(&target, err);
    if (fd < 0)
        return -1;
    if (sys_fault() || statx(fd, "", AT_EMPTY_PATH, wanted, &st))
        return err_sys(err, "looking at %s", target.path);
    if (reply_fmt(reply, err,
                  "{\"isDirectory\":%s,\"isFile\":%s,\"isSymlink\":%s,\"size\":%" PRIu64
                  ",\"createdAtMs\":%" PRId64 ",\"modifiedAtMs\":%" PRId64,
                  reply_bool(S_ISDIR(st.stx_mode)), reply_bool(S_ISREG(st.stx_mode)),
                  reply_bool(!target.no_follow && is_link(target.path)), (uint64_t)st.stx_size,
                  st.stx_mask & STATX_BTIME ? milliseconds(&st.stx_btime) : 0,
                  milliseconds(&st.stx_mtime)) ||
        (has_details && reply_fmt(reply, err, ",\"mode\":%u", st.stx_mode & 0777u)))
        return -1;
    return reply_str(reply, "}", err);
}

int files_canonicalize(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target target = {0};
    AUTO_FREE char *real = NULL;

    if (target_read(&request->params, "path", &target, err))
        return -1;
    real = sys_fault() ? NULL : realpath(target.path, NULL);
    if (!real)
        return err_sys(err, "resolving %s", target.path);
    if (reply_str(reply, "{\"path\":", err) || reply_uri(reply, real, err))
        return -1;
    return reply_str(reply, "}", err);
}

/* What an entry is, behind links. false for a link that leads nowhere. What may not be looked at is
 * listed by what the folder says of it. */
static bool entry_mode(const struct folder *folder, const struct dirent *entry, mode_t *ret)
{
    struct stat st;

    if (fstatat(dirfd(folder->stream), entry->d_name, &st, 0) == 0) {
        *ret = st.st_mode;
        return true;
    }
    *ret = DTTOIF(entry->d_type);
    return errno != ENOENT && errno != ELOOP && errno != ENOTDIR;
}

/* A string, or null for what is no text: a target that is no UTF-8, or a link that has just gone.
 */
static int reply_link(struct reply *reply, int dir, const char *name, struct err *err)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(dir, name, target, sizeof target - 1);

    if (len < 0 || !utf8_is_valid(target, (size_t)len))
        return reply_str(reply, ",\"linkTarget\":null", err);
    target[len] = '\0';
    return reply_str(reply, ",\"linkTarget\":", err) || reply_quoted(reply, target, err) ? -1 : 0;
}

/* What it takes to make another one like it. */
static int reply_details(struct reply *reply, int dir, const char *name, const char *path,
                         struct err *err)
{
    AUTO_FREE char *whole = path_join(path, name);
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return err_sys(err, "looking at %s", whole);
    if (reply_fmt(reply, err,
                  ",\"isDirectory\":%s,\"isFile\":%s,\"isSymlink\":%s,\"size\":%" PRId64
                  ",\"mode\":%u,\"uri\":",
                  reply_bool(S_ISDIR(st.st_mode)), reply_bool(S_ISREG(st.st_mode)),
                  reply_bool(S_ISLNK(st.st_mode)), (int64_t)st.st_size,
                  (unsigned)st.st_mode & 0777u) ||
        reply_uri(reply, whole, err))
        return -1;
    return S_ISLNK(st.st_mode) ? reply_link(reply, dir, name, err) : 0;
}

static int reply_kind(struct reply *reply, mode_t mode, struct err *err)
{
    return reply_fmt(reply, err, ",\"isDirectory\":%s,\"isFile\":%s", reply_bool(S_ISDIR(mode)),
                     reply_bool(S_ISREG(mode)));
}

/* Whether it is to be listed: with details, everything that is still there. */
static bool entry_counts(const struct folder *folder, const struct dirent *entry, bool has_details,
                         mode_t *ret_mode)
{
    struct stat st;

    if (!has_details)
        return entry_mode(folder, entry, ret_mode);
    return fstatat(dirfd(folder->stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
           errno != ENOENT;
}

int files_read_directory(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target target = {0};
    AUTO(folder_close) struct folder folder = {0};
    const struct dirent *entry = NULL;
    const char *comma = "";
    bool has_details = false;
    int status;

    if (target_read(&request->params, "path", &target, err) ||
        target_flag(&request->params, "details", &has_details, err) ||
        folder_open(&folder, &target, err) || reply_str(reply, "{\"entries\":[", err))
        return -1;
    while ((status = folder_next(&folder, &entry, err)) > 0) {
        const char *name = entry->d_name;
        mode_t mode = 0;

        if (!entry_counts(&folder, entry, has_details, &mode))
            continue;
        if (reply_fmt(reply, err, "%s{\"fileName\":", comma) || reply_quoted(reply, name, err) ||
            (has_details ? reply_details(reply, dirfd(folder.stream), name, target.path, err)
                         : reply_kind(reply, mode, err)) ||
            reply_str(reply, "}", err))
            return -1;
        comma = ",";
    }
    return status < 0 ? -1 : reply_str(reply, "]}", err);
}
