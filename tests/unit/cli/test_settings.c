/* settings: what options, config file and the place of the call come to. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/settings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A home, a config directory, and the current directory "ws" with "sub" and "file" in it. */
static char *scratch;
static char *ws;

static int enter(void **state)
{
    AUTO_FREE char *home = NULL;
    AUTO_FREE char *config = NULL;
    AUTO_FREE char *sub = NULL;

    scratch = support_scratch_new();
    home = path_join(scratch, "home");
    config = path_join(scratch, "config");
    ws = path_join(scratch, "ws");
    sub = path_join(ws, "sub");
    if (mkdir(home, 0700) || mkdir(config, 0700) || mkdir(ws, 0700) || mkdir(sub, 0700) ||
        chdir(ws))
        return -1;
    support_write(ws, "file", "");
    setenv("HOME", home, 1);
    setenv("CORDON_HOME", config, 1);
    unsetenv("TMPDIR");
    return 0;
}

static int leave(void **state)
{
    int status = chdir("/");

    support_scratch_remove(scratch);
    free(ws);
    return status;
}

static void write_config(const char *text)
{
    AUTO_FREE char *config = path_join(scratch, "config");

    support_write(config, "config.toml", text);
}

static void init(struct settings *ret, const struct policy_options *options)
{
    struct err err = ERR_UNTOUCHED;

    if (settings_init(ret, options, &err))
        fail_msg("%s", err.msg);
    assert_untouched(err);
}

static void assert_wrong(const struct policy_options *options, const char *message)
{
    struct settings settings;
    struct err err;

    assert_int_equal(settings_init(&settings, options, &err), -1);
    assert_contains(err.msg, message);
}

static enum access access_to(const struct settings *settings, const char *path)
{
    return access_map_check(&settings->workspace->map, path);
}

static const char *variable(const struct settings *settings, const char *name)
{
    const struct strv *env = &settings->workspace->env;

    for (size_t i = 0; i < env->len; i++)
        if (str_starts(env->items[i], name) && env->items[i][strlen(name)] == '=')
            return env->items[i] + strlen(name) + 1;
    return NULL;
}

/* --- roots --- */

static void the_current_directory_is_the_root(void **state)
{
    const struct policy_options none = {.mode = SANDBOX_AUTO};
    struct settings settings;

    init(&settings, &none);
    assert_string_equal(settings.workspace->dir, ws);
    assert_int_equal(settings.workspace->roots.len, 1);
    assert_string_equal(settings.workspace->roots.items[0], ws);
    assert_int_equal(access_to(&settings, ws), ACCESS_WRITE);
    assert_int_equal(access_to(&settings, "/etc/passwd"), ACCESS_READ);
    assert_int_equal(settings.warnings.len, 0);
    settings_done(&settings);
}

static void assert_nothing_is_a_root(const struct policy_options *options)
{
    struct settings settings;

    init(&settings, options);
    assert_string_equal(settings.workspace->dir, "/");
    assert_int_equal(settings.workspace->roots.len, 0);
    assert_int_equal(access_to(&settings, "/opt/x"), ACCESS_READ);
    assert_int_equal(settings.warnings.len, 1);
    assert_contains(settings.warnings.items[0], "nothing of it is writable by itself");
    settings_done(&settings);
}

static void the_root_of_the_disk_is_no_workspace_by_itself(void **state)
{
    const struct policy_options none = {.mode = SANDBOX_AUTO};
    const struct policy_options named = {.directory = "/"};
    struct workspace_entry sub = {.access = ACCESS_WRITE};
    struct policy_options with_sub = {.directory = "/", .paths = &sub, .paths_len = 1};
    struct settings settings;

    assert_nothing_is_a_root(&named);
    sub.text = ws;
    init(&settings, &with_sub);
    assert_int_equal(access_to(&settings, ws), ACCESS_WRITE);
    assert_int_equal(access_to(&settings, "/opt/x"), ACCESS_READ);
    settings_done(&settings);
    assert_int_equal(chdir("/"), 0);
    assert_nothing_is_a_root(&none);
    assert_int_equal(chdir(ws), 0);
}

static void the_root_of_the_disk_is_written_when_it_is_named(void **state)
{
    struct workspace_entry root = {.access = ACCESS_WRITE, .text = "/"};
    const struct policy_options options = {.directory = "/", .paths = &root, .paths_len = 1};
    struct settings settings;

    init(&settings, &options);
    assert_int_equal(access_to(&settings, "/opt/x"), ACCESS_WRITE);
    settings_done(&settings);
}

static void a_directory_may_be_named(void **state)
{
    const struct policy_options sub = {.directory = "sub"};
    const struct policy_options file = {.directory = "file"};
    const struct policy_options missing = {.directory = "missing"};
    AUTO_FREE char *path = path_join(ws, "sub");
    struct settings settings;

    init(&settings, &sub);
    assert_string_equal(settings.workspace->dir, path);
    assert_int_equal(settings.workspace->roots.len, 1);
    assert_string_equal(settings.workspace->roots.items[0], path);
    settings_done(&settings);
    assert_wrong(&file, "--directory file is not a directory");
    assert_wrong(&missing, "--directory missing");
}

static void what_runs_outside_is_guarded(void **state)
{
    const struct policy_options options = {.guarded = "sub/../hook"};
    AUTO_FREE char *hook = path_join(ws, "hook");
    struct settings settings;

    init(&settings, &options);
    assert_true(strv_has(&settings.file.own_paths, hook));
    settings_done(&settings);
}

/* --- approval --- */

static void the_policy_of_approval_is_the_option_or_the_files(void **state)
{
    struct policy_options options = {.mode = SANDBOX_AUTO};
    struct settings settings;

    init(&settings, &options);
    assert_null(settings.approval_from);
    assert_int_equal(settings.approval.mode, APPROVAL_NEVER);
    settings_done(&settings);
    write_config("approval_policy = \"on-request\"\n");
    init(&settings, &options);
    assert_string_equal(settings.approval_from, settings.file.path);
    assert_int_equal(settings.approval.mode, APPROVAL_ON_REQUEST);
    settings_done(&settings);
    options.approval_word = "untrusted";
    options.approval.mode = APPROVAL_UNTRUSTED;
    init(&settings, &options);
    assert_string_equal(settings.approval_from, "--ask-for-approval");
    assert_int_equal(settings.approval.mode, APPROVAL_UNTRUSTED);
    settings_done(&settings);
}

/* --- environment --- */

static void the_environment_follows_the_options(void **state)
{
    static char *set[] = {(char *)"TEST_GIVEN=1", (char *)"TEST_TOKEN", NULL};
    static char *without[] = {(char *)"TEST_OTH*", NULL};
    struct policy_options options = {.env = {.items = set, .len = 2},
                                     .env_exclude = {.items = without, .len = 1}};
    struct settings settings;

    setenv("TEST_TOKEN", "meant", 1);
    setenv("TEST_SECRET", "kept here", 1);
    setenv("TEST_OTHER", "left out", 1);
    setenv("TEST_PASSED", "yes", 1);
    init(&settings, &options);
    assert_string_equal(variable(&settings, "TEST_GIVEN"), "1");
    assert_string_equal(variable(&settings, "TEST_TOKEN"), "meant");
    assert_string_equal(variable(&settings, "TEST_PASSED"), "yes");
    assert_null(variable(&settings, "TEST_SECRET"));
    assert_null(variable(&settings, "TEST_OTHER"));
    settings_done(&settings);
}

static void a_variable_that_is_not_set_needs_a_value(void **state)
{
    static char *set[] = {(char *)"TEST_NOT_THERE", NULL};
    const struct policy_options options = {.env = {.items = set, .len = 1}};

    unsetenv("TEST_NOT_THERE");
    assert_wrong(&options, "--env: TEST_NOT_THERE is not set here");
}

/* --- the config file --- */

static void warnings_of_the_file_are_passed_on(void **state)
{
    const struct policy_options none = {.mode = SANDBOX_AUTO};
    struct settings settings;

    write_config("\n[permissions.none]\n");
    init(&settings, &none);
    assert_int_equal(settings.warnings.len, 1);
    assert_contains(settings.warnings.items[0], "config.toml:2: ");
    assert_contains(settings.warnings.items[0], "denies everything");
    settings_done(&settings);
}

static void options_go_before_the_file(void **state)
{
    struct policy_options options = {.mode = SANDBOX_AUTO};
    struct settings settings;

    write_config("sandbox_mode = \"read-only\"\n");
    init(&settings, &options);
    assert_string_equal(settings.workspace->profile_name, "read-only");
    assert_int_equal(access_to(&settings, ws), ACCESS_READ);
    settings_done(&settings);
    options.profile = "workspace-write";
    options.network = WORKSPACE_ENABLED;
    init(&settings, &options);
    assert_string_equal(settings.workspace->profile_from, "--profile");
    assert_int_equal(access_to(&settings, ws), ACCESS_WRITE);
    assert_int_equal(settings.workspace->map.network, NETWORK_ENABLED);
    settings_done(&settings);
}

static void a_file_that_is_named_has_to_be_there(void **state)
{
    const struct policy_options options = {.config = "missing.toml"};

    assert_wrong(&options, "missing.toml");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_current_directory_is_the_root, enter, leave),
        cmocka_unit_test_setup_teardown(the_root_of_the_disk_is_no_workspace_by_itself, enter,
                                        leave),
        cmocka_unit_test_setup_teardown(the_root_of_the_disk_is_written_when_it_is_named, enter,
                                        leave),
        cmocka_unit_test_setup_teardown(a_directory_may_be_named, enter, leave),
        cmocka_unit_test_setup_teardown(what_runs_outside_is_guarded, enter, leave),
        cmocka_unit_test_setup_teardown(the_policy_of_approval_is_the_option_or_the_files, enter,
                                        leave),
        cmocka_unit_test_setup_teardown(the_environment_follows_the_options, enter, leave),
        cmocka_unit_test_setup_teardown(a_variable_that_is_not_set_needs_a_value, enter, leave),
        cmocka_unit_test_setup_teardown(warnings_of_the_file_are_passed_on, enter, leave),
        cmocka_unit_test_setup_teardown(options_go_before_the_file, enter, leave),
        cmocka_unit_test_setup_teardown(a_file_that_is_named_has_to_be_there, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
