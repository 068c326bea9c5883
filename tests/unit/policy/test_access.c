/* access: order, precedence and lookup in an access map. */
#include "../base/cases.h"

#include "base/auto.h"
#include "policy/access.h"

static void add(struct access_map *map, const char *path, enum access access)
{
    access_map_add(map, path, access, ACCESS_DIR, "test");
}

static void the_longest_path_decides(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};

    add(&map, "/a/b", ACCESS_WRITE);
    add(&map, "/a", ACCESS_READ);
    add(&map, "/a/b/c", ACCESS_DENY);
    add(&map, "/a-b", ACCESS_DENY);
    access_map_sort(&map);
    assert_int_equal(access_map_check(&map, "/a"), ACCESS_READ);
    assert_int_equal(access_map_check(&map, "/a/x"), ACCESS_READ);
    assert_int_equal(access_map_check(&map, "/a/b"), ACCESS_WRITE);
    assert_int_equal(access_map_check(&map, "/a/bb"), ACCESS_READ);
    assert_int_equal(access_map_check(&map, "/a/b/c/d"), ACCESS_DENY);
    assert_int_equal(access_map_check(&map, "/a-b/c"), ACCESS_DENY);
    assert_int_equal(access_map_check(&map, "/"), ACCESS_DENY);
    assert_null(access_map_find(&map, "/z"));
    assert_string_equal(access_map_find(&map, "/a/b/x")->path, "/a/b");
    assert_null(access_map_exact(&map, "/a/b/x"));
}

static void without_restriction_everything_is_writable(void **state)
{
    struct access_map map = {0};

    assert_int_equal(access_map_check(&map, "/x"), ACCESS_WRITE);
    assert_true(access_map_full_write(&map));
    assert_null(access_map_exact(&map, "/x"));
}

static void the_root_entry_covers_all(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};

    add(&map, "/", ACCESS_READ);
    access_map_sort(&map);
    assert_string_equal(access_map_find(&map, "/a/b/c")->path, "/");
    assert_string_equal(access_map_find(&map, "/")->path, "/");
    assert_true(access_map_full_read(&map));
    assert_false(access_map_full_write(&map));
}

static void ties_go_to_the_user_then_deny_write_read(void **state)
{
    static const enum access orders[][3] = {
        {ACCESS_DENY, ACCESS_WRITE, ACCESS_READ},
        {ACCESS_READ, ACCESS_WRITE, ACCESS_DENY},
        {ACCESS_WRITE, ACCESS_READ, ACCESS_DENY},
    };

    for (size_t i = 0; i < 3; i++) {
        AUTO(access_map_done) struct access_map map = {.restricted = true};

        for (size_t j = 0; j < 3; j++)
            add(&map, "/a", orders[i][j]);
        add(&map, "/b", ACCESS_READ);
        access_map_add(&map, "/b", ACCESS_READ, ACCESS_DIR, "ours")->is_protected = true;
        add(&map, "/b", ACCESS_WRITE);
        access_map_add(&map, "/c", ACCESS_READ, ACCESS_DIR, "ours")->is_protected = true;
        add(&map, "/c", ACCESS_READ);
        access_map_sort(&map);
        assert_int_equal(map.len, 3);
        assert_int_equal(map.entries[0].access, ACCESS_DENY);
        assert_int_equal(map.entries[1].access, ACCESS_WRITE);
        assert_false(map.entries[1].is_protected);
        assert_false(map.entries[2].is_protected);
    }
}

static void parents_come_right_before_what_is_below(void **state)
{
    static const char *const paths[] = {"/a.b", "/a/c", "/a", "/b", "/", "/a/b/c", "/a/b", "/a b"};
    static const char *const wanted[] = {"/", "/a", "/a/b", "/a/b/c", "/a/c", "/a b", "/a.b", "/b"};
    AUTO(access_map_done) struct access_map map = {.restricted = true};

    for (size_t i = 0; i < 8; i++)
        add(&map, paths[i], ACCESS_READ);
    access_map_sort(&map);
    for (size_t i = 0; i < 8; i++) {
        assert_string_equal(map.entries[i].path, wanted[i]);
        assert_ptr_equal(access_map_exact(&map, wanted[i]), &map.entries[i]);
    }
}

static void links_are_kept_once(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};
    AUTO(access_map_done) struct access_map copy = {.restricted = true};

    access_map_add_link(&map, "/lib", "usr/lib");
    access_map_add_link(&map, "/bin", "usr/bin");
    access_map_add_link(&map, "/lib", "usr/lib");
    access_map_sort(&map);
    assert_int_equal(map.links_len, 2);
    assert_string_equal(map.links[0].path, "/bin");
    add(&map, "/x", ACCESS_DENY);
    access_map_add_all(&copy, &map);
    assert_int_equal(copy.len, 1);
    assert_int_equal(copy.entries[0].access, ACCESS_DENY);
}

static void words(void **state)
{
    enum access access = ACCESS_READ;

    assert_true(access_parse("none", &access));
    assert_int_equal(access, ACCESS_DENY);
    assert_true(access_parse("write", &access));
    assert_int_equal(access, ACCESS_WRITE);
    assert_false(access_parse("Write", &access));
    assert_false(access_parse("", &access));
    assert_int_equal(access, ACCESS_WRITE);
}

static void what_is_closed_stays_so_whatever_was_said(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};

    add(&map, "/", ACCESS_READ);
    add(&map, "/a", ACCESS_WRITE);
    add(&map, "/a/b", ACCESS_WRITE);
    add(&map, "/a/b/c", ACCESS_READ);
    add(&map, "/a/bc", ACCESS_READ);
    access_map_sort(&map);
    access_map_close(&map, "/a/b", ACCESS_DIR, "ours");
    assert_int_equal(map.len, 4);
    assert_int_equal(access_map_check(&map, "/a/b"), ACCESS_DENY);
    assert_int_equal(access_map_check(&map, "/a/b/c"), ACCESS_DENY);
    assert_int_equal(access_map_check(&map, "/a/bc"), ACCESS_READ);
    assert_int_equal(access_map_check(&map, "/a"), ACCESS_WRITE);
    assert_true(access_map_exact(&map, "/a/b")->is_protected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_path_decides),
        cmocka_unit_test(without_restriction_everything_is_writable),
        cmocka_unit_test(the_root_entry_covers_all),
        cmocka_unit_test(ties_go_to_the_user_then_deny_write_read),
        cmocka_unit_test(parents_come_right_before_what_is_below),
        cmocka_unit_test(links_are_kept_once),
        cmocka_unit_test(what_is_closed_stays_so_whatever_was_said),
        cmocka_unit_test(words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
