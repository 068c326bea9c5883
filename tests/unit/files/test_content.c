/* fs/readFile, fs/writeFile, fs/open. */
#include "calls.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "files/call.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void a_file_is_read(void **state)
{
    struct calls *calls = *state;

    support_write(calls->dir, "f", "hi\n");
    assert_int_equal(symlink("f", calls_path(calls, "lnk")), 0);
    assert_answer(calls, "fs/readFile", "{\"path\":\"~/f\"}", "{\"dataBase64\":\"aGkK\"}");
    assert_answer(calls, "fs/readFile", "{\"path\":\"~/lnk\"}", "{\"dataBase64\":\"aGkK\"}");
    assert_answer(calls, "fs/readFile", "{\"path\":\"~/x/../f\",\"followSymlinks\":false}",
                  "{\"dataBase64\":\"aGkK\"}");
    support_write(calls->dir, "empty", "");
    assert_answer(calls, "fs/readFile", "{\"path\":\"~/empty\"}", "{\"dataBase64\":\"\"}");
}

static void a_file_that_says_it_is_empty_is_read(void **state)
{
    const char *answer = calls_do(*state, "fs/readFile", "{\"path\":\"file:///proc/version\"}");

    assert_non_null(answer);
    assert_true(strlen(answer) > 50);
}

/* Blocks of base64 join at any length around the size of a block. */
static void large_files_are_whole(void **state)
{
    const size_t lengths[] = {196607, 196608, 196609, 600000};
    struct calls *calls = *state;

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        AUTO_FREE char *data = alloc_zero(lengths[i] + 1, 1);
        AUTO_FREE char *expected = alloc_zero(base64_encoded_len(lengths[i]) + 64, 1);
        int fd = open(calls_path(calls, "big"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        for (size_t k = 0; k < lengths[i]; k++)
            data[k] = (char)(k * 7 % 251);
        assert_int_equal(write(fd, data, lengths[i]), lengths[i]);
        close(fd);
        strcpy(expected, "{\"dataBase64\":\"");
        base64_encode(data, lengths[i], expected + strlen(expected));
        strcat(expected, "\"}");
        assert_answer(calls, "fs/readFile", "{\"path\":\"~/big\"}", expected);
    }
}

static void a_file_beyond_the_limit_is_refused(void **state)
{
    struct calls *calls = *state;
    int fd = open(calls_path(calls, "huge"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_int_equal(ftruncate(fd, (off_t)FILES_READ_MAX + 1), 0);
    close(fd);
    assert_failure(calls, "fs/readFile", "{\"path\":\"~/huge\"}", -32600,
                   "file is too large to read: limit is 536870912 bytes");
}

static void what_is_no_file_is_not_opened(void **state)
{
    struct calls *calls = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char text[512];

    assert_int_equal(mkfifo(calls_path(calls, "fifo"), 0600), 0);
    assert_int_equal(mkdir(calls_path(calls, "d"), 0700), 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", calls_path(calls, "sock"));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    snprintf(text, sizeof text, "path `%s/fifo` is not a file", calls->dir);
    assert_failure(calls, "fs/readFile", "{\"path\":\"~/fifo\"}", -32600, text);
    assert_failure(calls, "fs/writeFile", "{\"path\":\"~/fifo\",\"dataBase64\":\"\"}", -32600,
                   text);
    assert_failure(calls, "fs/open", "{\"path\":\"~/fifo\"}", -32600, text);
    snprintf(text, sizeof text, "path `%s/d` is not a file", calls->dir);
    assert_failure(calls, "fs/readFile", "{\"path\":\"~/d\"}", -32600, text);
    snprintf(text, sizeof text, "path `%s/sock` is not a file", calls->dir);
    assert_failure(calls, "fs/readFile", "{\"path\":\"~/sock\"}", -32600, text);
    assert_failure(calls, "fs/readFile", "{\"path\":\"file:///dev/null\"}", -32600,
                   "path `/dev/null` is not a file");
    assert_failure(calls, "fs/writeFile", "{\"path\":\"~/d\",\"dataBase64\":\"aGk=\"}", -32603,
                   "Is a directory (os error 21)");
}

static void links_are_refused_on_request(void **state)
{
    struct calls *calls = *state;

    support_write(calls->dir, "f", "hi\n");
    assert_int_equal(mkdir(calls_path(calls, "d"), 0700), 0);
    support_write(calls->dir, "d/a", "a");
    assert_int_equal(symlink("f", calls_path(calls, "lnk")), 0);
    assert_int_equal(symlink("d", calls_path(calls, "dl")), 0);
    assert_failure(calls, "fs/readFile", "{\"path\":\"~/lnk\",\"followSymlinks\":false}", -32603,
                   "Symbolic link loop (os error 40)");
    assert_failure(calls, "fs/readFile", "{\"path\":\"~/dl/a\",\"followSymlinks\":false}", -32603,
                   "Not a directory (os error 20)");
    assert_failure(calls, "fs/writeFile",
                   "{\"path\":\"~/lnk\",\"dataBase64\":\"eA==\",\"followSymlinks\":false}", -32603,
                   "Symbolic link loop (os error 40)");
    assert_failure(calls, "fs/writeFile",
                   "{\"path\":\"~/dl/new\",\"dataBase64\":\"eA==\",\"followSymlinks\":false}",
                   -32603, "Not a directory (os error 20)");
    assert_answer(calls, "fs/readFile", "{\"path\":\"~/f\"}", "{\"dataBase64\":\"aGkK\"}");
}

static void a_missing_file_is_not_found(void **state)
{
    struct calls *calls = *state;

    support_write(calls->dir, "f", "hi\n");
    assert_int_equal(symlink("nowhere", calls_path(calls, "dangling")), 0);
    assert_failure(calls, "fs/readFile", "{\"path\":\"~/nope\"}", -32004,
                   "No such file or directory (os error 2)");
    assert_failure(calls, "fs/readFile", "{\"path\":\"~/dangling\"}", -32004,
                   "No such file or directory (os error 2)");
    assert_failure(calls, "fs/readFile", "{\"path\":\"~/f/x\"}", -32603,
                   "Not a directory (os error 20)");
    assert_failure(calls, "fs/writeFile", "{\"path\":\"~/no/new\",\"dataBase64\":\"\"}", -32004,
                   "No such file or directory (os error 2)");
}

static void a_file_is_written(void **state)
{
    struct calls *calls = *state;
    struct stat before;
    struct stat after;

    assert_answer(calls, "fs/writeFile", "{\"path\":\"~/n\",\"dataBase64\":\"aGVsbG8=\"}", "{}");
    assert_answer(calls, "fs/readFile", "{\"path\":\"~/n\"}", "{\"dataBase64\":\"aGVsbG8=\"}");
    assert_int_equal(link(calls_path(calls, "n"), "/dev/null"), -1);
    assert_int_equal(stat(calls_path(calls, "n"), &before), 0);
    assert_answer(calls, "fs/writeFile", "{\"path\":\"~/n\",\"dataBase64\":\"aGk=\"}", "{}");
    assert_answer(calls, "fs/readFile", "{\"path\":\"~/n\"}", "{\"dataBase64\":\"aGk=\"}");
    assert_int_equal(stat(calls_path(calls, "n"), &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* in place: hard links see it */
}

static void bad_base64_leaves_the_file_alone(void **state)
{
    struct calls *calls = *state;

    support_write(calls->dir, "f", "hi\n");
    assert_null(calls_do(calls, "fs/writeFile", "{\"path\":\"~/f\",\"dataBase64\":\"!\"}"));
    assert_int_equal(error_code(&calls->err), -32600);
    assert_contains(calls->err.msg, "fs/writeFile requires valid base64 dataBase64: ");
    assert_answer(calls, "fs/readFile", "{\"path\":\"~/f\"}", "{\"dataBase64\":\"aGkK\"}");
}

static void an_open_file_is_handed_out(void **state)
{
    struct calls *calls = *state;
    char text[8] = {0};

    support_write(calls->dir, "f", "hello");
    assert_non_null(calls_do(calls, "fs/open", "{\"path\":\"~/f\"}"));
    assert_int_equal(pread(calls->reply.fd, text, sizeof text, 1), 4);
    assert_string_equal(text, "ello");
    assert_int_equal(pwrite(calls->reply.fd, "x", 1, 0), -1);
    assert_true(fcntl(calls->reply.fd, F_GETFD) & FD_CLOEXEC);
    assert_non_null(calls_do(calls, "fs/open", "{\"path\":\"~/f\",\"mode\":\"replace\"}"));
    assert_int_equal(pwrite(calls->reply.fd, "x", 1, 2), 1);
    assert_int_equal(pread(calls->reply.fd, text, 1, 0), -1);
    assert_answer(calls, "fs/readFile", "{\"path\":\"~/f\"}", "{\"dataBase64\":\"AAB4\"}");
    assert_null(calls_do(calls, "fs/open", "{\"path\":\"~/f\",\"mode\":\"append\"}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_read, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(a_file_that_says_it_is_empty_is_read, calls_setup,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(large_files_are_whole, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(a_file_beyond_the_limit_is_refused, calls_setup,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_not_opened, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(links_are_refused_on_request, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(a_missing_file_is_not_found, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(a_file_is_written, calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(bad_base64_leaves_the_file_alone, calls_setup,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(an_open_file_is_handed_out, calls_setup, calls_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
