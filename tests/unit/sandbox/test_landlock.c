/* Which rights the Landlock ruleset of a sandbox handles, and which it allows where. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "sandbox/launcher/kernel.h"
#include "sandbox/linux/landlock.h"

#include <string.h>

#define WRITING                                                                                    \
    (K_LANDLOCK_WRITE_FILE | K_LANDLOCK_REMOVE_DIR | K_LANDLOCK_REMOVE_FILE |                      \
     K_LANDLOCK_MAKE_CHAR | K_LANDLOCK_MAKE_DIR | K_LANDLOCK_MAKE_REG | K_LANDLOCK_MAKE_SOCK |     \
     K_LANDLOCK_MAKE_FIFO | K_LANDLOCK_MAKE_BLOCK | K_LANDLOCK_MAKE_SYM)
#define READING (K_LANDLOCK_EXECUTE | K_LANDLOCK_READ_FILE | K_LANDLOCK_READ_DIR)
#define BOTH_SCOPES (K_LANDLOCK_SCOPE_ABSTRACT_UNIX | K_LANDLOCK_SCOPE_SIGNAL)
#define BOTH_TCP (K_LANDLOCK_BIND_TCP | K_LANDLOCK_CONNECT_TCP)

static const struct landlock_spec sandboxed = {.abi = 7, .has_mounts = true};
static const struct landlock_spec alone = {.abi = 7, .refuses_tcp = true};

/* A read-only tree with a writable /work; the result is freed with access_map_done(). */
static struct access_map workspace(void)
{
    struct access_map map = {.restricted = true};

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "test");
    access_map_add(&map, "/work", ACCESS_WRITE, ACCESS_DIR, "test");
    access_map_sort(&map);
    return map;
}

static struct access_map minimal(void)
{
    struct access_map map = {.restricted = true};

    access_map_add(&map, "/usr", ACCESS_READ, ACCESS_DIR, "test");
    access_map_add(&map, "/work", ACCESS_WRITE, ACCESS_DIR, "test");
    access_map_sort(&map);
    return map;
}

/* The rights that rules give at just this path. */
static uint64_t rights_at(const struct landlock_rules *rules, const char *path)
{
    uint64_t rights = 0;

    for (size_t i = 0; i < rules->len; i++)
        if (str_eq(rules->items[i].path, path))
            rights |= rules->items[i].rights;
    return rights;
}

static struct landlock_rules compile(const struct access_map *map, const struct landlock_spec *spec)
{
    struct landlock_rules rules;

    assert_true(landlock_compile(map, spec, &rules));
    for (size_t i = 0; i < rules.len; i++) {
        assert_int_equal(rules.items[i].rights & ~rules.handled, 0); /* the kernel's EINVAL */
        assert_int_not_equal(rules.items[i].rights, 0);              /* and its ENOMSG */
    }
    return rules;
}

static void test_without_landlock(void **state)
{
    AUTO(access_map_done) struct access_map map = workspace();
    struct landlock_spec spec = {.abi = 0, .has_mounts = true};
    struct landlock_rules rules = {0};

    assert_false(landlock_compile(&map, &spec, &rules));
    assert_int_equal(rules.len, 0);
}

/* Reading is left to the mounts: handling it would cost 20 % of `grep -r`. */
static void test_beside_mounts_only_writing_is_handled(void **state)
{
    AUTO(access_map_done) struct access_map map = minimal();
    AUTO(landlock_rules_done) struct landlock_rules rules = compile(&map, &sandboxed);

    assert_int_equal(rules.handled, WRITING | K_LANDLOCK_REFER | K_LANDLOCK_IOCTL_DEV);
    assert_int_equal(rules.handled_network, 0);
    assert_int_equal(rules.scopes, BOTH_SCOPES);
    assert_int_equal(rights_at(&rules, "/usr"), 0);
    assert_int_equal(rights_at(&rules, "/work"), rules.handled);
}

/* Without mounts Landlock is the only answer to what may be read. */
static void test_alone_it_handles_what_is_narrowed(void **state)
{
    AUTO(access_map_done) struct access_map full = workspace();
    AUTO(access_map_done) struct access_map narrow = minimal();
    AUTO(landlock_rules_done) struct landlock_rules all = compile(&full, &alone);
    AUTO(landlock_rules_done) struct landlock_rules some = compile(&narrow, &alone);
    const uint64_t writing =
        WRITING | K_LANDLOCK_REFER | K_LANDLOCK_TRUNCATE | K_LANDLOCK_IOCTL_DEV;

    assert_int_equal(all.handled, writing);
    assert_int_equal(all.handled_network, BOTH_TCP);
    assert_int_equal(some.handled, writing | READING);
    assert_int_equal(rights_at(&some, "/usr"), READING);
    assert_int_equal(rights_at(&some, "/work"), writing | READING);
}

static void test_rights_grow_with_the_abi(void **state)
{
    static const struct {
        int abi;
        uint64_t files, network, scopes;
    } cases[] = {
        {1, WRITING, 0, 0},
        {2, WRITING | K_LANDLOCK_REFER, 0, 0},
        {3, WRITING | K_LANDLOCK_REFER | K_LANDLOCK_TRUNCATE, 0, 0},
        {4, WRITING | K_LANDLOCK_REFER | K_LANDLOCK_TRUNCATE, BOTH_TCP, 0},
        {5, WRITING | K_LANDLOCK_REFER | K_LANDLOCK_TRUNCATE | K_LANDLOCK_IOCTL_DEV, BOTH_TCP, 0},
        {6, WRITING | K_LANDLOCK_REFER | K_LANDLOCK_TRUNCATE | K_LANDLOCK_IOCTL_DEV, BOTH_TCP,
         BOTH_SCOPES},
        {9, WRITING | K_LANDLOCK_REFER | K_LANDLOCK_TRUNCATE | K_LANDLOCK_IOCTL_DEV, BOTH_TCP,
         BOTH_SCOPES},
    };
    AUTO(access_map_done) struct access_map map = workspace();

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct landlock_spec spec = {.abi = cases[i].abi, .refuses_tcp = true};
        AUTO(landlock_rules_done) struct landlock_rules rules = compile(&map, &spec);

        assert_int_equal(rules.handled, cases[i].files);
        assert_int_equal(rules.handled_network, cases[i].network);
        assert_int_equal(rules.scopes, cases[i].scopes);
    }
}

static void test_a_file_gets_no_rights_of_folders(void **state)
{
    AUTO(access_map_done) struct access_map map = minimal();
    AUTO(landlock_rules_done) struct landlock_rules rules = {0};

    access_map_add(&map, "/etc/hosts", ACCESS_READ, ACCESS_FILE, "test");
    access_map_add(&map, "/var/log/one", ACCESS_WRITE, ACCESS_FILE, "test");
    access_map_sort(&map);
    rules = compile(&map, &alone);
    assert_int_equal(rights_at(&rules, "/etc/hosts"), K_LANDLOCK_EXECUTE | K_LANDLOCK_READ_FILE);
    assert_int_equal(rights_at(&rules, "/var/log/one"),
                     K_LANDLOCK_EXECUTE | K_LANDLOCK_READ_FILE | K_LANDLOCK_WRITE_FILE |
                         K_LANDLOCK_TRUNCATE | K_LANDLOCK_IOCTL_DEV);
}

static void test_denied_and_missing_paths_get_nothing(void **state)
{
    AUTO(access_map_done) struct access_map map = minimal();
    AUTO(landlock_rules_done) struct landlock_rules rules = {0};

    access_map_add(&map, "/srv", ACCESS_DENY, ACCESS_DIR, "test");
    access_map_add(&map, "/opt", ACCESS_WRITE, ACCESS_MISSING, "test");
    access_map_sort(&map);
    rules = compile(&map, &alone);
    assert_int_equal(rights_at(&rules, "/srv"), 0);
    assert_int_equal(rights_at(&rules, "/opt"), 0);
}

/* What our own /dev and /proc hold has to stay of use: writing to /dev/null, locks in /dev/shm,
 * comm and oom_score_adj of one's own processes. */
static void test_own_devices(void **state)
{
    const uint64_t use = K_LANDLOCK_WRITE_FILE | K_LANDLOCK_IOCTL_DEV;
    AUTO(access_map_done) struct access_map map = workspace();
    AUTO(landlock_rules_done) struct landlock_rules rules = compile(&map, &sandboxed);

    assert_int_equal(rights_at(&rules, "/dev/null"), use);
    assert_int_equal(rights_at(&rules, "/dev/tty"), use);
    assert_int_equal(rights_at(&rules, "/dev/console"), use);
    assert_int_equal(rights_at(&rules, "/dev/pts"), use);
    assert_int_equal(rights_at(&rules, "/dev/shm"), WRITING | K_LANDLOCK_REFER);
    assert_int_equal(rights_at(&rules, "/proc"), K_LANDLOCK_WRITE_FILE);
}

/* A read-only mount does not stop writing to a device, so only the ruleset keeps one that the user
 * shows from being written to: /dev as a whole must give nothing. */
static void test_a_readable_device_is_not_writable(void **state)
{
    AUTO(access_map_done) struct access_map map = workspace();
    AUTO(landlock_rules_done) struct landlock_rules rules = {0};

    access_map_add(&map, "/dev/kvm", ACCESS_READ, ACCESS_FILE, "test");
    access_map_add(&map, "/dev/fuse", ACCESS_WRITE, ACCESS_FILE, "test");
    access_map_sort(&map);
    rules = compile(&map, &sandboxed);
    assert_int_equal(rights_at(&rules, "/dev"), 0);
    assert_int_equal(rights_at(&rules, "/dev/kvm"), 0);
    assert_int_equal(rights_at(&rules, "/dev/fuse"), K_LANDLOCK_WRITE_FILE | K_LANDLOCK_IOCTL_DEV);
}

/* With the host's /dev only harmless devices, by name; nothing in it can be made or removed. */
static void test_devices_of_the_host(void **state)
{
    AUTO(access_map_done) struct access_map map = workspace();
    AUTO(landlock_rules_done) struct landlock_rules rules = compile(&map, &alone);

    assert_int_equal(rights_at(&rules, "/dev"), 0);
    assert_int_equal(rights_at(&rules, "/dev/shm"), 0);
    assert_int_equal(rights_at(&rules, "/proc"), 0);
    assert_int_equal(rights_at(&rules, "/dev/null"),
                     K_LANDLOCK_WRITE_FILE | K_LANDLOCK_IOCTL_DEV | K_LANDLOCK_TRUNCATE);
    assert_int_not_equal(rights_at(&rules, "/dev/tty"), 0);
    for (size_t i = 0; i < rules.len; i++)
        assert_false(strstr(rules.items[i].path, "/dev/sd") ||
                     str_eq(rules.items[i].path, "/dev/mem") ||
                     str_eq(rules.items[i].path, "/dev/kmsg"));
}

/* A ruleset with file rights forbids every mount(2), also in namespaces of the command's own. */
static void test_nested_namespaces_leave_the_scopes(void **state)
{
    struct landlock_spec spec = sandboxed;
    AUTO(access_map_done) struct access_map map = workspace();
    AUTO(landlock_rules_done) struct landlock_rules rules = {0};

    spec.allow_nested_namespaces = true;
    rules = compile(&map, &spec);
    assert_int_equal(rules.handled, 0);
    assert_int_equal(rules.scopes, BOTH_SCOPES);
    assert_int_equal(rules.len, 0);
    spec.abi = 5;
    assert_false(landlock_compile(&map, &spec, &rules));
}

static void test_a_writable_root_leaves_the_scopes(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};
    AUTO(landlock_rules_done) struct landlock_rules rules = {0};

    access_map_add(&map, "/", ACCESS_WRITE, ACCESS_DIR, "test");
    access_map_add(&map, "/etc", ACCESS_READ, ACCESS_DIR, "test");
    access_map_sort(&map);
    rules = compile(&map, &sandboxed);
    assert_int_equal(rules.handled, 0);
    assert_int_equal(rules.scopes, BOTH_SCOPES);
}

/* -- guarded roots: names in them are made by the guard */

#define MAKING                                                                                     \
    (K_LANDLOCK_MAKE_CHAR | K_LANDLOCK_MAKE_DIR | K_LANDLOCK_MAKE_REG | K_LANDLOCK_MAKE_SOCK |     \
     K_LANDLOCK_MAKE_FIFO | K_LANDLOCK_MAKE_BLOCK | K_LANDLOCK_MAKE_SYM | K_LANDLOCK_REFER)

static void hold(struct access_map *map, const char *path, enum access_kind kind)
{
    access_map_add(map, path, ACCESS_READ, kind, "test")->is_protected = true;
    access_map_sort(map);
}

/* What is there can be changed and removed, but nothing can be made or moved, by no rule above. */
static void test_guarded_roots(void **state)
{
    AUTO(access_map_done) struct access_map map = workspace();
    AUTO(landlock_rules_done) struct landlock_rules rules = {0};

    access_map_add(&map, "/home", ACCESS_WRITE, ACCESS_DIR, "test");
    access_map_add(&map, "/home/u/ws", ACCESS_WRITE, ACCESS_DIR, "test");
    access_map_add(&map, "/opt", ACCESS_WRITE, ACCESS_DIR, "test");
    access_map_add(&map, "/work/.codex", ACCESS_WRITE, ACCESS_DIR, "test");
    hold(&map, "/work/.git", ACCESS_DIR);
    hold(&map, "/home/u/ws/.git", ACCESS_MISSING);
    rules = compile(&map, &sandboxed);
    assert_int_equal(rules.handled, WRITING | K_LANDLOCK_REFER | K_LANDLOCK_IOCTL_DEV);
    assert_int_equal(rights_at(&rules, "/work"), rules.handled & ~MAKING);
    assert_int_equal(rights_at(&rules, "/home"), rules.handled & ~MAKING);
    assert_int_equal(rights_at(&rules, "/home/u/ws"), rules.handled & ~MAKING);
    assert_int_equal(rights_at(&rules, "/opt"), rules.handled);
    assert_int_equal(rights_at(&rules, "/work/.codex"), rules.handled);
    assert_int_equal(rights_at(&rules, "/work/.git"), 0);
    assert_true(landlock_guards_names(&map, &sandboxed));
}

static void test_names_where_everything_is_writable(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};
    AUTO(landlock_rules_done) struct landlock_rules rules = {0};
    struct landlock_spec nested = sandboxed;

    access_map_add(&map, "/", ACCESS_WRITE, ACCESS_DIR, "test");
    access_map_add(&map, "/srv/.git", ACCESS_WRITE, ACCESS_DIR, "test");
    hold(&map, "/etc/cordon", ACCESS_MISSING);
    rules = compile(&map, &sandboxed);
    assert_int_equal(rules.handled, MAKING);
    assert_int_equal(rights_at(&rules, "/"), 0);
    assert_int_equal(rights_at(&rules, "/srv/.git"), MAKING);
    assert_int_equal(rights_at(&rules, "/dev/shm"), MAKING);
    nested.allow_nested_namespaces = true;
    assert_false(landlock_guards_names(&map, &nested));
}

static void list_dirs(const char *dir, struct strv *ret)
{
    static const char *const dirs[] = {"/work/.git",     "/work/src",    "/work/deep",
                                       "/work/deep/a",   "/work/deep/b", "/work/own",
                                       "/work/src/below"};

    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        AUTO_FREE char *parent = path_parent(dirs[i]);

        if (str_eq(parent, dir))
            strv_push(ret, path_name(dirs[i]));
    }
}

/* Without a guard names can be made in the directories that are there, if none is held below. */
static void test_without_a_guard(void **state)
{
    AUTO(access_map_done) struct access_map map = workspace();
    AUTO(landlock_rules_done) struct landlock_rules rules = {0};
    struct landlock_spec spec = sandboxed;

    spec.list_dirs = list_dirs;
    access_map_add(&map, "/work/own", ACCESS_WRITE, ACCESS_DIR, "test");
    hold(&map, "/work/.git", ACCESS_DIR);
    hold(&map, "/work/deep/a/secret", ACCESS_MISSING);
    rules = compile(&map, &spec);
    assert_int_equal(rights_at(&rules, "/work") & MAKING, 0);
    assert_int_equal(rights_at(&rules, "/work/.git"), 0);
    assert_int_equal(rights_at(&rules, "/work/src"), MAKING);
    assert_int_equal(rights_at(&rules, "/work/src/below"), 0); /* by the rule above */
    assert_int_equal(rights_at(&rules, "/work/deep"), 0);
    assert_int_equal(rights_at(&rules, "/work/deep/a"), 0);
    assert_int_equal(rights_at(&rules, "/work/deep/b"), MAKING);
    assert_int_equal(rights_at(&rules, "/work/own"), rules.handled);
    for (size_t i = 0; i < rules.len; i++)
        assert_int_equal(rules.items[i].is_child, str_eq(rules.items[i].path, "/work/src") ||
                                                      str_eq(rules.items[i].path, "/work/deep/b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_landlock),
        cmocka_unit_test(test_beside_mounts_only_writing_is_handled),
        cmocka_unit_test(test_alone_it_handles_what_is_narrowed),
        cmocka_unit_test(test_rights_grow_with_the_abi),
        cmocka_unit_test(test_a_file_gets_no_rights_of_folders),
        cmocka_unit_test(test_denied_and_missing_paths_get_nothing),
        cmocka_unit_test(test_own_devices),
        cmocka_unit_test(test_a_readable_device_is_not_writable),
        cmocka_unit_test(test_devices_of_the_host),
        cmocka_unit_test(test_nested_namespaces_leave_the_scopes),
        cmocka_unit_test(test_a_writable_root_leaves_the_scopes),
        cmocka_unit_test(test_guarded_roots),
        cmocka_unit_test(test_names_where_everything_is_writable),
        cmocka_unit_test(test_without_a_guard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
