/* json_edit: what becomes of a text, byte by byte (tests/cases/json_edit):
 *
 *     before   the text, as a list of what its line feeds separate
 *     keys     where to
 *     item     instead of what the keys name, the item there whose "name" is this
 *     value    what is put there
 *     after    the text then; putting it there once more changes nothing
 *     without  what is left when it is removed, with what is empty then; missing: `before`
 *     error    in place of the last two: what is said */
#include "../base/cases.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "setup/json_edit.h"

#include <string.h>

static const char *wanted_item;

static bool is_item(const json_t *item)
{
    const json_t *name = json_object_get(item, "name");

    return json_is_string(name) && str_eq(json_string_value(name), wanted_item);
}

static void edit_case(void **state)
{
    static const char *const known[] = {"why",   "before",  "keys",  "item", "value",
                                        "after", "without", "error", NULL};
    const json_t *json = ((struct test_case *)*state)->json;
    AUTO_FREE char **keys = case_strings(json, "keys");
    const json_t *value = json_object_get(json, "value");
    const struct json_place place = {
        .keys = (const char *const *)keys,
        .is_item = json_object_get(json, "item") ? is_item : NULL,
    };
    AUTO(buf_done) struct buf before = {.max = 65536}, after = {.max = 65536};
    AUTO(buf_done) struct buf again = {.max = 65536}, without = {.max = 65536};
    struct err err;

    case_check_keys(json, known);
    wanted_item = case_string_or(json, "item", "");
    case_lines(json, "before", &before);
    if (json_object_get(json, "error")) {
        assert_int_equal(json_edit_put(before.data, before.len, &place, value, &after, &err), -1);
        assert_contains(err.msg, case_string(json, "error"));
        return;
    }
    if (json_edit_put(before.data, before.len, &place, value, &after, &err))
        fail_msg("%s", err.msg);
    assert_lines_equal(&after, json, "after");
    if (json_edit_put(after.data, after.len, &place, value, &again, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(again.data, after.data);
    if (json_edit_remove(after.data, after.len, &place, true, &without, &err))
        fail_msg("%s", err.msg);
    assert_lines_equal(&without, json, json_object_get(json, "without") ? "without" : "before");
}

/* Only what is ours is removed when nothing else is asked for. */
static void what_is_empty_then_may_stay(void **state)
{
    static const char text[] = "{\"a\": {\"b\": {\"c\": 1}}}";
    static const char *const keys[] = {"a", "b", "c", NULL};
    const struct json_place place = {.keys = keys};
    AUTO(buf_done) struct buf got = {.max = 4096};
    struct err err;

    assert_int_equal(json_edit_remove(text, strlen(text), &place, false, &got, &err), 0);
    assert_string_equal(got.data, "{\"a\": {\"b\": {}}}");
    buf_clear(&got);
    assert_int_equal(json_edit_remove(text, strlen(text), &place, true, &got, &err), 0);
    assert_string_equal(got.data, "{}");
}

static void a_nul_is_no_json(void **state)
{
    static const char text[] = "{}\0";
    static const char *const keys[] = {"a", NULL};
    const struct json_place place = {.keys = keys};
    AUTO_JSON json_t *value = json_true();
    AUTO(buf_done) struct buf got = {.max = 4096};
    struct err err;

    assert_int_equal(json_edit_put(text, sizeof text, &place, value, &got, &err), -1);
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(what_is_empty_then_may_stay),
        cmocka_unit_test(a_nul_is_no_json),
    };

    return cases_run("json_edit", edit_case, more, sizeof more / sizeof *more);
}
