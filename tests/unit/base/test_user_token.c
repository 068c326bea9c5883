/* user_token: who makes it and who reads it have the same; nothing that somebody else may have put
 * there, or may read, is taken. */
#include "support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/user_token.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/cordon-token-XXXXXX";
static char folder[64];
static char path[80];
static char other[64];

static void token_auto(char **token)
{
    user_token_free(*token);
}

static int make_dir(void **state)
{
    if (!mkdtemp(dir))
        return -1;
    snprintf(folder, sizeof folder, "%s/private", dir);
    snprintf(path, sizeof path, "%s/ws-token", folder);
    snprintf(other, sizeof other, "%s/other", dir);
    return 0;
}

static int remove_dir(void **state)
{
    unlink(path);
    unlink(folder);
    rmdir(folder);
    unlink(other);
    return rmdir(dir);
}

/* Before each test: as user_token_make() leaves it. */
static int make_anew(void **state)
{
    AUTO(token_auto) char *token = NULL;
    struct err err;

    unlink(path);
    unlink(folder); /* a test may have made a link of it */
    unlink(other);
    return user_token_make(dir, &token, &err);
}

static void who_makes_and_who_reads_have_the_same(void **state)
{
    AUTO(token_auto) char *first = NULL;
    AUTO(token_auto) char *second = NULL;
    AUTO(token_auto) char *third = NULL;
    struct stat info;
    struct err err = ERR_UNTOUCHED;

    assert_int_equal(user_token_make(dir, &first, &err), 0);
    assert_int_equal(user_token_make(dir, &second, &err), 0);
    assert_int_equal(user_token_read(dir, &third, &err), 0);
    assert_untouched(err);
    assert_string_equal(first, second);
    assert_string_equal(first, third);
    assert_int_equal(strlen(first), 64);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(stat(folder, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
}

static void a_new_one_is_another_one(void **state)
{
    AUTO(token_auto) char *first = NULL;
    AUTO(token_auto) char *second = NULL;
    AUTO(token_auto) char *none = NULL;
    struct err err;

    assert_int_equal(user_token_make(dir, &first, &err), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(user_token_read(dir, &none, &err), 0);
    assert_null(none);
    assert_int_equal(user_token_make(dir, &second, &err), 0);
    assert_string_not_equal(first, second);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else is left in it */
    assert_int_equal(user_token_read(dir, &none, &err), 0);
    assert_null(none);
}

static void write_text(const char *text)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    struct err err;

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text), &err), 0);
}

static void spoil_by_mode(void)
{
    assert_int_equal(chmod(path, 0640), 0);
}

static void spoil_by_folder_mode(void)
{
    assert_int_equal(chmod(folder, 0701), 0);
}

static void spoil_by_link(void)
{
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
}

static void spoil_by_second_name(void)
{
    assert_int_equal(link(path, other), 0);
}

static void spoil_by_fifo(void)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
}

static void spoil_by_length(void)
{
    write_text(" 0123456789012345678901234567890\n");
}

static void spoil_by_characters(void)
{
    write_text("0123456789012345678901234567890\x01\n");
}

static void spoil_by_folder_link(void)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(symlink("/tmp", folder), 0);
}

static void spoil_by_folder_kind(void)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(mkfifo(folder, 0700), 0);
}

static void spoil_by_owner(void)
{
    assert_int_equal(chown(path, 64999, 64999), 0);
}

static void what_others_may_have_made_or_read_is_refused(void **state)
{
    static const struct {
        void (*spoil)(void);
        const char *says;
        bool is_for_root;
    } cases[] = {
        {spoil_by_mode, "ws-token is open to other users (mode 640)", false},
        {spoil_by_folder_mode, "private is open to other users (mode 701)", false},
        {spoil_by_link, "ws-token is a link", false},
        {spoil_by_second_name, "ws-token has another name", false},
        {spoil_by_fifo, "ws-token is no regular file", false},
        {spoil_by_length, "ws-token has no token of 32 characters", false},
        {spoil_by_characters, "ws-token has more than ASCII in it", false},
        {spoil_by_folder_link, "private is no directory", false},
        {spoil_by_folder_kind, "private is no directory", false},
        {spoil_by_owner, "ws-token belongs to the user with id 64999", true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *none = NULL;
        struct err read = ERR_UNTOUCHED;
        struct err made = ERR_UNTOUCHED;

        if (cases[i].is_for_root && geteuid() != 0)
            continue;
        assert_int_equal(make_anew(NULL), 0);
        cases[i].spoil();
        assert_int_equal(user_token_read(dir, &none, &read), -1);
        assert_int_equal(user_token_make(dir, &none, &made), -1);
        assert_null(none);
        assert_string_equal(read.msg, made.msg);
        if (!strstr(read.msg, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", read.msg, cases[i].says);
        assert_non_null(strstr(read.msg, ": remove it, and the next server makes a new one"));
        if (cases[i].spoil == spoil_by_folder_mode)
            assert_int_equal(chmod(folder, 0700), 0);
    }
}

static void no_home_directory_is_made(void **state)
{
    AUTO_FREE char *home = path_join(dir, "home");
    AUTO_FREE char *config = path_join(home, ".config/cordon");
    char *none = NULL;
    struct err err;

    assert_int_equal(setenv("HOME", home, 1), 0);
    assert_int_equal(user_token_make(config, &none, &err), -1);
    assert_int_not_equal(access(home, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(who_makes_and_who_reads_have_the_same, make_anew),
        cmocka_unit_test_setup(a_new_one_is_another_one, make_anew),
        cmocka_unit_test(what_others_may_have_made_or_read_is_refused),
        cmocka_unit_test_setup(no_home_directory_is_made, make_anew),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
