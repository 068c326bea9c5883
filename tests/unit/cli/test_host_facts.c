/* host_facts: read from the files of machines that we do not have. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "cli/remedies.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static char *root;

static int setup(void **state)
{
    root = support_scratch_new();
    return 0;
}

static int teardown(void **state)
{
    support_scratch_remove(root);
    return 0;
}

/* Writes `text` to ROOT/`path`, making the directories on the way. */
static void put(const char *path, const char *text)
{
    AUTO_FREE char *full = path_join(root, path);

    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(full, 0700) && errno != EEXIST)
            fail_msg("mkdir %s: %s", full, strerror(errno));
        *slash = '/';
    }
    support_write(root, path, text);
}

static void nothing_is_known_of_an_empty_machine(void **state)
{
    struct host_facts facts;

    host_facts_read(root, &facts);
    assert_int_equal(facts.apparmor_restricts_userns, HOST_FACT_MISSING);
    assert_int_equal(facts.userns_clone, HOST_FACT_MISSING);
    assert_int_equal(facts.max_user_namespaces, HOST_FACT_MISSING);
    assert_false(facts.is_wsl1);
    assert_false(facts.has_systemd);
    assert_string_equal(facts.container, "");
    assert_string_equal(facts.lsm, "");
    assert_true(facts.release[0] && facts.program[0] == '/');
}

static void switches_are_read(void **state)
{
    struct host_facts facts;

    put("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
    put("proc/sys/kernel/unprivileged_userns_clone", "0\n");
    put("proc/sys/user/max_user_namespaces", "15238\n");
    put("sys/kernel/security/lsm", "lockdown,capability,apparmor");
    put("run/systemd/system/x", "");
    host_facts_read(root, &facts);
    assert_int_equal(facts.apparmor_restricts_userns, 1);
    assert_int_equal(facts.userns_clone, 0);
    assert_int_equal(facts.max_user_namespaces, 15238);
    assert_string_equal(facts.lsm, "lockdown,capability,apparmor");
    assert_true(facts.has_systemd);
}

static void nonsense_is_not_a_switch(void **state)
{
    struct host_facts facts;

    put("proc/sys/user/max_user_namespaces", "many\n");
    put("proc/sys/kernel/unprivileged_userns_clone", "");
    host_facts_read(root, &facts);
    assert_int_equal(facts.max_user_namespaces, HOST_FACT_MISSING);
    assert_int_equal(facts.userns_clone, HOST_FACT_MISSING);
}

static void containers_are_told_apart(void **state)
{
    static const struct {
        const char *path;
        const char *text;
        const char *name;
    } cases[] = {
        {"var/run/secrets/kubernetes.io/x", "", "kubernetes"},
        {"run/systemd/container", "lxc\n", "lxc"},
        {"run/.containerenv", "", "podman"},
        {".dockerenv", "", "docker"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct host_facts facts;

        put(cases[i].path, cases[i].text);
        host_facts_read(root, &facts);
        assert_string_equal(facts.container, cases[i].name);
    }
}

static void the_first_wsl_is_told_from_the_second(void **state)
{
    static const struct {
        const char *version;
        bool is_wsl1;
    } cases[] = {
        {"Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)\n", true},
        {"Linux version 5.15.90.1-microsoft-standard-WSL2 (oe-user@oe-host)\n", false},
        {"Linux version 6.6.1-microsoft-standard (x)\n", false},
        {"Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)\n", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct host_facts facts;

        put("proc/version", cases[i].version);
        host_facts_read(root, &facts);
        assert_int_equal(facts.is_wsl1, cases[i].is_wsl1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_known_of_an_empty_machine, setup, teardown),
        cmocka_unit_test_setup_teardown(switches_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense_is_not_a_switch, setup, teardown),
        cmocka_unit_test_setup_teardown(containers_are_told_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_wsl_is_told_from_the_second, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
