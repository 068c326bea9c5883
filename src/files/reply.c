/* See reply.h. A call appends pieces of JSON text; whenever a block is full it is passed on. A call
 * that fails halfway has said nothing: whoever collects the blocks drops them. */
#include "files/reply.h"

#include "base/auto.h"
#include "base/file_uri.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void reply_init(struct reply *ret, reply_flush_fn *flush, void *data)
{
    *ret = (struct reply){.fd = -1, .flush = flush, .data = data};
    buf_init(&ret->text, REPLY_TEXT_MAX);
}

void reply_done(struct reply *reply)
{
    buf_done(&reply->text);
    if (reply->fd >= 0)
        close(reply->fd);
    reply->fd = -1;
}

int reply_raw(struct reply *reply, const char *text, size_t len, struct err *err)
{
    if (!buf_append(&reply->text, text, len))
        return err_set(err, ERR_LIMIT, "the answer is larger than %d bytes", REPLY_TEXT_MAX);
    if (!reply->flush || reply->text.len < REPLY_BLOCK)
        return 0;
    if (reply->flush(reply->data, reply->text.data, reply->text.len, err))
        return -1;
    buf_clear(&reply->text);
    return 0;
}

int reply_str(struct reply *reply, const char *text, struct err *err)
{
    return reply_raw(reply, text, strlen(text), err);
}

int reply_fmt(struct reply *reply, struct err *err, const char *fmt, ...)
{
    char text[512]; /* names and numbers of ours; nothing from outside */
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof text)
        return err_set(err, ERR_BUG, "an answer's piece is longer than %zu bytes", sizeof text);
    return reply_raw(reply, text, (size_t)len, err);
}

/* Escapes what JSON does not let stand (RFC 8259 section 7); `text` is valid UTF-8. */
static int reply_escaped(struct reply *reply, const char *text, size_t len, struct err *err)
{
    size_t start = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text[i];
        char escape[8];

        if (byte >= 0x20 && byte != '"' && byte != '\\')
            continue;
        snprintf(escape, sizeof escape, "\\u%04x", byte);
        if (reply_raw(reply, text + start, i - start, err) || reply_str(reply, escape, err))
            return -1;
        start = i + 1;
    }
    return reply_raw(reply, text + start, len - start, err);
}

int reply_quoted(struct reply *reply, const char *text, struct err *err)
{
    AUTO(buf_done) struct buf valid;

    buf_init(&valid, SIZE_MAX / 2);
    utf8_append_lossy(&valid, text, strlen(text));
    if (reply_str(reply, "\"", err) || reply_escaped(reply, valid.data, valid.len, err))
        return -1;
    return reply_str(reply, "\"", err);
}

int reply_uri(struct reply *reply, const char *path, struct err *err)
{
    AUTO_FREE char *uri = file_uri_format(path); /* nothing in it that JSON would escape */

    if (reply_str(reply, "\"", err) || reply_str(reply, uri, err))
        return -1;
    return reply_str(reply, "\"", err);
}

const char *reply_bool(bool value)
{
    return value ? "true" : "false";
}
