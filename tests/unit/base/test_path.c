/* path: the text rules that the whole policy stands on. */
#include "support.h"

#include "base/auto.h"
#include "base/path.h"

#include <stdlib.h>
#include <string.h>

static void clean_or_not(void **state)
{
    static const char *const clean[] = {"/",   "/a",   "/a/b", "/...", "/..a",
                                        "/.a", "/a..", "/a b", "/\xff"};
    static const char *const not_clean[] = {"",     "a",     ".",     "..",     "a/b",    "//",
                                            "/a/",  "/a//b", "//a",   "/.",     "/..",    "/a/.",
                                            "/./a", "/a/..", "/../a", "/a/./b", "/a/../b"};

    for (size_t i = 0; i < sizeof clean / sizeof *clean; i++)
        if (!path_is_clean(clean[i]))
            fail_msg("%s is clean", clean[i]);
    for (size_t i = 0; i < sizeof not_clean / sizeof *not_clean; i++)
        if (path_is_clean(not_clean[i]))
            fail_msg("%s is not clean", not_clean[i]);
}

static void clean_up(void **state)
{
    static const struct {
        const char *base, *path, *result;
    } cases[] = {
        {"/", "", "/"},
        {"/", "a", "/a"},
        {"/w", "", "/w"},
        {"/w", ".", "/w"},
        {"/w", "..", "/"},
        {"/w", "a/../b", "/w/b"},
        {"/w", "a//b/./c/", "/w/a/b/c"},
        {"/w", "/abs", "/abs"},
        {"/w", "//abs//x", "/abs/x"},
        {"/w/x", "../../../..", "/"},
        {"/w", "../../etc/passwd", "/etc/passwd"},
        {"/w/", "a", "/w/a"},
        {"//w/../v/", "a/..", "/v"},
        {"/w", "...", "/w/..."},
        {"/w", "..a/.b/c..", "/w/..a/.b/c.."},
        {"/w", "a/../../b/..", "/"},
        {"/w", "/..", "/"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_FREE char *result = path_clean(cases[i].base, cases[i].path);

        assert_string_equal(result, cases[i].result);
        assert_true(path_is_clean(result));
    }
}

/* Whatever comes in, what comes out is clean, and cleaning it again changes nothing. */
static void clean_up_is_stable_on_any_text(void **state)
{
    static const char letters[] = "/.a/..b";
    unsigned seed = 1;

    for (int round = 0; round < 20000; round++) {
        AUTO_FREE char *once = NULL;
        AUTO_FREE char *twice = NULL;
        char text[16];
        size_t len;

        seed = seed * 1103515245 + 12345;
        len = seed >> 16 & 15;
        for (size_t i = 0; i < len; i++) {
            seed = seed * 1103515245 + 12345;
            text[i] = letters[(seed >> 16) % (sizeof letters - 1)];
        }
        text[len] = '\0';
        once = path_clean("/base", text);
        twice = path_clean("/other", once);
        assert_true(path_is_clean(once));
        assert_string_equal(once, twice);
    }
}

static void join(void **state)
{
    static const char *const cases[][3] = {
        {"/", "a", "/a"}, {"/a", "b", "/a/b"}, {"/a/", "b", "/a/b"}, {"/a", "b/c", "/a/b/c"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_FREE char *result = path_join(cases[i][0], cases[i][1]);

        assert_string_equal(result, cases[i][2]);
    }
}

static void within_is_by_component(void **state)
{
    assert_true(path_is_within("/", "/"));
    assert_true(path_is_within("/a", "/"));
    assert_true(path_is_within("/a", "/a"));
    assert_true(path_is_within("/a/b", "/a"));
    assert_false(path_is_within("/ab", "/a"));
    assert_false(path_is_within("/a", "/a/b"));
    assert_false(path_is_within("/", "/a"));
    assert_false(path_is_within("/a-b/c", "/a"));
    assert_true(path_is_within("a/b", "a"));
    assert_false(path_is_within("b", "a"));
}

static void depth(void **state)
{
    assert_int_equal(path_depth("/"), 0);
    assert_int_equal(path_depth("/a"), 1);
    assert_int_equal(path_depth("/a/b/c"), 3);
}

static int compare_for_qsort(const void *a, const void *b)
{
    return path_compare(*(const char *const *)a, *(const char *const *)b);
}

static void order_puts_children_right_behind_their_parent(void **state)
{
    static const char *const sorted[] = {"/",    "/a",   "/a/b", "/a/b/c", "/a/b-c",
                                         "/a b", "/a-b", "/a.b", "/ab",    "/\xc3\xa4"};
    const size_t len = sizeof sorted / sizeof *sorted;
    const char *mixed[sizeof sorted / sizeof *sorted];

    for (size_t i = 0; i < len; i++)
        mixed[i] = sorted[(i * 7 + 3) % len];
    qsort(mixed, len, sizeof *mixed, compare_for_qsort);
    for (size_t i = 0; i < len; i++)
        assert_string_equal(mixed[i], sorted[i]);
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < len; k++) {
            int order = path_compare(sorted[i], sorted[k]);

            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
}

static void name_and_parent(void **state)
{
    static const char *const cases[][3] = {{"/a", "a", "/"}, {"/a/b", "b", "/a"}, {"/", "", "/"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_FREE char *parent = path_parent(cases[i][0]);

        assert_string_equal(path_name(cases[i][0]), cases[i][1]);
        assert_string_equal(parent, cases[i][2]);
    }
    assert_string_equal(path_name("plain"), "plain");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_or_not),
        cmocka_unit_test(clean_up),
        cmocka_unit_test(clean_up_is_stable_on_any_text),
        cmocka_unit_test(join),
        cmocka_unit_test(within_is_by_component),
        cmocka_unit_test(depth),
        cmocka_unit_test(order_puts_children_right_behind_their_parent),
        cmocka_unit_test(name_and_parent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
