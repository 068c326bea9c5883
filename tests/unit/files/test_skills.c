/* What SKILL.md and agents/openai.yaml say, and which version of a plugin is the newest. How whole
 * directories are taken is in tests/cases/discovery. */
#include "support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "files/plugin_cache.h"
#include "files/skill.h"

#include <string.h>

static void assert_skill(const char *front, const char *name, const char *description)
{
    AUTO(skill_text_done) struct skill_text skill = {0};
    AUTO_FREE char *text = alloc_strf("---\n%s\n---\nbody\n", front);
    struct err err = {0};

    if (skill_text_parse(text, strlen(text), &skill, &err))
        fail_msg("%s: %s", front, err.msg);
    if (name)
        assert_string_equal(skill.name, name);
    else
        assert_null(skill.name);
    assert_string_equal(skill.description, description);
}

static void assert_no_skill(const char *text, const char *why)
{
    struct skill_text skill = {0};
    struct err err = {0};

    assert_int_equal(skill_text_parse(text, strlen(text), &skill, &err), -1);
    assert_null(skill.description);
    assert_contains(err.msg, why);
}

static void yaml_is_read(void **state)
{
    assert_skill("name: a\ndescription: b c", "a", "b c");
    assert_skill("description: >-\n  one\n\n  two", NULL, "one two");
    assert_skill("name: 5\ndescription: \" \\u2003a\\t\\u00e9 \"", "5", "a \u00e9");
    assert_skill("name: &x w\ndescription: *x", "w", "w");
    assert_skill("name: ~\ndescription: 'null'\nother: [1, {a: b}]", NULL, "null");
}

static void prose_is_read(void **state)
{
    assert_skill("name: a\ndescription: Build for AWS: ECS # not this", "a", "Build for AWS: ECS");
    assert_skill("description: @you, it's: so", NULL, "@you, it's: so");
    assert_skill("description: |\n  a: b: c\n  'd\nhint: x: y", NULL, "a: b: c 'd");
    assert_skill("name: [\ndescription: d", "[", "d");
}

static void others_are_refused(void **state)
{
    assert_no_skill("", "does not begin");
    assert_no_skill("---", "does not begin");
    assert_no_skill("---\n---\n", "does not begin");
    assert_no_skill("---\nname: a\ndescription: b\n", "does not begin");
    assert_no_skill("\n---\nname: a\ndescription: b\n---\n", "does not begin");
    assert_no_skill("---\nname: a\n---\n", "no description");
    assert_no_skill("---\n- a\n---\n", "line 1: should be a mapping");
    assert_no_skill("---\ndescription: [a]\n---\n", "line 1: description should be text");
    assert_no_skill("---\nname: a\nname: b\ndescription: c\n---\n", "name is there twice");
    assert_no_skill("---\ndescription: *none\n---\n", "undefined alias");
    assert_no_skill("---\ndescription: \"a\\0b\"\n---\n", "should be text");
    assert_no_skill("---\nname: 12345678901234567890123456789012345678901234567890123456789012345\n"
                    "description: d\n---\n",
                    "more than 64 characters");
}

static void assert_metadata(const char *text, const char *expected)
{
    AUTO_JSON json_t *skill = json_object();
    AUTO_FREE char *got = NULL;
    struct err err = {0};

    if (skill_metadata_add(skill, text, strlen(text), &err))
        fail_msg("%s: %s", text, err.msg);
    got = json_dumps(skill, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(got, expected);
}

static void metadata_is_read(void **state)
{
    assert_metadata("", "{\"dependencies\":null,\"policy\":null}");
    assert_metadata("policy: {allow_implicit_invocation: false, products: [CODEX, atlas]}",
                    "{\"dependencies\":null,\"policy\":{\"allowImplicitInvocation\":false,"
                    "\"products\":[\"codex\",\"atlas\"]}}");
    assert_metadata("dependencies:\n  tools:\n  - {type: mcp}\n  - {type: mcp, value: 5, oauth: "
                    "{callbackPort: 0x50}}",
                    "{\"dependencies\":{\"tools\":[{\"command\":null,\"description\":null,"
                    "\"oauthCallbackPort\":80,\"transport\":null,\"type\":\"mcp\",\"url\":null,"
                    "\"value\":\"5\"}]},\"policy\":null}");
}

static void wrong_metadata_is_none(void **state)
{
    static const char *const cases[][2] = {
        {"interface: 5", "should be a mapping"},
        {"interface: {display_name: [a]}", "display_name should be text"},
        {"policy: {products: [sora]}", "no product is named so"},
        {"policy: {products: }", "products should be a list"},
        {"policy: {allow_implicit_invocation: 'true'}", "should be true or false"},
        {"dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: 65536}}]}", "65535"},
        {"policy: {}\n---\npolicy: {}", "more than one document"},
        {"policy: {", "line 2, column 1"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_JSON json_t *skill = json_object();
        struct err err = {0};

        assert_int_equal(skill_metadata_add(skill, cases[i][0], strlen(cases[i][0]), &err), -1);
        assert_contains(err.msg, cases[i][1]);
        assert_true(json_is_null(json_object_get(skill, "policy")));
        assert_true(json_is_null(json_object_get(skill, "dependencies")));
    }
}

/* From the oldest to the newest, the first line as semver.org has it. */
static void versions_have_an_order(void **state)
{
    static const char *const versions[] = {"1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta",
                                           "1.0.0-beta",  "1.0.0-beta.2",  "1.0.0-beta.11",
                                           "1.0.0-rc.1",  "1.0.0",         "1.0.0+b.9",
                                           "1.0.0+b.10",  "1.9.0",         "1.10.0",
                                           "2.0.0",       "10.0.0"};
    static const char *const words[] = {"01.0.0", "1.0", "10.0", "9.0", "aaa", "bbb", "v1.0.0"};
    size_t len = sizeof versions / sizeof *versions;

    for (size_t i = 0; i < len; i++)
        for (size_t j = 0; j < len; j++) {
            int order = plugin_version_compare(versions[i], versions[j]);

            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    for (size_t i = 1; i < sizeof words / sizeof *words; i++)
        assert_true(plugin_version_compare(words[i - 1], words[i]) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_is_read),           cmocka_unit_test(prose_is_read),
        cmocka_unit_test(others_are_refused),     cmocka_unit_test(metadata_is_read),
        cmocka_unit_test(wrong_metadata_is_none), cmocka_unit_test(versions_have_an_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
