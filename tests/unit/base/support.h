/* What the tests of base share: cmocka with the headers that it wants before itself, checks on
 * `struct err`, and a scratch directory. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

/* An error as a function under test must leave it alone when it succeeds. */
#define ERR_UNTOUCHED                                                                              \
    {                                                                                              \
        .code = ERR_BUG, .sys = -7, .msg = "untouched"                                             \
    }

#define assert_untouched(err)                                                                      \
    do {                                                                                           \
        assert_int_equal((err).code, ERR_BUG);                                                     \
        assert_int_equal((err).sys, -7);                                                           \
        assert_string_equal((err).msg, "untouched");                                               \
    } while (0)

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        if (!strstr(text, part))                                                                   \
            fail_msg("\"%s\" does not contain \"%s\"", text, part);                                \
    } while (0)

/* The number of descriptors that this process has open. */
unsigned support_open_fds(void);

/* A new empty directory under $TMPDIR or /tmp; its canonical path, to be given to
 * support_scratch_remove(), which deletes it with everything in it. */
char *support_scratch_new(void);
void support_scratch_remove(char *path);

/* Until what was written so far is older than what counts as changed in a step of a layer that begins then. */
void support_let_age(void);

/* Writes a small file `dir`/`name`. */
void support_write(const char *dir, const char *name, const char *text);
