/* err: the contract that every other function relies on. */
#include "support.h"

#include <errno.h>
#include <string.h>

static void set_returns_failure_and_fills_all(void **state)
{
    struct err err = ERR_UNTOUCHED;

    assert_int_equal(err_set(&err, ERR_LIMIT, "%d of %d", 9, 8), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_int_equal(err.sys, 0);
    assert_string_equal(err.msg, "9 of 8");
}

static void sys_takes_errno_and_its_text(void **state)
{
    struct err err;

    errno = ENOENT;
    assert_int_equal(err_sys(&err, "opening %s", "/x"), -1);
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_int_equal(err.sys, ENOENT);
    assert_string_equal(err.msg, "opening /x: No such file or directory");
}

static void wrap_puts_context_in_front_and_keeps_the_rest(void **state)
{
    struct err err;

    errno = EACCES;
    err_sys(&err, "opening");
    errno = 0;
    assert_int_equal(err_wrap(&err, "mounting %s", "/a"), -1);
    err_wrap(&err, "starting");
    assert_string_equal(err.msg, "starting: mounting /a: opening: Permission denied");
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_int_equal(err.sys, EACCES);
}

static void long_message_loses_its_end(void **state)
{
    char text[2 * sizeof(((struct err *)0)->msg)];
    struct err err;

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    err_set(&err, ERR_INVALID, "%s", text);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);

    err_wrap(&err, "front");
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    assert_memory_equal(err.msg, "front: xxx", 10);

    err_wrap(&err, "%s", text);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    assert_memory_equal(err.msg, "xxx", 3);

    errno = EPERM;
    err_sys(&err, "%s", text);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    assert_int_equal(err.sys, EPERM);
}

static void wrap_survives_a_message_without_end(void **state)
{
    struct err err = {.code = ERR_SYSTEM};

    memset(err.msg, 'y', sizeof err.msg); /* as a broken peer would send it */
    err_wrap(&err, "peer");
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    assert_memory_equal(err.msg, "peer: yyy", 9);
}

static void every_code_has_a_name_of_its_own(void **state)
{
    for (int a = ERR_NONE; a <= ERR_CONFLICT; a++) {
        assert_non_null(err_code_name((enum err_code)a));
        assert_string_not_equal(err_code_name((enum err_code)a), "unknown");
        for (int b = ERR_NONE; b < a; b++)
            assert_string_not_equal(err_code_name((enum err_code)a),
                                    err_code_name((enum err_code)b));
    }
    assert_string_equal(err_code_name(ERR_NOT_FOUND), "not-found");
    assert_string_equal(err_code_name((enum err_code)(ERR_CONFLICT + 1)), "unknown");
    assert_string_equal(err_code_name((enum err_code) - 1), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_returns_failure_and_fills_all),
        cmocka_unit_test(sys_takes_errno_and_its_text),
        cmocka_unit_test(wrap_puts_context_in_front_and_keeps_the_rest),
        cmocka_unit_test(long_message_loses_its_end),
        cmocka_unit_test(wrap_survives_a_message_without_end),
        cmocka_unit_test(every_code_has_a_name_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
