/* See file_uri.h. */
#include "base/file_uri.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Undoes the escapes. NULL when one is wrong or stands for NUL. */
static char *unescape(const char *text)
{
    AUTO_FREE char *out = alloc_zero(strlen(text) + 1, 1);
    size_t len = 0;

    for (; *text; text++) {
        int high;
        int low;

        if (*text != '%') {
            out[len++] = *text;
            continue;
        }
        high = hex_digit(text[1]);
        low = high < 0 ? -1 : hex_digit(text[2]);
        if (low < 0 || (high == 0 && low == 0))
            return NULL;
        out[len++] = (char)(high << 4 | low);
        text += 2;
    }
    return TAKE_PTR(out);
}

char *file_uri_parse(const char *uri, struct err *err)
{
    const char *path = uri + strlen("file:");
    char *plain;

    if (strncasecmp(uri, "file:", strlen("file:")) != 0) {
        err_set(err, ERR_INVALID, "\"%.80s\" is neither an absolute path nor a file: URI", uri);
        return NULL;
    }
    if (str_starts(path, "//")) {
        const char *host = path + 2;
        size_t len = strcspn(host, "/");

        if (len && (len != strlen("localhost") || strncasecmp(host, "localhost", len) != 0)) {
            err_set(err, ERR_INVALID, "\"%.80s\" names another host", uri);
            return NULL;
        }
        path = host + len;
    }
    if (path[0] != '/' || strpbrk(path, "?#")) {
        err_set(err, ERR_INVALID, "\"%.80s\" is not \"file://\" and an absolute path", uri);
        return NULL;
    }
    plain = unescape(path);
    if (!plain)
        err_set(err, ERR_INVALID, "\"%.80s\" has a bad %% escape", uri);
    return plain;
}

char *file_uri_format(const char *path)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = alloc_zero(strlen("file://") + 3 * strlen(path) + 1, 1);
    size_t len = strlen("file://");

    memcpy(out, "file://", len);
    for (; *path; path++) {
        unsigned char byte = (unsigned char)*path;

        if (byte < 0x80 && (isalnum(byte) || strchr("/!$&'()*+,-.:;=@[]^_|~", byte))) {
            out[len++] = *path;
            continue;
        }
        out[len++] = '%';
        out[len++] = digits[byte >> 4];
        out[len++] = digits[byte & 15];
    }
    return out;
}
