/* The approval policy in JSON, as clients of the server send it; in TOML it is part of test_config.
 */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "policy/config/approval.h"

#include <string.h>

static int parse(const char *text, struct approval_policy *ret, struct err *err)
{
    AUTO_JSON json_t *value = json_parse(text, strlen(text), err);
    const struct json_at root = json_at_root(value);
    const struct json_at at = json_at_field(&root, "policy");

    assert_non_null(value);
    return approval_policy_from_json(&at, ret, err);
}

#define GRANULAR(a, b, c, d, e)                                                                    \
    "{\"granular\": {\"sandbox_approval\": " a ", \"rules\": " b ", \"skill_approval\": " c        \
    ", \"request_permissions\": " d ", \"mcp_elicitations\": " e "}}"

static void every_form_is_read_and_written(void **state)
{
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {
        {"\"untrusted\"", "\"untrusted\""},
        {"\"on-request\"", "\"on-request\""},
        {"\"on-failure\"", "\"on-request\""},
        {"\"never\"", "\"never\""},
        {"\"granular\"", GRANULAR("true", "true", "true", "true", "true")},
        {GRANULAR("false", "true", "true", "false", "true"),
         GRANULAR("false", "true", "true", "false", "true")},
        {"{\"granular\": {\"sandbox_approval\": true, \"rules\": true, \"mcp_elicitations\": "
         "true}}",
         GRANULAR("true", "true", "false", "false", "true")},
        {"{\"reject\": {\"sandbox_approval\": true, \"rules\": false, \"mcp_elicitations\": true, "
         "\"request_permissions\": true}}",
         GRANULAR("false", "true", "true", "false", "false")},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_FREE char *text = alloc_strf("{\"policy\": %s}", cases[i].text);
        AUTO_JSON json_t *wanted = NULL;
        AUTO_JSON json_t *got = NULL;
        struct approval_policy policy;
        struct err err;

        if (parse(text, &policy, &err))
            fail_msg("%s: %s", text, err.msg);
        got = approval_policy_to_json(&policy);
        wanted = json_loads(cases[i].wanted, JSON_DECODE_ANY, NULL);
        assert_json_equal(got, wanted);
    }
}

static void errors_say_where(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"{}", "$.policy: should be a word or {\"granular\": {...}}"},
        {"{\"policy\": 3}", "$.policy: should be a word or {\"granular\": {...}}"},
        {"{\"policy\": \"Never\"}",
         "$.policy: \"Never\" is no approval policy; there are untrusted, "
         "on-request, granular and never"},
        {"{\"policy\": {}}", "$.policy: should have one key, which is granular (or reject)"},
        {"{\"policy\": {\"granular\": {}, \"reject\": {}}}",
         "$.policy: should have one key, which is granular (or reject)"},
        {"{\"policy\": {\"granulr\": {}}}", "$.policy.granulr: "},
        {"{\"policy\": {\"granular\": []}}",
         "$.policy.granular: has the wrong type, should be an object"},
        {"{\"policy\": {\"granular\": {\"sandbox_approval\": true, \"rules\": true}}}",
         "$.policy.granular: mcp_elicitations is missing; say true or false"},
        {"{\"policy\": {\"granular\": {\"sandbox_approval\": 1}}}",
         "$.policy.granular.sandbox_approval: "},
        {"{\"policy\": {\"granular\": {\"sandbox_aproval\": true}}}",
         "$.policy.granular.sandbox_aproval: "},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct approval_policy policy = {.mode = APPROVAL_UNTRUSTED, .questions = 99};
        struct err err;

        assert_int_equal(parse(cases[i].text, &policy, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        if (strncmp(err.msg, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("%s: got \"%s\"", cases[i].text, err.msg);
        assert_int_equal(policy.questions, 99);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_read_and_written),
        cmocka_unit_test(errors_say_where),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
