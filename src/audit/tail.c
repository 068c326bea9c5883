/* The one idea: the file grows only at its end, and its first line says how far it goes and with
 * which hash. An append puts the lines down first and the first line after them; a writer that is
 * killed between the two leaves whole lines behind `size`, which the next one takes in when they
 * continue the chain, or half a line, which it cuts off: its writer never reported that record as
 * written.
 *
 * What does not fit together otherwise is never mended: appending goes on behind the hash that the
 * first line names, so the break stays where it is and audit_tail_read() finds it.
 *
 * The lock is flock(2) on a file of its own, since moving records to the database replaces this one
 * (so that a crash leaves the old one or the new one), and since any command that can read a file
 * can lock it. It is waited for only so long: it is held for some microseconds at a time, and a
 * command must not hang because a writer was stopped while holding it. */
#include "audit/tail.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME "audit.lock"
#define READ_WAIT_NS UINT64_C(2000000000) /* 2 s */

/* --- the file --- */

int audit_lock(const char *dir, const char *name, uint64_t wait_ns, struct err *err)
{
    AUTO_FREE char *path = path_join(dir, name);
    int fd = lock_file_take(path, wait_ns);

    if (fd < 0 && errno == EROFS)
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    if (errno == EWOULDBLOCK)
        return err_set(err, ERR_LIMIT, "%s stayed locked by another process", path);
    return err_sys(err, "%s", path);
}

/* The file, opened, and made when `flags` has O_CREAT. */
static int tail_file_open(const char *dir, int flags, struct err *err)
{
    AUTO_FREE char *path = path_join(dir, AUDIT_TAIL_NAME);
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

    return fd < 0 ? err_sys(err, "%s", path) : fd;
}

/* ERR_LIMIT beyond AUDIT_TAIL_MAX. */
static int tail_file_size(int fd, uint64_t *ret, struct err *err)
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

/* The file's whole text into `ret`. */
static int tail_file_read(int fd, struct buf *ret, struct err *err)
{
    buf_init(ret, AUDIT_TAIL_MAX);
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(err, AUDIT_TAIL_NAME);
    return buf_read_fd(ret, fd, err) ? err_wrap(err, AUDIT_TAIL_NAME) : 0;
}

/* --- the first line --- */

static void tail_head_format(const struct audit_tail_head *head, char ret[AUDIT_TAIL_HEAD + 1])
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

/* Read loosely at its fixed places, and written anew to see whether that was right. An empty text
 * gives zeros, and the size of a first line. */
static int tail_head_parse(const char *text, size_t len, struct audit_tail_head *ret,
                           struct err *err)
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

static int tail_head_write(int fd, const struct audit_tail_head *head, struct err *err)
{
    char text[AUDIT_TAIL_HEAD + 1];

    tail_head_format(head, text);
    if (pwrite(fd, text, AUDIT_TAIL_HEAD, 0) != AUDIT_TAIL_HEAD)
        return err_sys(err, "writing " AUDIT_TAIL_NAME);
    return 0;
}

/* --- reading --- */

void audit_tail_done(struct audit_tail *tail)
{
    free(tail->items);
    free(tail->text);
    *tail = (struct audit_tail){0};
}

/* Takes the lines from `*at` on, which have to continue the chain behind `last`; both go on with it,
 * as far as the lines are sound. */
static int read_lines(struct audit_tail *tail, const char **at, const char *end,
                      struct audit_link *last, struct err *err)
{
    while (*at < end) {
        const char *feed = memchr(*at, '\n', (size_t)(end - *at));
        struct audit_record record;

        if (!feed)
            return err_set(err, ERR_INVALID, "record %" PRIu64 " in " AUDIT_TAIL_NAME " is cut off",
                           last->seq + 1);
        if (audit_record_parse(*at, (size_t)(feed - *at), &record, err))
            return err_wrap(err, "record %" PRIu64 " in " AUDIT_TAIL_NAME, last->seq + 1);
        if (!audit_record_follows(&record, last))
            return err_set(err, ERR_INVALID,
                           "record %" PRIu64 " in " AUDIT_TAIL_NAME
                           " was changed, or the one before it",
                           last->seq + 1);
        tail->items = alloc_grow(tail->items, tail->len, &tail->cap, sizeof *tail->items);
        tail->items[tail->len++] = record;
        *last = record.link;
        *at = feed + 1;
    }
    return 0;
}

/* Records that end up to `size` have to be whole, and the last of them is the head's. */
static int read_known(struct audit_tail *tail, size_t len, struct err *err)
{
    struct audit_link last = tail->head.base;
    const char *at = tail->text + AUDIT_TAIL_HEAD;

    if (len && tail->head.size > len)
        return err_set(err, ERR_INVALID,
                       AUDIT_TAIL_NAME " has %zu bytes, but should have %" PRIu64
                                       ": records were taken away",
                       len, tail->head.size);
    if (len && read_lines(tail, &at, tail->text + tail->head.size, &last, err))
        return -1;
    if (!audit_link_eq(&last, &tail->head.head))
        return err_set(err, ERR_INVALID,
                       "the last record in " AUDIT_TAIL_NAME " is %" PRIu64
                       " and not the one that its first line names, %" PRIu64,
                       last.seq, tail->head.head.seq);
    return 0;
}

/* And those behind `size`, by a writer that was killed; half a line never became a record. */
static void read_rest(struct audit_tail *tail, size_t len)
{
    const char *at = tail->text + tail->head.size;
    struct err ignored;

    (void)read_lines(tail, &at, tail->text + len, &tail->head.head, &ignored);
    tail->head.size = (uint64_t)(at - tail->text);
}

static int tail_read_fd(int fd, struct audit_tail *ret, struct err *err)
{
    AUTO(buf_done) struct buf text = {0};
    uint64_t size;
    size_t len;

    if (tail_file_size(fd, &size, err) || tail_file_read(fd, &text, err) ||
        tail_head_parse(text.data, text.len, &ret->head, err))
        return -1;
    len = text.len;
    ret->text = buf_take(&text);
    if (read_known(ret, len, err))
        return -1;
    if (len > ret->head.size)
        read_rest(ret, len);
    return 0;
}

int audit_tail_read(const char *dir, struct audit_tail *ret, struct err *err)
{
    AUTO_CLOSE int lock = audit_lock(dir, LOCK_NAME, READ_WAIT_NS, err);
    AUTO_CLOSE int fd = lock < 0 ? -1 : tail_file_open(dir, O_RDONLY, err);

    *ret = (struct audit_tail){.head.size = AUDIT_TAIL_HEAD};
    if (fd < 0)
        return err->sys == ENOENT ? 0 : -1;
    return tail_read_fd(fd, ret, err);
}

/* --- appending --- */

/* What is behind `size`: lines that continue the chain count from now on, the rest is cut off. */
static int take_rest(int fd, struct audit_tail_head *head, struct err *err)
{
    AUTO(audit_tail_done) struct audit_tail tail = {.head = *head};
    AUTO(buf_done) struct buf text = {0};
    size_t len;

    if (tail_file_read(fd, &text, err))
        return -1;
    len = text.len;
    tail.text = buf_take(&text);
    read_rest(&tail, len);
    if (ftruncate(fd, (off_t)tail.head.size))
        return err_sys(err, AUDIT_TAIL_NAME);
    *head = tail.head;
    return 0;
}

/* A file that is shorter than it should be was tampered with: the break must stay visible, so the
 * place where lines go to is the real end. */
static int open_end(int fd, struct audit_tail_head *ret, struct err *err)
{
    char line[AUDIT_TAIL_HEAD];
    struct audit_tail_head head;
    uint64_t size = 0;
    ssize_t len;

    if (tail_file_size(fd, &size, err))
        return -1;
    len = pread(fd, line, sizeof line, 0);
    if (len < 0)
        return err_sys(err, AUDIT_TAIL_NAME);
    if (tail_head_parse(line, (size_t)len, &head, err) ||
        (size == 0 && tail_head_write(fd, &head, err)))
        return -1;
    if (size > head.size && take_rest(fd, &head, err))
        return -1;
    if (size && size < head.size)
        head.size = size;
    *ret = head;
    return 0;
}

int audit_tail_append(const char *dir, struct audit_batch *batch, uint64_t wait_ns, struct err *err)
{
    AUTO_CLOSE int lock = audit_lock(dir, LOCK_NAME, wait_ns, err);
    AUTO_CLOSE int fd = lock < 0 ? -1 : tail_file_open(dir, O_RDWR | O_CREAT, err);
    AUTO(buf_done) struct buf text = {0};
    struct audit_tail_head head;
    ssize_t written;

    if (fd < 0 || open_end(fd, &head, err))
        return -1;
    buf_init(&text, AUDIT_TAIL_MAX - head.size);
    for (struct audit_record *record = batch->items; record < batch->items + batch->len; record++) {
        record->link.seq = head.head.seq + 1;
        audit_record_hash(record, head.head.hash, record->link.hash);
        head.head = record->link;
        if (!audit_record_format(record, &text))
            return err_set(err, ERR_LIMIT, "too much at once for the audit log");
    }
    written = pwrite(fd, text.data, text.len, (off_t)head.size);
    if (written != (ssize_t)text.len) { /* all of the text or nothing of it */
        int error = written < 0 ? errno : ENOSPC;

        (void)!ftruncate(fd, (off_t)head.size); /* what stays is not counted by the first line */
        errno = error;
        return err_sys(err, "writing " AUDIT_TAIL_NAME);
    }
    batch->begin = head.size;
    head.size += text.len;
    batch->end = head.size;
    return tail_head_write(fd, &head, err);
}

/* --- dropping --- */

static int write_anew(const char *dir, const struct audit_tail *tail, size_t from, struct err *err)
{
    AUTO_FREE char *path = path_join(dir, AUDIT_TAIL_NAME);
    AUTO_FREE char *anew = alloc_strf("%s.new", path);
    AUTO(buf_done) struct buf text = {0};
    struct audit_tail_head head = tail->head;
    char line[AUDIT_TAIL_HEAD + 1];
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    AUTO_CLOSE int fd = open(anew, flags, 0600);

    if (fd < 0)
        return err_sys(err, "%s", anew);
    buf_init(&text, AUDIT_TAIL_MAX);
    for (size_t i = from; i < tail->len; i++)
        audit_record_format(&tail->items[i], &text);
    if (from)
        head.base = tail->items[from - 1].link;
    head.size = AUDIT_TAIL_HEAD + text.len;
    tail_head_format(&head, line);
    if (fd_write_all(fd, line, AUDIT_TAIL_HEAD, err) ||
        fd_write_all(fd, text.data ? text.data : "", text.len, err))
        return -1;
    return rename(anew, path) ? err_sys(err, "%s", anew) : 0;
}

int audit_tail_drop(const char *dir, const struct audit_link *until, uint64_t wait_ns,
                    struct err *err)
{
    AUTO_CLOSE int lock = audit_lock(dir, LOCK_NAME, wait_ns, err);
    AUTO_CLOSE int fd = lock < 0 ? -1 : tail_file_open(dir, O_RDONLY, err);
    AUTO(audit_tail_done) struct audit_tail tail = {0};
    size_t from = 0;

    if (fd < 0 || tail_read_fd(fd, &tail, err))
        return -1;
    if (tail.head.base.seq >= until->seq)
        return 0;
    while (from < tail.len && !audit_link_eq(&tail.items[from].link, until))
        from++;
    if (from == tail.len)
        return err_set(err, ERR_BUG, "the record to drop is not in " AUDIT_TAIL_NAME);
    return write_anew(dir, &tail, from + 1, err);
}
