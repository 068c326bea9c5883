/* program: the places where a program of ours finds the others. The search starts at the running
 * program, so this one is copied into trees of each layout and asked there: `test_program NAME`
 * prints what it finds. */
#include "support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *tree; /* of the running test */

static int tree_make(void **state)
{
    tree = support_scratch_new();
    return 0;
}

static int tree_drop(void **state)
{
    support_scratch_remove(tree);
    return 0;
}

/* Makes `path` of the tree, with all above it: a copy of this program, or just some program. */
static void put(const char *path, const char *source)
{
    AUTO_FREE char *target = path_join(tree, path);
    AUTO_FREE char *dir = path_parent(target);
    AUTO_FREE char *command =
        alloc_strf("mkdir -p '%s' && cp '%s' '%s' && chmod 755 '%s'", dir, source, target, target);

    assert_int_equal(system(command), 0);
}

/* What the copy of this program at `from` finds, seen from the tree; "" for nothing there. */
static const char *found(const char *from, const char *name)
{
    static char line[4096];
    AUTO_FREE char *self = program_self();
    AUTO_FREE char *command = alloc_strf("'%s/%s' %s", tree, from, name);
    FILE *output;
    size_t len;

    put(from, self);
    output = popen(command, "re");
    assert_non_null(output);
    len = fread(line, 1, sizeof line - 1, output);
    line[len] = '\0';
    assert_int_equal(pclose(output), 0);
    return str_starts(line, tree) ? line + strlen(tree) + 1 : "";
}

static void one_beside_comes_first(void **state)
{
    put("bin/cordon-server", "/bin/true");
    put("libexec/cordon/cordon-server", "/bin/true");
    put("cli/cordon-server", "/bin/true");
    assert_string_equal(found("bin/cordon", "cordon-server"), "bin/cordon-server");
}

static void an_installed_tree_may_have_been_moved(void **state)
{
    put("libexec/cordon/cordon-files", "/bin/true");
    assert_string_equal(found("bin/cordon", "cordon-files"), "libexec/cordon/cordon-files");
    assert_string_equal(found("libexec/cordon/cordon-server", "cordon-files"),
                        "libexec/cordon/cordon-files");
    assert_string_equal(found("libexec/cordon/cordon-server", "cordon"), "bin/cordon");
}

static void a_build_tree_has_a_directory_for_each(void **state)
{
    put("src/files/cordon-files", "/bin/true");
    put("src/http/cordon-http", "/bin/true");
    put("src/sandbox/launcher/cordon-linux-sandbox", "/bin/true");
    assert_string_equal(found("src/cli/cordon", "cordon-files"), "src/files/cordon-files");
    assert_string_equal(found("src/cli/cordon", "cordon-http"), "src/http/cordon-http");
    assert_string_equal(found("src/cli/cordon", "cordon-linux-sandbox"),
                        "src/sandbox/launcher/cordon-linux-sandbox");
    assert_string_equal(found("bench/bench", "cordon"), "src/cli/cordon");
}

static void what_cannot_be_executed_is_passed_over(void **state)
{
    AUTO_FREE char *beside = NULL;

    put("bin/cordon-http", "/bin/true");
    put("libexec/cordon/cordon-http", "/bin/true");
    beside = path_join(tree, "bin/cordon-http");
    assert_int_equal(chmod(beside, 0644), 0);
    assert_string_equal(found("bin/cordon", "cordon-http"), "libexec/cordon/cordon-http");
}

static void only_programs_of_ours_are_found(void **state)
{
    struct err err;

    put("bin/true", "/bin/true");
    assert_string_equal(found("bin/cordon", "true"), "");
    assert_null(program_find("true", &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_contains(err.msg, "the program true is neither beside /");
}

/* A sandbox protects what program_add_paths() lists: wherever one is found has to be in it. */
static void every_place_of_the_search_is_listed(void **state)
{
    AUTO(strv_done) struct strv paths = {0};
    AUTO_FREE char *self = program_self();
    AUTO_FREE char *here = path_parent(self);
    AUTO_FREE char *beside = path_join(here, "cordon-linux-sandbox");
    AUTO_FREE char *installed = path_clean(here, "../libexec/cordon/cordon-server");

    program_add_paths(&paths);
    assert_true(strv_has(&paths, beside));
    assert_true(strv_has(&paths, installed));
    for (size_t i = 0; i < paths.len; i++)
        assert_true(path_is_clean(paths.items[i]));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_make, tree_drop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(one_beside_comes_first),
        TEST(an_installed_tree_may_have_been_moved),
        TEST(a_build_tree_has_a_directory_for_each),
        TEST(what_cannot_be_executed_is_passed_over),
        TEST(only_programs_of_ours_are_found),
        TEST(every_place_of_the_search_is_listed),
    };

    if (argc == 2) {
        struct err err;
        AUTO_FREE char *path = program_find(argv[1], &err);

        return printf("%s", path ? path : "") < 0;
    }
    return cmocka_run_group_tests_name("program", tests, NULL, NULL);
}
