/* See spool.h. Writing is positional and only ever behind what was written, so a failure in the
 * middle leaves a correct prefix; that prefix is all that the spool ever claims to hold.
 *
 * Writes block: a page cache takes them at memory speed, and the caller writes large pieces. A host
 * that lives under RLIMIT_FSIZE has to ignore SIGXFSZ, as for every file that it writes. */
#include "output/spool.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPOOL_MODE 0600

struct spool {
    char *dir;
    char *name;
    uint64_t quota;
    uint64_t len;
    int fd; /* -1 until the first write */
    enum spool_state state;
    int error;
};

struct spool *spool_new(const struct spool_options *options)
{
    struct spool *spool = alloc_zero(1, sizeof *spool);

    spool->dir = alloc_str(options->dir);
    spool->name = alloc_str(options->name);
    spool->quota = options->quota;
    spool->fd = -1;
    spool->state = SPOOL_OK;
    return spool;
}

void spool_free(struct spool *spool)
{
    if (!spool)
        return;
    if (spool->fd >= 0)
        close(spool->fd);
    free(spool->dir);
    free(spool->name);
    free(spool);
}

static int open_nameless(const char *dir)
{
    int fd = open(dir, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, SPOOL_MODE);
    AUTO_FREE char *path = NULL;

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd;
    /* a file system without O_TMPFILE (overlayfs before 6.6, NFS) */
    path = path_join(dir, "cordon-spool-XXXXXX");
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

void spool_fail(struct spool *spool, int error)
{
    spool->state = SPOOL_FAILED;
    spool->error = error;
}

static bool spool_open(struct spool *spool)
{
    const char *tmpdir = getenv("TMPDIR");
    const char *dir = spool->dir ? spool->dir : tmpdir && *tmpdir == '/' ? tmpdir : "/tmp";
    AUTO_FREE char *path = spool->name ? path_join(dir, spool->name) : NULL;

    if (spool->name && strchr(spool->name, '/'))
        errno = EINVAL;
    else if (!sys_fault())
        spool->fd = path
                        ? open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, SPOOL_MODE)
                        : open_nameless(dir);
    if (spool->fd < 0)
        spool_fail(spool, errno);
    return spool->fd >= 0;
}

static bool spool_write_all(struct spool *spool, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = sys_fault() ? -1 : pwrite(spool->fd, bytes, len, (off_t)spool->len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            spool_fail(spool, n < 0 ? errno : ENOSPC);
            return false;
        }
        bytes += n;
        len -= (size_t)n;
        spool->len += (uint64_t)n;
    }
    return true;
}

bool spool_write(struct spool *spool, const char *bytes, size_t len)
{
    uint64_t room;
    size_t fits;

    if (spool_state(spool) != SPOOL_OK)
        return false;
    room = spool->quota - spool->len;
    fits = len < room ? len : (size_t)room;
    if (fits && spool->fd < 0 && !spool_open(spool))
        return false;
    if (!spool_write_all(spool, bytes, fits))
        return false;
    if (fits == len)
        return true;
    spool->state = SPOOL_FULL;
    return false;
}

bool spool_read(struct spool *spool, uint64_t at, char *into, size_t len)
{
    while (len) {
        ssize_t n = sys_fault() ? -1 : pread(spool->fd, into, len, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) { /* nothing: the file was shortened */
            spool_fail(spool, n < 0 ? errno : EIO);
            spool->len = 0;
            return false;
        }
        into += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return true;
}

uint64_t spool_len(const struct spool *spool)
{
    return spool ? spool->len : 0;
}

enum spool_state spool_state(const struct spool *spool)
{
    return spool ? spool->state : SPOOL_NONE;
}

int spool_errno(const struct spool *spool)
{
    return spool ? spool->error : 0;
}
