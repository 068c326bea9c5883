/* toml: the tree, with lines, and its limits; and documents (tests/cases/toml).
 *
 *     documents  list of {toml, and either tree (toml_json.h) or error (the whole message)}
 *
 * tests/e2e/test_toml.py compares the same documents, and many more, with another reader. */
#include "../base/cases.h"
#include "toml_json.h"

#include "base/auto.h"
#include "base/buf.h"
#include "policy/config/toml.h"

#include <string.h>

static void toml_free_slot(struct toml_node **slot)
{
    toml_free(*slot);
}
#define AUTO_TOML AUTO(toml_free_slot) struct toml_node *

static struct toml_node *parse(const char *text)
{
    struct err err;
    struct toml_node *root = toml_parse(text, strlen(text), &err);

    if (!root)
        fail_msg("%s", err.msg);
    return root;
}

static void values_with_lines(void **state)
{
    AUTO_TOML root = parse("z = 'text'\n"
                           "a = -7\n"
                           "\n"
                           "[table]\n"
                           "flag = true\n"
                           "list = [1,\n"
                           "  'two']\n"
                           "other = 1.5\n");
    const struct toml_node *table = toml_find(root, "table");
    const struct toml_node *list = toml_find(table, "list");

    assert_string_equal(root->items[0].key, "z"); /* in the order of the text */
    assert_string_equal(root->items[0].string, "text");
    assert_int_equal(toml_find(root, "a")->integer, -7);
    assert_int_equal(toml_find(root, "a")->line, 2);
    assert_int_equal(table->line, 4);
    assert_true(toml_find(table, "flag")->boolean);
    assert_int_equal(list->len, 2);
    assert_int_equal(list->items[1].line, 7);
    assert_string_equal(list->items[1].string, "two");
    assert_int_equal(toml_find(table, "other")->kind, TOML_OTHER);
    assert_null(toml_find(table, "none"));
    assert_null(toml_find(list, "none"));
    assert_null(toml_find(NULL, "none"));
}

static void dotted_keys_and_quoted_ones(void **state)
{
    AUTO_TOML root = parse("a.\"b.c\".d = 1\n[x.':y']\n\"/etc/*\" = \"deny\"\n");

    assert_int_equal(toml_find(toml_find(toml_find(root, "a"), "b.c"), "d")->integer, 1);
    assert_string_equal(toml_find(toml_find(toml_find(root, "x"), ":y"), "/etc/*")->string, "deny");
    assert_int_equal(toml_find(root, "x")->line, 2);
}

static void an_empty_text_is_an_empty_table(void **state)
{
    AUTO_TOML root = parse("");

    assert_int_equal(root->kind, TOML_TABLE);
    assert_int_equal(root->len, 0);
}

static void assert_refused(const char *text, size_t len, const char *wanted)
{
    struct err err = {0};

    assert_null(toml_parse(text, len, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_string_equal(err.msg, wanted);
}

/* What JSON cannot hold; the rest is in tests/cases/toml. */
static void nul_and_broken_utf8_are_refused(void **state)
{
    assert_refused("\xff = 1", 5, "1:1: bytes that are not UTF-8");
    assert_refused("a = 1\nb = 'x\xc3\xa9\xc0\x80'\n", 16, "2:8: bytes that are not UTF-8");
    assert_refused("a = 1 # \xed\xa0\x80", 11, "1:9: bytes that are not UTF-8");
    assert_refused("a = 1\0", 6, "1:6: expected the end of the line, not this character");
    assert_refused("# \0", 3, "1:3: a NUL character");
    assert_refused("\na = '\0'", 8, "2:6: a NUL character");
    assert_refused("a = \"\0\"", 7, "1:6: a NUL character");
}

static void document_case(const json_t *json)
{
    static const char *const keys[] = {"toml", "tree", "error", NULL};
    const char *text = case_string(json, "toml");
    const char *error = case_string_or(json, "error", NULL);
    struct err err = {0};
    AUTO_TOML root = toml_parse(text, strlen(text), &err);
    AUTO_JSON json_t *tree = root ? toml_to_json(root) : NULL;

    case_check_keys(json, keys);
    if (error && !tree)
        assert_string_equal(err.msg, error);
    else if (error || !tree)
        fail_msg("%s: %s", text, error ? "is read" : err.msg);
    else
        assert_json_equal(tree, json_object_get(json, "tree"));
}

static void toml_case(void **state)
{
    static const char *const keys[] = {"why", "documents", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    const json_t *document;
    size_t i;

    case_check_keys(json, keys);
    json_array_foreach(json_object_get(json, "documents"), i, document) document_case(document);
}

static void text_may_be_any_utf8(void **state)
{
    AUTO_TOML root = parse("\xef\xbb\xbf# \xc3\xa9\n\"\xc3\xa9\" = '\xc3\xa9' # \xc3\xa9\n"
                           "b = \"\"\"\n\xc3\xa9\"\"\"\n");

    assert_string_equal(toml_find(root, "\xc3\xa9")->string, "\xc3\xa9");
    assert_string_equal(toml_find(root, "b")->string, "\xc3\xa9");
    assert_int_equal(toml_find(root, "b")->line, 3);
}

/* `start`, then `count` times `piece`, then `end`. */
static char *repeated(const char *start, const char *piece, int count, const char *end)
{
    struct buf text;

    buf_init(&text, 1 << 22);
    buf_append_str(&text, start);
    for (int i = 0; i < count; i++)
        buf_append_str(&text, piece);
    buf_append_str(&text, end);
    return buf_take(&text);
}

static void nesting_has_a_limit(void **state)
{
    static const struct {
        const char *start;
        const char *piece;
        const char *end;
        int fits; /* pieces that pass; -1: the text is not valid anyway */
    } cases[] = {
        {"a", ".a", " = 1", 31},           {"[a", ".a", "]", 31},
        {"[[a", ".a", "]]", 31},           {"a = ", "[", "", -1},
        {"a = ", "{b=", "", -1},           {"x = { a", ".a", " = 1 }", 31},
        {"a = [\n[{b", ".b", "=1}]]", 31}, {"'q'", " . 'q'", " = 1", 31},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_FREE char *deep = repeated(cases[i].start, cases[i].piece, 300000, cases[i].end);
        AUTO_FREE char *over =
            repeated(cases[i].start, cases[i].piece, cases[i].fits + 1, cases[i].end);
        struct err err = {0};

        assert_null(toml_parse(deep, strlen(deep), &err));
        assert_non_null(strstr(err.msg, "more than 32 parts") ? strstr(err.msg, "parts")
                                                              : strstr(err.msg, "nested deeper"));
        if (cases[i].fits < 0)
            continue;
        assert_null(toml_parse(over, strlen(over), &err));
        over[0] = over[0]; /* same text with one part less passes */
        {
            AUTO_FREE char *fits =
                repeated(cases[i].start, cases[i].piece, cases[i].fits, cases[i].end);
            AUTO_TOML root = parse(fits);

            assert_int_equal(root->kind, TOML_TABLE);
        }
    }
}

/* Dots and brackets in strings and comments are text. */
static void nesting_is_not_counted_in_text(void **state)
{
    static const char *const starts[] = {"a = \"", "a = '",      "a = \"\"\"",          "a = '''",
                                         "# ",     "a = \"\\\"", "a = \"\"\"\\\"\"\" ", "\"",
                                         "a = '\\"};
    static const char *const ends[] = {"\"",     "'",           "\"\"\"", "'''", "\n",
                                       "\\\"\"", " \"\"\"\"\"", "\" = 1", "'\n"};

    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        AUTO_FREE char *text = repeated(starts[i], ".[{", 100, ends[i]);
        struct err err;
        AUTO_TOML root = toml_parse(text, strlen(text), &err);

        if (!root)
            fail_msg("%s...: %s", starts[i], err.msg);
    }
}

static void a_table_has_a_limit(void **state)
{
    AUTO(buf_done) struct buf text = {.max = 1 << 20};
    struct err err;

    for (int i = 0; i < 8192; i++)
        buf_appendf(&text, "k%d = 1\n", i);
    {
        AUTO_TOML root = parse(text.data);

        assert_int_equal(root->len, 8192);
    }
    buf_append_str(&text, "[table]\n");
    assert_null(toml_parse(text.data, text.len, &err));
    assert_string_equal(err.msg, "8193:1: a table of more than 8192 keys");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_with_lines),
        cmocka_unit_test(dotted_keys_and_quoted_ones),
        cmocka_unit_test(an_empty_text_is_an_empty_table),
        cmocka_unit_test(nul_and_broken_utf8_are_refused),
        cmocka_unit_test(text_may_be_any_utf8),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(nesting_is_not_counted_in_text),
        cmocka_unit_test(a_table_has_a_limit),
    };

    return cases_run("toml", toml_case, tests, sizeof tests / sizeof *tests);
}
