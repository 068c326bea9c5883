/* grant: the smallest widening for a denial, on paths that are there and paths that are not. */
#include "../base/support.h"

#include "approval/grant.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "denial/denial.h"
#include "policy/access.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char *folder;
static struct access_map map;

/* A folder of Cordon's, and links as a repository may hold them. */
static void make_links(void)
{
    static const struct {
        const char *target;
        const char *name;
    } links[] = {{"file", "link"}, {"/mnt", "mnt"}, {"/usr", "usr"}, {"own", "to-own"}};
    AUTO_FREE char *own = alloc_strf("%s/own", folder);

    assert_int_equal(mkdir(own, 0700), 0);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        AUTO_FREE char *path = alloc_strf("%s/%s", folder, links[i].name);

        assert_int_equal(symlink(links[i].target, path), 0);
    }
}

static int setup(void **state)
{
    AUTO_FREE char *file = NULL;
    AUTO_FREE char *secret = NULL;
    AUTO_FREE char *open_place = NULL;
    AUTO_FREE char *held = NULL;
    FILE *made;

    folder = support_scratch_new();
    file = alloc_strf("%s/file", folder);
    made = fopen(file, "we");
    assert_non_null(made);
    fclose(made);
    make_links();
    secret = alloc_strf("%s/secret", folder);
    open_place = alloc_strf("%s/open", folder);
    held = alloc_strf("%s/open/.git", folder);
    map = (struct access_map){.restricted = true, .network = NETWORK_RESTRICTED};
    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "built-in");
    access_map_add(&map, secret, ACCESS_DENY, ACCESS_MISSING, "--deny");
    access_map_add(&map, open_place, ACCESS_WRITE, ACCESS_DIR, "--writable");
    access_map_add(&map, held, ACCESS_READ, ACCESS_MISSING, "protected name .git");
    access_map_sort(&map);
    return 0;
}

static int teardown(void **state)
{
    access_map_done(&map);
    support_scratch_remove(folder);
    return 0;
}

struct refusal {
    enum denial_operation operation;
    enum denial_source source;
    const char *name; /* below the folder; NULL: no path */
    unsigned flags;
    const char *other; /* as `name` */
};

/* The words of the grant, with FOLDER for the folder; "none" when there is none. Caller frees. */
static char *granted(const struct refusal *refusals, size_t len)
{
    struct denial items[DENIALS_MAX] = {0};
    const struct denials denials = {.items = items, .len = len};
    AUTO_FREE char *own = alloc_strf("%s/own", folder);
    char *const own_paths[] = {own, NULL};
    const struct grant_bounds bounds = {.access = &map, .own_paths = own_paths};
    AUTO(grant_done) struct grant grant = {0};
    bool found;
    size_t at = strlen(folder);
    char *text;

    for (size_t i = 0; i < len; i++) {
        items[i].operation = refusals[i].operation;
        items[i].source = refusals[i].source;
        items[i].flags = refusals[i].flags;
        items[i].path = refusals[i].name ? alloc_strf("%s%s", folder, refusals[i].name) : NULL;
        items[i].other_path =
            refusals[i].other ? alloc_strf("%s%s", folder, refusals[i].other) : NULL;
    }
    found = grant_find(&denials, &bounds, &grant);
    text = alloc_str(found ? grant.words : "none");
    for (char *here; (here = strstr(text, folder));) { /* the folder's name is longer than "F" */
        *here = 'F';
        memmove(here + 1, here + at, strlen(here + at) + 1);
    }
    for (size_t i = 0; i < len; i++) {
        free(items[i].path);
        free(items[i].other_path);
    }
    return text;
}

static void each_denial_has_its_grant(void **state)
{
    static const struct {
        struct refusal refusal;
        const char *words;
    } cases[] = {
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/file"}, "writing F/file"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/new"}, "writing F"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/a/b/new"}, "writing F"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/link"}, "writing F/file"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/mnt/new"}, "writing /mnt"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/usr/new"}, "none"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/usr/bin/new"}, "none"},
        {{DENIAL_READ, DENIAL_BY_SANDBOX, "/usr/bin/env"}, "reading /usr/bin/env"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/own"}, "none"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/own/rules"}, "none"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/to-own"}, "none"},
        {{DENIAL_READ, DENIAL_BY_SANDBOX, "/file"}, "reading F/file"},
        {{DENIAL_EXECUTE, DENIAL_BY_SANDBOX, "/file"}, "reading F/file"},
        {{DENIAL_CONNECT, DENIAL_BY_SANDBOX, NULL}, "the network"},
        {{DENIAL_READ, DENIAL_BY_SANDBOX, "/secret"}, "none"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/secret/x"}, "none"},
        {{DENIAL_WRITE, DENIAL_BY_HOST, "/file"}, "none"},
        {{DENIAL_WRITE, DENIAL_BY_UNKNOWN, NULL}, "none"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, NULL}, "none"},
        {{DENIAL_OTHER, DENIAL_BY_SANDBOX, "/file"}, "none"},
        {{DENIAL_SIGNAL, DENIAL_BY_SANDBOX, NULL}, "none"},
        /* of names the directory, whether they are there or not */
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/new", DENIAL_CREATES}, "writing F"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/file", DENIAL_CREATES}, "writing F"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/file", DENIAL_RENAMES}, "writing F"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/file", DENIAL_RENAMES, "/secret/x"}, "none"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/open/x", DENIAL_RENAMES, "/file"}, "writing F"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "", DENIAL_FOLDER}, "writing F"},
        /* a held name, and a directory that would become a repository */
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/open/.git", DENIAL_CREATES}, "none"},
        {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/open/HEAD", DENIAL_CREATES}, "none"},
        {{DENIAL_BIND, DENIAL_BY_SANDBOX, "/socket", DENIAL_SOCKET}, "writing F"},
        {{DENIAL_CONNECT, DENIAL_BY_SANDBOX, "/file", DENIAL_SOCKET}, "none"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_FREE char *words = granted(&cases[i].refusal, 1);

        assert_string_equal(words, cases[i].words);
    }
}

static void several_denials_need_all_of_it(void **state)
{
    const struct refusal both[] = {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/file"},
                                   {DENIAL_CONNECT, DENIAL_BY_SANDBOX, NULL},
                                   {DENIAL_WRITE, DENIAL_BY_HOST, "/other"}};
    const struct refusal within[] = {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/new"},
                                     {DENIAL_WRITE, DENIAL_BY_SANDBOX, "/file"}};
    const struct refusal hopeless[] = {{DENIAL_WRITE, DENIAL_BY_SANDBOX, "/file"},
                                       {DENIAL_OTHER, DENIAL_BY_UNKNOWN, NULL}};
    AUTO_FREE char *first = granted(both, 3);
    AUTO_FREE char *second = granted(within, 2);
    AUTO_FREE char *third = granted(hopeless, 2);

    assert_string_equal(first, "writing F/file and the network");
    assert_string_equal(second, "writing F");
    assert_string_equal(third, "none");
}

static void the_root_is_never_given_away(void **state)
{
    struct denial item = {.operation = DENIAL_WRITE, .source = DENIAL_BY_SANDBOX};
    const struct denials denials = {.items = &item, .len = 1};
    const struct grant_bounds bounds = {.access = &map};
    static const char *const paths[] = {"/there-is-no-such-folder/x", "/proc/self/root",
                                        "/proc/self/root/there-is-no-such-folder/x"};
    struct grant grant;

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        item.path = alloc_str(paths[i]);
        assert_false(grant_find(&denials, &bounds, &grant));
        free(item.path);
    }
}

static void an_open_network_is_not_the_reason(void **state)
{
    const struct refusal refusal = {DENIAL_CONNECT, DENIAL_BY_SANDBOX, NULL};
    AUTO_FREE char *words = NULL;

    map.network = NETWORK_PROXIED;
    words = granted(&refusal, 1);
    assert_string_equal(words, "none");
}

#define PLACED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACED(each_denial_has_its_grant),
        PLACED(several_denials_need_all_of_it),
        PLACED(the_root_is_never_given_away),
        PLACED(an_open_network_is_not_the_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
