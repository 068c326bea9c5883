/* fs/readFile, fs/open, fs/writeFile: what is in files; fs/createDirectory, fs/createSymlink,
 * fs/setMode: what a tree needs besides them.
 *
 * A file is read in blocks, and each leaves as base64 before the next is read. How long it says it
 * is does not count: files of /proc say 0, and others grow meanwhile.
 *
 * Several processes may make the same directories at once, so that another one was faster is no
 * error. When links may not be followed, every step is taken from the directory before, which is
 * held open. */
#include "files/call.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "files/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_BLOCK = 192 * 1024, /* a multiple of 3, so that blocks of base64 join */
    MODE_MAX = 0777,         /* and of directories that are made */
};

/* --- files --- */

static int refuse_size(struct err *err)
{
    return err_set(err, ERR_LIMIT, "file is too large to read: limit is %d bytes", FILES_READ_MAX);
}

static int send_content(int fd, const char *path, struct reply *reply, struct err *err)
{
    AUTO_FREE char *block = alloc_zero(READ_BLOCK, 1);
    AUTO_FREE char *text = alloc_zero(base64_encoded_len(READ_BLOCK) + 1, 1);
    size_t total = 0;
    ssize_t len = 0;

    do {
        len = fd_read_block(fd, block, READ_BLOCK);
        if (len < 0)
            return err_sys(err, "reading %s", path);
        total += (size_t)len;
        if (total > FILES_READ_MAX)
            return refuse_size(err);
        base64_encode(block, (size_t)len, text);
        if (reply_str(reply, text, err))
            return -1;
    } while (len == READ_BLOCK);
    return 0;
}

int files_read_file(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target target = {0};
    AUTO_CLOSE int fd = -1;
    struct stat st;

    if (target_read(&request->params, "path", &target, err))
        return -1;
    fd = target_open_file(&target, O_RDONLY, err);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && st.st_size > FILES_READ_MAX) /* it says so itself */
        return refuse_size(err);
    if (reply_str(reply, "{\"dataBase64\":\"", err) || send_content(fd, target.path, reply, err))
        return -1;
    return reply_str(reply, "\"}", err);
}

enum { TO_WRITE = O_WRONLY | O_CREAT | O_TRUNC };

int files_open(const struct files_request *request, struct reply *reply, struct err *err)
{
    static const char *const modes[] = {"read", "replace", NULL};
    AUTO(target_done) struct target target = {0};
    struct json_at at = json_at_field(&request->params, "mode");
    size_t mode = 0;

    if (target_read(&request->params, "path", &target, err) ||
        (json_at_is_given(&at) && json_at_word(&at, modes, &mode, err)))
        return -1;
    reply->fd = target_open_file(&target, mode == 0 ? O_RDONLY : TO_WRITE, err);
    return reply->fd < 0 ? -1 : 0;
}

/* The bytes to be written, which are base64 beside the parameters or in them; caller frees. */
static char *decode(const struct files_request *request, size_t *ret_len, struct err *err)
{
    struct json_at at = json_at_field(&request->params, "dataBase64");
    AUTO_FREE char *data = NULL;
    const char *text = request->data;
    size_t len = request->data_len;
    struct err wrong;

    if (!text) {
        if (json_at_string(&at, &text, err))
            return NULL;
        len = json_string_length(at.value);
    }
    *ret_len = base64_decoded_len(text, len);
    data = alloc_zero(*ret_len + 1, 1);
    if (base64_decode(text, len, data, &wrong)) {
        err_set(err, ERR_INVALID, "fs/writeFile requires valid base64 dataBase64: %s", wrong.msg);
        return NULL;
    }
    return TAKE_PTR(data);
}

int files_write_file(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target target = {0};
    AUTO_FREE char *data = NULL;
    AUTO_CLOSE int fd = -1;
    size_t len = 0;

    if (target_read(&request->params, "path", &target, err))
        return -1;
    data = decode(request, &len, err);
    if (!data)
        return -1;
    fd = target_open_file(&target, TO_WRITE, err);
    if (fd < 0)
        return -1;
    if (fd_write_all(fd, data, len, err))
        return err_wrap(err, "%s", target.path);
    return reply_str(reply, "{}", err);
}

/* --- directories --- */

static int make_at(int dir, const char *path)
{
    return sys_fault() ? -1 : mkdirat(dir, path, MODE_MAX);
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
    struct stat st;

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
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return 0; /* it was there already, or a link to one is */
    errno = EEXIST;
    return err_sys(err, "making the directory %s", path);
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

int files_create_directory(const struct files_request *request, struct reply *reply,
                           struct err *err)
{
    AUTO(target_done) struct target target = {0};
    AUTO_CLOSE int dir = -1;
    const char *name = NULL;
    bool recursive = true;
    int status;

    if (target_read(&request->params, "path", &target, err) ||
        target_flag(&request->params, "recursive", &recursive, err))
        return -1;
    if (path_depth(target.path) == 0 && (target.no_follow || !recursive))
        return err_set(err, ERR_INVALID, "path `/` is the root directory");
    if (!recursive) {
        dir = target_open_parent(&target, &name, err);
        if (dir < 0)
            return -1;
        if (make_at(dir, name))
            return err_sys(err, "making the directory %s", target.path);
        return reply_str(reply, "{}", err);
    }
    status = target.no_follow ? make_all_strict(target.path, err) : make_all(target.path, err);
    return status ? -1 : reply_str(reply, "{}", err);
}

/* --- links and modes --- */

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

int files_set_mode(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target target = {0};
    struct json_at field = json_at_field(&request->params, "mode");
    AUTO_CLOSE int fd = -1;
    char path[32];
    int64_t mode = 0;

    if (target_read(&request->params, "path", &target, err) ||
        json_at_integer(&field, 0, MODE_MAX, &mode, err))
        return -1;
    fd = target_open(&target, O_PATH, 0, err);
    if (fd < 0)
        return -1;
    /* by what was opened, so that it is what was looked at, and without the right to read it */
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (sys_fault() || chmod(path, (mode_t)mode))
        return err_sys(err, "setting the mode of %s", target.path);
    return reply_str(reply, "{}", err);
}
