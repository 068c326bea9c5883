/* See err.h. Messages are cut at the size of the struct; the cut is at the end, so that the
 * context that callers put in front survives. */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void err_fill(struct err *err, enum err_code code, int sys, const char *fmt, va_list args)
    __attribute__((format(printf, 4, 0)));

static void err_fill(struct err *err, enum err_code code, int sys, const char *fmt, va_list args)
{
    err->code = code;
    err->sys = sys;
    vsnprintf(err->msg, sizeof err->msg, fmt, args);
}

static void err_append(struct err *err, const char *text)
{
    size_t used = strlen(err->msg);

    snprintf(err->msg + used, sizeof err->msg - used, "%s", text);
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    err_fill(err, code, 0, fmt, args);
    va_end(args);
    return -1;
}

int err_sys(struct err *err, const char *fmt, ...)
{
    int sys = errno;
    va_list args;

    va_start(args, fmt);
    err_fill(err, ERR_SYSTEM, sys, fmt, args);
    va_end(args);
    err_append(err, ": ");
    err_append(err, strerror(sys));
    return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    char inner[sizeof err->msg];
    va_list args;

    memcpy(inner, err->msg, sizeof inner);
    inner[sizeof inner - 1] = '\0';
    va_start(args, fmt);
    err_fill(err, err->code, err->sys, fmt, args);
    va_end(args);
    err_append(err, ": ");
    err_append(err, inner);
    return -1;
}

const char *err_code_name(enum err_code code)
{
    static const char *const names[] = {
        [ERR_NONE] = "none",
        [ERR_INVALID] = "invalid",
        [ERR_NOT_FOUND] = "not-found",
        [ERR_FORBIDDEN] = "forbidden",
        [ERR_UNSUPPORTED] = "unsupported",
        [ERR_LIMIT] = "limit",
        [ERR_BUSY] = "busy",
        [ERR_CONFLICT] = "conflict",
        [ERR_SYSTEM] = "system",
        [ERR_BUG] = "bug",
    };

    if ((unsigned)code >= sizeof names / sizeof *names)
        return "unknown";
    return names[code];
}
