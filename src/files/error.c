/* See error.h. The server that clients know is linked with musl, so that some errors read otherwise
 * there than with glibc; models and people see these texts, and scripts look for them. */
#include "files/error.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

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

static const char *text_of(int sys)
{
    for (size_t i = 0; i < sizeof musl_texts / sizeof *musl_texts; i++)
        if (musl_texts[i].sys == sys)
            return musl_texts[i].text;
    return strerror(sys);
}

void error_text(const struct err *err, char ret_text[ERROR_TEXT_SIZE])
{
    if (err->code == ERR_SYSTEM && err->sys)
        snprintf(ret_text, ERROR_TEXT_SIZE, "%s (os error %d)", text_of(err->sys), err->sys);
    else
        snprintf(ret_text, ERROR_TEXT_SIZE, "%s", err->msg);
}
