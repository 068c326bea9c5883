/* See tail_file.h. The lock is flock(2) on a file of its own, since moving records to the database
 * replaces this one (so that a crash leaves the old one or the new one), and since any command that
 * can read a file can lock it.
 *
 * Nobody waits for the lock for long: it is held for some microseconds at a time, and a command
 * must not hang because a writer was stopped while holding it. */
#include "audit/tail_file.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/lock.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LOCK_NAME "audit.lock"

int tail_file_lock(const char *folder, uint64_t wait_ns, struct err *err)
{
    AUTO_FREE char *path = path_join(folder, LOCK_NAME);
    int fd = lock_file_take(path, wait_ns);

    if (fd < 0 && errno == EROFS)
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    if (errno == EWOULDBLOCK)
        return err_set(err, ERR_LIMIT, AUDIT_TAIL_NAME " stayed locked by another process");
    return err_sys(err, "%s", path);
}

int tail_file_open(const char *folder, int flags, struct err *err)
{
    AUTO_FREE char *path = path_join(folder, AUDIT_TAIL_NAME);
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

    return fd < 0 ? err_sys(err, "%s", path) : fd;
}

int tail_file_size(int fd, uint64_t *ret, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st))
        return err_sys(err, AUDIT_TAIL_NAME);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, AUDIT_TAIL_NAME " is not a file");
    if (st.st_size > AUDIT_TAIL_MAX)
        return err_set(err, ERR_LIMIT,
                       AUDIT_TAIL_NAME " is full: its records could not be moved to the database "
                                       "(cordon log says why)");
    *ret = (uint64_t)st.st_size;
    return 0;
}

int tail_file_read(int fd, struct buf *ret, struct err *err)
{
    buf_init(ret, AUDIT_TAIL_MAX);
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(err, AUDIT_TAIL_NAME);
    return buf_read_fd(ret, fd, err) ? err_wrap(err, AUDIT_TAIL_NAME) : 0;
}

/* --- the first line --- */

void tail_head_format(const struct audit_tail_head *head, char ret[AUDIT_TAIL_HEAD + 1])
{
    char base[AUDIT_HEX_SIZE];
    char last[AUDIT_HEX_SIZE];

    audit_hash_format(head->base.hash, base);
    audit_hash_format(head->head.hash, last);
    snprintf(
        ret, AUDIT_TAIL_HEAD + 1,
        "cordon-audit 1 base %020" PRIu64 " %.*s head %020" PRIu64 " %.*s size %020" PRIu64 "\n",
        head->base.seq, AUDIT_HEX_SIZE, base, head->head.seq, AUDIT_HEX_SIZE, last, head->size);
}

static void link_read(const char *text, struct audit_link *ret)
{
    ret->seq = strtoull(text, NULL, 10);
    audit_hash_parse(text + 21, ret->hash);
}

/* Read loosely at its fixed places, and written anew to see whether that was right. */
int tail_head_parse(const char *text, size_t len, struct audit_tail_head *ret, struct err *err)
{
    struct audit_tail_head head = {.size = AUDIT_TAIL_HEAD};
    char again[AUDIT_TAIL_HEAD + 1];
    char line[AUDIT_TAIL_HEAD + 1];

    if (!len) {
        *ret = head;
        return 0;
    }
    if (len >= AUDIT_TAIL_HEAD) {
        memcpy(line, text, AUDIT_TAIL_HEAD);
        line[AUDIT_TAIL_HEAD] = '\0';
        link_read(line + 20, &head.base);
        link_read(line + 111, &head.head);
        head.size = strtoull(line + 202, NULL, 10);
        tail_head_format(&head, again);
        if (memcmp(line, again, sizeof line) == 0 && head.size >= AUDIT_TAIL_HEAD) {
            *ret = head;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "the first line of " AUDIT_TAIL_NAME " is damaged");
}

int tail_head_read(int fd, struct audit_tail_head *ret, struct err *err)
{
    char text[AUDIT_TAIL_HEAD];
    ssize_t len = pread(fd, text, sizeof text, 0);

    if (len < 0)
        return err_sys(err, AUDIT_TAIL_NAME);
    return tail_head_parse(text, (size_t)len, ret, err);
}

int tail_head_write(int fd, const struct audit_tail_head *head, struct err *err)
{
    char text[AUDIT_TAIL_HEAD + 1];

    tail_head_format(head, text);
    if (pwrite(fd, text, AUDIT_TAIL_HEAD, 0) != AUDIT_TAIL_HEAD)
        return err_sys(err, "writing " AUDIT_TAIL_NAME);
    return 0;
}
