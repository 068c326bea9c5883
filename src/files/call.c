/* See call.h. A table of names; each handler is in the file that is named after what it does. An
 * answer is appended as pieces of JSON text; whenever a block is full it is passed on. A call that
 * fails halfway has said nothing: whatever collects the blocks drops them.
 *
 * Codex's own server is linked with musl, so that some errors read otherwise there than with glibc;
 * models and people see these texts, and scripts look for them. */
#include "files/call.h"

#include "base/auto.h"
#include "base/file_uri.h"
#include "base/str.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- answers --- */

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

int reply_quoted(struct reply *reply, const char *text, struct err *err)
{
    AUTO(buf_done) struct buf valid;
    size_t start = 0;

    buf_init(&valid, SIZE_MAX / 2);
    utf8_append_lossy(&valid, text, strlen(text));
    if (reply_str(reply, "\"", err))
        return -1;
    for (size_t i = 0; i < valid.len; i++) { /* what JSON does not let stand (RFC 8259, 7) */
        unsigned char byte = (unsigned char)valid.data[i];

        if (byte >= 0x20 && byte != '"' && byte != '\\')
            continue;
        if (reply_raw(reply, valid.data + start, i - start, err) ||
            reply_fmt(reply, err, "\\u%04x", byte))
            return -1;
        start = i + 1;
    }
    return reply_raw(reply, valid.data + start, valid.len - start, err) ||
                   reply_str(reply, "\"", err)
               ? -1
               : 0;
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

/* --- failures --- */

enum { CODE_INVALID = -32600, CODE_INTERNAL = -32603 };

/* Where musl's strerror(3) differs from glibc's, of what file calls run into. */
static const struct {
    int sys;
    const char *text;
} musl_texts[] = {
    {EIO, "I/O error"},
    {EBUSY, "Resource busy"},
    {EXDEV, "Cross-device link"},
    {EMFILE, "No file descriptors available"},
    {ENFILE, "Too many open files in system"},
    {ENAMETOOLONG, "Filename too long"},
    {ELOOP, "Symbolic link loop"},
    {EDQUOT, "Quota exceeded"},
};

int error_code(const struct err *err)
{
    if (err->code == ERR_NOT_FOUND || err->sys == ENOENT)
        return ERROR_NOT_FOUND;
    if (err->code == ERR_INVALID || err->code == ERR_LIMIT || err->code == ERR_FORBIDDEN)
        return CODE_INVALID;
    if (err->sys == EACCES || err->sys == EPERM || err->sys == EINVAL)
        return CODE_INVALID;
    return CODE_INTERNAL;
}

void error_text(const struct err *err, char ret_text[ERROR_TEXT_SIZE])
{
    const char *text = strerror(err->sys);

    for (size_t i = 0; i < sizeof musl_texts / sizeof *musl_texts; i++)
        if (musl_texts[i].sys == err->sys)
            text = musl_texts[i].text;
    if (err->code == ERR_SYSTEM && err->sys)
        snprintf(ret_text, ERROR_TEXT_SIZE, "%s (os error %d)", text, err->sys);
    else
        snprintf(ret_text, ERROR_TEXT_SIZE, "%s", err->msg);
}

/* --- calls --- */

static const struct {
    const char *name;
    files_handler *handle;
} calls[] = {
    {"fs/readFile", files_read_file},
    {"fs/open", files_open},
    {"fs/writeFile", files_write_file},
    {"fs/createDirectory", files_create_directory},
    {"fs/createSymlink", files_create_symlink},
    {"fs/setMode", files_set_mode},
    {"fs/getMetadata", files_get_metadata},
    {"fs/canonicalize", files_canonicalize},
    {"fs/readDirectory", files_read_directory},
    {"fs/walk", files_walk},
    {"fs/remove", files_remove},
    {"fs/copy", files_copy},
    {"capabilityRoots/discover", files_discover}, /* of one root */
    {"capabilities/discover", files_capabilities},
};

int files_call(const struct files_request *request, struct reply *reply, struct err *err)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (str_eq(calls[i].name, request->method))
            return json_at_object(&request->params, err) ? -1
                                                         : calls[i].handle(request, reply, err);
    return err_set(err, ERR_BUG, "no file call is named %s", request->method);
}
