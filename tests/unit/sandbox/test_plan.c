/* Plans: each case of tests/cases/plan against its golden text, and every plan, also those of
 * thousands of random access maps, against the map it was compiled from.
 *
 *     test_plan FOLDER                          with CORDON_UPDATE_GOLDEN=1 the texts are rewritten
 */
#include "../base/support.h"
#include "plan_case.h"
#include "plan_model.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "sandbox/launcher/plan_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GOLDEN_MAX = 256 << 10, RANDOM_MAPS = 20000, RANDOM_ENTRIES = 9 };

/* -- a plan is right for its map */

/* A directory can be renamed by all who may write to the one above it, unless it is a mount point.
 */
static void check_cannot_be_moved(const struct plan_model *model, const struct access_map *map,
                                  const char *path)
{
    AUTO_FREE char *at = path_parent(path);

    while (at[1]) {
        AUTO_FREE char *above = path_parent(at);

        if (access_map_check(map, above) == ACCESS_WRITE && !plan_model_is_mount(model, at))
            fail_msg("%s can be renamed, and %s with it", at, path);
        free(at);
        at = TAKE_PTR(above);
    }
}

static void check_access(const struct plan_model *model, const struct access_map *map,
                         const char *path)
{
    enum access access = plan_model_access(model, path);
    enum access wanted = access_map_check(map, path);

    if (access != wanted)
        fail_msg("%s: the plan gives %s, the map %s", path, access_name(access),
                 access_name(wanted));
}

static void check_entry(const struct plan_model *model, const struct access_map *map,
                        const struct access_entry *entry)
{
    AUTO_FREE char *below = path_join(entry->path, "some-name");
    AUTO_FREE char *above = path_parent(entry->path);
    bool is_covered = access_map_check(map, above) == ACCESS_WRITE && entry->path[1];

    if (path_is_within(entry->path, "/dev") || path_is_within(entry->path, "/proc"))
        return;
    if (entry->kind != ACCESS_MISSING)
        check_access(model, map, entry->path);
    if (entry->kind == ACCESS_DIR)
        check_access(model, map, below);
    if (is_covered && entry->access != ACCESS_WRITE) {
        check_cannot_be_moved(model, map, entry->path);
        assert_int_equal(plan_model_is_mount(model, entry->path), entry->kind != ACCESS_MISSING);
    }
}

static const struct plan_record *find_op(const struct plan *plan, enum plan_op op)
{
    for (size_t i = 0; i < plan->len; i++)
        if (plan->records[i].op == op)
            return &plan->records[i];
    return NULL;
}

/* What has to come before what, whatever the map says. */
static void check_order(const struct plan *plan)
{
    const struct plan_record *drop = find_op(plan, PLAN_DROP);

    assert_int_equal(plan->records[plan->len - 1].op, PLAN_SECCOMP);
    assert_non_null(drop);
    for (const struct plan_record *at = plan->records; at < plan->records + plan->len; at++)
        assert_true(at < drop ? at->op < PLAN_DROP : at->op >= PLAN_DROP);
}

/* The launcher's reader takes what the compiler writes. */
static void check_encoding(const struct plan *plan)
{
    char *const argv[] = {(char *)"/bin/true", (char *)"one", NULL};
    char *const env[] = {(char *)"A=1", NULL};
    struct plan_command command = {.argv = argv, .env = env, .cwd = "/work"};
    AUTO(buf_done) struct buf file = {0};
    struct plan_view view;
    struct err err;

    assert_int_equal(plan_encode(plan, &command, &file, &err), 0);
    assert_int_equal(plan_view_init(&view, file.data, file.len, &err), 0);
    assert_int_equal(view.header->records, plan->len);
    assert_string_equal(plan_string(&view, view.header->argv), "/bin/true");
    assert_string_equal(plan_string_next(plan_string(&view, view.header->argv)), "one");
    assert_string_equal(plan_string(&view, view.header->envp), "A=1");
    assert_string_equal(plan_string(&view, view.header->cwd), "/work");
    for (size_t i = 0; i < plan->len; i++)
        assert_string_equal(plan_string(&view, view.records[i].path),
                            plan->strings.data + plan->records[i].path);
}

/* A yes opens reading of what asks, and of nothing else. */
static void check_uncovered(struct plan_model *model, const struct access_map *map)
{
    plan_model_uncover(model);
    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];
        enum access access = plan_model_access(model, entry->path);

        if (path_is_within(entry->path, "/dev") || path_is_within(entry->path, "/proc") ||
            entry->kind == ACCESS_MISSING)
            continue;
        if (plan_model_is_watched(model, entry->path))
            assert_true(entry->asks && access == ACCESS_READ);
        else
            assert_int_equal(access, entry->access);
    }
}

static void check_plan(const struct plan *plan, const struct access_map *map)
{
    struct plan_model *model = plan_model_new(plan, map);

    check_order(plan);
    check_encoding(plan);
    if (plan->namespaces & CLONE_NEWNS)
        for (size_t i = 0; i < map->len; i++)
            check_entry(model, map, &map->entries[i]);
    if (plan->namespaces & CLONE_NEWNS)
        check_uncovered(model, map);
    plan_model_free(model);
}

/* -- golden files */

static void check_json(const struct plan *plan)
{
    json_t *json = plan_to_json(plan);

    assert_int_equal(json_array_size(json), plan->len);
    for (size_t i = 0; i < plan->len; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(json, i), "op")),
                            plan_op_name((enum plan_op)plan->records[i].op));
    json_decref(json);
}

static void write_golden(const char *path, const struct buf *text)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    struct err err;

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text->data, text->len, &err), 0);
}

static void check_golden(const char *case_path, const struct buf *text)
{
    AUTO_FREE char *path = alloc_strf("%.*s.plan", (int)strlen(case_path) - 5, case_path);
    AUTO(buf_done) struct buf golden = {0};
    struct err err;

    if (getenv("CORDON_UPDATE_GOLDEN"))
        write_golden(path, text);
    if (fd_read_file(path, GOLDEN_MAX, &golden, &err))
        fail_msg("%s (CORDON_UPDATE_GOLDEN=1 writes it)", err.msg);
    assert_string_equal(text->data, golden.data);
}

static void test_case(void **state)
{
    const char *path = *state;
    AUTO(plan_case_done) struct plan_case given;
    AUTO(buf_done) struct buf text = {.max = GOLDEN_MAX};
    struct err err = ERR_UNTOUCHED;
    struct plan *plan;

    plan_case_load(&given, path);
    plan = plan_compile(&given.map, &given.host, given.wishes, &err);
    if (plan) {
        assert_untouched(err);
        plan_print(plan, &text);
        check_plan(plan, &given.map);
        check_json(plan);
    } else {
        buf_appendf(&text, "refused, %s: %s\n", err_code_name(err.code), err.msg);
    }
    plan_free(plan);
    check_golden(path, &text);
}

/* -- random maps */

static uint64_t random_state = 0x9e3779b97f4a7c15u;

/* xorshift64 (Marsaglia 2003): the same maps in every run */
static unsigned random_below(unsigned bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % bound;
}

static char *random_path(void)
{
    static const char *const names[] = {"a", "b", ".git", "ab"};
    char *path = alloc_str("");

    for (unsigned depth = 1 + random_below(4); depth; depth--) {
        char *longer = alloc_strf("%s/%s", path, names[random_below(4)]);

        free(path);
        path = longer;
    }
    return path;
}

/* Something that is no directory holds nothing. */
static bool is_possible(const struct access_map *map, const char *path, enum access_kind kind)
{
    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];

        if (str_eq(entry->path, path))
            return false;
        if (path_is_within(path, entry->path) && entry->kind != ACCESS_DIR)
            return false;
        if (path_is_within(entry->path, path) && kind != ACCESS_DIR)
            return false;
    }
    return true;
}

static void random_map(struct access_map *ret)
{
    *ret = (struct access_map){.restricted = true};
    if (random_below(4))
        access_map_add(ret, "/", (enum access)(ACCESS_READ + random_below(2)), ACCESS_DIR,
                       "random");
    for (unsigned count = random_below(RANDOM_ENTRIES); count; count--) {
        enum access_kind kind = random_below(2) ? ACCESS_DIR : (enum access_kind)random_below(3);
        AUTO_FREE char *path = random_path();

        enum access access = (enum access)random_below(3);

        if (is_possible(ret, path, kind))
            access_map_add(ret, path, access, kind, "random")->asks =
                access == ACCESS_DENY && random_below(2);
    }
    access_map_sort(ret);
}

/* The map that the test ended with when it failed. */
static struct access_map random_now;

static int print_random_map(void **state)
{
    for (size_t i = 0; i < random_now.len; i++)
        print_message("    %s%s %s%s\n", access_name(random_now.entries[i].access),
                      random_now.entries[i].asks ? " asks" : "", random_now.entries[i].path,
                      random_now.entries[i].kind == ACCESS_MISSING ? " missing"
                      : random_now.entries[i].kind == ACCESS_FILE  ? " file"
                                                                   : "");
    access_map_done(&random_now);
    return 0;
}

static void test_random_maps(void **state)
{
    struct plan_host host = {.namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID,
                             .has_proc = true,
                             .landlock = 7,
                             .has_listener = true,
                             .has_redirect = true,
                             .has_fuse = true,
                             .arch = SECCOMP_X86_64};

    for (int i = 0; i < RANDOM_MAPS; i++) {
        struct err err;
        struct plan *plan;

        random_map(&random_now);
        plan = plan_compile(&random_now, &host, PLAN_FACTS, &err);
        assert_non_null(plan);
        check_plan(plan, &random_now);
        plan_free(plan);
        access_map_done(&random_now);
    }
}

/* -- limits, and what a command adds */

static void test_too_many_slots(void **state)
{
    struct plan_host host = {
        .namespaces = CLONE_NEWUSER | CLONE_NEWNS, .has_proc = true, .arch = SECCOMP_X86_64};
    struct access_map map = {.restricted = true};
    struct err err;

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "test");
    for (int i = 0; i <= PLAN_MAX_SLOTS; i++) {
        AUTO_FREE char *path = alloc_strf("/root%d", i);

        access_map_add(&map, path, ACCESS_WRITE, ACCESS_DIR, "test");
    }
    access_map_sort(&map);
    assert_null(plan_compile(&map, &host, 0, &err));
    assert_int_equal(err.code, ERR_LIMIT);
    assert_contains(err.msg, "512");
    access_map_done(&map);
}

static void test_a_command_that_is_too_large(void **state)
{
    AUTO_FREE char *large = alloc_zero(PLAN_MAX_BYTES / 2 + 2, 1);
    char *const argv[] = {(char *)"/bin/true", large, NULL};
    struct plan_command command = {.argv = argv, .cwd = "/"};
    struct plan *plan = plan_new();
    AUTO(buf_done) struct buf file = {0};
    struct err err;

    memset(large, 'x', PLAN_MAX_BYTES / 2 + 1);
    assert_int_equal(plan_encode(plan, &command, &file, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_null(file.data);
    plan_free(plan);
}

/* Loopback that is up, limits of one command. */
static void test_what_a_command_changes(void **state)
{
    char *const argv[] = {(char *)"/bin/true", NULL};
    const struct plan_record limit = {.op = PLAN_LIMIT, .other = 7, .value = 99};
    struct plan_command command = {.argv = argv,
                                   .program = "/usr/bin/env",
                                   .cwd = "/",
                                   .flags = PLAN_COMMAND_TTY,
                                   .limits = &limit,
                                   .limits_len = 1};
    struct plan_host host = {.namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET,
                             .has_proc = true,
                             .has_listener = true,
                             .has_redirect = true,
                             .arch = SECCOMP_X86_64};
    AUTO(access_map_done) struct access_map map = {.restricted = true};
    AUTO(buf_done) struct buf file = {0};
    struct plan_view view;
    struct plan *plan;
    struct err err;

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "test");
    access_map_add(&map, "/work", ACCESS_WRITE, ACCESS_DIR, "test");
    access_map_add(&map, "/work/.a", ACCESS_READ, ACCESS_MISSING, "test");
    access_map_add(&map, "/work/.b", ACCESS_READ, ACCESS_MISSING, "test");
    plan = plan_compile(&map, &host, 0, &err);
    assert_non_null(plan);
    assert_int_equal(plan_encode(plan, &command, &file, &err), 0);
    assert_int_equal(plan_view_init(&view, file.data, file.len, &err), 0);
    assert_int_equal(view.header->records, plan->len + 1);
    assert_int_equal(view.header->flags, PLAN_COMMAND_TTY);
    assert_string_equal(plan_string(&view, view.header->program), "/usr/bin/env");
    assert_memory_equal(&view.records[0], &limit, sizeof limit);
    for (uint32_t i = 0; i < view.header->records; i++) {
        assert_int_equal(view.records[i].reserved, 0);
        assert_string_not_equal(plan_string(&view, view.records[i].path), "/work/.a");
    }
    plan_free(plan);
}

/* -- */

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_case(const struct dirent *entry)
{
    return str_ends(entry->d_name, ".json");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest fixed[] = {
        cmocka_unit_test_teardown(test_random_maps, print_random_map),
        cmocka_unit_test(test_too_many_slots),
        cmocka_unit_test(test_a_command_that_is_too_large),
        cmocka_unit_test(test_what_a_command_changes),
    };
    const size_t fixed_len = sizeof fixed / sizeof *fixed;
    struct dirent **names;
    struct CMUnitTest *tests;
    int failed;
    int count = argc == 2 ? scandir(argv[1], &names, is_case, compare_names) : -1;

    if (count <= 0) {
        fprintf(stderr, "usage: test_plan FOLDER (with cases)\n");
        return 2;
    }
    tests = alloc_zero((size_t)count + fixed_len, sizeof *tests);
    for (int i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){.name = names[i]->d_name,
                                       .test_func = test_case,
                                       .initial_state = path_join(argv[1], names[i]->d_name)};
    memcpy(tests + count, fixed, sizeof fixed);
    failed = _cmocka_run_group_tests("plan", tests, (size_t)count + fixed_len, NULL, NULL);
    for (int i = 0; i < count; i++) {
        free(tests[i].initial_state);
        free(names[i]);
    }
    free(names);
    free(tests);
    return failed;
}
