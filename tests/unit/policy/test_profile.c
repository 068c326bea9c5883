/* profile, profile_text: the built-in profiles, and entries as people write them. */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "policy/profile.h"

#include <string.h>

/* "TEXT ACCESS" of an entry. */
static void assert_entry(const struct profile *profile, size_t index, const char *wanted)
{
    static const char *const names[] = {
        [PROFILE_PATH_ROOT] = ":root",
        [PROFILE_PATH_MINIMAL] = ":minimal",
        [PROFILE_PATH_PROJECT_ROOTS] = ":workspace_roots",
        [PROFILE_PATH_TMPDIR] = ":tmpdir",
        [PROFILE_PATH_SLASH_TMP] = ":slash_tmp",
        [PROFILE_PATH_UNKNOWN] = "",
    };
    const struct profile_entry *entry;
    AUTO_FREE char *line = NULL;

    assert_true(index < profile->entries.len);
    entry = &profile->entries.items[index];
    line = alloc_strf("%s%s%s %s", entry->path ? entry->path : names[entry->path_kind],
                      entry->subpath ? "/" : "", entry->subpath ? entry->subpath : "",
                      access_name(entry->access));
    assert_string_equal(line, wanted);
}

static void read_only_reads_everything(void **state)
{
    AUTO(profile_done) struct profile profile = {0};

    profile_init_read_only(&profile, NETWORK_RESTRICTED);
    assert_int_equal(profile.kind, PROFILE_MANAGED);
    assert_int_equal(profile.network, NETWORK_RESTRICTED);
    assert_int_equal(profile.entries.len, 1);
    assert_entry(&profile, 0, ":root read");
}

static void workspace_write_in_order(void **state)
{
    AUTO(profile_done) struct profile profile = {0};
    char *roots[] = {(char *)"/srv", (char *)"/data", NULL};
    struct profile_workspace options = {.network = NETWORK_ENABLED, .extra_roots = roots};

    profile_init_workspace_write(&profile, &options);
    assert_int_equal(profile.network, NETWORK_ENABLED);
    assert_int_equal(profile.entries.len, 6);
    assert_entry(&profile, 0, ":root read");
    assert_entry(&profile, 1, ":workspace_roots write");
    assert_entry(&profile, 2, ":slash_tmp write");
    assert_entry(&profile, 3, ":tmpdir write");
    assert_entry(&profile, 4, "/srv write");
    assert_entry(&profile, 5, "/data write");
    assert_string_equal(profile.entries.items[5].origin, "built-in workspace-write");
}

static void workspace_write_without_temporary_dirs(void **state)
{
    AUTO(profile_done) struct profile profile = {0};
    struct profile_workspace options = {.exclude =
                                            PROFILE_EXCLUDE_TMPDIR | PROFILE_EXCLUDE_SLASH_TMP};

    profile_init_workspace_write(&profile, &options);
    assert_int_equal(profile.entries.len, 2);
    assert_entry(&profile, 1, ":workspace_roots write");
}

static void built_in_names(void **state)
{
    static const char *const names[] = {":read-only",          "read-only",
                                        ":workspace",          "workspace-write",
                                        ":danger-full-access", "danger-full-access"};
    AUTO(profile_done) struct profile untouched = {.network = NETWORK_PROXIED};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        AUTO(profile_done) struct profile profile = {0};

        assert_true(profile_init_builtin(&profile, names[i]));
        assert_string_equal(profile.id, names[i | 1]); /* told of by one name */
        assert_string_equal(profile_builtin_name(names[i]), names[i | 1]);
        assert_int_equal(profile.kind == PROFILE_DISABLED,
                         str_ends(names[i], "danger-full-access"));
    }
    assert_null(profile_builtin_name(":workspace-write"));
    assert_false(profile_init_builtin(&untouched, ":workspace-write"));
    assert_false(profile_init_builtin(&untouched, "workspace"));
    assert_false(profile_init_builtin(&untouched, ""));
    assert_int_equal(untouched.network, NETWORK_PROXIED);
}

static void copies_are_independent(void **state)
{
    AUTO(profile_done) struct profile profile = {0};
    AUTO(profile_done) struct profile copy = {0};
    struct profile_entry entry = {.path = (char *)"/a", .access = ACCESS_DENY};

    assert_true(profile_init_builtin(&profile, ":workspace"));
    profile_copy(&profile, &copy);
    profile_entries_add(&profile.entries, &entry);
    assert_int_equal(copy.entries.len, 4);
    assert_string_equal(copy.id, "workspace-write");
    assert_true(profile_entry_equal(&copy.entries.items[1], &profile.entries.items[1]));
    assert_false(profile_entry_equal(&copy.entries.items[1], &profile.entries.items[2]));
    assert_string_equal(profile.entries.items[4].origin, "permission profile");
}

/* --- text --- */

struct text_case {
    const char *text;
    enum access access;
    const char *wanted; /* "ENTRY ACCESS", or part of the message after a "!" */
    enum profile_path_kind kind;
};

static void check_text(const struct text_case *one)
{
    AUTO(profile_done) struct profile profile = {0};
    struct profile_text options = {.text = one->text,
                                   .access = one->access,
                                   .unknown = PROFILE_UNKNOWN_REFUSE,
                                   .origin = "--flag",
                                   .home = "/home/u",
                                   .base = "/w[1]/src"};
    struct err err = {0};
    int status = profile_add_text(&profile, &options, &err);

    if (one->wanted[0] == '!') {
        if (!status)
            fail_msg("%s should be refused", one->text);
        assert_int_equal(err.code, ERR_INVALID);
        assert_contains(err.msg, one->wanted + 1);
        assert_int_equal(profile.entries.len, 0);
        return;
    }
    if (status)
        fail_msg("%s: %s", one->text, err.msg);
    assert_entry(&profile, 0, one->wanted);
    assert_int_equal(profile.entries.items[0].path_kind, one->kind);
    assert_string_equal(profile.entries.items[0].origin, "--flag");
}

static void entries_as_text(void **state)
{
    static const struct text_case cases[] = {
        {"/srv", ACCESS_READ, "/srv read", PROFILE_PATH_LITERAL},
        {"/srv/../etc//x/.", ACCESS_READ, "/etc/x read", PROFILE_PATH_LITERAL},
        {"/", ACCESS_READ, "/ read", PROFILE_PATH_LITERAL},
        {"~", ACCESS_WRITE, "/home/u write", PROFILE_PATH_LITERAL},
        {"~/a", ACCESS_DENY, "/home/u/a deny", PROFILE_PATH_LITERAL},
        {"~/*.pem", ACCESS_DENY, "/home/u/*.pem deny", PROFILE_PATH_GLOB},
        {"sub", ACCESS_WRITE, "/w[1]/src/sub write", PROFILE_PATH_LITERAL},
        {"..", ACCESS_WRITE, "/w[1] write", PROFILE_PATH_LITERAL},
        {".", ACCESS_WRITE, "/w[1]/src write", PROFILE_PATH_LITERAL},
        {"**/.env", ACCESS_DENY, "/w\\[1\\]/src/**/.env deny", PROFILE_PATH_GLOB},
        {"/srv/**", ACCESS_WRITE, "/srv write", PROFILE_PATH_LITERAL},
        {"/**", ACCESS_READ, "/ read", PROFILE_PATH_LITERAL},
        {"/srv/**", ACCESS_DENY, "/srv/** deny", PROFILE_PATH_GLOB},
        {"/srv/\\[id\\]", ACCESS_WRITE, "/srv/[id] write", PROFILE_PATH_LITERAL},
        {"/srv/a[b", ACCESS_WRITE, "/srv/a[b write", PROFILE_PATH_LITERAL},
        {"/srv/a\\b", ACCESS_WRITE, "/srv/a\\b write", PROFILE_PATH_LITERAL},
        {":root", ACCESS_READ, ":root read", PROFILE_PATH_ROOT},
        {":minimal", ACCESS_READ, ":minimal read", PROFILE_PATH_MINIMAL},
        {":tmpdir", ACCESS_WRITE, ":tmpdir write", PROFILE_PATH_TMPDIR},
        {":slash_tmp", ACCESS_WRITE, ":slash_tmp write", PROFILE_PATH_SLASH_TMP},
        {":workspace_roots", ACCESS_WRITE, ":workspace_roots write", PROFILE_PATH_PROJECT_ROOTS},
        {":project_roots", ACCESS_READ, ":workspace_roots read", PROFILE_PATH_PROJECT_ROOTS},
        {":workspace_roots/.git", ACCESS_WRITE, ":workspace_roots/.git write",
         PROFILE_PATH_PROJECT_ROOTS},
        {":workspace_roots/a/**", ACCESS_READ, ":workspace_roots/a read",
         PROFILE_PATH_PROJECT_ROOTS},
        {":workspace_roots/**", ACCESS_READ, ":workspace_roots read", PROFILE_PATH_PROJECT_ROOTS},
        {":workspace_roots/**/.env", ACCESS_DENY, "**/.env deny", PROFILE_PATH_GLOB},
        {":workspace_roots/\\*", ACCESS_DENY, ":workspace_roots/* deny",
         PROFILE_PATH_PROJECT_ROOTS},
        {"/srv/*", ACCESS_READ, "!can only deny", PROFILE_PATH_GLOB},
        {"/srv/*/**", ACCESS_WRITE, "!can only deny", PROFILE_PATH_GLOB},
        {":workspace_roots/*", ACCESS_WRITE, "!can only deny", PROFILE_PATH_GLOB},
        {"/srv/[z-a]", ACCESS_DENY, "!runs backwards", PROFILE_PATH_GLOB},
        {"/srv/*.{a,b}", ACCESS_DENY, "!\"{\" is not supported", PROFILE_PATH_GLOB},
        {"/srv/*\\", ACCESS_DENY, "!single backslash", PROFILE_PATH_GLOB},
        {"/*", ACCESS_DENY, "!has to start with the name of a directory", PROFILE_PATH_GLOB},
        {":workspace_roots/../x", ACCESS_WRITE, "!not a path below the workspace",
         PROFILE_PATH_GLOB},
        {":workspace_roots/\\.\\./\\[x", ACCESS_WRITE, "!not a path below the workspace",
         PROFILE_PATH_GLOB},
        {":workspace_roots//x", ACCESS_WRITE, "!not a path below the workspace", PROFILE_PATH_GLOB},
        {":tmpdir/x", ACCESS_WRITE, "!:tmpdir takes no path below it", PROFILE_PATH_GLOB},
        {":nonsense", ACCESS_DENY, "!:nonsense is not one of", PROFILE_PATH_GLOB},
        {"", ACCESS_READ, "!neither an absolute path", PROFILE_PATH_GLOB},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_text(&cases[i]);
}

static void what_is_not_known_can_be_kept(void **state)
{
    AUTO(profile_done) struct profile profile = {0};
    struct profile_text options = {.text = ":downloads/a", .unknown = PROFILE_UNKNOWN_KEEP};
    struct err err;

    assert_int_equal(profile_add_text(&profile, &options, &err), 0);
    assert_entry(&profile, 0, ":downloads/a deny");
    assert_int_equal(profile.entries.items[0].path_kind, PROFILE_PATH_UNKNOWN);
    assert_true(profile_text_is_special(":tmpdir"));
    assert_false(profile_text_is_special(":downloads"));
}

static void without_home_or_base(void **state)
{
    AUTO(profile_done) struct profile profile = {0};
    struct profile_text options = {.text = "~/a"};
    struct err err;

    assert_int_equal(profile_add_text(&profile, &options, &err), -1);
    assert_contains(err.msg, "home directory is not known");
    options.text = "a/b";
    assert_int_equal(profile_add_text(&profile, &options, &err), -1);
    assert_contains(err.msg, "neither an absolute path");
    options.text = "~user/a";
    assert_int_equal(profile_add_text(&profile, &options, &err), -1);
}

static void patterns_have_to_be_utf8(void **state)
{
    AUTO(profile_done) struct profile profile = {0};
    struct profile_text options = {.text = "/a/\xff*", .origin = "--deny"};
    struct err err;

    assert_int_equal(profile_add_text(&profile, &options, &err), -1);
    assert_contains(err.msg, "UTF-8");
    options.text = "/a/\xff";
    assert_int_equal(profile_add_text(&profile, &options, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_only_reads_everything),
        cmocka_unit_test(workspace_write_in_order),
        cmocka_unit_test(workspace_write_without_temporary_dirs),
        cmocka_unit_test(built_in_names),
        cmocka_unit_test(copies_are_independent),
        cmocka_unit_test(entries_as_text),
        cmocka_unit_test(what_is_not_known_can_be_kept),
        cmocka_unit_test(without_home_or_base),
        cmocka_unit_test(patterns_have_to_be_utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
