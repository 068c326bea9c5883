/* schema: values against tables, and the words and places of what is wrong. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "server/schema.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const struct schema any_text = {.type = SCHEMA_STRING, .max = INT64_MAX};
static const struct schema short_text = {.type = SCHEMA_STRING, .min = 1, .max = 4};
static const char *const one_word[] = {"interrupt", NULL};
static const char *const two_words[] = {"read", "replace", NULL};
static const char *const three_words[] = {"core", "all", "none", NULL};
static const struct schema one = {.type = SCHEMA_STRING, .max = INT64_MAX, .words = one_word};
static const struct schema two = {.type = SCHEMA_STRING, .max = INT64_MAX, .words = two_words};
static const struct schema three = {.type = SCHEMA_STRING, .max = INT64_MAX, .words = three_words};
static const struct schema from_zero = {.type = SCHEMA_INTEGER, .min = 0, .max = INT64_MAX};
static const struct schema port = {.type = SCHEMA_INTEGER, .min = 1, .max = 65535};
static const struct schema flag = {.type = SCHEMA_BOOLEAN};
static const struct schema anything = {.type = SCHEMA_ANY};
static const struct schema texts = {
    .type = SCHEMA_ARRAY, .min = 1, .max = INT64_MAX, .items = &any_text};
static const struct schema text_map = {.type = SCHEMA_MAP, .items = &any_text};
static const struct schema_field inner_fields[] = {{"deep", SCHEMA_REQUIRED, &texts}, {NULL}};
static const struct schema inner = {.type = SCHEMA_OBJECT, .fields = inner_fields};
static const struct schema_field fields[] = {
    {"name", SCHEMA_REQUIRED, &any_text}, {"short", SCHEMA_OPTIONAL, &short_text},
    {"one", SCHEMA_OPTIONAL, &one},       {"two", SCHEMA_OPTIONAL, &two},
    {"three", SCHEMA_OPTIONAL, &three},   {"number", SCHEMA_NULLABLE, &from_zero},
    {"port", SCHEMA_OPTIONAL, &port},     {"flag", SCHEMA_OPTIONAL, &flag},
    {"any", SCHEMA_NULLABLE, &anything},  {"map", SCHEMA_OPTIONAL, &text_map},
    {"inner", SCHEMA_OPTIONAL, &inner},   {NULL},
};
static const struct schema whole = {.type = SCHEMA_OBJECT, .name = "Params", .fields = fields};

/* NULL when it is right; otherwise "PATH: MESSAGE", to be freed. */
static char *check(const char *text)
{
    struct err err;
    AUTO_JSON json_t *value = json_parse(text, strlen(text), &err);
    struct json_at root = json_at_root(value);
    AUTO_FREE char *path = NULL;

    assert_non_null(value);
    if (schema_read(&whole, &root, NULL, &path, &err) == 0)
        return NULL;
    assert_non_null(path);
    return alloc_strf("%s: %s", path, err.msg);
}

struct values {
    const char *name;
    const char *text;
    size_t text_len;
    uint64_t number;
    uint64_t port;
    bool flag;
    bool is_on;
    const json_t *any;
    const json_t *map;
};

static const struct schema_field value_fields[] = {
    {"name", SCHEMA_REQUIRED, &any_text, .at = offsetof(struct values, name)},
    {"text", SCHEMA_NULLABLE, &any_text, .at = offsetof(struct values, text),
     .len_at = offsetof(struct values, text_len)},
    {"number", SCHEMA_NULLABLE, &from_zero, .at = offsetof(struct values, number), .otherwise = -1},
    {"port", SCHEMA_OPTIONAL, &port, .at = offsetof(struct values, port), .otherwise = 80},
    {"flag", SCHEMA_OPTIONAL, &flag, .at = offsetof(struct values, flag)},
    {"isOn", SCHEMA_OPTIONAL, &flag, .at = offsetof(struct values, is_on), .otherwise = 1},
    {"any", SCHEMA_NULLABLE, &anything, .at = offsetof(struct values, any)},
    {"map", SCHEMA_NULLABLE, &text_map, .at = offsetof(struct values, map)},
    {NULL},
};
static const struct schema with_values = {.type = SCHEMA_OBJECT, .fields = value_fields};

/* The JSON, to which `ret` is bound. */
static json_t *read_values(const char *text, struct values *ret)
{
    struct err err;
    json_t *value = json_loads(text, JSON_ALLOW_NUL, NULL);
    struct json_at root = json_at_root(value);
    AUTO_FREE char *path = NULL;

    assert_non_null(value);
    memset(ret, 0x5a, sizeof *ret);
    assert_int_equal(schema_read(&with_values, &root, ret, &path, &err), 0);
    assert_null(path);
    return value;
}

static void what_is_given_is_read(void **state)
{
    struct values values;
    AUTO_JSON json_t *json = read_values("{\"name\":\"x\",\"text\":\"a\\u0000b\",\"number\":7,"
                                         "\"port\":443,\"flag\":true,\"isOn\":false,"
                                         "\"any\":null,\"map\":{\"k\":\"v\"},\"other\":1}",
                                         &values);

    assert_string_equal(values.name, "x");
    assert_memory_equal(values.text, "a\0b", 4);
    assert_int_equal(values.text_len, 3);
    assert_int_equal(values.number, 7);
    assert_int_equal(values.port, 443);
    assert_true(values.flag);
    assert_false(values.is_on);
    assert_true(json_is_null(values.any));
    assert_ptr_equal(values.map, json_object_get(json, "map"));
}

static void what_is_missing_or_null_is_the_default(void **state)
{
    static const char *const texts_of[] = {
        "{\"name\":\"x\"}", "{\"name\":\"x\",\"text\":null,\"number\":null,\"map\":null}"};

    for (size_t i = 0; i < 2; i++) {
        struct values values;
        AUTO_JSON json_t *json = read_values(texts_of[i], &values);

        assert_non_null(json);
        assert_null(values.text);
        assert_int_equal(values.text_len, 0);
        assert_true(values.number == UINT64_MAX);
        assert_int_equal(values.port, 80);
        assert_false(values.flag);
        assert_true(values.is_on);
        assert_null(values.any);
        assert_null(values.map);
    }
}

static void right_values_are_right(void **state)
{
    static const char *const texts_of[] = {
        "{\"name\":\"\"}",
        "{\"name\":\"x\",\"unknown\":{\"a\":[1]}}",
        "{\"name\":\"x\",\"number\":null,\"any\":null}",
        "{\"name\":\"x\",\"number\":9223372036854775807,\"port\":1,\"flag\":false}",
        "{\"name\":\"x\",\"one\":\"interrupt\",\"two\":\"replace\",\"three\":\"none\"}",
        "{\"name\":\"x\",\"map\":{\"a\":\"b\"},\"inner\":{\"deep\":[\"a\"],\"x\":1}}",
        "{\"name\":\"x\",\"short\":\"abcd\",\"any\":[[[]]]}",
    };

    for (size_t i = 0; i < sizeof texts_of / sizeof *texts_of; i++) {
        AUTO_FREE char *wrong = check(texts_of[i]);

        assert_null(wrong);
    }
}

static void wrong_values_are_said_with_their_place(void **state)
{
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {
        {"[]", "$: invalid type: sequence, expected struct Params"},
        {"\"x\"", "$: invalid type: string \"x\", expected struct Params"},
        {"{}", "$.name: missing field `name`"},
        {"{\"name\":null}", "$.name: invalid type: null, expected a string"},
        {"{\"name\":5}", "$.name: invalid type: number, expected a string"},
        {"{\"name\":true}", "$.name: invalid type: boolean `true`, expected a string"},
        {"{\"name\":\"x\",\"short\":\"\"}", "$.short: short must not be empty"},
        {"{\"name\":\"x\",\"short\":\"abcde\"}", "$.short: short must not exceed 4 bytes"},
        {"{\"name\":\"x\",\"one\":\"kill\"}",
         "$.one: unknown variant `kill`, expected `interrupt`"},
        {"{\"name\":\"x\",\"two\":\"x\"}",
         "$.two: unknown variant `x`, expected `read` or `replace`"},
        {"{\"name\":\"x\",\"three\":\"x\"}",
         "$.three: unknown variant `x`, expected one of `core`, `all`, `none`"},
        {"{\"name\":\"x\",\"number\":-1}", "$.number: invalid number"},
        {"{\"name\":\"x\",\"number\":1.5}", "$.number: invalid type: number, expected an integer"},
        {"{\"name\":\"x\",\"port\":70000}", "$.port: port must be between 1 and 65535"},
        {"{\"name\":\"x\",\"flag\":null}", "$.flag: invalid type: null, expected a boolean"},
        {"{\"name\":\"x\",\"map\":{\"a b\":1}}",
         "$.map[\"a b\"]: invalid type: number, expected a string"},
        {"{\"name\":\"x\",\"inner\":{\"deep\":[]}}", "$.inner.deep: deep must not be empty"},
        {"{\"name\":\"x\",\"inner\":{\"deep\":[\"a\",{}]}}",
         "$.inner.deep[1]: invalid type: map, expected a string"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_FREE char *wrong = check(cases[i].text);

        assert_non_null(wrong);
        assert_string_equal(wrong, cases[i].wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_given_is_read),
        cmocka_unit_test(what_is_missing_or_null_is_the_default),
        cmocka_unit_test(right_values_are_right),
        cmocka_unit_test(wrong_values_are_said_with_their_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
