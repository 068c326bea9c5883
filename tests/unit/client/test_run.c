/* The parameters of process/start. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/json.h"
#include "client/client.h"
#include "client/run.h"

#include <stdlib.h>
#include <string.h>

static bool is_plain;

static json_t *params_of(struct client_run options)
{
    char *const argv[] = {(char *)"prog", (char *)"arg", NULL};
    const struct start_context context = {.id = "run",
                                          .dir = "file:///srv",
                                          .term = "vt",
                                          .size = {.rows = 3, .columns = 4},
                                          .knows_profiles = !is_plain};
    struct err err;

    if (!options.argv)
        options.argv = argv;
    return start_params(&options, &context, &err);
}

static const char *text_at(const json_t *json, const char *first, const char *second)
{
    return json_string_value(json_object_get(json_object_get(json, first), second));
}

static void a_start_is_sandboxed(void **state)
{
    AUTO_JSON json_t *params = params_of((struct client_run){.input = CLIENT_STDIN_PIPE});
    const json_t *sandbox = json_object_get(params, "sandbox");

    assert_string_equal(text_at(params, "sandbox", "cwd"), "file:///srv");
    assert_true(json_is_null(json_object_get(sandbox, "profile")));
    assert_int_equal(json_object_size(sandbox), 2);
    assert_int_equal(json_array_size(json_object_get(params, "argv")), 2);
    assert_true(json_is_true(json_object_get(params, "pipeStdin")));
    assert_true(json_is_false(json_object_get(params, "tty")));
    assert_null(json_object_get(params, "rows"));
    assert_string_equal(text_at(params, "envPolicy", "inherit"), "all");
    assert_int_equal(json_object_size(json_object_get(params, "env")), 0);
}

static void hosts_go_as_they_were_written(void **state)
{
    AUTO(network_policy_done) struct network_policy hosts = {.allow_local_binding = true};
    AUTO_JSON json_t *params = NULL;
    AUTO_JSON json_t *wanted =
        json_pack("{s:n, s:s, s:[s, s], s:[s], s:[i], s:b}", "profile", "cwd", "file:///srv",
                  "allowHosts", "*.example.org:443", "[2001:db8::1]:22", "denyHosts",
                  "a.example.org", "hostPorts", 5432, "allowLocalBinding", 1);
    struct err err;

    assert_int_equal(
        network_policy_add_text(&hosts, "*.Example.org:443", NETWORK_ALLOW, NULL, &err), 0);
    assert_int_equal(network_policy_add_text(&hosts, "[2001:DB8::1]:22", NETWORK_ALLOW, NULL, &err),
                     0);
    assert_int_equal(network_policy_add_text(&hosts, "a.example.org", NETWORK_DENY, NULL, &err), 0);
    assert_int_equal(network_policy_add_host_port(&hosts, 5432, &err), 0);
    params = params_of((struct client_run){.hosts = &hosts, .cwd = "/srv"});
    assert_true(json_equal(json_object_get(params, "sandbox"), wanted));
}

static void a_start_is_as_asked_for(void **state)
{
    char *const env[] = {(char *)"A=b=c", (char *)"CORDON_TEST_MINE", NULL};
    AUTO_JSON json_t *params = NULL;

    setenv("CORDON_TEST_MINE", "m", 1);
    params = params_of((struct client_run){.profile = "read-only",
                                           .network = "enabled",
                                           .watch = "ask",
                                           .writable = env,
                                           .cwd = "sub",
                                           .env = env,
                                           .input = CLIENT_STDIN_NULL,
                                           .flags = CLIENT_RUN_TTY});
    assert_string_equal(text_at(params, "sandbox", "profile"), "read-only");
    assert_string_equal(text_at(params, "sandbox", "network"), "enabled");
    assert_string_equal(text_at(params, "sandbox", "watch"), "ask");
    assert_int_equal(
        json_array_size(json_object_get(json_object_get(params, "sandbox"), "writable")), 2);
    assert_string_equal(json_string_value(json_object_get(params, "cwd")), "file:///srv/sub");
    assert_string_equal(text_at(params, "env", "A"), "b=c");
    assert_string_equal(text_at(params, "env", "CORDON_TEST_MINE"), "m");
    assert_string_equal(text_at(params, "env", "TERM"), "vt");
    assert_int_equal(json_object_size(json_object_get(params, "env")), 3);
    assert_int_equal(json_integer_value(json_object_get(params, "rows")), 3);
    assert_null(json_object_get(json_object_get(params, "sandbox"), "allowHosts"));
    assert_true(json_is_true(json_object_get(params, "tty")));
    assert_true(json_is_false(json_object_get(params, "pipeStdin")));
}

static void a_plain_server_gets_what_codex_sends(void **state)
{
    AUTO_JSON json_t *params = NULL;
    const json_t *permissions;
    char *const paths[] = {(char *)"/x", NULL};

    is_plain = true;
    params = params_of((struct client_run){.input = CLIENT_STDIN_PIPE});
    permissions = json_object_get(json_object_get(params, "sandbox"), "permissions");
    assert_string_equal(text_at(params, "sandbox", "cwd"), "file:///srv");
    assert_string_equal(text_at(params, "sandbox", "windowsSandboxLevel"), "disabled");
    assert_string_equal(json_string_value(json_object_get(permissions, "type")), "managed");
    assert_string_equal(json_string_value(json_object_get(permissions, "network")), "restricted");
    assert_null(params_of((struct client_run){.profile = "mine"}));
    assert_null(params_of((struct client_run){.deny = paths}));
    assert_null(params_of((struct client_run){.watch = "ask"}));
    assert_null(params_of((struct client_run){.judge = "every-exec"}));
    assert_null(params_of((struct client_run){.has_protect = true}));
    assert_null(params_of((struct client_run){.execution = &(struct client_execution){0}}));
    json_decref(params);
    params = params_of((struct client_run){.profile = "danger-full-access"});
    assert_true(json_is_null(json_object_get(params, "sandbox")));
    is_plain = false;
}

static void a_start_without_a_sandbox_has_to_be_named(void **state)
{
    AUTO_JSON json_t *open = params_of((struct client_run){.profile = "danger-full-access"});
    char *const nameless[] = {(char *)"=x", NULL};
    char *const not_utf8[] = {(char *)"A=\xff", NULL};
    char *const missing[] = {(char *)"CORDON_TEST_MISSING", NULL};

    assert_string_equal(text_at(open, "sandbox", "profile"), "danger-full-access");
    unsetenv("CORDON_TEST_MISSING");
    assert_null(params_of((struct client_run){.env = missing}));
    assert_null(params_of((struct client_run){.env = nameless}));
    assert_null(params_of((struct client_run){.env = not_utf8}));
    assert_null(params_of((struct client_run){.argv = not_utf8}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_is_sandboxed),
        cmocka_unit_test(a_start_is_as_asked_for),
        cmocka_unit_test(hosts_go_as_they_were_written),
        cmocka_unit_test(a_plain_server_gets_what_codex_sends),
        cmocka_unit_test(a_start_without_a_sandbox_has_to_be_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
