/* kept_file: what happens between the look at a file and its replacement, and what is left when that fails. Whose files are
 * refused is in tests/e2e/test_clients.py. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "setup/kept_file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int set_up(void **state)
{
    *state = support_scratch_new();
    return 0;
}

static int tear_down(void **state)
{
    support_scratch_remove(*state);
    return 0;
}

static void assert_text(const char *path, const char *wanted)
{
    FILE *file = fopen(path, "r");
    char got[256] = "";

    assert_non_null(file);
    (void)!fread(got, 1, sizeof got - 1, file);
    fclose(file);
    assert_string_equal(got, wanted);
}

static size_t count(const char *dir)
{
    DIR *folder = opendir(dir);
    const struct dirent *item;
    size_t ret = 0;

    assert_non_null(folder);
    while ((item = readdir(folder)))
        ret += item->d_name[0] != '.';
    closedir(folder);
    return ret;
}

static void read_file(const char *dir, struct kept_file *ret)
{
    AUTO_FREE char *path = path_join(dir, "file");
    struct err err;

    if (kept_file_read(path, dir, ret, &err))
        fail_msg("%s", err.msg);
}

static int replace(const struct kept_file *file, const char *text, struct err *err)
{
    AUTO(buf_done) struct buf whole = {.max = 4096};
    char *backup = NULL;
    int status;

    buf_append_str(&whole, text);
    status = kept_file_replace(file, &whole, 0600, &backup, err);
    free(backup);
    return status;
}

static void what_was_there_is_kept(void **state)
{
    const char *dir = *state;
    AUTO_FREE char *path = path_join(dir, "file");
    AUTO_FREE char *first = path_join(dir, "file.cordon-backup-1");
    AUTO_FREE char *second = path_join(dir, "file.cordon-backup-2");
    struct err err;
    struct stat st;

    for (int i = 0; i < 3; i++) {
        AUTO(kept_file_done) struct kept_file file = {.path = NULL};
        const char *const texts[] = {"one", "two", "three"};

        read_file(dir, &file);
        assert_int_equal(file.is_there, i > 0);
        assert_int_equal(replace(&file, texts[i], &err), 0);
        if (i == 0)
            assert_int_equal(chmod(path, 0640), 0);
    }
    assert_text(path, "three");
    assert_text(first, "one");
    assert_text(second, "two");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(count(dir), 3);
}

/* Each is a way in which a client may have been quicker. */
static void write_again(const char *dir)
{
    support_write(dir, "file", "theirs");
}

static void take_away(const char *dir)
{
    AUTO_FREE char *path = path_join(dir, "file");

    assert_int_equal(unlink(path), 0);
}

static void turn_to_a_link(const char *dir)
{
    AUTO_FREE char *path = path_join(dir, "file");

    support_write(dir, "else", "else");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("else", path), 0);
}

static void what_came_between_is_not_lost(void **state)
{
    static void (*const ways[])(const char *dir) = {write_again, take_away, turn_to_a_link};

    for (size_t i = 0; i < 3; i++) {
        AUTO(kept_file_done) struct kept_file file = {.path = NULL};
        const char *dir = *state;
        AUTO_FREE char *path = path_join(dir, "file");
        struct err err;
        size_t before;

        unlink(path);
        support_write(dir, "file", "mine, and longer");
        read_file(dir, &file);
        ways[i](dir);
        before = count(dir);
        assert_int_equal(replace(&file, "new", &err), -1);
        assert_contains(err.msg, "was changed meanwhile");
        assert_int_equal(kept_file_remove(&file, NULL, &err), -1);
        assert_int_equal(count(dir), before);
    }
}

static void a_file_that_appeared_is_not_lost(void **state)
{
    AUTO(kept_file_done) struct kept_file file = {.path = NULL};
    const char *dir = *state;
    AUTO_FREE char *path = path_join(dir, "file");
    struct err err;

    read_file(dir, &file);
    assert_false(file.is_there);
    support_write(dir, "file", "theirs");
    assert_int_equal(replace(&file, "new", &err), -1);
    assert_text(path, "theirs");
}

/* One of two runs at the same time, with everything that the other one does in the middle of it. */
static void two_at_once_do_not_mix(void **state)
{
    AUTO(kept_file_done) struct kept_file first = {.path = NULL}, second = {.path = NULL};
    const char *dir = *state;
    AUTO_FREE char *path = path_join(dir, "file");
    struct err err;

    support_write(dir, "file", "mine");
    read_file(dir, &first);
    read_file(dir, &second);
    assert_int_equal(replace(&second, "of the second", &err), 0);
    assert_int_equal(replace(&first, "of the first", &err), -1);
    assert_text(path, "of the second");
    assert_int_equal(count(dir), 2);
}

/* A folder that is missing is made in one that the rules hold for, too. */
static void nothing_is_made_elsewhere(void **state)
{
    AUTO(kept_file_done) struct kept_file file = {.path = NULL};
    const char *dir = *state;
    AUTO_FREE char *inside = path_join(dir, "inside");
    AUTO_FREE char *outside = path_join(dir, "outside");
    AUTO_FREE char *link = path_join(inside, "link");
    AUTO_FREE char *path = path_join(inside, "link/a/b/file");
    struct err err;

    assert_int_equal(mkdir(inside, 0700) || mkdir(outside, 0700), 0);
    assert_int_equal(symlink(outside, link), 0);
    assert_int_equal(kept_file_read(path, inside, &file, &err), -1);
    assert_contains(err.msg, "out of");
    assert_int_equal(chmod(outside, 0777), 0);
    assert_int_equal(kept_file_read(path, dir, &file, &err), -1);
    assert_contains(err.msg, "everybody may write");
}

static void what_is_the_same_is_forgotten(void **state)
{
    AUTO(kept_file_done) struct kept_file file = {.path = NULL};
    AUTO(buf_done) struct buf text = {.max = 64}, kept = {.max = 64};
    const char *dir = *state;
    unsigned number = 0;

    support_write(dir, "file", "now");
    support_write(dir, "file.cordon-backup-1", "other");
    support_write(dir, "file.cordon-backup-3", "same");
    read_file(dir, &file);
    assert_true(kept_file_next(&file, &number, &kept));
    assert_string_equal(kept.data, "other");
    assert_true(kept_file_next(&file, &number, &kept));
    assert_string_equal(kept.data, "same");
    assert_false(kept_file_next(&file, &number, &kept));
    buf_append_str(&text, "same");
    assert_true(kept_file_forget(&file, &text));
    assert_false(kept_file_forget(&file, &text));
    assert_int_equal(count(dir), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_there_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_came_between_is_not_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_appeared_is_not_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_at_once_do_not_mix, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_made_elsewhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_the_same_is_forgotten, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
