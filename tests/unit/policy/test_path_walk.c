/* path_walk: paths followed on made-up hosts. */
#include "../base/cases.h"
#include "fake_host.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "policy/host_view.h"

#include <string.h>

static const char host_text[] =
    "{\"/usr/bin/sh\": \"file\", \"/bin\": {\"link\": \"usr/bin\"},"
    " \"/a/b/up\": {\"link\": \"../../usr\"}, \"/a/abs\": {\"link\": \"/usr/bin\"},"
    " \"/chain\": {\"link\": \"a/abs\"}, \"/loop\": {\"link\": \"loop\"},"
    " \"/gone\": {\"link\": \"nowhere/deep\"}, \"/back\": {\"link\": \"nowhere/../usr\"},"
    " \"/over\": {\"link\": \"../../../..\"}, \"/dots\": {\"link\": \"./usr//./bin/\"},"
    " \"/root\": \"hidden\", \"/root/x\": \"file\", \"/pipe\": \"other\"}";

struct walk_case {
    const char *path;
    const char *wanted;
    enum path_end end;
    enum access_kind kind;
    size_t links;
    size_t name_link;
};

static void paths_are_followed(void **state)
{
    static const struct walk_case cases[] = {
        {"/", "/", PATH_FOUND, ACCESS_DIR, 0, 0},
        {"/usr/bin", "/usr/bin", PATH_FOUND, ACCESS_DIR, 0, 0},
        {"/bin", "/usr/bin", PATH_FOUND, ACCESS_DIR, 1, 1},
        {"/bin/sh", "/usr/bin/sh", PATH_FOUND, ACCESS_FILE, 1, 0},
        {"/a/b/up/bin/sh", "/usr/bin/sh", PATH_FOUND, ACCESS_FILE, 1, 0},
        {"/chain", "/usr/bin", PATH_FOUND, ACCESS_DIR, 2, 1},
        {"/chain/sh", "/usr/bin/sh", PATH_FOUND, ACCESS_FILE, 2, 0},
        {"/over", "/", PATH_FOUND, ACCESS_DIR, 1, 1},
        {"/dots", "/usr/bin", PATH_FOUND, ACCESS_DIR, 1, 1},
        {"/dots/sh", "/usr/bin/sh", PATH_FOUND, ACCESS_FILE, 1, 0},
        {"/pipe", "/pipe", PATH_FOUND, ACCESS_FILE, 0, 0},
        {"/new", "/new", PATH_MISSING, ACCESS_MISSING, 0, 0},
        {"/new/deep/er", "/new/deep/er", PATH_MISSING, ACCESS_MISSING, 0, 0},
        {"/bin/new/x", "/usr/bin/new/x", PATH_MISSING, ACCESS_MISSING, 1, 0},
        {"/gone", "/nowhere/deep", PATH_MISSING, ACCESS_MISSING, 1, 1},
        {"/gone/x", "/nowhere/deep/x", PATH_MISSING, ACCESS_MISSING, 1, 0},
        {"/root", "/root", PATH_FOUND, ACCESS_DIR, 0, 0},
        {"/root/x", "/root", PATH_HIDDEN, ACCESS_DIR, 0, 0},
        {"/root/x/y", "/root", PATH_HIDDEN, ACCESS_DIR, 0, 0},
        {"/usr/bin/sh/x", "/usr/bin/sh", PATH_BLOCKED, ACCESS_FILE, 0, 0},
        {"/bin/sh/x/y", "/usr/bin/sh", PATH_BLOCKED, ACCESS_FILE, 1, 0},
    };
    AUTO_JSON json_t *paths = json_loads(host_text, 0, NULL);
    struct fake_host host = fake_host_make(paths);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO(path_walk_done) struct path_walk walk = {0};
        struct err err;

        if (path_walk(&host.view, cases[i].path, &walk, &err))
            fail_msg("%s: %s", cases[i].path, err.msg);
        if (strcmp(walk.path, cases[i].wanted) != 0 || walk.end != cases[i].end ||
            walk.kind != cases[i].kind || walk.links_len != cases[i].links ||
            walk.name_link != cases[i].name_link)
            fail_msg("%s: got %s, end %d, kind %d, %zu links, name link %zu", cases[i].path,
                     walk.path, walk.end, walk.kind, walk.links_len, walk.name_link);
    }
}

/* Collects; does not hold for rm. */
static bool note(void *data, const char *name)
{
    char *names = data;

    strcat(strcat(names, " "), name);
    return strcmp(name, "/usr/bin/rm") != 0;
}

static void every_name_on_the_way_counts(void **state)
{
    static const struct {
        const char *path, *names;
        bool holds;
    } cases[] = {
        {"/usr/bin/sh", " /usr /usr/bin /usr/bin/sh", true},
        {"/bin/sh", " /bin /usr /usr/bin /usr/bin/sh", true},
        {"/chain/sh", " /chain /a /a/abs /usr /usr/bin /usr/bin/sh", true},
        {"/a/b/up/bin", " /a /a/b /a/b/up /usr /usr/bin", true},
        {"/back/bin", " /back /nowhere /usr /usr/bin", true},
        {"/new/deep", " /new /new/deep", true},
        {"/", "", true},
        {"/usr/bin/rm", " /usr /usr/bin /usr/bin/rm", false},
        {"/loop", " /loop /loop /loop", false},
        {"/root/x", " /root /root/x", false},
    };
    AUTO_JSON json_t *paths = json_loads(host_text, 0, NULL);
    struct fake_host host = fake_host_make(paths);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char names[1024] = "";
        bool holds = path_way(&host.view, cases[i].path, note, names);

        if (holds != cases[i].holds || strncmp(names, cases[i].names, strlen(cases[i].names)) != 0)
            fail_msg("%s: %d,%s", cases[i].path, holds, names);
    }
}

static void links_are_told_in_order(void **state)
{
    AUTO_JSON json_t *paths = json_loads(host_text, 0, NULL);
    struct fake_host host = fake_host_make(paths);
    AUTO(path_walk_done) struct path_walk walk = {0};
    struct err err;

    assert_int_equal(path_walk(&host.view, "/chain/sh", &walk, &err), 0);
    assert_string_equal(walk.links[0].path, "/chain");
    assert_string_equal(walk.links[0].target, "a/abs");
    assert_string_equal(walk.links[1].path, "/a/abs");
    assert_string_equal(walk.links[1].target, "/usr/bin");
}

static void what_leads_nowhere_is_an_error(void **state)
{
    AUTO_JSON json_t *paths = json_loads(host_text, 0, NULL);
    struct fake_host host = fake_host_make(paths);
    struct path_walk walk;
    struct err err;

    assert_int_equal(path_walk(&host.view, "/loop/x", &walk, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_contains(err.msg, "/loop/x: more than 40 symlinks");
    assert_int_equal(path_walk(&host.view, "/back", &walk, &err), -1);
    assert_contains(err.msg, "/back goes through /nowhere, which is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_followed),
        cmocka_unit_test(every_name_on_the_way_counts),
        cmocka_unit_test(links_are_told_in_order),
        cmocka_unit_test(what_leads_nowhere_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
