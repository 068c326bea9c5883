/* store: moving, pruning, and changes to any byte of the database.
 *
 * Of a changed byte of audit.db it is asked that it be found, or else be no part of the log: what a
 * reader is shown is then, byte for byte, what it was (an SQLite file has room between its records,
 * and numbers in its head that nothing depends on). */
#include "../base/sanitized.h"
#include "fixture.h"

#include "base/auto.h"
#include "base/str.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { STRIDE = SANITIZED ? 5 : 1 };

static void store_auto(struct audit_store **slot)
{
    audit_store_close(*slot);
}

static void prune(const struct fixture *fixture, uint64_t max_bytes, uint64_t max_age_ns,
                  uint64_t now)
{
    AUTO(store_auto) struct audit_store *store = NULL;
    const struct audit_limits limits = {max_bytes, max_age_ns};
    struct err err;

    assert_int_equal(audit_store_open(fixture->dir, AUDIT_STORE_WRITE, &store, &err), 0);
    if (audit_store_prune(store, &limits, now, &err))
        fail_msg("%s", err.msg);
}

static uint64_t verified(const struct fixture *fixture)
{
    struct err err;
    uint64_t records;

    if (fixture_verify(fixture, &records, &err))
        fail_msg("%s", err.msg);
    return records;
}

/* As somebody with sqlite3(1) would. */
static void tamper(const struct fixture *fixture, const char *sql)
{
    AUTO_FREE char *path = fixture_path(fixture, AUDIT_STORE_NAME);
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_true(sqlite3_total_changes(db) > 0);
    sqlite3_close(db);
}

/* --- moving and pruning --- */

static void moved_records_stay_the_same(void **state)
{
    AUTO_FREE char *before = NULL;
    AUTO_FREE char *after = NULL;

    fixture_append(*state, 0, 50);
    before = fixture_show(*state);
    fixture_import(*state);
    after = fixture_show(*state);
    assert_string_equal(before, after);
    fixture_append(*state, 50, 1);
    assert_int_equal(verified(*state), 51);
}

/* Killed behind the commit and before the records left the tail. */
static void moving_twice_adds_nothing(void **state)
{
    AUTO_FREE char *tail = NULL;
    size_t len;

    fixture_append(*state, 0, 5);
    tail = fixture_read(*state, AUDIT_TAIL_NAME, &len);
    fixture_import(*state);
    fixture_write(*state, AUDIT_TAIL_NAME, tail, len);
    assert_int_equal(verified(*state), 5);
    fixture_append(*state, 5, 1);
    assert_int_equal(verified(*state), 6);
    fixture_import(*state);
    assert_int_equal(verified(*state), 6);
}

/* Two that tidy up at the same time: both have read the tail, and one is done before the other. */
static void moving_side_by_side_is_moving_once(void **state)
{
    AUTO(audit_tail_done) struct audit_tail tail = {0};
    AUTO(store_auto) struct audit_store *store = NULL;
    struct fixture *fixture = *state;
    struct err err;

    fixture_append(fixture, 0, 5);
    assert_int_equal(audit_tail_read(fixture->dir, &tail, &err), 0);
    fixture_append(fixture, 5, 2);
    fixture_import(fixture);
    fixture_append(fixture, 7, 1);
    assert_int_equal(audit_store_open(fixture->dir, AUDIT_STORE_WRITE, &store, &err), 0);
    assert_int_equal(audit_store_import(store, &tail, &err), -1); /* read before that: read anew */
    assert_int_equal(err.code, ERR_INVALID);
    audit_store_close(TAKE_PTR(store));
    assert_int_equal(audit_tail_drop(fixture->dir, &tail.items[4].link, 0, &err), 0);
    assert_int_equal(verified(fixture), 8);
}

static void another_tail_is_not_taken_in(void **state)
{
    AUTO(audit_tail_done) struct audit_tail tail = {0};
    AUTO(store_auto) struct audit_store *store = NULL;
    struct fixture *fixture = *state;
    struct err err;

    fixture_append(fixture, 0, 5);
    fixture_import(fixture);
    fixture_remove(fixture, AUDIT_TAIL_NAME);
    fixture_append(fixture, 7, 6);
    assert_int_equal(audit_tail_read(fixture->dir, &tail, &err), 0);
    assert_int_equal(audit_store_open(fixture->dir, AUDIT_STORE_WRITE, &store, &err), 0);
    assert_int_equal(audit_store_import(store, &tail, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
}

static void pruned_log_still_verifies(void **state)
{
    fixture_append(*state, 0, 2000);
    fixture_import(*state);
    prune(*state, 100 * 1024, UINT64_MAX, UINT64_MAX);
    assert_in_range(verified(*state), 1, 1800);
    prune(*state, UINT64_MAX, 10, UINT64_C(1795170840000000000) + 1995);
    assert_int_equal(verified(*state), 15);
    prune(*state, 0, 0, UINT64_MAX);
    assert_int_equal(verified(*state), 0);
    fixture_append(*state, 0, 3);
    fixture_import(*state);
    assert_int_equal(verified(*state), 3);
}

static void who_reads_keeps_nobody_out(void **state)
{
    AUTO(store_auto) struct audit_store *store = NULL;
    struct fixture *fixture = *state;
    struct audit_link head;
    struct err err;

    fixture_append(fixture, 0, 5);
    fixture_import(fixture);
    assert_int_equal(audit_store_open(fixture->dir, AUDIT_STORE_READ, &store, &err), 0);
    fixture_append(fixture, 5, 5);
    fixture_import(fixture);
    assert_int_equal(audit_store_head(store, &head, &err), 0);
    assert_int_equal(head.seq, 5);
    assert_int_equal(verified(fixture), 10);
}

/* Which any command could take that can read the file. */
static void locks_on_the_database_do_not_count(void **state)
{
    AUTO_FREE char *path = fixture_path(*state, AUDIT_STORE_NAME);
    int ready[2];
    int gate[2];
    char byte;
    pid_t pid;

    fixture_append(*state, 0, 5);
    fixture_import(*state);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

        close(gate[1]);
        if (fcntl(open(path, O_RDONLY | O_CLOEXEC), F_SETLK, &all) || write(ready[1], "x", 1) != 1)
            _exit(1);
        _exit(read(gate[0], &byte, 1) != 0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    fixture_append(*state, 5, 5);
    fixture_import(*state);
    assert_int_equal(verified(*state), 10);
    close(ready[0]);
    close(gate[0]);
    close(gate[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* As older versions of Cordon left it when they were killed: the last changes are beside it. */
static void write_ahead_log_is_taken_in(void **state)
{
    AUTO_FREE char *path = fixture_path(*state, AUDIT_STORE_NAME);
    AUTO_FREE char *beside = fixture_path(*state, AUDIT_STORE_NAME "-wal");
    sqlite3 *db;

    fixture_append(*state, 0, 5);
    fixture_import(*state);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA journal_mode = WAL;"
                                  "UPDATE anchor SET (seq, hash) = (SELECT seq, hash FROM records"
                                  " WHERE seq = 2);"
                                  "DELETE FROM records WHERE seq <= 2",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(access(beside, F_OK), 0);
    assert_int_equal(verified(*state), 3);
    fixture_append(*state, 5, 1);
    fixture_import(*state);
    assert_int_equal(verified(*state), 4);
    assert_int_equal(access(beside, F_OK), -1);
}

static void file_is_the_owners_alone(void **state)
{
    AUTO_FREE char *path = fixture_path(*state, AUDIT_STORE_NAME);
    struct stat st;

    fixture_append(*state, 0, 1);
    fixture_import(*state);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

/* --- tampering --- */

static void changed_columns_are_found(void **state)
{
    static const char *const changes[] = {
        "UPDATE records SET body = replace(body, 'make', 'Make') WHERE seq = 7",
        "UPDATE records SET body = CAST(body AS BLOB) WHERE seq = 7",
        "UPDATE records SET time = time + 1 WHERE seq = 7",
        "UPDATE records SET time = 'x' || time WHERE seq = 1",
        "UPDATE records SET event = 'end' WHERE seq = 7",
        "UPDATE records SET session = session || '0' WHERE seq = 7",
        "UPDATE records SET hash = zeroblob(32) WHERE seq = 7",
        "UPDATE records SET hash = zeroblob(32) WHERE seq = 20",
        "UPDATE records SET seq = 21 WHERE seq = 20",
        "DELETE FROM records WHERE seq = 7",
        "DELETE FROM records WHERE seq = 20",
        "DELETE FROM records WHERE seq = 1",
        "DELETE FROM records",
        "UPDATE anchor SET seq = 1",
        "UPDATE anchor SET hash = randomblob(32)",
        "DELETE FROM anchor",
        "INSERT INTO records SELECT 21, 0, event, session, body, hash FROM records LIMIT 1",
    };

    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct err err;
        uint64_t records;

        fixture_append(*state, 0, 20);
        fixture_import(*state);
        assert_int_equal(verified(*state), 20);
        tamper(*state, changes[i]);
        if (fixture_verify(*state, &records, &err) == 0)
            fail_msg("not found: %s", changes[i]);
        fixture_remove(*state, AUDIT_STORE_NAME);
        fixture_remove(*state, AUDIT_TAIL_NAME);
    }
}

/* One byte of the file becomes another; true when that was found. */
static bool flip_is_found(const struct fixture *fixture, int fd, off_t at, uint8_t mask,
                          const char *shown)
{
    AUTO_FREE char *now = NULL;
    uint8_t was;
    uint8_t is;
    struct err err;
    uint64_t records;
    bool found;

    assert_int_equal(pread(fd, &was, 1, at), 1);
    is = was ^ mask;
    assert_int_equal(pwrite(fd, &is, 1, at), 1);
    found = fixture_verify(fixture, &records, &err) != 0;
    if (!found) {
        now = fixture_show(fixture);
        if (!now || !str_eq(now, shown))
            fail_msg("byte %lld xor %#x: the log reads otherwise, and nobody saw it", (long long)at,
                     mask);
    }
    assert_int_equal(pwrite(fd, &was, 1, at), 1);
    return found;
}

static off_t file_size(int fd)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    return st.st_size;
}

static int open_store(const struct fixture *fixture)
{
    AUTO_FREE char *path = fixture_path(fixture, AUDIT_STORE_NAME);
    int fd = open(path, O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

/* Every byte of a small database. */
static void every_byte_of_a_small_file(void **state)
{
    AUTO_FREE char *shown = NULL;
    AUTO_CLOSE int fd = -1;
    size_t found = 0;

    fixture_append(*state, 0, 12);
    fixture_import(*state);
    shown = fixture_show(*state);
    fd = open_store(*state);
    for (off_t at = 0; at < file_size(fd); at += STRIDE)
        found += flip_is_found(*state, fd, at, (uint8_t)(1 << at % 8), shown);
    assert_true(found > 12 * 100 / STRIDE); /* the records themselves, at the very least */
    assert_int_equal(verified(*state), 12);
}

/* And of one with 10,000 records, some bytes of every page: each third of them, whose pages are
 * full of records, in another fixture. */
static void ten_thousand_records(void **state)
{
    AUTO_FREE char *shown = NULL;
    AUTO_CLOSE int fd = -1;
    size_t found = 0;
    size_t tried = 0;

    fixture_append(*state, 0, 10000);
    fixture_import(*state);
    assert_int_equal(verified(*state), 10000);
    shown = fixture_show(*state);
    fd = open_store(*state);
    for (off_t at = 11; at < file_size(fd); at += STRIDE * 12329, tried++) /* 3 pages and 41 */
        found += flip_is_found(*state, fd, at, (uint8_t)(1 << tried % 8), shown);
    assert_true(found * 10 > tried * 9); /* the rest fell into gaps */
}

#define PLACED(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACED(moved_records_stay_the_same),        PLACED(moving_twice_adds_nothing),
        PLACED(moving_side_by_side_is_moving_once), PLACED(another_tail_is_not_taken_in),
        PLACED(pruned_log_still_verifies),          PLACED(who_reads_keeps_nobody_out),
        PLACED(locks_on_the_database_do_not_count), PLACED(write_ahead_log_is_taken_in),
        PLACED(file_is_the_owners_alone),           PLACED(changed_columns_are_found),
        PLACED(every_byte_of_a_small_file),         PLACED(ten_thousand_records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
