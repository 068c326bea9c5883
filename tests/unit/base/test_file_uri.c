/* base/file_uri */
#include "support.h"

#include "base/auto.h"
#include "base/file_uri.h"

#include <stdlib.h>
#include <string.h>

static void uris_become_paths(void **state)
{
    static const char *const cases[][2] = {
        {"file:///a/b", "/a/b"},         {"file://localhost/a", "/a"},           {"FILE:/a", "/a"},
        {"file:///a%20b%2Fc", "/a b/c"}, {"file:///%e4%BD%A0", "/\xe4\xbd\xa0"}, {"file:///", "/"},
        {"file:///a%ff", "/a\xff"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err;
        AUTO_FREE char *path = file_uri_parse(cases[i][0], &err);

        if (!path)
            fail_msg("%s", err.msg);
        assert_string_equal(path, cases[i][1]);
    }
}

static void others_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"http:///a", "neither an absolute path nor a file: URI"},
        {"/a", "neither an absolute path nor a file: URI"},
        {"", "neither"},
        {"file:", "not \"file://\" and an absolute path"},
        {"file:a", "not \"file://\""},
        {"file://host/a", "names another host"},
        {"file://local/a", "names another host"},
        {"file://", "not \"file://\""},
        {"file:///a?b", "not \"file://\""},
        {"file:///a#b", "not \"file://\""},
        {"file:///a%", "bad % escape"},
        {"file:///a%2", "bad % escape"},
        {"file:///a%zz", "bad % escape"},
        {"file:///a%00", "bad % escape"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};

        assert_null(file_uri_parse(cases[i][0], &err));
        assert_int_equal(err.code, ERR_INVALID);
        assert_contains(err.msg, cases[i][1]);
    }
}

static void any_path_survives(void **state)
{
    char path[258] = "/";
    AUTO_FREE char *uri = NULL;
    AUTO_FREE char *again = NULL;
    struct err err;

    for (int i = 1; i < 256; i++)
        path[i] = (char)i;
    uri = file_uri_format(path);
    again = file_uri_parse(uri, &err);
    assert_string_equal(again, path);
    free(uri);
    uri = file_uri_format("/a b/~x_1.c");
    assert_string_equal(uri, "file:///a%20b/~x_1.c");
    free(uri);
    uri = file_uri_format("/@a+b/(1)[2]{3}#?%|\\");
    assert_string_equal(uri, "file:///@a+b/(1)[2]%7B3%7D%23%3F%25|%5C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uris_become_paths),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(any_path_survives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
