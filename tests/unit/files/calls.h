/* What the tests of file calls share: a scratch directory, and calls in JSON with "~" for it. */
#pragma once

#include "support.h"

#include "base/buf.h"
#include "files/call.h"

#include <stdbool.h>

struct calls {
    char *dir; /* canonical, owned */
    struct reply reply;
    struct err err;
};

int calls_setup(void **state);
int calls_teardown(void **state);

/* The path of `name` in the directory; valid until the next call. */
const char *calls_path(const struct calls *calls, const char *name);

/* Makes a call; every "~" in the parameters stands for the URI of the directory. Returns the answer
 * with the URI turned back into "~", NULL when the call failed; valid until the next call. */
const char *calls_do(struct calls *calls, const char *method, const char *params);

#define assert_answer(calls, method, params, expected)                                             \
    do {                                                                                           \
        const char *answer_ = calls_do(calls, method, params);                                     \
        if (!answer_)                                                                              \
            fail_msg("%s %s: %s", method, params, (calls)->err.msg);                               \
        assert_string_equal(answer_, expected);                                                    \
    } while (0)

/* It fails with this code, and this text on the wire. */
#define assert_failure(calls, method, params, code, text)                                          \
    do {                                                                                           \
        char text_[ERROR_TEXT_SIZE];                                                               \
        assert_null(calls_do(calls, method, params));                                              \
        error_text(&(calls)->err, text_);                                                          \
        assert_string_equal(text_, text);                                                          \
        assert_int_equal(error_code(&(calls)->err), code);                                         \
    } while (0)
