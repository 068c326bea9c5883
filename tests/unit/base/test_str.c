/* str: wildcards, edit distance, the nearest name. */
#include "support.h"

#include "base/str.h"

#include <string.h>

static void starts_and_ends(void **state)
{
    assert_true(str_eq("", ""));
    assert_false(str_eq("a", "A"));
    assert_true(str_starts("abc", ""));
    assert_true(str_starts("abc", "abc"));
    assert_false(str_starts("ab", "abc"));
    assert_true(str_ends("abc", ""));
    assert_true(str_ends("abc", "bc"));
    assert_false(str_ends("bc", "abc"));
    assert_false(str_ends("abcd", "abc"));
}

static void wildcards(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "anything", true},
        {"***", "", true},
        {"?", "", false},
        {"?", "a", true},
        {"??", "a", false},
        {"a", "ab", false},
        {"ab", "a", false},
        {"*KEY*", "AWS_ACCESS_KEY_ID", true},
        {"*key*", "MONKEY", true},
        {"*KEY*", "KE_Y", false},
        {"PATH", "path", true},
        {"PATH", "PATHS", false},
        {"LC_*", "LC_", true},
        {"LC_*", "xLC_ALL", false},
        {"*a*b*c", "xxaxxbxxbc", true},
        {"*a*b*c", "xxaxxbxxcb", false},
        {"a?c*e", "abcde", true},
        {"*?", "", false},
        {"*.c", "x.c.c", true},
        {"[a]", "[a]", true},
        {"[a]", "a", false},
        {"a*", "*a", false},
        {"*\xc3\xa4*", "B\xc3\xa4R", true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (str_match_nocase(cases[i].pattern, cases[i].text) != cases[i].matches)
            fail_msg("\"%s\" on \"%s\"", cases[i].pattern, cases[i].text);
}

/* Would take longer than the universe lasts if the stars were tried in all combinations. */
static void many_stars_end_soon(void **state)
{
    char pattern[201], text[2001];

    for (size_t i = 0; i < 200; i += 2) {
        pattern[i] = '*';
        pattern[i + 1] = 'a';
    }
    pattern[199] = 'b';
    pattern[200] = '\0';
    memset(text, 'a', 2000);
    text[2000] = '\0';
    assert_false(str_match_nocase(pattern, text));
    text[1999] = 'b';
    assert_true(str_match_nocase(pattern, text));
}

/* One edit each: insert, delete, replace, swap. */
static void nearest_counts_edits(void **state)
{
    static const char *const near[][2] = {
        {"a", "b"},
        {"abc", "ab"},
        {"ab", "ba"},
        {"kitten", "mitten"},
        {"wirte", "write"},
        {"netwrok", "network"},
        {"Read", "read"},
        {"same", "same"},
        {"ca", "abc!"} /* three edits, of which two are allowed */,
    };
    static const size_t len = sizeof near / sizeof *near;

    for (size_t i = 0; i < len; i++) {
        const char *const names[] = {near[i][1], NULL};

        if (i + 1 < len)
            assert_string_equal(str_nearest(near[i][0], names), near[i][1]);
        else
            assert_null(str_nearest(near[i][0], names));
    }
}

static void long_texts_are_near_to_nothing(void **state)
{
    char a[66], b[66];
    const char *const names[] = {b, NULL};

    memset(a, 'a', 65);
    memset(b, 'a', 65);
    a[64] = b[64] = '\0';
    assert_ptr_equal(str_nearest(a, names), b);
    b[0] = 'b';
    assert_ptr_equal(str_nearest(a, names), b);
    b[64] = 'a';
    b[65] = '\0';
    assert_null(str_nearest(a, names));
}

static void nearest_name(void **state)
{
    static const char *const names[] = {"writable_roots", "network_access", "exclude_slash_tmp",
                                        NULL};
    static const char *const none[] = {NULL};

    assert_string_equal(str_nearest("writeable_roots", names), "writable_roots");
    assert_string_equal(str_nearest("network-access", names), "network_access");
    assert_string_equal(str_nearest("network_access", names), "network_access");
    assert_null(str_nearest("inherit", names));
    assert_null(str_nearest("", names));
    assert_null(str_nearest("x", none));
}

/* "within a third of its length (of a short one: within one)" */
static void nearest_name_has_a_limit(void **state)
{
    static const char *const names[] = {"abcdefghi", NULL};

    assert_non_null(str_nearest("abcdefxyz", names)); /* 9 / 3: three letters may differ */
    assert_null(str_nearest("abcdewxyz", names));
    assert_non_null(str_nearest("den", (const char *const[]){"deny", NULL})); /* but always one */
    assert_null(str_nearest("list", (const char *const[]){"test", NULL}));
    assert_null(str_nearest("some", (const char *const[]){"core", NULL}));
    assert_null(str_nearest("file", (const char *const[]){"pipe", NULL}));
}

/* "else the only one that it begins, but for its last letter" */
static void nearest_name_is_begun(void **state)
{
    static const char *const names[] = {"writable", "workspace-write", "timeout", "timezone", NULL};

    assert_string_equal(str_nearest("write", names), "writable");
    assert_string_equal(str_nearest("workspace", names), "workspace-write");
    assert_null(str_nearest("wor", names));
    assert_null(str_nearest("workshop-with", names));
    assert_null(str_nearest("times", names)); /* two */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_and_ends),
        cmocka_unit_test(wildcards),
        cmocka_unit_test(many_stars_end_soon),
        cmocka_unit_test(nearest_counts_edits),
        cmocka_unit_test(long_texts_are_near_to_nothing),
        cmocka_unit_test(nearest_name),
        cmocka_unit_test(nearest_name_has_a_limit),
        cmocka_unit_test(nearest_name_is_begun),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
