/* See folder.h. */
#include "files/folder.h"

#include "base/str.h"
#include "base/sys.h"
#include "files/target.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int folder_open_fd(struct folder *ret, int fd, struct err *err)
{
    DIR *stream = sys_fault() ? NULL : fdopendir(fd);

    if (!stream) {
        err_sys(err, "reading a folder");
        close(fd);
        return -1;
    }
    ret->stream = stream;
    return 0;
}

int folder_open(struct folder *ret, const struct target *target, struct err *err)
{
    int fd = target_open(target, O_RDONLY | O_DIRECTORY, 0, err);

    return fd < 0 ? -1 : folder_open_fd(ret, fd, err);
}

int folder_open_at(struct folder *ret, int dir, const char *name, struct err *err)
{
    int fd = sys_fault() ? -1 : openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return err_sys(err, "opening the folder %s", name);
    return folder_open_fd(ret, fd, err);
}

void folder_close(struct folder *folder)
{
    if (folder->stream)
        closedir(folder->stream);
    folder->stream = NULL;
}

int folder_next(struct folder *folder, const struct dirent **ret, struct err *err)
{
    for (;;) {
        const struct dirent *entry;

        errno = 0;
        entry = readdir(folder->stream);
        if (!entry)
            return errno ? err_sys(err, "reading a folder") : 0;
        if (str_eq(entry->d_name, ".") || str_eq(entry->d_name, ".."))
            continue;
        *ret = entry;
        return 1;
    }
}
