/* See fixture.h. */
#include "fixture.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

int fixture_setup(void **state)
{
    struct fixture *fixture = alloc_zero(1, sizeof *fixture);

    const char *base = getenv("TMPDIR");

    snprintf(fixture->dir, sizeof fixture->dir, "%s/cordon-audit-XXXXXX",
             base && *base ? base : "/tmp");
    *state = fixture;
    return mkdtemp(fixture->dir) ? 0 : -1;
}

int fixture_teardown(void **state)
{
    struct fixture *fixture = *state;
    DIR *dir = opendir(fixture->dir);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            fixture_remove(fixture, entry->d_name);
    if (dir)
        closedir(dir);
    rmdir(fixture->dir);
    free(fixture);
    return 0;
}

char *fixture_path(const struct fixture *fixture, const char *name)
{
    return path_join(fixture->dir, name);
}

char *fixture_read(const struct fixture *fixture, const char *name, size_t *ret_len)
{
    AUTO_FREE char *path = fixture_path(fixture, name);
    AUTO(buf_done) struct buf text = {0};
    struct err err;

    assert_int_equal(fd_read_file(path, SIZE_MAX / 2, &text, &err), 0);
    *ret_len = text.len;
    return buf_take(&text);
}

void fixture_write(const struct fixture *fixture, const char *name, const void *data, size_t len)
{
    AUTO_FREE char *path = fixture_path(fixture, name);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct err err;

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, data, len, &err), 0);
}

void fixture_remove(const struct fixture *fixture, const char *name)
{
    AUTO_FREE char *path = fixture_path(fixture, name);

    unlink(path);
}

void fixture_append(const struct fixture *fixture, unsigned first, unsigned count)
{
    AUTO_FREE struct audit_record *records = alloc_zero(count, sizeof *records);
    AUTO_FREE char(*bodies)[96] = alloc_zero(count, sizeof *bodies);
    struct audit_batch batch = {.items = records, .len = count};
    struct err err;

    for (unsigned i = 0; i < count; i++) {
        snprintf(bodies[i], sizeof bodies[i], "{\"argv\":[\"make\",\"-j%u\"],\"cwd\":\"/home/me\"}",
                 first + i);
        records[i] = (struct audit_record){
            .time_ns = UINT64_C(1795170840000000000) + first + i,
            .event = audit_text_of("begin"),
            .session = audit_text_of("4f5c1a2b00000000"),
            .body = audit_text_of(bodies[i]),
        };
    }
    assert_int_equal(audit_tail_append(fixture->dir, &batch, UINT64_C(60000000000), &err), 0);
}

static void store_auto(struct audit_store **slot)
{
    audit_store_close(*slot);
}

void fixture_import(const struct fixture *fixture)
{
    AUTO(audit_tail_done) struct audit_tail tail = {0};
    AUTO(store_auto) struct audit_store *store = NULL;
    struct err err;

    assert_int_equal(audit_tail_read(fixture->dir, &tail, &err), 0);
    assert_int_equal(audit_store_open(fixture->dir, AUDIT_STORE_WRITE, &store, &err), 0);
    if (audit_store_import(store, &tail, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(
        audit_tail_drop(fixture->dir, &tail.items[tail.len - 1].link, UINT64_C(60000000000), &err),
        0);
}

int fixture_verify(const struct fixture *fixture, uint64_t *ret_records, struct err *err)
{
    AUTO(audit_tail_done) struct audit_tail tail = {0};
    AUTO(store_auto) struct audit_store *store = NULL;
    struct audit_link head = {0};
    size_t from;

    *ret_records = 0;
    if (audit_store_open(fixture->dir, AUDIT_STORE_READ, &store, err) ||
        (store && audit_store_verify(store, &head, ret_records, err)) ||
        audit_tail_read(fixture->dir, &tail, err) || audit_store_find_new(&tail, &head, &from, err))
        return -1;
    *ret_records += tail.len - from;
    return 0;
}

static int show_record(void *data, const struct audit_record *record, struct err *err)
{
    assert_true(audit_record_format(record, data));
    return 0;
}

char *fixture_show(const struct fixture *fixture)
{
    AUTO(audit_tail_done) struct audit_tail tail = {0};
    AUTO(store_auto) struct audit_store *store = NULL;
    AUTO(buf_done) struct buf text = {0};
    struct err err;

    buf_init(&text, SIZE_MAX / 2);
    if (audit_store_open(fixture->dir, AUDIT_STORE_READ, &store, &err) ||
        (store && audit_store_each(store, show_record, &text, &err)) ||
        audit_tail_read(fixture->dir, &tail, &err))
        return NULL;
    for (size_t i = 0; i < tail.len; i++)
        show_record(&text, &tail.items[i], &err);
    return buf_take(&text);
}
