/* See local_file.h. The new file is made beside the old one, so that it is on the same file system,
 * and renamed over it. It gets the mode of the old one, or what the umask leaves. A symbolic link
 * is followed first, so that it stays. */
#include "client/local_file.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static mode_t mode_of_new(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return 0666 & ~mask;
}

static int open_beside(struct local_file *file, const char *path, mode_t mode, struct err *err)
{
    file->path = alloc_str(path);
    file->making = alloc_strf("%s.XXXXXX", path);
    file->fd = mkostemp(file->making, O_CLOEXEC);
    if (file->fd < 0) {
        free(TAKE_PTR(file->making));
        return err_sys(err, "making a file beside %s", path);
    }
    if (fchmod(file->fd, mode))
        return err_sys(err, "%s", file->making);
    return 0;
}

static int open_in_place(struct local_file *file, const char *path, struct err *err)
{
    file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return file->fd < 0 ? err_sys(err, "%s", path) : 0;
}

/* What is there already decides. */
static int open_at(struct local_file *file, const char *path, const char *name, struct err *err)
{
    struct stat info;
    char real[PATH_MAX];
    AUTO_FREE char *inside = NULL;

    if (stat(path, &info))
        return errno == ENOENT ? open_beside(file, path, mode_of_new(), err)
                               : err_sys(err, "%s", path);
    if (S_ISDIR(info.st_mode)) {
        inside = path_join(path, name);
        if (stat(inside, &info))
            return errno == ENOENT ? open_beside(file, inside, mode_of_new(), err)
                                   : err_sys(err, "%s", inside);
        path = inside;
    }
    if (S_ISDIR(info.st_mode))
        return err_set(err, ERR_INVALID, "%s is a folder", path);
    if (!S_ISREG(info.st_mode))
        return open_in_place(file, path, err);
    if (!realpath(path, real))
        return err_sys(err, "%s", path);
    return open_beside(file, real, info.st_mode & 0777, err);
}

int local_file_open(struct local_file *file, const char *path, const char *name, struct err *err)
{
    *file = (struct local_file){.fd = -1};
    if (!str_eq(path, "-"))
        return open_at(file, path, name, err);
    file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    return file->fd < 0 ? err_sys(err, "stdout") : 0;
}

int local_file_commit(struct local_file *file, struct err *err)
{
    int fd = TAKE_FD(file->fd);

    if (close(fd))
        return err_sys(err, "writing %s", file->path ? file->path : "the copy");
    if (!file->making)
        return 0;
    if (rename(file->making, file->path))
        return err_sys(err, "putting %s in its place", file->path);
    free(TAKE_PTR(file->making));
    return 0;
}

void local_file_done(struct local_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->making)
        unlink(file->making);
    free(file->making);
    free(file->path);
    *file = (struct local_file){.fd = -1};
}
