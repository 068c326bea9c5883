/* glob: patterns against paths, and against made-up trees (tests/cases/glob).
 *
 *     pattern    with match: [...], no_match: [...], prefix; or error: part of the message
 *     expand     {host, max_depth, hits: ["PATH" or "PATH link"]}, or {..., error} */
#include "../base/cases.h"
#include "fake_host.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/glob.h"

#include <string.h>

static void glob_free_slot(struct glob **slot)
{
    glob_free(*slot);
}

/* Component by component, as a walk over a tree does it. */
static bool matches(const struct glob *glob, const char *path)
{
    const char *at = path + strlen(glob_prefix(glob));
    glob_state state = glob_start(glob);

    if (!path_is_within(path, glob_prefix(glob)))
        return false;
    while (*(at += strspn(at, "/"))) {
        size_t len = strcspn(at, "/");
        AUTO_FREE char *name = alloc_strn(at, len);

        state = glob_step(glob, state, name);
        at += len;
    }
    return glob_is_match(glob, state);
}

static void check_matches(const json_t *json, const struct glob *glob)
{
    AUTO_FREE char **match = case_strings(json, "match");
    AUTO_FREE char **no_match = case_strings(json, "no_match");

    for (size_t i = 0; match[i]; i++)
        if (!matches(glob, match[i]))
            fail_msg("%s does not match", match[i]);
    for (size_t i = 0; no_match[i]; i++)
        if (matches(glob, no_match[i]))
            fail_msg("%s matches", no_match[i]);
}

static int hit_compare(const void *left, const void *right)
{
    return strcmp(((const struct glob_hit *)left)->path, ((const struct glob_hit *)right)->path);
}

static void check_hits(const json_t *wanted, struct glob_hits *hits)
{
    AUTO_JSON json_t *got = json_array();

    if (hits->len)
        qsort(hits->items, hits->len, sizeof *hits->items, hit_compare);
    for (size_t i = 0; i < hits->len; i++)
        json_array_append_new(got,
                              json_sprintf("%s%s", hits->items[i].path,
                                           hits->items[i].kind == HOST_SYMLINK ? " link" : ""));
    assert_json_equal(got, wanted);
}

static void check_expand(const json_t *json, const struct glob *glob)
{
    static const char *const keys[] = {"host",        "max_depth",  "hits", "error",
                                       "matches_max", "visits_max", NULL};
    struct fake_host host = fake_host_make(json_object_get(json, "host"));
    AUTO(glob_hits_done) struct glob_hits hits = {0};
    const json_t *matches_max = json_object_get(json, "matches_max");
    const json_t *visits_max = json_object_get(json, "visits_max");
    const char *error = case_string_or(json, "error", NULL);
    struct glob_walk walk = {
        .view = &host.view,
        .root = glob_prefix(glob),
        .max_depth = (unsigned)json_integer_value(json_object_get(json, "max_depth")),
        .matches_max = matches_max ? (size_t)json_integer_value(matches_max) : 1000,
        .visits_max = visits_max ? (size_t)json_integer_value(visits_max) : 1000,
    };
    struct err err;

    case_check_keys(json, keys);
    if (glob_expand(glob, &walk, &hits, &err)) {
        assert_contains(err.msg, error ? error : "no error was expected");
        return;
    }
    assert_null(error);
    check_hits(json_object_get(json, "hits"), &hits);
}

static void glob_case(void **state)
{
    static const char *const keys[] = {"why",   "pattern", "match",  "no_match",
                                       "error", "prefix",  "expand", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    const char *error = case_string_or(json, "error", NULL);
    AUTO(glob_free_slot) struct glob *glob = NULL;
    struct err err;

    case_check_keys(json, keys);
    glob = glob_compile(case_string(json, "pattern"), &err);
    if (error) {
        assert_null(glob);
        assert_int_equal(err.code, ERR_INVALID);
        assert_contains(err.msg, error);
        return;
    }
    if (!glob)
        fail_msg("%s", err.msg);
    if (json_object_get(json, "prefix"))
        assert_string_equal(glob_prefix(glob), case_string(json, "prefix"));
    check_matches(json, glob);
    if (json_object_get(json, "expand"))
        check_expand(json_object_get(json, "expand"), glob);
}

/* "a*a*a*...b" on a long row of a's is the classic trap for backtracking. */
static void hard_patterns_stay_cheap(void **state)
{
    AUTO_FREE char *pattern = alloc_zero(4096, 1);
    AUTO_FREE char *path = alloc_zero(4096, 1);
    AUTO(glob_free_slot) struct glob *glob = NULL;
    size_t len = 0;
    struct err err;

    len = (size_t)snprintf(pattern, 4096, "/w/**/");
    while (len < 4000) {
        memcpy(pattern + len, "a*", 2);
        len += 2;
    }
    pattern[len] = 'b';
    memcpy(path, "/w/", 3);
    memset(path + 3, 'a', 4000);
    glob = glob_compile(pattern, &err);
    assert_non_null(glob);
    assert_false(matches(glob, path));
    path[4002] = 'b';
    assert_true(matches(glob, path));
}

static void limits_of_a_pattern(void **state)
{
    AUTO_FREE char *pattern = alloc_zero(5000, 1);
    struct err err;

    memset(pattern, 'a', 4999);
    memcpy(pattern, "/w/*", 4);
    assert_null(glob_compile(pattern, &err));
    assert_contains(err.msg, "longer than 4096 bytes");
    for (size_t i = 2; i < 2 + 2 * 63; i += 2)
        memcpy(pattern + i, "/?", 2);
    pattern[2 + 2 * 63] = '\0';
    assert_null(glob_compile(pattern, &err));
    assert_contains(err.msg, "more than 62 components");
}

static void escaping_and_back(void **state)
{
    static const char *const texts[] = {"/plain", "/w/[id]/a*b?{c}\\d", "\\", "", "/a]b"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        AUTO_FREE char *escaped = glob_escape(texts[i]);
        AUTO_FREE char *plain = glob_unescape(escaped);

        assert_string_equal(plain, texts[i]);
        assert_false(glob_has_meta(escaped));
    }
    assert_true(glob_has_meta("a[b]"));
    assert_false(glob_has_meta("a[b"));
    assert_false(glob_has_meta("a[b/c]"));
    assert_true(glob_has_escape("a\\["));
    assert_false(glob_has_escape("a\\b"));
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(hard_patterns_stay_cheap),
        cmocka_unit_test(limits_of_a_pattern),
        cmocka_unit_test(escaping_and_back),
    };

    return cases_run("glob", glob_case, more, sizeof more / sizeof *more);
}
