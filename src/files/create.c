/* fs/createDirectory, fs/createSymlink, fs/setMode: what a tree needs besides files.
 *
 * Several processes may make the same directories at once, so that another one was faster is no
 * error. When links may not be followed, every step is taken from the directory before, which is
 * held open. */
#include "base/auto.h"
#include "base/path.h"
#include "base/sys.h"
#include "files/call.h"
#include "files/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIR_MODE = 0777 };

static int make_at(int dir, const char *path)
{
    return sys_fault() ? -1 : mkdirat(dir, path, DIR_MODE);
}

/* A directory is there already, or a link to one. */
static int check_dir(const char *path, struct err *err)
{
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    errno = EEXIST;
    return err_sys(err, "making the directory %s", path);
}

/* The end of the longest beginning of `path` whose directory is there or could be made; the text is
 * cut there meanwhile. */
static int make_first(char *path, size_t *ret_len, struct err *err)
{
    size_t len = strlen(path);

    for (;;) {
        char *slash;
        char kept = path[len];
        int status;

        path[len] = '\0';
        status = make_at(AT_FDCWD, path);
        path[len] = kept;
        if (status == 0 || errno == EEXIST)
            break;
        if (errno != ENOENT)
            return err_sys(err, "making the directory %s", path);
        slash = memrchr(path, '/', len);
        if (!slash || slash == path) /* not even the root is there */
            return err_sys(err, "making the directory %s", path);
        len = (size_t)(slash - path);
    }
    *ret_len = len;
    return 0;
}

/* Up until something is there, then down again. */
static int make_all(char *path, struct err *err)
{
    size_t whole = strlen(path);
    size_t len = 0;

    if (make_first(path, &len, err))
        return -1;
    while (len < whole) {
        int status;

        len += 1 + strcspn(path + len + 1, "/");
        if (len < whole)
            path[len] = '\0';
        status = make_at(AT_FDCWD, path);
        if (len < whole)
            path[len] = '/';
        if (status && errno != EEXIST)
            return err_sys(err, "making the directory %s", path);
    }
    return check_dir(path, err);
}

/* The directory `name` in `dir`, made when it is missing; a link is ENOTDIR. */
static int enter(int dir, const char *name)
{
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(dir, name, flags);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (make_at(dir, name) && errno != EEXIST)
        return -1;
    return openat(dir, name, flags);
}

static int make_all_strict(char *path, struct err *err)
{
    AUTO_CLOSE int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *next = path + 1;

    while (dir >= 0 && *next) {
        size_t len = strcspn(next, "/");
        char kept = next[len];
        int inner;

        next[len] = '\0';
        inner = enter(dir, next);
        next[len] = kept;
        if (inner < 0)
            return err_sys(err, "making the directory %s", path);
        close(dir);
        dir = inner;
        next += kept ? len + 1 : len;
    }
    return dir < 0 ? err_sys(err, "opening /") : 0;
}

static int make_one(const struct target *target, struct err *err)
{
    const char *name = NULL;
    AUTO_CLOSE int dir = target_open_parent(target, &name, err);

    if (dir < 0)
        return -1;
    if (make_at(dir, name))
        return err_sys(err, "making the directory %s", target->path);
    return 0;
}

int files_create_directory(const struct files_request *request, struct reply *reply,
                           struct err *err)
{
    AUTO(target_done) struct target target = {0};
    bool recursive = true;
    int status;

    if (target_read(&request->params, "path", &target, err) ||
        target_flag(&request->params, "recursive", &recursive, err))
        return -1;
    if (path_depth(target.path) == 0 && (target.no_follow || !recursive))
        return err_set(err, ERR_INVALID, "path `/` is the root directory");
    if (!recursive)
        status = make_one(&target, err);
    else
        status = target.no_follow ? make_all_strict(target.path, err) : make_all(target.path, err);
    return status ? -1 : reply_str(reply, "{}", err);
}

/* --- links and modes --- */

enum { MODE_MAX = 0777 };

int files_create_symlink(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target target = {0};
    struct json_at text = json_at_field(&request->params, "target");
    AUTO_CLOSE int dir = -1;
    const char *name = NULL;
    const char *to = NULL;

    if (target_read(&request->params, "path", &target, err) || json_at_string(&text, &to, err))
        return -1;
    if (!*to)
        return json_at_fail(&text, err, "should name what the link leads to");
    dir = target_open_parent(&target, &name, err);
    if (dir < 0)
        return -1;
    if (sys_fault() || symlinkat(to, dir, name))
        return err_sys(err, "making the link %s", target.path);
    return reply_str(reply, "{}", err);
}

/* By what was opened, so that it is what was looked at, and without the right to read it. */
static int change_mode(int fd, mode_t mode)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return sys_fault() ? -1 : chmod(path, mode);
}

int files_set_mode(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target target = {0};
    struct json_at field = json_at_field(&request->params, "mode");
    AUTO_CLOSE int fd = -1;
    int64_t mode = 0;

    if (target_read(&request->params, "path", &target, err) ||
        json_at_integer(&field, 0, MODE_MAX, &mode, err))
        return -1;
    fd = target_open(&target, O_PATH, 0, err);
    if (fd < 0)
        return -1;
    if (change_mode(fd, (mode_t)mode))
        return err_sys(err, "setting the mode of %s", target.path);
    return reply_str(reply, "{}", err);
}
