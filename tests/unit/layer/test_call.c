/* call: what a server asks cordon-layer, read; and each complaint names its place. */
#include "layer/call.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static int parse(const char *text, struct layer_call *ret, struct err *err)
{
    AUTO_JSON json_t *json = json_parse_nul(text, strlen(text), err);

    assert_non_null(json);
    return layer_call_parse(json, ret, err);
}

static void test_reads_an_accept(void **state)
{
    AUTO(layer_call_done) struct layer_call call = {0};
    struct err err;

    assert_int_equal(
        parse("{\"call\": \"accept\", \"layer\": \"mine\", \"held\": true, \"alive\": true,"
              " \"heldBy\": \"us\", \"params\": {\"paths\": [\"/a/./b/\", \"file:///c%20%ff\"],"
              " \"expect\": {\"/a/b\": \"1-2-3-4-81a4\"}, \"force\": true, \"marked\": true,"
              " \"dryRun\": null}}",
              &call, &err),
        0);
    assert_int_equal(call.kind, LAYER_CALL_ACCEPT);
    assert_string_equal(call.layer, "mine");
    assert_string_equal(call.held_by, "us");
    assert_true(call.is_held && call.is_alive && !call.has_space);
    assert_int_equal(call.paths.len, 2);
    assert_string_equal(call.paths.items[0], "/a/b");
    assert_string_equal(call.paths.items[1], "/c \xff");
    assert_int_equal(call.flags, ACCEPT_FORCE | ACCEPT_MARKED);
    assert_int_equal(call.expected_len, 1);
    assert_string_equal(call.expected[0].path, "/a/b");
    assert_int_equal(call.expected[0].layer.ino, 2);
}

static void test_reads_a_part(void **state)
{
    AUTO(layer_call_done) struct layer_call call = {0};
    struct err err;

    assert_int_equal(
        parse("{\"call\": \"accept\", \"layer\": \"x\", \"params\": {\"paths\": [\"/a\"],"
              " \"text\": \"b\\u0000c\"}}",
              &call, &err),
        0);
    assert_int_equal(call.text_len, 3);
    assert_memory_equal(call.text, "b\0c", 4);
}

static void test_reads_a_page(void **state)
{
    AUTO(layer_call_done) struct layer_call call = {0};
    struct err err;

    assert_int_equal(parse("{\"call\": \"changes\", \"layer\": \"x\", \"params\": {\"stepId\": 7,"
                           " \"after\": \"2:file:///a%0Ab\", \"limit\": 10}}",
                           &call, &err),
                     0);
    assert_int_equal(call.step, 7);
    assert_int_equal(call.after_root, 2);
    assert_string_equal(call.after, "/a\nb");
    assert_int_equal(call.limit, 10);
}

static void test_names_what_is_wrong(void **state)
{
    static const struct {
        const char *call;
        const char *params;
        const char *message;
    } cases[] = {
        {"changes", "{\"paths\": [\"/a\", \"b\"]}",
         "$.paths[1]: should be an absolute path or a file URI"},
        {"changes", "{\"paths\": [7]}", "$.paths[0]: "},
        {"changes", "{\"paths\": 7}", "$.paths: "},
        {"changes", "{\"after\": \"x\"}", "$.after: should be \"next\" of the answer before"},
        {"changes", "{\"after\": \"1:/a\"}", "$.after: should be \"next\" of the answer before"},
        {"changes", "{\"stepId\": -1}", "$.stepId: "},
        {"diff", "{}", "$: should have a `path`"},
        {"read", "{\"path\": \"/a\", \"side\": \"base\"}", "$.side: "},
        {"accept", "{}", "$: should have just one of `paths` and `all`"},
        {"accept", "{\"all\": true, \"paths\": [\"/a\"]}",
         "$: should have just one of `paths` and `all`"},
        {"accept", "{\"all\": true, \"expect\": {\"/a\": \"x\"}}", "$.expect[\"/a\"]: "},
        {"accept", "{\"all\": true, \"expect\": {\"a\": \"\"}}",
         "$.expect.a: should be an absolute"},
        {"accept", "{\"all\": true, \"text\": \"x\"}", "$: `text` goes with just one path"},
        {"drop", "{\"all\": true, \"stepId\": 1}",
         "$: should have just one of `paths` and `all` and `stepId`"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_FREE char *text = alloc_strf("{\"call\": \"%s\", \"layer\": \"x\", \"params\": %s}",
                                          cases[i].call, cases[i].params);
        AUTO(layer_call_done) struct layer_call call = {0};
        struct err err;

        assert_int_equal(parse(text, &call, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        if (strncmp(err.msg, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("%s: %s", text, err.msg);
    }
}

static void test_refuses_what_is_no_request(void **state)
{
    static const char *const texts[] = {
        "[]",
        "{}",
        "{\"call\": \"eat\", \"layer\": \"x\"}",
        "{\"call\": \"info\"}",
        "{\"call\": \"info\", \"layer\": 7}",
        "{\"call\": \"info\", \"layer\": \"x\", \"params\": []}",
        "{\"call\": \"info\", \"layer\": \"x\", \"held\": 1}",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        AUTO(layer_call_done) struct layer_call call = {0};
        struct err err;

        assert_int_equal(parse(texts[i], &call, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_an_accept),
        cmocka_unit_test(test_reads_a_part),
        cmocka_unit_test(test_reads_a_page),
        cmocka_unit_test(test_names_what_is_wrong),
        cmocka_unit_test(test_refuses_what_is_no_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
