/* fs/remove and fs/copy. */
#include "calls.h"

#include "base/auto.h"
#include "files/call.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENOENT_TEXT "No such file or directory (os error 2)"
#define COPY(from, to, recursive)                                                                  \
    "{\"sourcePath\":\"~/" from "\",\"destinationPath\":\"~/" to "\",\"recursive\":" recursive "}"

static bool is_there(const struct calls *calls, const char *name)
{
    struct stat st;

    return lstat(calls_path(calls, name), &st) == 0;
}

static void make_tree(struct calls *calls)
{
    assert_int_equal(mkdir(calls_path(calls, "d"), 0700), 0);
    assert_int_equal(mkdir(calls_path(calls, "d/sub"), 0700), 0);
    support_write(calls->dir, "d/a", "alpha");
    support_write(calls->dir, "d/sub/b", "beta");
    assert_int_equal(chmod(calls_path(calls, "d/a"), 0750), 0);
    assert_int_equal(symlink("../../outside", calls_path(calls, "d/sub/l")), 0);
    assert_int_equal(mkfifo(calls_path(calls, "d/fifo"), 0600), 0);
}

static void trees_are_removed(void **state)
{
    struct calls *calls = *state;

    make_tree(calls);
    assert_failure(calls, "fs/remove", "{\"path\":\"~/d\",\"recursive\":false}", -32603,
                   "Directory not empty (os error 39)");
    assert_answer(calls, "fs/remove", "{\"path\":\"~/d\"}", "{}");
    assert_false(is_there(calls, "d"));
    assert_answer(calls, "fs/remove", "{\"path\":\"~/d\"}", "{}");
    assert_failure(calls, "fs/remove", "{\"path\":\"~/d\",\"force\":false}", -32004, ENOENT_TEXT);
    assert_failure(calls, "fs/remove", "{\"path\":\"file:///\"}", -32600,
                   "path `/` is the root directory");
}

static void a_link_is_removed_and_not_its_target(void **state)
{
    struct calls *calls = *state;

    make_tree(calls);
    assert_int_equal(symlink("d", calls_path(calls, "dl")), 0);
    assert_answer(calls, "fs/remove", "{\"path\":\"~/dl\"}", "{}");
    assert_false(is_there(calls, "dl"));
    assert_true(is_there(calls, "d/sub/b"));
    assert_int_equal(symlink(".", calls_path(calls, "here")), 0);
    assert_failure(calls, "fs/remove", "{\"path\":\"~/here/d\",\"followSymlinks\":false}", -32603,
                   "Not a directory (os error 20)");
    assert_true(is_there(calls, "d"));
    assert_answer(calls, "fs/remove", "{\"path\":\"~/here/d\"}", "{}");
    assert_false(is_there(calls, "d"));
}

/* Deeper than descriptors are held, and wide enough that directories are read more than once. */
static void deep_trees_are_removed(void **state)
{
    struct calls *calls = *state;
    int dir = open(calls->dir, O_PATH | O_CLOEXEC);
    unsigned fds = support_open_fds();

    for (int i = 0; i < 300; i++) {
        int next;

        assert_int_equal(mkdirat(dir, "deep", 0700), 0);
        next = openat(dir, "deep", O_PATH | O_CLOEXEC);
        assert_true(next >= 0);
        assert_int_equal(mkdirat(next, "beside", 0700), 0);
        close(dir);
        dir = next;
    }
    close(dir);
    assert_answer(calls, "fs/remove", "{\"path\":\"~/deep\"}", "{}");
    assert_false(is_there(calls, "deep"));
    assert_int_equal(support_open_fds(), fds - 1);
}

static void a_file_is_copied(void **state)
{
    struct calls *calls = *state;
    struct stat st;

    make_tree(calls);
    assert_answer(calls, "fs/copy", COPY("d/a", "copy", "false"), "{}");
    assert_answer(calls, "fs/readFile", "{\"path\":\"~/copy\"}", "{\"dataBase64\":\"YWxwaGE=\"}");
    assert_int_equal(stat(calls_path(calls, "copy"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_answer(calls, "fs/copy", COPY("d/sub/b", "copy", "false"), "{}");
    assert_answer(calls, "fs/readFile", "{\"path\":\"~/copy\"}", "{\"dataBase64\":\"YmV0YQ==\"}");
    assert_failure(calls, "fs/copy", COPY("copy", "d", "false"), -32603,
                   "Is a directory (os error 21)");
    assert_failure(calls, "fs/copy", COPY("d/fifo", "x", "false"), -32600,
                   "fs/copy only supports regular files, directories, and symlinks");
    assert_failure(calls, "fs/copy", COPY("nope", "x", "true"), -32004, ENOENT_TEXT);
}

static void a_file_copied_to_itself_keeps_its_content(void **state)
{
    struct calls *calls = *state;

    support_write(calls->dir, "f", "hi\n");
    assert_int_equal(symlink("f", calls_path(calls, "lnk")), 0);
    assert_null(calls_do(calls, "fs/copy", COPY("f", "f", "false")));
    assert_int_equal(error_code(&calls->err), -32600);
    assert_null(calls_do(calls, "fs/copy", COPY("f", "lnk", "false")));
    assert_answer(calls, "fs/readFile", "{\"path\":\"~/f\"}", "{\"dataBase64\":\"aGkK\"}");
}

static void a_tree_is_copied(void **state)
{
    struct calls *calls = *state;
    char target[64] = {0};

    make_tree(calls);
    assert_failure(calls, "fs/copy", COPY("d", "d2", "false"), -32600,
                   "fs/copy requires recursive: true when sourcePath is a directory");
    assert_answer(calls, "fs/copy", COPY("d", "d2", "true"), "{}");
    assert_answer(calls, "fs/readFile", "{\"path\":\"~/d2/sub/b\"}",
                  "{\"dataBase64\":\"YmV0YQ==\"}");
    assert_true(readlink(calls_path(calls, "d2/sub/l"), target, sizeof target - 1) > 0);
    assert_string_equal(target, "../../outside");
    assert_false(is_there(calls, "d2/fifo"));
}

static void a_tree_is_not_copied_into_itself(void **state)
{
    static const char text[] =
        "fs/copy cannot copy a directory to itself or one of its descendants";
    struct calls *calls = *state;

    make_tree(calls);
    assert_int_equal(symlink("d/sub", calls_path(calls, "in")), 0);
    assert_failure(calls, "fs/copy", COPY("d", "d/inner", "true"), -32600, text);
    assert_failure(calls, "fs/copy", COPY("d", "d", "true"), -32600, text);
    assert_failure(calls, "fs/copy", COPY("d", "in/x", "true"), -32600, text);
    assert_answer(calls, "fs/copy", COPY("d", "dd", "true"), "{}"); /* a name that begins alike */
}

static void a_copy_is_not_led_out_by_links(void **state)
{
    struct calls *calls = *state;

    make_tree(calls);
    assert_int_equal(mkdir(calls_path(calls, "out"), 0700), 0);
    assert_int_equal(mkdir(calls_path(calls, "to"), 0700), 0);
    assert_int_equal(symlink("../out", calls_path(calls, "to/sub")), 0);
    assert_null(calls_do(calls, "fs/copy", COPY("d", "to", "true")));
    assert_false(is_there(calls, "out/b"));
}

static void a_link_is_copied_as_a_link(void **state)
{
    struct calls *calls = *state;
    struct stat st;

    support_write(calls->dir, "f", "");
    assert_int_equal(symlink("f", calls_path(calls, "lnk")), 0);
    assert_answer(calls, "fs/copy", COPY("lnk", "lnk2", "false"), "{}");
    assert_int_equal(lstat(calls_path(calls, "lnk2"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(trees_are_removed, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(a_link_is_removed_and_not_its_target, calls_setup,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(deep_trees_are_removed, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(a_file_is_copied, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(a_file_copied_to_itself_keeps_its_content, calls_setup,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(a_tree_is_copied, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(a_tree_is_not_copied_into_itself, calls_setup,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(a_copy_is_not_led_out_by_links, calls_setup,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(a_link_is_copied_as_a_link, calls_setup, calls_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
