/* program: the places where a program of ours finds the others. The search starts at the running
 * program, so this one is copied into trees of each layout and asked there: `test_program NAME`
 * prints what it finds, `test_program --lists PATH` succeeds when that is listed. */
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

static void all_may_lie_together(void **state)
{
    put("programs/cordon-files", "/bin/true");
    assert_string_equal(found("programs/cordon", "cordon-files"), "programs/cordon-files");
    assert_string_equal(found("programs/cordon-files", "cordon"), "programs/cordon");
}

/* A command may write there, and whoever comes from elsewhere is not ours. */
static void nowhere_else_is_looked(void **state)
{
    static const char *const elsewhere[] = {"bin/cordon-http",      "http/cordon-http",
                                            "src/http/cordon-http", "src/cli/cordon-http",
                                            "cordon-http",          "libexec/cordon-http"};

    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        put(elsewhere[i], "/bin/true");
    put("libexec/cordon/cordon-files", "/bin/true");
    assert_string_equal(found("bin/cordon", "cordon-http"), "");
    assert_string_equal(found("libexec/cordon/cordon-files", "cordon-http"), "");
    assert_string_equal(found("deep/in/here/cordon", "cordon-http"), "");
    put("src/libexec/cordon/cordon-files", "/bin/true");
    assert_string_equal(found("src/tls/cordon-tls", "cordon-http"), "src/http/cordon-http");
}

static void what_cannot_be_executed_is_passed_over(void **state)
{
    AUTO_FREE char *path = path_join(tree, "libexec/cordon/cordon-http");

    put("libexec/cordon/cordon-http", "/bin/true");
    assert_int_equal(chmod(path, 0644), 0);
    assert_string_equal(found("bin/cordon", "cordon-http"), "");
}

static void only_programs_of_ours_are_found(void **state)
{
    struct err err;

    put("libexec/cordon/true", "/bin/true");
    assert_string_equal(found("bin/cordon", "true"), "");
    assert_null(program_find("true", &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_contains(err.msg, "the program true is neither in /");
}

/* What the copy of this program at `from` says of a place: that it is one of ours, or not. */
static void check_listed(const char *from, const char *path, bool is)
{
    AUTO_FREE char *self = program_self();
    AUTO_FREE char *command = alloc_strf("'%s/%s' --lists '%s/%s'", tree, from, tree, path);

    put(from, self);
    assert_int_equal(system(command) == 0, is);
}

/* A sandbox protects what program_add_paths() lists: wherever one is found, or would be, has to be in it. */
static void every_place_of_the_search_is_listed(void **state)
{
    check_listed("alone/cordon", "alone/cordon-linux-sandbox", true);
    check_listed("alone/cordon", "alone/cordon-tls", true);
    check_listed("alone/cordon", "libexec/cordon", true);
    check_listed("alone/cordon", "libexec", false);
    check_listed("alone/cordon", "src/http/cordon-http", false);
    put("libexec/cordon/cordon-files", "/bin/true");
    check_listed("bin/cordon", "libexec/cordon", true);
    check_listed("bin/cordon", "bin/cordon", true);
    check_listed("bin/cordon", "bin/cordon-http", false);
    check_listed("bin/cordon", "share/cordon/presets", true);
    check_listed("libexec/cordon/cordon-server", "libexec/cordon", true);
    check_listed("libexec/cordon/cordon-server", "bin/cordon", true);
    check_listed("src/cli/cordon", "src/proxy/cordon-proxy", true);
    check_listed("src/cli/cordon", "presets", true);
}

static int lists(const char *path)
{
    AUTO(strv_done) struct strv paths = {0};

    program_add_paths(&paths);
    for (size_t i = 0; i < paths.len; i++)
        if (!path_is_clean(paths.items[i]))
            return 2;
    return !strv_has(&paths, path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_make, tree_drop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(an_installed_tree_may_have_been_moved),
        TEST(a_build_tree_has_a_directory_for_each),
        TEST(all_may_lie_together),
        TEST(nowhere_else_is_looked),
        TEST(what_cannot_be_executed_is_passed_over),
        TEST(only_programs_of_ours_are_found),
        TEST(every_place_of_the_search_is_listed),
    };

    if (argc == 3)
        return lists(argv[2]);
    if (argc == 2) {
        struct err err;
        AUTO_FREE char *path = program_find(argv[1], &err);

        return printf("%s", path ? path : "") < 0;
    }
    return cmocka_run_group_tests_name("program", tests, NULL, NULL);
}
