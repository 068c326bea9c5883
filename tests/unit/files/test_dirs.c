/* fs/createDirectory, fs/readDirectory, fs/getMetadata, fs/canonicalize, fs/walk. */
#include "calls.h"

#include "base/auto.h"
#include "base/json.h"
#include "files/call.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENOENT_TEXT "No such file or directory (os error 2)"
#define OPTIONS(depth, dirs, entries, follow, prune)                                               \
    ",\"options\":{\"maxDepth\":" depth ",\"maxDirectories\":" dirs ",\"maxEntries\":" entries     \
    ",\"followDirectorySymlinks\":" follow ",\"pruneHiddenDirectories\":" prune "}}"
#define USUAL OPTIONS("10", "10", "100", "false", "false")

static void dirs_are_made(void **state)
{
    struct calls *calls = *state;

    support_write(calls->dir, "f", "");
    assert_answer(calls, "fs/createDirectory", "{\"path\":\"~/a/b/c\"}", "{}");
    assert_answer(calls, "fs/createDirectory", "{\"path\":\"~/a/b/c\"}", "{}");
    assert_answer(calls, "fs/createDirectory", "{\"path\":\"file:///\"}", "{}");
    assert_int_equal(access(calls_path(calls, "a/b/c"), X_OK), 0);
    assert_answer(calls, "fs/createDirectory", "{\"path\":\"~/one\",\"recursive\":false}", "{}");
    assert_failure(calls, "fs/createDirectory", "{\"path\":\"~/one\",\"recursive\":false}", -32603,
                   "File exists (os error 17)");
    assert_failure(calls, "fs/createDirectory", "{\"path\":\"~/x/y\",\"recursive\":false}", -32004,
                   ENOENT_TEXT);
    assert_failure(calls, "fs/createDirectory", "{\"path\":\"~/f\"}", -32603,
                   "File exists (os error 17)");
    assert_failure(calls, "fs/createDirectory", "{\"path\":\"~/f/x\"}", -32603,
                   "Not a directory (os error 20)");
}

static void dirs_are_not_made_through_links(void **state)
{
    struct calls *calls = *state;

    assert_int_equal(mkdir(calls_path(calls, "d"), 0700), 0);
    assert_int_equal(symlink("d", calls_path(calls, "dl")), 0);
    assert_answer(calls, "fs/createDirectory", "{\"path\":\"~/dl/in\"}", "{}");
    assert_answer(calls, "fs/createDirectory", "{\"path\":\"~/d/x/y\",\"followSymlinks\":false}",
                  "{}");
    assert_failure(calls, "fs/createDirectory", "{\"path\":\"~/dl/no\",\"followSymlinks\":false}",
                   -32603, "Not a directory (os error 20)");
    assert_failure(calls, "fs/createDirectory",
                   "{\"path\":\"~/dl/no\",\"recursive\":false,\"followSymlinks\":false}", -32603,
                   "Not a directory (os error 20)");
    assert_null(
        calls_do(calls, "fs/createDirectory", "{\"path\":\"file:///\",\"followSymlinks\":false}"));
    assert_int_equal(access(calls_path(calls, "d/in"), F_OK), 0);
    assert_int_equal(access(calls_path(calls, "d/x/y"), F_OK), 0);
    assert_int_equal(access(calls_path(calls, "d/no"), F_OK), -1);
}

/* The answer without its times. */
static void check_metadata(struct calls *calls, const char *params, const char *expected)
{
    const char *answer = calls_do(calls, "fs/getMetadata", params);
    const char *times;

    assert_non_null(answer);
    times = strstr(answer, ",\"createdAtMs\":");
    assert_non_null(times);
    assert_contains(times, ",\"modifiedAtMs\":1");
    assert_memory_equal(answer, expected, (size_t)(times - answer));
    assert_int_equal(strlen(expected), times - answer);
}

static void metadata_follows_links_and_tells_of_them(void **state)
{
    struct calls *calls = *state;

    support_write(calls->dir, "f", "hi\n");
    assert_int_equal(symlink("f", calls_path(calls, "lnk")), 0);
    assert_int_equal(symlink("nowhere", calls_path(calls, "dangling")), 0);
    assert_int_equal(mkfifo(calls_path(calls, "fifo"), 0600), 0);
    check_metadata(calls, "{\"path\":\"~/f\"}",
                   "{\"isDirectory\":false,\"isFile\":true,\"isSymlink\":false,\"size\":3");
    check_metadata(calls, "{\"path\":\"~/lnk\"}",
                   "{\"isDirectory\":false,\"isFile\":true,\"isSymlink\":true,\"size\":3");
    check_metadata(calls, "{\"path\":\"~/fifo\"}",
                   "{\"isDirectory\":false,\"isFile\":false,\"isSymlink\":false,\"size\":0");
    check_metadata(calls, "{\"path\":\"~/f\",\"followSymlinks\":false}",
                   "{\"isDirectory\":false,\"isFile\":true,\"isSymlink\":false,\"size\":3");
    assert_failure(calls, "fs/getMetadata", "{\"path\":\"~/dangling\"}", -32004, ENOENT_TEXT);
    assert_failure(calls, "fs/getMetadata", "{\"path\":\"~/lnk\",\"followSymlinks\":false}", -32600,
                   "path contains a symbolic link");
}

static void the_real_path_is_told(void **state)
{
    struct calls *calls = *state;

    support_write(calls->dir, "sp \xc3\xa9", "");
    assert_int_equal(symlink("sp \xc3\xa9", calls_path(calls, "lnk")), 0);
    assert_answer(calls, "fs/canonicalize", "{\"path\":\"~/lnk\"}", "{\"path\":\"~/sp%20%C3%A9\"}");
    assert_failure(calls, "fs/canonicalize", "{\"path\":\"~/nope\"}", -32004, ENOENT_TEXT);
}

static void a_dir_is_listed(void **state)
{
    struct calls *calls = *state;
    AUTO_JSON json_t *answer = NULL;
    const char *text;

    support_write(calls->dir, "f \"\n\xff", "");
    assert_int_equal(mkdir(calls_path(calls, "d"), 0700), 0);
    assert_int_equal(symlink("d", calls_path(calls, "dl")), 0);
    assert_int_equal(symlink("nowhere", calls_path(calls, "dangling")), 0);
    text = calls_do(calls, "fs/readDirectory", "{\"path\":\"~\"}");
    assert_non_null(text);
    answer = json_parse(text, strlen(text), &calls->err);
    assert_non_null(answer);
    assert_int_equal(json_array_size(json_object_get(answer, "entries")), 3);
    assert_contains(text, "{\"fileName\":\"f \\u0022\\u000a\xef\xbf\xbd\",\"isDirectory\":false,"
                          "\"isFile\":true}");
    assert_contains(text, "{\"fileName\":\"dl\",\"isDirectory\":true,\"isFile\":false}");
    assert_null(calls_do(calls, "fs/readDirectory", "{\"path\":\"~/nope\"}"));
    assert_int_equal(error_code(&calls->err), -32004);
}

static void make_tree(struct calls *calls)
{
    assert_int_equal(mkdir(calls_path(calls, "d"), 0700), 0);
    assert_int_equal(mkdir(calls_path(calls, "d/sub"), 0700), 0);
    assert_int_equal(mkdir(calls_path(calls, "d/sub/.hid"), 0700), 0);
    support_write(calls->dir, "d/a.txt", "");
    support_write(calls->dir, "d/sub/b.txt", "");
    support_write(calls->dir, "d/sub/.hid/c", "");
}

#define ENTRY(path, kind) "{\"path\":\"" path "\",\"kind\":\"" kind "\"}"
#define UPPER ENTRY("~/d/a.txt", "file") "," ENTRY("~/d/sub", "directory")
#define MIDDLE ENTRY("~/d/sub/.hid", "directory") "," ENTRY("~/d/sub/b.txt", "file")
#define WHOLE UPPER "," MIDDLE "," ENTRY("~/d/sub/.hid/c", "file")
#define WALKED(entries, truncated)                                                                 \
    "{\"entries\":[" entries "],\"errors\":[],\"truncated\":" truncated "}"

static void a_walk_goes_in_breadth(void **state)
{
    struct calls *calls = *state;

    make_tree(calls);
    assert_answer(calls, "fs/walk", "{\"path\":\"~/d\"" USUAL, WALKED(WHOLE, "false"));
    assert_answer(calls, "fs/walk", "{\"path\":\"~/d\"" OPTIONS("10", "10", "100", "false", "true"),
                  WALKED(UPPER "," MIDDLE, "false"));
    assert_answer(calls, "fs/walk", "{\"path\":\"~/d/a.txt\"" USUAL, WALKED("", "false"));
    assert_failure(calls, "fs/walk", "{\"path\":\"~/nope\"" USUAL, -32004, ENOENT_TEXT);
}

static void a_walk_is_bounded(void **state)
{
    struct calls *calls = *state;

    make_tree(calls);
    assert_answer(calls, "fs/walk", "{\"path\":\"~/d\"" OPTIONS("1", "10", "2", "false", "false"),
                  WALKED(UPPER, "true"));
    assert_answer(calls, "fs/walk", "{\"path\":\"~/d\"" OPTIONS("0", "10", "2", "false", "false"),
                  WALKED(UPPER, "false"));
    assert_answer(calls, "fs/walk", "{\"path\":\"~/d\"" OPTIONS("9", "1", "9", "false", "false"),
                  WALKED(UPPER, "true"));
    assert_failure(calls, "fs/walk",
                   "{\"path\":\"~/nope\"" OPTIONS("65", "10", "2", "false", "false"), -32600,
                   "filesystem walk limits exceed maximums: depth=64, directories=10000, "
                   "entries=50000");
    assert_null(
        calls_do(calls, "fs/walk", "{\"path\":\"~/d\"" OPTIONS("1", "0", "2", "false", "false")));
    assert_int_equal(error_code(&calls->err), -32600);
}

static void a_walk_follows_links_once(void **state)
{
    struct calls *calls = *state;

    make_tree(calls);
    assert_int_equal(symlink("..", calls_path(calls, "d/sub/up")), 0);
    assert_int_equal(symlink("sub/.hid", calls_path(calls, "d/alias")), 0);
    assert_int_equal(symlink("a.txt", calls_path(calls, "d/link.txt")), 0);
    assert_answer(calls, "fs/walk", "{\"path\":\"~/d\"" USUAL, WALKED(WHOLE, "false"));
    assert_answer(
        calls, "fs/walk", "{\"path\":\"~/d\"" OPTIONS("9", "9", "99", "true", "true"),
        WALKED(ENTRY("~/d/a.txt", "file") "," ENTRY("~/d/alias", "directory") "," ENTRY(
                   "~/d/sub", "directory") "," ENTRY("~/d/alias/c", "file") "," MIDDLE
                                                                            "," ENTRY("~/d/sub/up",
                                                                                      "directory"),
               "false"));
}

static void a_walk_tells_what_it_cannot_name(void **state)
{
    struct calls *calls = *state;

    assert_int_equal(mkdir(calls_path(calls, "d"), 0700), 0);
    support_write(calls->dir, "d/\xff", "");
    assert_answer(calls, "fs/walk", "{\"path\":\"~/d\"" USUAL,
                  "{\"entries\":[],\"errors\":[{\"path\":\"~/d/%FF\",\"message\":\"the name is not "
                  "valid UTF-8\"}],\"truncated\":false}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(dirs_are_made, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(dirs_are_not_made_through_links, calls_setup,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(metadata_follows_links_and_tells_of_them, calls_setup,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(the_real_path_is_told, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(a_dir_is_listed, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(a_walk_goes_in_breadth, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(a_walk_is_bounded, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(a_walk_follows_links_once, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(a_walk_tells_what_it_cannot_name, calls_setup,
                                        calls_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
