/* Paths at the server. */
#include "../base/support.h"

#include "base/auto.h"
#include "client/remote_file.h"

#include <stdlib.h>
#include <string.h>

static void remote_paths_become_uris(void **state)
{
    static const struct {
        const char *dir;
        const char *path;
        const char *uri;
    } cases[] = {
        {"file:///srv", NULL, "file:///srv"},
        {"file:///srv", "a b", "file:///srv/a%20b"},
        {"file:///srv", "../x", "file:///x"},
        {"file:///s%20v/", "./y", "file:///s%20v/y"},
        {NULL, "/abs//z/", "file:///abs/z"},
        {"file:///srv", "/", "file:///"},
        {NULL, "relative", NULL},
        {NULL, NULL, NULL},
        {"http://srv", "x", NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err;
        AUTO_FREE char *uri = remote_path_uri(cases[i].dir, cases[i].path, &err);

        assert_true(!uri == !cases[i].uri);
        if (uri)
            assert_string_equal(uri, cases[i].uri);
    }
    assert_string_equal(remote_path_of("remote:a:b"), "a:b");
    assert_string_equal(remote_path_of("remote:"), "");
    assert_null(remote_path_of("./remote:a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remote_paths_become_uris),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
