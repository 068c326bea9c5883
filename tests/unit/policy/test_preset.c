/* preset: files of presets (tests/cases/preset).
 *
 *     text     its lines
 *     error    preset_parse() fails; how the message begins
 *     out      what was read: {about, why, per_workspace, hosts, write, env, offline_env, outside}
 *     places   {cache, home, env: ["NAME=value"]}: for
 *     set      its variables as they are expanded then */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "policy/config/preset.h"
#include "policy/tool_cache.h"

#include <stdlib.h>
#include <string.h>

static json_t *list_json(const struct strv *strv)
{
    return json_lossy_list(strv_view(strv));
}

static json_t *preset_json(const struct preset *preset)
{
    json_t *outside = json_object();

    for (size_t i = 0; i < preset->outside_len; i++)
        json_object_set_new(outside, preset->outside[i].path, list_json(&preset->outside[i].env));
    return json_pack("{s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "about", preset->about, "why",
                     json_lossy(preset->why), "per_workspace", preset->per_workspace, "hosts",
                     list_json(&preset->hosts), "hosts_from", list_json(&preset->hosts_from),
                     "write", list_json(&preset->write), "env", list_json(&preset->env),
                     "offline_env", list_json(&preset->offline_env), "outside", outside);
}

static void check_expanded(const json_t *json, const struct preset *preset)
{
    const json_t *at = json_object_get(json, "places");
    AUTO_FREE char **env = case_strings(at, "env");
    const struct preset_places places = {
        .cache = case_string(at, "cache"), .home = case_string(at, "home"), .env = env};
    AUTO_JSON json_t *got = json_array();

    for (size_t i = 0; i < preset->env.len; i++) {
        AUTO_FREE char *pair = preset_expand(preset->env.items[i], &places);

        json_array_append_new(got, json_string(pair));
    }
    assert_json_equal(got, json_object_get(json, "set"));
}

static void preset_case(void **state)
{
    static const char *const keys[] = {"why", "text", "error", "out", "places", "set", NULL};
    const struct test_case *test = *state;
    const char *error = case_string_or(test->json, "error", NULL);
    AUTO_FREE char **lines = case_strings(test->json, "text");
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO(preset_done) struct preset preset = {0};
    AUTO_JSON json_t *got = NULL;
    struct err err = {0};
    int status;

    case_check_keys(test->json, keys);
    for (size_t i = 0; lines[i]; i++)
        buf_appendf(&text, "%s\n", lines[i]);
    status = preset_parse(text.data ? text.data : "", text.len, "x.toml", &preset, &err);
    if (error) {
        assert_int_equal(status, -1);
        assert_int_equal(err.code, ERR_INVALID);
        if (!str_starts(err.msg, error))
            fail_msg("\"%s\" does not begin with \"%s\"", err.msg, error);
        return;
    }
    if (status)
        fail_msg("%s", err.msg);
    got = preset_json(&preset);
    assert_json_equal(got, json_object_get(test->json, "out"));
    if (json_object_get(test->json, "set"))
        check_expanded(test->json, &preset);
}

static void names_are_names_of_files(void **state)
{
    static const char *const right[] = {"npm", "a", "0x", "a.b-c_d", NULL};
    static const char *const wrong[] = {"",       ".",   "..", "-a",  "_a",  "a/b",
                                        "../npm", "Npm", "a.", "a b", "a\n", NULL};

    for (size_t i = 0; right[i]; i++)
        assert_true(preset_name_is_valid(right[i]));
    for (size_t i = 0; wrong[i]; i++)
        assert_false(preset_name_is_valid(wrong[i]));
}

static void a_file_has_a_limit(void **state)
{
    AUTO_FREE char *text = alloc_zero(PRESET_SIZE_MAX + 2, 1);
    AUTO(preset_done) struct preset preset = {0};
    struct err err;

    memset(text, '\n', PRESET_SIZE_MAX + 1);
    assert_int_equal(preset_parse(text, PRESET_SIZE_MAX + 1, "x.toml", &preset, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
}

static void caches_of_tools_have_presets(void **state)
{
    static const char *const of[][2] = {
        {"/home/me/.npm", "npm"},         {"/home/me/.npm/_cacache/x", "npm"},
        {"/home/me/go/pkg/mod", "go"},    {"/home/me/.cache/go-build", "go"},
        {"/home/me/.cargo/git", "cargo"}, {"/home/me/.m2/repository/x", "maven"},
        {"/home/me/.npmrc", NULL},        {"/home/me/.cache", NULL},
        {"/home/me/.composer", NULL},     {"/home/other/.npm", NULL},
    };

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const char *preset = tool_cache_preset(of[i][0], "/home/me");

        if (of[i][1] ? !preset || !str_eq(preset, of[i][1]) : !!preset)
            fail_msg("%s: %s", of[i][0], preset ? preset : "none");
    }
    assert_null(tool_cache_preset("/home/me/.npm", NULL));
}

static void hosts_are_read_from_a_tools_own_configuration(void **state)
{
    static const char text[] =
        "; registry=https://no.example/\n"
        "registry = https://user:p@ss@Registry.example:8443/npm/ \n"
        "@corp:registry=http://corp.example\n"
        "my-registry=https://no.example\n"
        "//corp.example/:_authToken=https://no.example\n"
        "registry=https://127.1/\nregistry=none\nregistry=\"https://q.example\"\n"
        "registry=https://corp.example/again";
    static const char *const wanted[] = {"registry.example:8443", "corp.example", "q.example"};
    AUTO(strv_done) struct strv hosts = {0};

    preset_read_hosts(text, "registry", &hosts);
    assert_int_equal(hosts.len, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(hosts.items[i], wanted[i]);
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(names_are_names_of_files),
        cmocka_unit_test(a_file_has_a_limit),
        cmocka_unit_test(caches_of_tools_have_presets),
        cmocka_unit_test(hosts_are_read_from_a_tools_own_configuration),
    };

    return cases_run("preset", preset_case, more, sizeof more / sizeof *more);
}
