/* See buf.h. */
#include "base/buf.h"

#include "base/alloc.h"
#include "base/sys.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void buf_init(struct buf *buf, size_t max)
{
    *buf = (struct buf){.max = max};
}

void buf_done(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf){.max = buf->max};
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

static bool buf_reserve(struct buf *buf, size_t more)
{
    size_t need;

    if (more > buf->max - buf->len)
        return false;
    need = buf->len + more + 1;
    if (need > buf->cap) {
        size_t cap = buf->cap ? buf->cap : 64;

        while (cap < need)
            cap *= 2;
        buf->data = alloc_resize(buf->data, cap, 1);
        buf->cap = cap;
    }
    return true;
}

bool buf_append(struct buf *buf, const void *data, size_t len)
{
    if (!buf_reserve(buf, len))
        return false;
    if (len)
        memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
    return true;
}

bool buf_append_str(struct buf *buf, const char *text)
{
    return buf_append(buf, text, strlen(text));
}

bool buf_appendf(struct buf *buf, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    int len;
    bool ok;

    va_start(args, fmt);
    len = vasprintf(&text, fmt, args);
    va_end(args);
    ok = len >= 0 && buf_append(buf, text, (size_t)len);
    free(text);
    return ok;
}

char *buf_extend(struct buf *buf, size_t len)
{
    char *end;

    if (!buf_reserve(buf, len))
        return NULL;
    end = buf->data + buf->len;
    buf->len += len;
    buf->data[buf->len] = '\0';
    return end;
}

void buf_consume(struct buf *buf, size_t len)
{
    if (len > buf->len)
        len = buf->len;
    if (!len)
        return;
    memmove(buf->data, buf->data + len, buf->len - len + 1);
    buf->len -= len;
}

char *buf_take(struct buf *buf)
{
    char *text = buf->data ? buf->data : alloc_str("");

    *buf = (struct buf){.max = buf->max};
    return text;
}

int buf_read_fd(struct buf *buf, int fd, struct err *err)
{
    char chunk[16384];

    for (;;) {
        ssize_t n = sys_fault() ? -1 : read(fd, chunk, sizeof chunk);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "reading");
        if (n == 0)
            return 0;
        if (!buf_append(buf, chunk, (size_t)n))
            return err_set(err, ERR_LIMIT, "more than %zu bytes", buf->max);
    }
}
