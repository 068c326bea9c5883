/* What the guard is told of a sandbox, read back by the guard's own reader. */
#include "../base/support.h"

#include "base/auto.h"
#include "guard/map.h"
#include "sandbox/linux/guard_map.h"

#include <stdio.h>
#include <string.h>

struct wanted {
    const char *path;
    unsigned flags;
};

enum { ROOT = GUARD_ENTRY_ROOT, HELD = GUARD_ENTRY_HELD_NAME };

static void add(struct access_map *map, const char *path, enum access access, enum access_kind kind)
{
    access_map_add(map, path, access, kind, "test");
}

static void add_protected(struct access_map *map, const char *path, enum access_kind kind)
{
    access_map_add(map, path, ACCESS_READ, kind, "test")->is_protected = true;
}

/* Every entry comes back as it is, under its own index, and no other flags than these are set. */
static void check_map(struct access_map *map, uint32_t flags, const struct wanted *wanted)
{
    AUTO(buf_done) struct buf file = {0};
    AUTO(strv_done) struct strv own = {0};
    struct map view;
    struct err err;

    strv_push(&own, "/home/a/.cordon");
    strv_push(&own, "/opt/cordon");
    access_map_sort(map);
    assert_int_equal(guard_map_encode(map, &own, flags, &file, &err), 0);
    assert_true(map_init(&view, file.data, file.len));
    assert_int_equal(view.header->entries, map->len);
    assert_true(map_is_own(&view, "/opt/cordon") && map_is_own(&view, "/opt/cordon/rules/a"));
    assert_false(map_is_own(&view, "/opt/cordons") || map_is_own(&view, "/opt"));
    assert_int_equal(view.header->flags, flags | (map->restricted ? GUARD_MAP_RESTRICTED : 0));
    for (int i = 0; i < (int)map->len; i++) {
        unsigned flagged = 0;

        assert_string_equal(map_path(&view, i), map->entries[i].path);
        assert_int_equal(map_find(&view, map->entries[i].path), i);
        assert_int_equal(view.entries[i].access, map->entries[i].access);
        assert_int_equal(view.entries[i].kind, map->entries[i].kind);
        for (const struct wanted *at = wanted; at->path; at++)
            if (strcmp(at->path, map->entries[i].path) == 0)
                flagged = at->flags;
        if (view.entries[i].flags != flagged)
            fail_msg("%s: flags %u, not %u", map->entries[i].path, view.entries[i].flags, flagged);
    }
}

static void test_an_empty_map(void **state)
{
    struct access_map map = {0};

    check_map(&map, GUARD_MAP_FACTS, (struct wanted[]){{0}});
    assert_false(guard_map_has_names(&map, false));
    map.restricted = true;
    check_map(&map, 0, (struct wanted[]){{0}});
}

static void test_names_of_a_workspace(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};

    add(&map, "/", ACCESS_READ, ACCESS_DIR);
    add(&map, "/w", ACCESS_WRITE, ACCESS_DIR);
    add_protected(&map, "/w/.git", ACCESS_DIR);
    add_protected(&map, "/w/.codex", ACCESS_MISSING);
    add(&map, "/opt", ACCESS_WRITE, ACCESS_DIR);
    add(&map, "/srv/file", ACCESS_WRITE, ACCESS_FILE);
    check_map(&map, GUARD_MAP_FACTS | GUARD_MAP_SOCKETS,
              (struct wanted[]){{"/w", ROOT}, {"/w/.codex", HELD}, {0}});
    assert_true(guard_map_has_names(&map, false));
}

/* Names that are there may go, and a repository may come to be in another way. */
static void test_names_that_are_all_there(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};

    add(&map, "/", ACCESS_READ, ACCESS_DIR);
    add(&map, "/w", ACCESS_WRITE, ACCESS_DIR);
    add_protected(&map, "/w/.git", ACCESS_DIR);
    check_map(&map, 0, (struct wanted[]){{"/w", ROOT}, {0}});
}

/* What the user makes narrower and is there is covered; it stays what it is. */
static void test_a_narrower_place_that_is_there(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};

    add(&map, "/w", ACCESS_WRITE, ACCESS_DIR);
    add(&map, "/w/secret", ACCESS_DENY, ACCESS_DIR);
    add(&map, "/w/notes", ACCESS_READ, ACCESS_FILE);
    check_map(&map, 0, (struct wanted[]){{0}});
    assert_false(guard_map_has_names(&map, false));
}

/* Landlock's rights go down: no directory above a held name may give one to create. */
static void test_roots_in_roots(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};

    add(&map, "/", ACCESS_READ, ACCESS_DIR);
    add(&map, "/home", ACCESS_WRITE, ACCESS_DIR);
    add(&map, "/home/u", ACCESS_READ, ACCESS_DIR);
    add(&map, "/home/u/w", ACCESS_WRITE, ACCESS_DIR);
    add(&map, "/home/u/w/deep/secret", ACCESS_DENY, ACCESS_MISSING);
    add(&map, "/home/u/w/free", ACCESS_WRITE, ACCESS_DIR);
    check_map(&map, 0,
              (struct wanted[]){
                  {"/home", ROOT}, {"/home/u/w", ROOT}, {"/home/u/w/deep/secret", HELD}, {0}});
}

/* Nothing can be made where nothing may be written. */
static void test_missing_in_a_read_only_place(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};

    add(&map, "/", ACCESS_READ, ACCESS_DIR);
    add(&map, "/etc/secret", ACCESS_DENY, ACCESS_MISSING);
    add(&map, "/srv", ACCESS_WRITE, ACCESS_MISSING);
    check_map(&map, 0, (struct wanted[]){{0}});
}

static void test_everything_is_writable(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};
    AUTO(access_map_done) struct access_map bare = {0};

    add(&map, "/", ACCESS_WRITE, ACCESS_DIR);
    add(&map, "/etc/cordon", ACCESS_READ, ACCESS_MISSING);
    add(&map, "/dev/secret", ACCESS_DENY, ACCESS_MISSING); /* in a /dev of ours */
    add(&map, "/proc/secret", ACCESS_DENY, ACCESS_MISSING);
    check_map(&map, 0, (struct wanted[]){{"/", ROOT}, {"/etc/cordon", HELD}, {0}});
    add(&bare, "/etc/cordon", ACCESS_READ, ACCESS_MISSING);
    check_map(&bare, GUARD_MAP_NO_LANDLOCK, (struct wanted[]){{"/etc/cordon", HELD}, {0}});
}

static void test_too_many(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};
    struct buf file;
    struct err err;
    char path[32];

    for (int i = 0; i <= GUARD_MAX_ENTRIES; i++) {
        snprintf(path, sizeof path, "/%06d", i);
        add(&map, path, ACCESS_READ, ACCESS_DIR);
    }
    assert_int_equal(guard_map_encode(&map, &(struct strv){0}, 0, &file, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_map),
        cmocka_unit_test(test_names_of_a_workspace),
        cmocka_unit_test(test_names_that_are_all_there),
        cmocka_unit_test(test_a_narrower_place_that_is_there),
        cmocka_unit_test(test_roots_in_roots),
        cmocka_unit_test(test_missing_in_a_read_only_place),
        cmocka_unit_test(test_everything_is_writable),
        cmocka_unit_test(test_too_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
