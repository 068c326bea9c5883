/* See user_token.h. The directory is opened once and everything else is relative to it, so what was
 * looked at is what is read. A new file is written under a name of its own and gets the right one
 * when it is complete; of two programs that do so the second takes over what the first one made. */
#include "base/user_token.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKEN_NAME "ws-token"

enum {
    RANDOM_BYTES = 32,
    TEXT_MIN = 32, /* characters; fewer can be guessed */
    TEXT_MAX = 4096,
};

static const char remedy[] = "remove it, and the next server makes a new one";

char *user_token_path(const char *dir)
{
    return path_join(dir, USER_TOKEN_DIR "/" TOKEN_NAME);
}

void user_token_free(char *token)
{
    if (token)
        explicit_bzero(token, strlen(token));
    free(token);
}

static int check_owner(const struct stat *info, const char *path, struct err *err)
{
    if (info->st_uid != geteuid())
        return err_set(err, ERR_FORBIDDEN, "%s belongs to the user with id %u and not to you: %s",
                       path, (unsigned)info->st_uid, remedy);
    if (info->st_mode & (S_IRWXG | S_IRWXO))
        return err_set(err, ERR_FORBIDDEN, "%s is open to other users (mode %03o): %s", path,
                       (unsigned)info->st_mode & 0777, remedy);
    return 0;
}

/* Of `dir`; -1 also when it is not there, which `*ret_is_missing` tells. */
static int open_private(const char *dir, bool *ret_is_missing, struct err *err)
{
    AUTO_FREE char *path = path_join(dir, USER_TOKEN_DIR);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;

    *ret_is_missing = fd < 0 && errno == ENOENT;
    if (fd < 0 && errno == ENOTDIR)
        return err_set(err, ERR_FORBIDDEN, "%s is no directory, and a link is not followed: %s",
                       path, remedy);
    if (fd < 0 || fstat(fd, &info))
        return err_sys(err, "%s", path);
    return check_owner(&info, path, err) ? -1 : TAKE_FD(fd);
}

static int check_file(const struct stat *info, const char *path, struct err *err)
{
    if (!S_ISREG(info->st_mode))
        return err_set(err, ERR_FORBIDDEN, "%s is no regular file: %s", path, remedy);
    if (info->st_nlink != 1)
        return err_set(err, ERR_FORBIDDEN, "%s has another name, by which a command may see it: %s",
                       path, remedy);
    return check_owner(info, path, err);
}

/* The text of the file without white space around it. */
static int parse(char *text, size_t len, const char *path, char **ret, struct err *err)
{
    static const char space[] = " \t\r\n";
    char *begin;

    text[len] = '\0';
    begin = text + strspn(text, space);
    begin[strcspn(begin, space)] = '\0';
    if (strlen(begin) < TEXT_MIN)
        return err_set(err, ERR_INVALID, "%s has no token of %d characters or more: %s", path,
                       TEXT_MIN, remedy);
    for (const char *at = begin; *at; at++)
        if (*at <= ' ' || *at > '~')
            return err_set(err, ERR_INVALID, "%s has more than ASCII in it: %s", path, remedy);
    *ret = alloc_str(begin);
    return 0;
}

/* As user_token_read(), in a directory that open_private() gave. O_NONBLOCK: of a FIFO nobody waits
 * for the other end. */
static int read_in(int private, const char *path, char **ret, struct err *err)
{
    AUTO_CLOSE int fd =
        openat(private, TOKEN_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    char text[TEXT_MAX + 1];
    struct stat info;
    ssize_t len;
    int failed;

    if (fd < 0 && errno == ENOENT) {
        *ret = NULL;
        return 0;
    }
    if (fd < 0 && errno == ELOOP)
        return err_set(err, ERR_FORBIDDEN, "%s is a link, which is not followed: %s", path, remedy);
    if (fd < 0 || fstat(fd, &info))
        return err_sys(err, "%s", path);
    if (check_file(&info, path, err))
        return -1;
    len = fd_read_block(fd, text, TEXT_MAX);
    if (len < 0)
        return err_sys(err, "%s", path);
    failed = parse(text, (size_t)len, path, ret, err);
    explicit_bzero(text, sizeof text);
    return failed;
}

int user_token_read(const char *dir, char **ret, struct err *err)
{
    AUTO_FREE char *path = user_token_path(dir);
    bool is_missing;
    AUTO_CLOSE int private = open_private(dir, &is_missing, err);

    if (private >= 0)
        return read_in(private, path, ret, err);
    if (!is_missing)
        return -1;
    *ret = NULL;
    return 0;
}

/* --- a new one --- */

static void append_random(struct buf *text)
{
    uint8_t bytes[RANDOM_BYTES];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        abort(); /* Linux never returns less for so little */
    for (size_t i = 0; i < sizeof bytes; i++)
        buf_appendf(text, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof bytes);
}

static int write_file(int private, const char *name, struct err *err)
{
    AUTO_CLOSE int fd = openat(private, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct buf text;
    int failed;

    if (fd < 0)
        return err_sys(err, "making %s", name);
    buf_init(&text, TEXT_MAX);
    append_random(&text);
    buf_append_str(&text, "\n");
    failed = fd_write_all(fd, text.data, text.len, err);
    explicit_bzero(text.data, text.len);
    buf_done(&text);
    if (!failed && fsync(fd))
        return err_sys(err, "writing %s", name);
    return failed;
}

/* What came to be there first stays; where a file system cannot tell (EINVAL), what comes last. */
static int give_name(int private, const char *name, struct err *err)
{
    if (renameat2(private, name, private, TOKEN_NAME, RENAME_NOREPLACE) == 0 || errno == EEXIST)
        return 0;
    if (errno == EINVAL && renameat(private, name, private, TOKEN_NAME) == 0)
        return 0;
    return err_sys(err, "making %s", TOKEN_NAME);
}

static int make_in(int private, struct err *err)
{
    AUTO_FREE char *name = NULL;
    uint64_t number;
    int failed;

    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        abort(); /* as above */
    name = alloc_strf(TOKEN_NAME ".%016llx", (unsigned long long)number);
    failed = write_file(private, name, err) || give_name(private, name, err) ? -1 : 0;
    unlinkat(private, name, 0); /* still there when there was one, or on failure */
    return failed;
}

int user_token_make(const char *dir, char **ret, struct err *err)
{
    AUTO_FREE char *path = user_token_path(dir);
    AUTO_FREE char *folder = path_join(dir, USER_TOKEN_DIR);
    char *token = NULL;
    bool ignored;
    AUTO_CLOSE int private = -1;

    if (fd_make_dirs(folder, 0700, err))
        return -1;
    private = open_private(dir, &ignored, err);
    if (private < 0 || read_in(private, path, &token, err))
        return -1;
    if (!token && (make_in(private, err) || read_in(private, path, &token, err)))
        return -1;
    if (!token)
        return err_set(err, ERR_SYSTEM, "%s went away as soon as it was made", path);
    *ret = token;
    return 0;
}
