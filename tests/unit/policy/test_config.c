/* config: config.toml files (tests/cases/config). For every NAME.json there is a NAME.toml, or
 * "toml" names another one.
 *
 *     file       its name; default "config.toml"
 *     error      config_load() fails; how the message begins
 *     warnings   ["LINE KEY [-> NEAREST]"], all of them
 *     default, approval (as JSON; null: none)
 *     mcp        {roots, on_cancel, approvals, client_sandbox, at_end: by number; yield_max_ms, layer}
 *     environment {inherit, defaults, exclude, include_only, set}
 *     ask        list of {profile (null: the default), home, and either error (how it begins) and
 *                code, or out (profile JSON), origins, roots, extends} */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "policy/config/approval.h"
#include "policy/config/config.h"
#include "policy/profile_json.h"

#include <string.h>

static void config_free_slot(struct config **slot)
{
    config_free(*slot);
}

static void assert_begins(const char *text, const char *start)
{
    if (!str_starts(text, start))
        fail_msg("\"%s\" does not begin with \"%s\"", text, start);
}

static json_t *strings_json(const struct strv *strv)
{
    json_t *list = json_array();

    for (size_t i = 0; i < strv->len; i++)
        json_array_append_new(list, json_string(strv->items[i]));
    return list;
}

static void check_strings(const json_t *wanted, const struct strv *got)
{
    AUTO_JSON json_t *list = strings_json(got);
    AUTO_JSON json_t *empty = json_array();

    assert_json_equal(list, wanted ? wanted : empty);
}

/* --- the file as a whole --- */

static void check_warnings(const json_t *json, const struct config *config)
{
    size_t len;
    const struct config_warning *warnings = config_warnings(config, &len);
    AUTO(strv_done) struct strv got = {0};

    for (size_t i = 0; i < len; i++) {
        assert_string_equal(warnings[i].file, case_string_or(json, "file", "config.toml"));
        assert_true(warnings[i].text[0] != '\0');
        strv_pushf(&got, "%u %s%s%s", warnings[i].line, warnings[i].key,
                   warnings[i].nearest ? " -> " : "",
                   warnings[i].nearest ? warnings[i].nearest : "");
    }
    check_strings(json_object_get(json, "warnings"), &got);
}

static void check_approval(const json_t *wanted, const struct config *config)
{
    const struct approval_policy *policy = config_approval_policy(config);
    AUTO_JSON json_t *got = policy ? approval_policy_to_json(policy) : json_null();

    assert_json_equal(got, wanted);
}

static void check_environment(const json_t *wanted, const struct environment_policy *policy)
{
    static const char *const inherit[] = {"all", "core", "none"};
    static const char *const defaults[] = {"on", "off"};

    assert_string_equal(inherit[policy->inherit], case_string(wanted, "inherit"));
    assert_string_equal(defaults[policy->defaults], case_string(wanted, "defaults"));
    check_strings(json_object_get(wanted, "exclude"), &policy->exclude);
    check_strings(json_object_get(wanted, "include_only"), &policy->include_only);
    check_strings(json_object_get(wanted, "set"), &policy->set);
}

static void check_mcp(const json_t *wanted, const struct config_mcp *mcp)
{
    AUTO_JSON json_t *got = json_pack(
        "{s:i, s:i, s:i, s:i, s:i, s:s?, s:i}", "roots", mcp->roots, "on_cancel", mcp->on_cancel,
        "approvals", mcp->approvals, "client_sandbox", mcp->sandbox, "yield_max_ms",
        (int)mcp->yield_max_ms, "layer", mcp->layer, "at_end", mcp->at_end);

    assert_json_equal(got, wanted);
}

static void check_general(const json_t *json, const struct config *config)
{
    const char *wanted_default = case_string_or(json, "default", NULL);
    const char *got_default = config_default_profile(config);

    check_warnings(json, config);
    if (json_object_get(json, "environment"))
        check_environment(json_object_get(json, "environment"), config_environment(config));
    if (json_object_get(json, "approval"))
        check_approval(json_object_get(json, "approval"), config);
    if (json_object_get(json, "mcp"))
        check_mcp(json_object_get(json, "mcp"), config_mcp(config));
    if (wanted_default)
        assert_string_equal(got_default ? got_default : "none", wanted_default);
}

/* --- one profile --- */

static void check_origins(const json_t *wanted, const struct profile *profile)
{
    AUTO(strv_done) struct strv origins = {0};

    for (size_t i = 0; i < profile->entries.len; i++)
        strv_push(&origins, profile->entries.items[i].origin);
    check_strings(wanted, &origins);
}

static void check_profile(const json_t *ask, const struct config_profile *got)
{
    AUTO_JSON json_t *out = profile_to_json(&got->profile);

    assert_json_equal(out, json_object_get(ask, "out"));
    check_strings(json_object_get(ask, "roots"), &got->workspace_roots);
    if (json_object_get(ask, "origins"))
        check_origins(json_object_get(ask, "origins"), &got->profile);
    if (json_object_get(ask, "extends"))
        assert_string_equal(got->profile.extends, case_string(ask, "extends"));
    assert_non_null(got->profile.id);
}

static void check_ask(const json_t *ask, const struct config *config)
{
    static const char *const keys[] = {"profile", "home",  "error",   "code", "out",
                                       "origins", "roots", "extends", NULL};
    AUTO(config_profile_done) struct config_profile profile = {0};
    const char *error = case_string_or(ask, "error", NULL);
    struct err err = {0};
    int status;

    case_check_keys(ask, keys);
    status = config_profile(config, case_string_or(ask, "profile", NULL),
                            case_string_or(ask, "home", "/home/u"), &profile, &err);
    if (error) {
        assert_int_equal(status, -1);
        assert_begins(err.msg, error);
        assert_string_equal(err_code_name(err.code), case_string_or(ask, "code", "invalid"));
        return;
    }
    if (status)
        fail_msg("%s", err.msg);
    check_profile(ask, &profile);
}

static void config_case(void **state)
{
    static const char *const keys[] = {"why",     "toml",        "error", "warnings",
                                       "default", "environment", "ask",   "approval",
                                       "file",    "mcp",         NULL};
    const struct test_case *test = *state;
    const json_t *json = test->json;
    AUTO_FREE char *usual = alloc_strf("%.*s.toml", (int)strlen(test->name) - 5, test->name);
    const char *error = case_string_or(json, "error", NULL);
    size_t len;
    AUTO_FREE char *text = case_text("config", case_string_or(json, "toml", usual), &len);
    AUTO(config_free_slot) struct config *config = NULL;
    size_t i;
    json_t *ask;
    struct err err = {0};

    case_check_keys(json, keys);
    config = config_load(text, len, case_string_or(json, "file", "config.toml"), &err);
    if (error) {
        assert_null(config);
        assert_int_equal(err.code, ERR_INVALID);
        assert_begins(err.msg, error);
        return;
    }
    if (!config)
        fail_msg("%s", err.msg);
    check_general(json, config);
    json_array_foreach(json_object_get(json, "ask"), i, ask) check_ask(ask, config);
}

static void without_a_file(void **state)
{
    AUTO(config_profile_done) struct config_profile profile = {0};
    struct err err;

    assert_int_equal(config_profile(NULL, ":workspace", NULL, &profile, &err), 0);
    assert_int_equal(profile.profile.entries.len, 4);
    assert_string_equal(profile.profile.id, "workspace-write");
    assert_int_equal(config_profile(NULL, NULL, NULL, &profile, &err), -1);
    assert_int_equal(config_profile(NULL, "dev", NULL, &profile, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void a_file_has_a_limit(void **state)
{
    AUTO_FREE char *text = alloc_zero(CONFIG_SIZE_MAX + 2, 1);
    AUTO(config_free_slot) struct config *config = NULL;
    struct err err;

    memset(text, '\n', CONFIG_SIZE_MAX + 1);
    config = config_load(text, CONFIG_SIZE_MAX, "config.toml", &err);
    assert_non_null(config);
    assert_null(config_load(text, CONFIG_SIZE_MAX + 1, "config.toml", &err));
    assert_int_equal(err.code, ERR_LIMIT);
}

/* A thousand warnings are not read, and looking for the nearest key takes time. */
static void warnings_have_a_limit(void **state)
{
    AUTO_FREE char *text = alloc_zero(20000, 1);
    AUTO(config_free_slot) struct config *config = NULL;
    size_t len = 0;
    size_t warnings;
    struct err err;

    for (int i = 0; i < 1000; i++)
        len += (size_t)snprintf(text + len, 20000 - len, "zzz%d = 1\n", i);
    config = config_load(text, len, "/home/u/.codex/config.toml", &err);
    assert_non_null(config);
    config_warnings(config, &warnings);
    assert_int_equal(warnings, 50);
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(without_a_file),
        cmocka_unit_test(a_file_has_a_limit),
        cmocka_unit_test(warnings_have_a_limit),
    };

    return cases_run("config", config_case, more, sizeof more / sizeof *more);
}
