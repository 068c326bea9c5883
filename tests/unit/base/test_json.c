/* base/json: positions, limits, paths. */
#include "support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"

#include <string.h>

static json_t *parse(const char *text)
{
    struct err err;
    json_t *value = json_parse(text, strlen(text), &err);

    if (!value)
        fail_msg("%s", err.msg);
    return value;
}

static void syntax_errors_have_a_position(void **state)
{
    static const struct {
        const char *text;
        const char *start;
    } cases[] = {
        {"{\"a\": 1,\n \"b\" 2}", "line 2, column 6: "},
        {"", "line 1, column 0: "},
        {"[1] x", "line 1, column 5: "},
        {"{\"a\": 1, \"a\": 2}", "line 1, column 12: duplicate object key"},
        {"[\"\\u0000\"]", "line 1, column "},
        {"[\"\xff\"]", "line 1, column "},
        {"[1e999]", "line 1, column "},
        {"[99999999999999999999]", "line 1, column "},
        {"nul", "line 1, column "},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};

        assert_null(json_parse(cases[i].text, strlen(cases[i].text), &err));
        assert_int_equal(err.code, ERR_INVALID);
        if (!str_starts(err.msg, cases[i].start))
            fail_msg("%s: %s", cases[i].text, err.msg);
    }
}

static void any_value_is_a_document(void **state)
{
    static const char *const texts[] = {"1", "null", "\"a\"", " [ ] ", "{}", "true"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        AUTO_JSON json_t *value = parse(texts[i]);

        assert_non_null(value);
    }
}

static void nesting_has_a_limit(void **state)
{
    AUTO_FREE char *text = alloc_zero(1000001, 1);
    AUTO_JSON json_t *value = NULL;
    struct err err;

    memset(text, '[', JSON_DEPTH_MAX);
    memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    value = parse(text);
    assert_true(json_is_array(value));
    memset(text, '[', 1000000);
    assert_null(json_parse(text, 1000000, &err));
    assert_string_equal(err.msg, "line 1, column 129: nested deeper than 128 levels");
    text[0] = '"';
    text[999999] = '"';
    json_decref(value);
    value = parse(text);
    assert_true(json_is_string(value));
}

static void paths_are_text(void **state)
{
    AUTO_JSON json_t *value = parse("{\"a\": {\"b c\": [0, {\"d\": true}]}}");
    struct json_at root = json_at_root(value);
    struct json_at a = json_at_field(&root, "a");
    struct json_at b = json_at_field(&a, "b c");
    struct json_at item = json_at_item(&b, 1);
    struct json_at d = json_at_field(&item, "d");
    struct json_at missing = json_at_field(&d, "x");
    AUTO_FREE char *root_path = json_at_path(&root);
    AUTO_FREE char *path = json_at_path(&missing);
    const char *text;
    struct err err;

    assert_string_equal(root_path, "$");
    assert_string_equal(path, "$.a[\"b c\"][1].d.x");
    assert_false(json_at_is_given(&missing));
    assert_int_equal(json_at_string(&d, &text, &err), -1);
    assert_string_equal(err.msg, "$.a[\"b c\"][1].d: has the wrong type, should be a string");
    assert_int_equal(json_at_string(&missing, &text, &err), -1);
    assert_string_equal(err.msg, "$.a[\"b c\"][1].d.x: missing, should be a string");
}

static void getters(void **state)
{
    AUTO_JSON json_t *value =
        parse("{\"s\": \"x\", \"b\": true, \"i\": 7, \"n\": null, \"l\": [1, 2], \"f\": 1.0}");
    struct json_at root = json_at_root(value);
    struct json_at s = json_at_field(&root, "s");
    struct json_at b = json_at_field(&root, "b");
    struct json_at i = json_at_field(&root, "i");
    struct json_at n = json_at_field(&root, "n");
    struct json_at l = json_at_field(&root, "l");
    struct json_at f = json_at_field(&root, "f");
    const char *text;
    bool flag;
    int64_t number = 0;
    size_t len;
    struct err err;

    assert_int_equal(json_at_object(&root, &err), 0);
    assert_int_equal(json_at_object(&l, &err), -1);
    assert_int_equal(json_at_string(&s, &text, &err), 0);
    assert_string_equal(text, "x");
    assert_int_equal(json_at_bool(&b, &flag, &err), 0);
    assert_true(flag);
    assert_int_equal(json_at_bool(&i, &flag, &err), -1);
    assert_int_equal(json_at_integer(&i, 1, 7, &number, &err), 0);
    assert_int_equal(number, 7);
    assert_int_equal(json_at_integer(&i, 8, 9, &number, &err), -1);
    assert_string_equal(err.msg, "$.i: 7 is not between 8 and 9");
    assert_int_equal(json_at_integer(&f, 0, 9, &number, &err), -1);
    assert_int_equal(number, 7);
    assert_int_equal(json_at_array(&l, &len, &err), 0);
    assert_int_equal(len, 2);
    assert_int_equal(json_at_array(&n, &len, &err), -1);
    assert_false(json_at_is_given(&n));
    assert_true(json_at_is_given(&f));
}

static void words(void **state)
{
    static const char *const known[] = {"read", "write", NULL};
    AUTO_JSON json_t *value = parse("[\"write\", \"raed\", 1]");
    struct json_at root = json_at_root(value);
    struct json_at good = json_at_item(&root, 0);
    struct json_at bad = json_at_item(&root, 1);
    struct json_at number = json_at_item(&root, 2);
    size_t index = 9;
    struct err err;

    assert_int_equal(json_at_word(&good, known, &index, &err), 0);
    assert_int_equal(index, 1);
    assert_int_equal(json_at_word(&bad, known, &index, &err), -1);
    assert_string_equal(err.msg, "$[1]: \"raed\" is not one of \"read\", \"write\"");
    assert_int_equal(json_at_word(&number, known, &index, &err), -1);
    assert_int_equal(index, 1);
}

static void unknown_keys(void **state)
{
    static const char *const known[] = {"entries", "network", NULL};
    AUTO_JSON json_t *value = parse("{\"network\": 1, \"entires\": 2, \"zzz\": 3}");
    AUTO_JSON json_t *good = parse("{\"network\": 1}");
    AUTO(strv_done) struct strv ignored = {0};
    struct json_at root = json_at_root(value);
    struct json_at good_root = json_at_root(good);
    struct err err;

    assert_int_equal(json_at_check_keys(&good_root, known, NULL, &err), 0);
    assert_int_equal(json_at_check_keys(&root, known, NULL, &err), -1);
    assert_string_equal(err.msg, "$.entires: unknown key, did you mean \"entries\"?");
    assert_int_equal(json_at_check_keys(&root, known, &ignored, &err), 0);
    assert_int_equal(ignored.len, 2);
    assert_string_equal(ignored.items[1], "$.zzz");
    json_object_del(value, "entires");
    assert_int_equal(json_at_check_keys(&root, known, NULL, &err), -1);
    assert_string_equal(err.msg, "$.zzz: unknown key");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(syntax_errors_have_a_position),
        cmocka_unit_test(any_value_is_a_document),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(paths_are_text),
        cmocka_unit_test(getters),
        cmocka_unit_test(words),
        cmocka_unit_test(unknown_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
