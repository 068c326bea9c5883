/* Errors are values: one flat struct that the caller owns.
 *
 * The contract: `struct err *err` is the last parameter, never NULL, written exactly when the
 * function fails (returns -1 or NULL). A function that passes a failure on adds its own context
 * with err_wrap(). Expected outcomes (denied, timed out, exit status) are results, not errors.
 * The struct holds no pointers, so the launcher sends it over its status socket as it is.
 */
#pragma once

#include <stdarg.h>
#include <stdint.h>

enum err_code {
    ERR_NONE,
    ERR_INVALID,     /* the caller's input is wrong */
    ERR_NOT_FOUND,   /* a named thing does not exist */
    ERR_FORBIDDEN,   /* a policy or the kernel says no */
    ERR_UNSUPPORTED, /* this host cannot do it */
    ERR_LIMIT,       /* a configured bound is reached */
    ERR_SYSTEM,      /* a system call failed; `sys` tells how */
    ERR_BUG,         /* an invariant of ours is broken */
    ERR_BUSY,        /* somebody else is at it */
    ERR_CONFLICT,    /* it is not what it was, or there is one already */
};

struct err {
    enum err_code code;
    int sys; /* errno value, 0 when no system call is involved */
    char msg[240];
};

/* Each returns -1, so that a failing function can end in `return err_set(...)`. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Code ERR_SYSTEM, `sys` = errno, and ": <text of errno>" behind the message. */
int err_sys(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "<context>: " in front of the message; code and sys stay. A message that does not fit
 * loses its end, never its beginning. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Stable lower-case word for JSON ("invalid", "not-found", ...). */
const char *err_code_name(enum err_code code);
