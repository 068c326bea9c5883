/* Which requests a hook is about, and what their heads become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "policy/network_hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_hooks(const char *text, struct network_hooks *ret, struct err *err)
{
    AUTO_JSON json_t *json = json_parse(text, strlen(text), err);
    struct json_at at = json_at_root(json);

    assert_non_null(json);
    return network_hooks_from_json(&at, ret, err);
}

static struct network_hooks good_hooks(const char *text)
{
    struct network_hooks hooks;
    struct err err;

    if (read_hooks(text, &hooks, &err))
        fail_msg("%s", err.msg);
    return hooks;
}

static const char *const repos =
    "{\"hooks\": [{\"host\": \"API.example.com\", \"methods\": [\"get\", \"POST\"],"
    "  \"path_prefixes\": [\"/repos/\", \"pattern:/users/*/keys\", \"literal:pattern:x\"],"
    "  \"query\": {\"page\": [\"1\", \"pattern:2?\"]},"
    "  \"headers\": {\"X-Mode\": [\"safe\"]}}]}";

static bool is_taken(const struct network_hooks *hooks, const char *method, const char *target,
                     const char *mode)
{
    const struct network_hook *hook;
    struct http_head head = {.method = method, .target = target, .minor = 1};
    const struct network_hook_request request = {.host = "api.example.com", .head = &head};

    if (mode)
        head.fields[head.field_count++] = (struct http_field){"x-mode", mode};
    if (network_hooks_decide(hooks, &request, &hook) == NETWORK_REASON_NONE) {
        assert_ptr_equal(hook, hooks->hooks);
        return true;
    }
    assert_null(hook);
    return false;
}

static void requests(void **state)
{
    AUTO(network_hooks_done) struct network_hooks hooks = good_hooks(repos);
    static const struct {
        const char *method, *target, *mode;
        bool is_taken;
    } cases[] = {
        {"GET", "/repos/a?page=1", "safe", true},
        {"POST", "/repos/a?x=y&page=22", "safe", true},
        {"GET", "/users/ann/keys/1?page=1", "safe", true},
        {"GET", "/%72epos/a?p%61ge=1", "safe", true},
        {"PUT", "/repos/a?page=1", "safe", false},
        {"get", "/repos/a?page=1", "safe", false},
        {"GET", "/repo/a?page=1", "safe", false},
        {"GET", "/Repos/a?page=1", "safe", false},
        {"GET", "pattern:x?page=1", "safe", false},
        {"GET", "/repos/a", "safe", false},
        {"GET", "/repos/a?page=3", "safe", false},
        {"GET", "/repos/a?page=1&page=3", "safe", false},
        {"GET", "/repos/a?page=1;page=3", "safe", false},
        {"GET", "/repos/a?page=%31%00", "safe", false},
        {"GET", "/repos/a?page=1", "Safe", false},
        {"GET", "/repos/a?page=1", NULL, false},
        /* paths that two programs could read differently */
        {"GET", "/repos/../admin?page=1", "safe", false},
        {"GET", "/repos/%2e%2E/admin?page=1", "safe", false},
        {"GET", "/repos/..;x/admin?page=1", "safe", false},
        {"GET", "/repos/./a?page=1", "safe", false},
        {"GET", "/repos/..?page=1", "safe", false},
        {"GET", "/repos/a%2fb?page=1", "safe", false},
        {"GET", "/repos/a%5cb?page=1", "safe", false},
        {"GET", "/repos/a\\b?page=1", "safe", false},
        {"GET", "/repos/%252e%252e/admin?page=1", "safe", false},
        {"GET", "/repos/%?page=1", "safe", false},
        {"GET", "/repos/%4?page=1", "safe", false},
        {"GET", "/repos/%zz?page=1", "safe", false},
        {"GET", "/repos/%0a?page=1", "safe", false},
        {"GET", "/repos/a#b?page=1", "safe", false},
        {"GET", "/repos/%2e.%20/admin?page=1", "safe", false},
        {"GET", "/repos/%c0%ae%c0%ae/admin?page=1", "safe", false},
        {"GET", "/repos/...?page=1", "safe", true},
        {"GET", "/repos/.x/..x/%c3%a4?page=1", "safe", true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (is_taken(&hooks, cases[i].method, cases[i].target, cases[i].mode) != cases[i].is_taken)
            fail_msg("%s %s", cases[i].method, cases[i].target);
}

static void hosts(void **state)
{
    AUTO(network_hooks_done)
    struct network_hooks hooks =
        good_hooks("{\"hooks\": [{\"host\": \"a.test\", \"methods\": [\"GET\"],"
                   "\"path_prefixes\": [\"/\"]}],"
                   "\"credentials\": [{\"name\": \"T\", \"hosts\": [\"b.test.\"]}]}");
    const struct http_head head = {.method = "PUT", .target = "/", .minor = 1};
    const struct network_hook_request request = {.host = "b.test", .head = &head};
    const struct network_hook *hook;

    assert_true(network_hooks_end_tls(&hooks, "a.test"));
    assert_true(network_hooks_end_tls(&hooks, "b.test"));
    assert_false(network_hooks_end_tls(&hooks, "c.a.test"));
    assert_int_equal(network_hooks_decide(&hooks, &request, &hook), NETWORK_REASON_NONE);
    assert_null(hook);
}

/* The value of a field after everything that is done for a.test. */
static char *after(const struct network_hooks *hooks, const char *host, const char *name,
                   const char *value)
{
    struct http_head head = {.method = "GET", .target = "/", .minor = 1};
    const struct network_hook_request request = {.host = host, .head = &head};
    const struct network_hook *hook;
    AUTO(strv_done) struct strv storage = {0};
    const char *got;
    struct err err;

    head.fields[head.field_count++] = (struct http_field){name, value};
    network_hooks_decide(hooks, &request, &hook);
    if (network_hooks_apply(hooks, hook, host, &head, &storage, &err))
        return alloc_str(err.msg);
    got = http_head_field(&head, name);
    return alloc_str(got ? got : "(none)");
}

static void assert_after(const struct network_hooks *hooks, const char *host, const char *name,
                         const char *value, const char *wanted)
{
    AUTO_FREE char *got = after(hooks, host, name, value);

    assert_string_equal(got, wanted);
}

static void heads(void **state)
{
    AUTO(network_hooks_done)
    struct network_hooks hooks = good_hooks(
        "{\"hooks\": [{\"host\": \"a.test\", \"methods\": [\"GET\"], \"path_prefixes\": [\"/\"],"
        "  \"strip_request_headers\": [\"cookie\"], \"inject_request_headers\": [{\"name\":"
        "  \"Authorization\", \"prefix\": \"Bearer \", \"secret_env_var\": \"T\","
        "  \"secret\": \"real\"}]}],"
        " \"credentials\": [{\"name\": \"T\", \"hosts\": [\"b.test\"], \"stand_in\": \"FAKE\","
        "  \"secret\": \"real\"}]}");

    AUTO(network_hooks_done)
    struct network_hooks under = good_hooks(
        "{\"hooks\": [{\"host\": \"a.test\", \"methods\": [\"GET\"], \"path_prefixes\": [\"/\"],"
        "  \"strip_request_headers\": [\"X-User\"], \"inject_request_headers\": [{\"name\": "
        "\"X-Key\","
        "  \"secret_env_var\": \"T\", \"secret\": \"real\"}]}]}");

    assert_after(&hooks, "a.test", "Cookie", "x", "(none)");
    assert_after(&hooks, "a.test", "authorization", "Bearer mine", "Bearer real");
    /* a server may read the name as that of a variable (CGI) */
    assert_after(&hooks, "a.test", "COOKIE", "x", "(none)");
    assert_after(&under, "a.test", "X_User", "mine", "(none)");
    assert_after(&under, "a.test", "X_Key", "mine", "(none)");
    assert_after(&hooks, "a.test", "Accept", "FAKE", "FAKE");
    assert_after(&hooks, "b.test", "Authorization", "token FAKE", "token real");
    assert_after(&hooks, "b.test", "X-Key", "FAKE,FAKE", "real,real");
    assert_after(&hooks, "b.test", "Authorization", "Basic dXNlcjpGQUtF", "Basic dXNlcjpyZWFs");
    assert_after(&hooks, "b.test", "Authorization", "Basic dXNlcjp4eHh4", "Basic dXNlcjp4eHh4");
    assert_after(&hooks, "c.test", "Authorization", "token FAKE", "token FAKE");
}

static void a_secret_that_is_not_there(void **state)
{
    AUTO(network_hooks_done)
    struct network_hooks hooks = good_hooks(
        "{\"hooks\": [{\"host\": \"a.test\", \"methods\": [\"GET\"], \"path_prefixes\": [\"/\"],"
        "  \"inject_request_headers\": [{\"name\": \"X\", \"secret_env_var\": \"T\"}]}]}");

    assert_after(&hooks, "a.test", "X", "mine", "the secret for X is not there");
}

static void stand_ins(void **state)
{
    static const char *const secrets[] = {"ghp_0123456789abcdefghijklmnopqrstuvwxyz",
                                          "short",
                                          "sk-proj-ABCDEFabcdef0123456789ABCDEFabcdef",
                                          "x",
                                          "....-....:....+....=....", /* nothing in it changes */
                                          "550e8400-e29b-41d4-a716-446655440000"};
    uint8_t random[64];

    for (size_t i = 0; i < sizeof random; i++)
        random[i] = (uint8_t)(i * 37);
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
        AUTO_FREE char *fake = network_stand_in(secrets[i], random);

        assert_string_not_equal(fake, secrets[i]);
        assert_null(strstr(fake, secrets[i]));
        assert_true(network_secret_is_valid(fake) && strlen(fake) >= 16);
    }
    {
        AUTO_FREE char *fake = network_stand_in(secrets[0], random);

        assert_int_equal(strlen(fake), strlen(secrets[0]));
        assert_true(str_starts(fake, "ghp_"));
    }
    {
        AUTO_FREE char *fake =
            network_stand_in(secrets[5], random); /* a UUID is secret as a whole */

        assert_false(str_starts(fake, "550e8400-"));
    }
    assert_false(network_secret_is_valid(""));
    assert_false(network_secret_is_valid("a\nb"));
    assert_false(network_secret_is_valid("\xc3\xa4"));
}

static void assert_env(const struct network_hooks *hooks, const char *pair, const char *wanted)
{
    AUTO(strv_done) struct strv env = {0};

    strv_push(&env, pair);
    network_hooks_withhold(hooks, &env);
    assert_string_equal(env.items[0], wanted);
}

static void what_the_environment_is_without(void **state)
{
    AUTO(network_hooks_done)
    struct network_hooks hooks = good_hooks(
        "{\"hooks\": [{\"host\": \"a.test\", \"methods\": [\"GET\"], \"path_prefixes\": [\"/\"],"
        "  \"inject_request_headers\": [{\"name\": \"X\", \"secret_env_var\": \"T\","
        "  \"secret\": \"long-secret\", \"stand_in\": \"FAKE\"}]}],"
        " \"credentials\": ["
        "  {\"name\": \"A\", \"hosts\": [\"b.test\"], \"stand_in\": \"S\", \"secret\": \"short\"},"
        "  {\"name\": \"D\", \"hosts\": [\"b.test\"], \"stand_in\": \"BEGIN\","
        "   \"secret\": \"long-sec\"},"
        "  {\"name\": \"B\", \"hosts\": [\"b.test\"], \"stand_in\": \"LONGER\","
        "   \"secret\": \"long-secret-too\"},"
        "  {\"name\": \"C\", \"hosts\": [\"b.test\"]}]}");

    assert_env(&hooks, "T=long-secret", "T=FAKE");
    assert_env(&hooks, "X=a long-secretlong-secret-too.", "X=a FAKELONGER.");
    assert_env(&hooks, "X=Basic dXNlcjpsb25nLXNlY3JldA==", "X=Basic dXNlcjpGQUtF");
    assert_env(&hooks, "X=\"dXNlcjpsb25nLXNlY3JldA==\" ====", "X=\"dXNlcjpGQUtF\" ====");
    assert_env(&hooks, "X=dXNlcjpzaG9ydA==", "X=dXNlcjpzaG9ydA==");
    assert_env(&hooks, "D=long-second", "D=BEGINond");
    assert_env(&hooks, "A=short", "A=S");
    assert_env(&hooks, "X=a short one", "X=a short one");
    assert_env(&hooks, "X=shorter", "X=shorter");
    assert_env(&hooks, "long-secret=", "long-secret=");
    assert_env(&hooks, "none", "none");
    assert_env(NULL, "T=long-secret", "T=long-secret");
}

static void what_is_told_of_them(void **state)
{
    AUTO(network_hooks_done)
    struct network_hooks hooks = good_hooks(
        "{\"hooks\": [{\"host\": \"a.test\", \"methods\": [\"GET\"], \"path_prefixes\": [\"/\"],"
        "  \"inject_request_headers\": [{\"name\": \"X\", \"secret_env_var\": \"T\","
        "  \"secret\": \"real-one\", \"stand_in\": \"FAKE\"}]}],"
        " \"credentials\": [{\"name\": \"A\", \"hosts\": [\"b.test\"], \"stand_in\": \"FAKE\","
        "  \"secret\": \"real-one\"}]}");
    AUTO_JSON json_t *told = network_hooks_describe(&hooks);
    AUTO_FREE char *text = json_dumps(told, 0);

    assert_null(strstr(text, "real-one"));
    assert_null(strstr(text, "FAKE"));
    assert_non_null(strstr(text, "b.test"));
    assert_non_null(strstr(text, "secret_env_var"));
}

static void what_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"[]", "$: "},
        {"{\"hook\": []}", "$.hook: "},
        {"{\"hooks\": [{\"methods\": [\"GET\"], \"path_prefixes\": [\"/\"]}]}",
         "$.hooks[0].host: "},
        {"{\"hooks\": [{\"host\": \"*.a\", \"methods\": [\"GET\"], \"path_prefixes\": [\"/\"]}]}",
         "$.hooks[0].host: "},
        {"{\"hooks\": [{\"host\": \"a\", \"path_prefixes\": [\"/\"]}]}", "$.hooks[0].methods: "},
        {"{\"hooks\": [{\"host\": \"a\", \"methods\": [\"GET\"], \"path_prefixes\": []}]}",
         "$.hooks[0].path_prefixes: "},
        {"{\"hooks\": [{\"host\": \"a\", \"methods\": [\"GET\"], \"path_prefixes\": [\"/\"],"
         "\"body\": 1}]}",
         "$.hooks[0].body: "},
        {"{\"hooks\": [{\"host\": \"a\", \"methods\": [\"GET\"], \"path_prefixes\": [\"/\"],"
         "\"strip_request_headers\": [\"a b\"]}]}",
         "$.hooks[0].strip_request_headers: "},
        {"{\"hooks\": [{\"host\": \"a\", \"methods\": [\"GET\"], \"path_prefixes\": [\"/\"],"
         "\"inject_request_headers\": [{\"name\": \"X\"}]}]}",
         "$.hooks[0].inject_request_headers[0]: "},
        {"{\"hooks\": [{\"host\": \"a\", \"methods\": [\"GET\"], \"path_prefixes\": [\"/\"],"
         "\"inject_request_headers\": [{\"name\": \"X\", \"secret_file\": \"a\"}]}]}",
         "$.hooks[0].inject_request_headers[0]: "},
        {"{\"hooks\": [{\"host\": \"a\", \"methods\": [\"GET\"], \"path_prefixes\": [\"/\"],"
         "\"inject_request_headers\": [{\"name\": \"X\", \"secret_env_var\": \"a\","
         "\"prefix\": \"a\\nb\"}]}]}",
         "$.hooks[0].inject_request_headers[0]: "},
        {"{\"credentials\": [{\"name\": \"T\", \"hosts\": []}]}", "$.credentials[0].hosts: "},
        {"{\"credentials\": [{\"hosts\": [\"a\"]}]}", "$.credentials[0].name: "},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct network_hooks hooks;
        struct err err;

        assert_int_equal(read_hooks(cases[i].text, &hooks, &err), -1);
        if (!str_starts(err.msg, cases[i].why))
            fail_msg("%s: %s", cases[i].text, err.msg);
    }
}

static void copies(void **state)
{
    AUTO(network_hooks_done) struct network_hooks hooks = good_hooks(repos);
    AUTO(network_hooks_done) struct network_hooks copy;
    AUTO_JSON json_t *one = network_hooks_to_json(&hooks);
    json_t *two;

    network_hooks_copy(&hooks, &copy);
    two = network_hooks_to_json(&copy);
    assert_true(json_equal(one, two));
    json_decref(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),
        cmocka_unit_test(hosts),
        cmocka_unit_test(heads),
        cmocka_unit_test(a_secret_that_is_not_there),
        cmocka_unit_test(stand_ins),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(what_the_environment_is_without),
        cmocka_unit_test(what_is_told_of_them),
        cmocka_unit_test(copies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
