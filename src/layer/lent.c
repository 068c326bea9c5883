/* See lent.h. A note is "MODE PATH" and a NUL, appended before the mode is changed; all go when the modes are back. One that
 * has another mode by then than it was lent with has been given that by somebody, and keeps it. */
#include "layer/lent.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/strv.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTES "lent"

enum { OWNER_ALL = 0700, NOTES_MAX = 16 << 20 };

static int chmod_fd(int fd, mode_t mode)
{
    char name[64];

    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return sys_fault() ? -1 : chmod(name, mode);
}

int lent_note(struct lent *lent, mode_t mode, const char *path, struct err *err)
{
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    AUTO_FREE char *text = alloc_strf("%o %s", (unsigned)mode & 07777, path);

    if (lent->notes < 0)
        lent->notes = sys_fault() ? -1 : openat(layer_fd(lent->layer), NOTES, flags, 0600);
    if (lent->notes < 0)
        return err_sys(err, "making " NOTES);
    return fd_write_all(lent->notes, text, strlen(text) + 1, err);
}

int lent_take(struct lent *lent, int fd, const char *path, mode_t mode, struct err *err)
{
    if ((mode & OWNER_ALL) == OWNER_ALL)
        return 0;
    if (lent_note(lent, mode, path, err))
        return -1;
    return chmod_fd(fd, (mode & 07777) | OWNER_ALL) ? err_sys(err, "making %s writable", path) : 0;
}

static int give_back(const struct layer *layer, const char *path, mode_t mode)
{
    const struct sys_open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS,
    };
    AUTO_CLOSE int fd = sys_openat2(layer_fd(layer), path, &how);
    struct stat st;

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -1;
    if (fstat(fd, &st))
        return -1;
    return (st.st_mode & 07777) == (mode | OWNER_ALL) ? chmod_fd(fd, mode) : 0;
}

/* Those that were noted last first: they may lie in others. */
static int give_back_all(const struct layer *layer, const struct buf *text, struct err *err)
{
    AUTO(strv_done) struct strv notes = {0};
    int status = 0;

    /* One without an end was not finished, and so its directory was left alone. */
    for (const char *note = text->data, *end; note; note = end + 1) {
        end = memchr(note, '\0', text->len - (size_t)(note - text->data));
        if (!end)
            break;
        strv_push(&notes, note);
    }
    for (size_t i = notes.len; i-- > 0;) {
        char *path;
        const mode_t mode = (mode_t)strtoul(notes.items[i], &path, 8);

        if (*path == ' ' && give_back(layer, path + 1, mode))
            status = err_sys(err, "giving %s its mode back", path + 1);
    }
    return status;
}

int lent_return(struct lent *lent, struct err *err)
{
    AUTO(buf_done) struct buf text = {.max = NOTES_MAX};
    struct err why;
    AUTO_CLOSE int fd = fd_open_file(layer_fd(lent->layer), NOTES, O_NOFOLLOW, &why);

    auto_close(&lent->notes);
    lent->notes = -1;
    if (fd < 0 && why.sys == ENOENT)
        return 0;
    if (fd < 0) {
        *err = why;
        return -1;
    }
    if (buf_read_fd(&text, fd, err) || give_back_all(lent->layer, &text, err))
        return -1;
    if (sys_fault() || unlinkat(layer_fd(lent->layer), NOTES, 0))
        return err_sys(err, "removing " NOTES);
    return 0;
}
