/* See place.h. */
#include "place.h"

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

int place_setup(void **state)
{
    struct place *place = alloc_zero(1, sizeof *place);

    const char *base = getenv("TMPDIR");

    snprintf(place->folder, sizeof place->folder, "%s/cordon-audit-XXXXXX",
             base && *base ? base : "/tmp");
    *state = place;
    return mkdtemp(place->folder) ? 0 : -1;
}

int place_teardown(void **state)
{
    struct place *place = *state;
    DIR *dir = opendir(place->folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            place_remove(place, entry->d_name);
    if (dir)
        closedir(dir);
    rmdir(place->folder);
    free(place);
    return 0;
}

char *place_path(const struct place *place, const char *name)
{
    return path_join(place->folder, name);
}

char *place_read(const struct place *place, const char *name, size_t *ret_len)
{
    AUTO_FREE char *path = place_path(place, name);
    AUTO(buf_done) struct buf text = {0};
    struct err err;

    assert_int_equal(fd_read_file(path, SIZE_MAX / 2, &text, &err), 0);
    *ret_len = text.len;
    return buf_take(&text);
}

void place_write(const struct place *place, const char *name, const void *data, size_t len)
{
    AUTO_FREE char *path = place_path(place, name);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct err err;

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, data, len, &err), 0);
}

void place_remove(const struct place *place, const char *name)
{
    AUTO_FREE char *path = place_path(place, name);

    unlink(path);
}

void place_append(const struct place *place, unsigned first, unsigned count)
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
    assert_int_equal(audit_tail_append(place->folder, &batch, UINT64_C(60000000000), &err), 0);
}

static void store_auto(struct audit_store **slot)
{
    audit_store_close(*slot);
}

void place_import(const struct place *place)
{
    AUTO(audit_tail_done) struct audit_tail tail = {0};
    AUTO(store_auto) struct audit_store *store = NULL;
    struct err err;

    assert_int_equal(audit_tail_read(place->folder, &tail, &err), 0);
    assert_int_equal(audit_store_open(place->folder, AUDIT_STORE_WRITE, &store, &err), 0);
    if (audit_store_import(store, &tail, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(
        audit_tail_drop(place->folder, &tail.items[tail.len - 1].link, UINT64_C(60000000000), &err),
        0);
}

int place_verify(const struct place *place, uint64_t *ret_records, struct err *err)
{
    AUTO(audit_tail_done) struct audit_tail tail = {0};
    AUTO(store_auto) struct audit_store *store = NULL;
    struct audit_link head = {0};
    size_t from;

    *ret_records = 0;
    if (audit_store_open(place->folder, AUDIT_STORE_READ, &store, err) ||
        (store && audit_store_verify(store, &head, ret_records, err)) ||
        audit_tail_read(place->folder, &tail, err) ||
        audit_store_find_new(&tail, &head, &from, err))
        return -1;
    *ret_records += tail.len - from;
    return 0;
}

static int show_record(void *data, const struct audit_record *record, struct err *err)
{
    assert_true(audit_record_format(record, data));
    return 0;
}

char *place_show(const struct place *place)
{
    AUTO(audit_tail_done) struct audit_tail tail = {0};
    AUTO(store_auto) struct audit_store *store = NULL;
    AUTO(buf_done) struct buf text = {0};
    struct err err;

    buf_init(&text, SIZE_MAX / 2);
    if (audit_store_open(place->folder, AUDIT_STORE_READ, &store, &err) ||
        (store && audit_store_each(store, show_record, &text, &err)) ||
        audit_tail_read(place->folder, &tail, &err))
        return NULL;
    for (size_t i = 0; i < tail.len; i++)
        show_record(&text, &tail.items[i], &err);
    return buf_take(&text);
}
