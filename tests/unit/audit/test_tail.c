/* tail: appending by many processes at once, crashes between the two writes, dropping, and every
 * single byte of the file. */
#include "fixture.h"

#include "base/auto.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t verified(const struct fixture *fixture)
{
    struct err err;
    uint64_t records;

    if (fixture_verify(fixture, &records, &err))
        fail_msg("%s", err.msg);
    return records;
}

static void records_chain_over_appends(void **state)
{
    AUTO(audit_tail_done) struct audit_tail tail = {0};
    struct err err;

    fixture_append(*state, 0, 3);
    fixture_append(*state, 3, 1);
    assert_int_equal(audit_tail_read(((struct fixture *)*state)->dir, &tail, &err), 0);
    assert_int_equal(tail.len, 4);
    assert_int_equal(tail.head.head.seq, 4);
    assert_true(audit_record_follows(&tail.items[3], &tail.items[2].link));
}

static void file_is_the_owners_alone(void **state)
{
    AUTO_FREE char *path = fixture_path(*state, AUDIT_TAIL_NAME);
    struct stat st;

    fixture_append(*state, 0, 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

enum { WRITERS = 8, APPENDS = 40 };

static void many_processes_make_one_chain(void **state)
{
    pid_t pids[WRITERS];
    int status;

    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            for (unsigned n = 0; n < APPENDS; n++)
                fixture_append(*state, n, 1 + n % 3);
            _exit(0);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(verified(*state), WRITERS * 79); /* 14 * 1 + 13 * 2 + 13 * 3 */
}

/* ... also while others move records to the database. */
static void moving_records_loses_none(void **state)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        for (unsigned n = 0; n < APPENDS; n++)
            fixture_append(*state, n, 2);
        _exit(0);
    }
    fixture_append(*state, 0, 1);
    for (int i = 0; i < 5; i++) {
        fixture_append(*state, 0, 1);
        fixture_import(*state);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(verified(*state), 2 * APPENDS + 6);
}

/* A writer was killed behind its lines and before the first line: they count. */
static void whole_lines_behind_the_size_are_taken_in(void **state)
{
    AUTO_FREE char *before = NULL;
    AUTO_FREE char *after = NULL;
    size_t before_len;
    size_t after_len;

    fixture_append(*state, 0, 2);
    before = fixture_read(*state, AUDIT_TAIL_NAME, &before_len);
    fixture_append(*state, 2, 2);
    after = fixture_read(*state, AUDIT_TAIL_NAME, &after_len);
    memcpy(after, before, AUDIT_TAIL_HEAD);
    fixture_write(*state, AUDIT_TAIL_NAME, after, after_len);
    assert_int_equal(verified(*state), 4);
    fixture_append(*state, 4, 1);
    assert_int_equal(verified(*state), 5);
}

/* Amid a line: it never was a record, and the next writer cuts it off. */
static void half_a_line_is_cut_off(void **state)
{
    AUTO_FREE char *before = NULL;
    AUTO_FREE char *after = NULL;
    size_t before_len;
    size_t after_len;

    fixture_append(*state, 0, 2);
    before = fixture_read(*state, AUDIT_TAIL_NAME, &before_len);
    fixture_append(*state, 2, 1);
    after = fixture_read(*state, AUDIT_TAIL_NAME, &after_len);
    memcpy(after, before, AUDIT_TAIL_HEAD);
    for (size_t len = before_len; len < after_len; len++) {
        fixture_write(*state, AUDIT_TAIL_NAME, after, len);
        assert_int_equal(verified(*state), 2);
        fixture_append(*state, 2, 1);
        assert_int_equal(verified(*state), 3);
    }
}

static void every_changed_byte_is_found(void **state)
{
    AUTO_FREE char *text = NULL;
    struct err err;
    uint64_t records;
    size_t len;

    fixture_append(*state, 0, 4);
    fixture_import(*state);
    fixture_append(*state, 4, 4);
    text = fixture_read(*state, AUDIT_TAIL_NAME, &len);
    for (size_t at = 0; at < len; at++) {
        char was = text[at];

        text[at] = (char)(was ^ 1 << at % 8);
        fixture_write(*state, AUDIT_TAIL_NAME, text, len);
        if (fixture_verify(*state, &records, &err) == 0)
            fail_msg("byte %zu was changed, and nobody saw it", at);
        text[at] = was;
    }
    fixture_write(*state, AUDIT_TAIL_NAME, text, len);
    assert_int_equal(verified(*state), 8);
}

static void what_is_taken_away_is_missed(void **state)
{
    AUTO_FREE char *text = NULL;
    struct err err;
    uint64_t records;
    size_t len;

    fixture_append(*state, 0, 4);
    fixture_import(*state);
    fixture_append(*state, 4, 2);
    text = fixture_read(*state, AUDIT_TAIL_NAME, &len);
    for (size_t cut = 1; cut < len; cut++) {
        fixture_write(*state, AUDIT_TAIL_NAME, text, cut);
        assert_int_equal(fixture_verify(*state, &records, &err), -1);
    }
    fixture_remove(*state, AUDIT_TAIL_NAME);
    assert_int_equal(fixture_verify(*state, &records, &err), -1);
    fixture_write(*state, AUDIT_TAIL_NAME, text, len);
    fixture_remove(*state, AUDIT_STORE_NAME);
    assert_int_equal(fixture_verify(*state, &records, &err), -1);
}

/* A break stays where it is: writing goes on, and never makes it good. */
static void damage_is_not_mended(void **state)
{
    AUTO_FREE char *text = NULL;
    struct err err;
    uint64_t records;
    size_t len;

    fixture_append(*state, 0, 3);
    text = fixture_read(*state, AUDIT_TAIL_NAME, &len);
    text[AUDIT_TAIL_HEAD + 80] ^= 1;
    fixture_write(*state, AUDIT_TAIL_NAME, text, len);
    fixture_append(*state, 3, 1);
    assert_int_equal(fixture_verify(*state, &records, &err), -1);
    assert_non_null(strstr(err.msg, "record 1"));
    fixture_write(*state, AUDIT_TAIL_NAME, text, len - 20);
    fixture_append(*state, 3, 1);
    assert_int_equal(fixture_verify(*state, &records, &err), -1);
}

static void somebody_who_holds_the_lock_is_not_waited_for(void **state)
{
    AUTO_FREE char *path = fixture_path(*state, "audit.lock");
    struct audit_record record = {
        .event = audit_text_of("end"), .session = audit_text_of("s"), .body = audit_text_of("{}")};
    struct audit_batch batch = {&record, 1, 0, 0};
    AUTO_CLOSE int fd = -1;
    struct err err;

    fixture_append(*state, 0, 1);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(audit_tail_append(((struct fixture *)*state)->dir, &batch, 0, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_int_equal(flock(fd, LOCK_UN), 0);
    assert_int_equal(verified(*state), 1);
}

static void symlink_and_dir_are_refused(void **state)
{
    struct audit_batch batch = {NULL, 0, 0, 0};
    struct fixture *fixture = *state;
    AUTO_FREE char *path = fixture_path(fixture, AUDIT_TAIL_NAME);
    struct err err;

    assert_int_equal(symlink("/var/tmp/elsewhere", path), 0);
    assert_int_equal(audit_tail_append(fixture->dir, &batch, 0, &err), -1);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(audit_tail_append(fixture->dir, &batch, 0, &err), -1);
    rmdir(path);
}

#define PLACED(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACED(records_chain_over_appends),
        PLACED(file_is_the_owners_alone),
        PLACED(many_processes_make_one_chain),
        PLACED(moving_records_loses_none),
        PLACED(whole_lines_behind_the_size_are_taken_in),
        PLACED(half_a_line_is_cut_off),
        PLACED(every_changed_byte_is_found),
        PLACED(what_is_taken_away_is_missed),
        PLACED(damage_is_not_mended),
        PLACED(somebody_who_holds_the_lock_is_not_waited_for),
        PLACED(symlink_and_dir_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
