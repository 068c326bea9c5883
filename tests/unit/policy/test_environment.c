/* environment: which variables are passed on (tests/cases/environment).
 *
 *     policy   {inherit, ignore_default_excludes, exclude, include_only, set}
 *     base     ["NAME=value"]; sandbox: true; network: word; thread_id
 *     env      all of the result, ordered
 *     reasons  {NAME: "reason" or "reason PATTERN"}, of as many names as the case wants to tell */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "policy/environment.h"

#include <string.h>

static void push_all(const json_t *json, const char *key, struct strv *ret)
{
    AUTO_FREE char **items = case_strings(json, key);

    strv_push_all(ret, items);
}

static void policy_of(const json_t *json, struct environment_policy *ret)
{
    static const char *const keys[] = {
        "inherit", "ignore_default_excludes", "exclude", "include_only", "set", NULL};
    const char *inherit = case_string_or(json, "inherit", "all");

    case_check_keys(json, keys);
    ret->inherit = str_eq(inherit, "core")   ? ENVIRONMENT_CORE
                   : str_eq(inherit, "none") ? ENVIRONMENT_NONE
                                             : ENVIRONMENT_ALL;
    if (json_is_true(json_object_get(json, "ignore_default_excludes")))
        ret->defaults = ENVIRONMENT_DEFAULTS_OFF;
    push_all(json, "exclude", &ret->exclude);
    push_all(json, "include_only", &ret->include_only);
    push_all(json, "set", &ret->set);
}

static enum network_access network_of(const json_t *json)
{
    const char *word = case_string_or(json, "network", "enabled");

    for (int i = NETWORK_RESTRICTED; i <= NETWORK_ENABLED; i++)
        if (str_eq(network_access_name((enum network_access)i), word))
            return (enum network_access)i;
    fail_msg("no such network: %s", word);
    return NETWORK_RESTRICTED;
}

/* "REASON" or "REASON PATTERN"; caller frees. */
static char *note_text(const struct environment_report *report, const char *name)
{
    for (size_t i = 0; i < report->len; i++) {
        const struct environment_note *note = &report->notes[i];
        const char *reason = environment_reason_name(note->reason);

        if (str_eq(note->name, name))
            return note->pattern ? alloc_strf("%s %s", reason, note->pattern) : alloc_str(reason);
    }
    return alloc_str("is not told about");
}

static void check_reasons(const json_t *wanted, const struct environment_report *report)
{
    const char *name;
    json_t *reason;

    json_object_foreach((json_t *)wanted, name, reason)
    {
        AUTO_FREE char *text = note_text(report, name);

        assert_string_equal(text, json_string_value(reason));
    }
}

/* The report and the result have to tell the same. */
static void check_report(const struct environment_report *report, const struct strv *env)
{
    size_t kept = 0;

    for (size_t i = 0; i < report->len; i++) {
        const struct environment_note *note = &report->notes[i];
        AUTO_FREE char *start = alloc_strf("%s=", note->name);

        assert_true(i == 0 || strcmp(report->notes[i - 1].name, note->name) < 0);
        if (environment_reason_is_drop(note->reason))
            continue;
        assert_null(note->pattern);
        assert_true(kept < env->len);
        assert_true(str_starts(env->items[kept++], start));
    }
    assert_int_equal(kept, env->len);
}

static void environment_case(void **state)
{
    static const char *const keys[] = {"why",       "policy", "base",    "sandbox", "network",
                                       "thread_id", "env",    "reasons", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    AUTO_JSON json_t *got = json_array();
    AUTO_FREE char **base = case_strings(json, "base");
    AUTO(environment_policy_done) struct environment_policy policy = {0};
    AUTO(environment_report_done) struct environment_report report = {0};
    AUTO(strv_done) struct strv env = {0};
    AUTO(strv_done) struct strv unreported = {0};
    struct environment_request request = {
        .policy = json_object_get(json, "policy") ? &policy : NULL,
        .base = base,
        .thread_id = case_string_or(json, "thread_id", NULL),
        .sandbox = json_is_true(json_object_get(json, "sandbox")) ? ENVIRONMENT_SANDBOXED
                                                                  : ENVIRONMENT_BARE,
        .network = network_of(json),
    };

    case_check_keys(json, keys);
    if (request.policy)
        policy_of(json_object_get(json, "policy"), &policy);
    environment_build(&request, &env, &report);
    for (size_t i = 0; i < env.len; i++)
        json_array_append_new(got, json_string(env.items[i]));
    assert_json_equal(got, json_object_get(json, "env"));
    check_reasons(json_object_get(json, "reasons"), &report);
    check_report(&report, &env);
    environment_build(&request, &unreported, NULL);
    assert_int_equal(unreported.len, env.len);
}

static void reserved_names(void **state)
{
    assert_true(environment_is_reserved("CORDON_TOKEN"));
    assert_true(environment_is_reserved("CORDON_BEARER_TOKEN"));
    assert_true(environment_is_reserved("CORDON_LINUX_SANDBOX_EXE"));
    assert_false(environment_is_reserved("CORDON_HOME"));
    assert_false(environment_is_reserved("cordon_token"));
}

int main(void)
{
    const struct CMUnitTest more[] = {cmocka_unit_test(reserved_names)};

    return cases_run("environment", environment_case, more, sizeof more / sizeof *more);
}
