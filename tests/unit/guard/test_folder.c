/* Which names the guard keeps out of which directories, on real ones. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "guard/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES = 4, TEXT = 4096 };

/* A writable root with two names that are held, and one below a directory in it. */
struct scene {
    char *root;
    int dir;
    struct guard_map *bytes;
    struct command command;
};

static void add(struct scene *scene, uint32_t index, const char *name, int flags)
{
    struct guard_map *header = scene->bytes;
    struct guard_entry *entry = (struct guard_entry *)(header + 1) + index;
    char *strings = (char *)((struct guard_entry *)(header + 1) + ENTRIES);
    const bool is_root = flags & GUARD_ENTRY_ROOT;

    *entry = (struct guard_entry){.path = header->strings,
                                  .access = is_root ? GUARD_WRITE : GUARD_READ,
                                  .kind = is_root ? GUARD_DIR : GUARD_MISSING,
                                  .flags = (uint16_t)flags};
    header->strings +=
        (uint32_t)snprintf(strings + header->strings, 512, "%s%s", scene->root, name) + 1;
}

static int set_up(void **state)
{
    struct scene *scene = calloc(1, sizeof *scene);

    assert_non_null(scene);
    scene->root = support_scratch_new();
    scene->dir = open(scene->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_return_code(mkdirat(scene->dir, "sub", 0700), 0);
    scene->bytes = calloc(1, TEXT);
    assert_non_null(scene->bytes);
    *scene->bytes = (struct guard_map){.magic = GUARD_MAGIC,
                                       .version = GUARD_VERSION,
                                       .flags = GUARD_MAP_RESTRICTED,
                                       .entries = ENTRIES,
                                       .strings = 1};
    add(scene, 0, "", GUARD_ENTRY_ROOT);
    add(scene, 1, "/.codex", GUARD_ENTRY_HELD_NAME);
    add(scene, 2, "/.git", GUARD_ENTRY_HELD_NAME);
    add(scene, 3, "/sub/secret", GUARD_ENTRY_HELD_NAME);
    scene->bytes->bytes = (uint32_t)(sizeof(struct guard_map) +
                                     ENTRIES * sizeof(struct guard_entry) + scene->bytes->strings);
    assert_true(map_init(&scene->command.map, scene->bytes, scene->bytes->bytes));
    scene->command.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    folders_open(&scene->command);
    assert_false(scene->command.is_broken);
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;

    folders_close(&scene->command);
    close(scene->command.root);
    close(scene->dir);
    support_scratch_remove(scene->root);
    free(scene->bytes);
    free(scene);
    return 0;
}

/* The entry that refuses `name` in the directory `in` of the root; -1: none does. */
static int refused_in(struct scene *scene, const char *in, const char *name)
{
    AUTO(place_done)
    struct place place = {.dir = openat(scene->dir, in, O_PATH | O_DIRECTORY | O_CLOEXEC),
                          .lock = -1};
    int entry;

    snprintf(place.name, sizeof place.name, "%s", name);
    assert_true(identify(place.dir, &place.identity));
    return folder_refuses(&scene->command, &place, &entry) ? entry : -1;
}

static void fold(struct scene *scene)
{
    for (uint32_t i = 0; i < scene->command.folders_len; i++)
        scene->command.folders[i].folds_case = true;
}

static void test_held_names_are_refused_where_they_are_held(void **state)
{
    assert_int_equal(refused_in(*state, ".", ".codex"), 1);
    assert_int_equal(refused_in(*state, ".", ".git"), 2);
    assert_int_equal(refused_in(*state, ".", ".git/"), 2);
    assert_int_equal(refused_in(*state, "sub", "secret"), 3);
    assert_int_equal(refused_in(*state, "sub", ".git"), -1);
    assert_int_equal(refused_in(*state, ".", "secret"), -1);
    assert_int_equal(refused_in(*state, ".", ".gitignore"), -1);
    assert_int_equal(refused_in(*state, ".", "git"), -1);
}

static void test_case_never_counts(void **state)
{
    assert_int_equal(refused_in(*state, ".", ".GIT"), 2);
    assert_int_equal(refused_in(*state, ".", ".CodeX"), 1);
}

static void test_unicode_counts_where_names_are_folded(void **state)
{
    const char *const spelled[] = {".g\u200cit", ".git\u200d", "\ufeff.git", ".codex\u00ad",
                                   ".\uff47it"};

    for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++)
        assert_int_equal(refused_in(*state, ".", spelled[i]), -1);
    fold(*state);
    for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++)
        assert_int_not_equal(refused_in(*state, ".", spelled[i]), -1);
    assert_int_equal(refused_in(*state, ".", "gr\u00fc\u00dfe"), -1);
    assert_int_equal(refused_in(*state, ".", "x.git\u200c"), -1);
    assert_int_equal(refused_in(*state, ".", ".gi\u200c"), 2); /* it may stand for "t" */
}

static void test_a_directory_that_was_moved_keeps_its_names(void **state)
{
    struct scene *scene = *state;

    assert_return_code(renameat(scene->dir, "sub", scene->dir, "moved"), 0);
    assert_return_code(mkdirat(scene->dir, "sub", 0700), 0);
    assert_int_equal(refused_in(scene, "moved", "secret"), 3);
    assert_int_equal(refused_in(scene, "sub", "secret"), -1);
}

static void test_a_root_becomes_no_repository(void **state)
{
    struct scene *scene = *state;

    assert_int_equal(refused_in(scene, ".", "HEAD"), -1);
    support_write(scene->root, "HEAD", "ref: refs/heads/x\n");
    assert_int_equal(refused_in(scene, ".", "refs"), -1);
    assert_int_equal(refused_in(scene, ".", "commondir"), 0);
    assert_return_code(mkdirat(scene->dir, "refs", 0700), 0);
    assert_int_equal(refused_in(scene, ".", "objects"), 0);
    assert_int_equal(refused_in(scene, "sub", "objects"), -1);
    assert_return_code(unlinkat(scene->dir, "HEAD", 0), 0);
    assert_int_equal(refused_in(scene, ".", "objects"), -1);
    assert_return_code(symlinkat("nowhere", scene->dir, "objects"), 0);
    assert_int_equal(refused_in(scene, ".", "HEAD"), 0);
    assert_int_equal(refused_in(scene, ".", "head"), 0);
}

static void test_a_root_that_is_one_already_may_have_such_names(void **state)
{
    struct scene *scene = *state;

    assert_return_code(mkdirat(scene->dir, ".git", 0700), 0);
    assert_return_code(mkdirat(scene->dir, "refs", 0700), 0);
    assert_return_code(mkdirat(scene->dir, "objects", 0700), 0);
    assert_int_equal(refused_in(scene, ".", "HEAD"), 0);
    support_write(scene->root, ".git/HEAD", "ref: refs/heads/x\n");
    assert_int_equal(refused_in(scene, ".", "HEAD"), 0); /* git passes over such a .git */
    assert_return_code(mkdirat(scene->dir, ".git/refs", 0700), 0);
    assert_return_code(mkdirat(scene->dir, ".git/objects", 0700), 0);
    assert_int_equal(refused_in(scene, ".", "HEAD"), -1);
    support_write(scene->root, ".git/HEAD", "");
    assert_int_equal(refused_in(scene, ".", "HEAD"), 0);
}

static void test_a_bare_repository_stays_one(void **state)
{
    struct scene *scene = *state;

    assert_return_code(mkdirat(scene->dir, "refs", 0700), 0);
    assert_return_code(mkdirat(scene->dir, "objects", 0700), 0);
    support_write(scene->root, "HEAD", "ref: refs/heads/x\n");
    assert_int_equal(refused_in(scene, ".", "HEAD"), -1); /* from HEAD.lock */
}

static void test_an_end_that_fat_drops_counts_where_names_are_folded(void **state)
{
    assert_int_equal(refused_in(*state, ".", ".git."), -1);
    fold(*state);
    assert_int_equal(refused_in(*state, ".", ".git."), 2);
    assert_int_equal(refused_in(*state, ".", ".GIT. . "), 2);
    assert_int_equal(refused_in(*state, ".", ".gi."), -1);
    assert_int_equal(refused_in(*state, ".", "..."), -1);
}

static void test_two_guards_do_not_make_one_together(void **state)
{
    struct scene *scene = *state;
    AUTO(place_done)
    struct place place = {.dir = openat(scene->dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC),
                          .lock = -1};
    int entry;

    snprintf(place.name, sizeof place.name, "HEAD");
    assert_true(identify(place.dir, &place.identity));
    assert_false(folder_refuses(&scene->command, &place, &entry));
    assert_int_equal(refused_in(scene, ".", "refs"), 0); /* while that one is at it */
    place_done(&place);
    assert_int_equal(refused_in(scene, ".", "refs"), -1);
}

static void test_a_name_that_is_held_anywhere_is_known_without_its_directory(void **state)
{
    const struct command *command = &((struct scene *)*state)->command;

    assert_true(folder_refuses_name(command, ".git"));
    assert_true(folder_refuses_name(command, ".CODEX"));
    assert_true(folder_refuses_name(command, "secret"));
    assert_true(folder_refuses_name(command, "objects"));
    assert_false(folder_refuses_name(command, "agent.sock"));
}

/* Where nothing is mounted a path is all that says what lies there. */
static void test_without_mounts_no_way_leads_through_a_held_name(void **state)
{
    static const struct {
        const char *path;
        bool is_guarded, is_guarded_folded;
    } cases[] = {
        {"", true, true},
        {"/sub", true, true},
        {"/sub/deep", true, true},
        {"/.gitignore", true, true},
        {"/.git", false, false},
        {"/.git/hooks", false, false},
        {"/.GIT/hooks", false, false},
        {"/SUB/Secret/deep", false, false},
        {"/.g\u200cit/hooks", true, false},
        {"/sub/.git", true, true},
    };
    struct scene *scene = *state;

    scene->bytes->flags |= GUARD_MAP_ALONE;
    for (int folded = 0; folded < 2; folded++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            AUTO_FREE char *path = alloc_strf("%s%s", scene->root, cases[i].path);

            assert_int_equal(folder_is_guarded(&scene->command, path),
                             folded ? cases[i].is_guarded_folded : cases[i].is_guarded);
        }
        fold(scene);
    }
    assert_false(folder_is_guarded(&scene->command, "/etc"));
    assert_false(folder_is_guarded(&scene->command, "/proc/1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_held_names_are_refused_where_they_are_held, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_case_never_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unicode_counts_where_names_are_folded, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_directory_that_was_moved_keeps_its_names, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_bare_repository_stays_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_end_that_fat_drops_counts_where_names_are_folded,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_root_becomes_no_repository, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_root_that_is_one_already_may_have_such_names, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_two_guards_do_not_make_one_together, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_name_that_is_held_anywhere_is_known_without_its_directory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_mounts_no_way_leads_through_a_held_name,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
