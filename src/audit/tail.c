/* See tail.h. The one idea: the file grows only at its end, and its first line says how far it goes
 * and with which hash. An append puts the lines down first and the first line after them; a writer
 * that is killed between the two leaves whole lines behind `size`, which the next one takes in when
 * they continue the chain, or half a line, which it cuts off: a record that nobody was told of.
 *
 * What does not fit together otherwise is never mended: appending goes on behind the hash that the
 * first line names, so the break stays where it is and audit_tail_read() finds it. */
#include "audit/tail.h"

#include "audit/tail_file.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READ_WAIT_NS UINT64_C(2000000000) /* 2 s */

/* --- reading --- */

void audit_tail_done(struct audit_tail *tail)
{
    free(tail->items);
    free(tail->text);
    *tail = (struct audit_tail){0};
}

static void tail_push(struct audit_tail *tail, const struct audit_record *record)
{
    tail->items = alloc_grow(tail->items, tail->len, &tail->cap, sizeof *tail->items);
    tail->items[tail->len++] = *record;
}

/* The line at `at`, which has to continue the chain. */
static int read_line(const char *at, const char *end, const struct audit_link *previous,
                     struct audit_record *ret, size_t *ret_len, struct err *err)
{
    const char *feed = memchr(at, '\n', (size_t)(end - at));
    struct audit_record record;

    if (!feed)
        return err_set(err, ERR_INVALID, "record %" PRIu64 " in " AUDIT_TAIL_NAME " is cut off",
                       previous->seq + 1);
    if (audit_record_parse(at, (size_t)(feed - at), &record, err))
        return err_wrap(err, "record %" PRIu64 " in " AUDIT_TAIL_NAME, previous->seq + 1);
    if (!audit_record_follows(&record, previous))
        return err_set(err, ERR_INVALID,
                       "record %" PRIu64 " in " AUDIT_TAIL_NAME
                       " was changed, or the one before it",
                       previous->seq + 1);
    *ret = record;
    *ret_len = (size_t)(feed - at) + 1;
    return 0;
}

/* Records that end up to `size` have to be whole, and the last of them is the head's. */
static int read_known(struct audit_tail *tail, size_t len, struct err *err)
{
    struct audit_link last = tail->head.base;
    const char *end = tail->text + tail->head.size;
    const char *at = tail->text + AUDIT_TAIL_HEAD;

    if (len && tail->head.size > len)
        return err_set(err, ERR_INVALID,
                       AUDIT_TAIL_NAME " has %zu bytes, but should have %" PRIu64
                                       ": records were taken away",
                       len, tail->head.size);
    while (len && at < end) {
        struct audit_record record;
        size_t used;

        if (read_line(at, end, &last, &record, &used, err))
            return -1;
        tail_push(tail, &record);
        last = record.link;
        at += used;
    }
    if (!audit_link_eq(&last, &tail->head.head))
        return err_set(err, ERR_INVALID,
                       "the last record in " AUDIT_TAIL_NAME " is %" PRIu64
                       " and not the one that its first line names, %" PRIu64,
                       last.seq, tail->head.head.seq);
    return 0;
}

/* And those behind `size`, by a writer that was killed. */
static void read_rest(struct audit_tail *tail, size_t len)
{
    while (tail->head.size < len) {
        struct audit_record record;
        struct err ignored; /* half a line: it never became a record */
        size_t used;

        if (read_line(tail->text + tail->head.size, tail->text + len, &tail->head.head, &record,
                      &used, &ignored))
            return;
        tail_push(tail, &record);
        tail->head.head = record.link;
        tail->head.size += used;
    }
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
    if (len)
        read_rest(ret, len);
    return 0;
}

int audit_tail_read(const char *folder, struct audit_tail *ret, struct err *err)
{
    AUTO_CLOSE int lock = tail_file_lock(folder, READ_WAIT_NS, err);
    AUTO_CLOSE int fd = lock < 0 ? -1 : tail_file_open(folder, O_RDONLY, err);

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

static int tail_format(struct audit_batch *batch, struct audit_link last, struct buf *ret,
                       struct err *err)
{
    for (size_t i = 0; i < batch->len; i++) {
        struct audit_record *record = &batch->items[i];

        record->link.seq = last.seq + 1;
        audit_record_hash(record, last.hash, record->link.hash);
        last = record->link;
        if (!audit_record_format(record, ret))
            return err_set(err, ERR_LIMIT, "too much at once for the audit log");
    }
    return 0;
}

/* All of the text or nothing of it. */
static int append_text(int fd, uint64_t at, const struct buf *text, struct err *err)
{
    ssize_t written = pwrite(fd, text->data, text->len, (off_t)at);
    int error = written < 0 ? errno : ENOSPC;

    if (written == (ssize_t)text->len)
        return 0;
    (void)!ftruncate(fd, (off_t)at); /* what stays behind is not counted by the first line */
    errno = error;
    return err_sys(err, "writing " AUDIT_TAIL_NAME);
}

/* A file that is shorter than it should be was tampered with: the break must stay visible, so the
 * place where lines go to is the real end. */
static int open_end(int fd, struct audit_tail_head *ret, struct err *err)
{
    struct audit_tail_head head;
    uint64_t size;

    if (tail_file_size(fd, &size, err) || tail_head_read(fd, &head, err) ||
        (size == 0 && tail_head_write(fd, &head, err)))
        return -1;
    if (size > head.size && take_rest(fd, &head, err))
        return -1;
    if (size && size < head.size)
        head.size = size;
    *ret = head;
    return 0;
}

int audit_tail_append(const char *folder, struct audit_batch *batch, uint64_t wait_ns,
                      struct err *err)
{
    AUTO_CLOSE int lock = tail_file_lock(folder, wait_ns, err);
    AUTO_CLOSE int fd = lock < 0 ? -1 : tail_file_open(folder, O_RDWR | O_CREAT, err);
    AUTO(buf_done) struct buf text = {0};
    struct audit_tail_head head;

    if (fd < 0 || open_end(fd, &head, err))
        return -1;
    buf_init(&text, AUDIT_TAIL_MAX - head.size);
    if (tail_format(batch, head.head, &text, err) || append_text(fd, head.size, &text, err))
        return -1;
    if (batch->len)
        head.head = batch->items[batch->len - 1].link;
    batch->begin = head.size;
    head.size += text.len;
    batch->end = head.size;
    return tail_head_write(fd, &head, err);
}

/* --- dropping --- */

static int write_anew(const char *folder, const struct audit_tail *tail, size_t from,
                      struct err *err)
{
    AUTO_FREE char *path = path_join(folder, AUDIT_TAIL_NAME);
    AUTO_FREE char *anew = alloc_strf("%s.new", path);
    AUTO(buf_done) struct buf text = {0};
    struct audit_tail_head head = tail->head;
    char line[AUDIT_TAIL_HEAD + 1];
    AUTO_CLOSE int fd = open(anew, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

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

int audit_tail_drop(const char *folder, const struct audit_link *until, uint64_t wait_ns,
                    struct err *err)
{
    AUTO_CLOSE int lock = tail_file_lock(folder, wait_ns, err);
    AUTO_CLOSE int fd = lock < 0 ? -1 : tail_file_open(folder, O_RDONLY, err);
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
    return write_anew(folder, &tail, from + 1, err);
}
