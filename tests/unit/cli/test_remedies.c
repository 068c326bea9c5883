/* remedies: the right one for each cause, on machines that we do not have. */
#include "../base/support.h"

#include "base/auto.h"
#include "cli/remedies.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <string.h>

/* A machine without any of the known causes. */
static const struct host_facts plain = {
    .apparmor_restricts_userns = HOST_FACT_MISSING,
    .userns_clone = HOST_FACT_MISSING,
    .max_user_namespaces = 15000,
    .landlock_abi = 7,
    .lsm = "capability,landlock,yama",
    .release = "6.12.1",
    .program = "/opt/cordon/bin/cordon",
};

enum { NO_NAMESPACES = 1, NO_OWN_PROC = 2, NO_LANDLOCK = 4, NO_GUARD = 8, NO_PROXY = 16 };

/* The remedies for a machine that lacks what `lacks` says. */
static void find(const struct host_facts *facts, unsigned lacks, struct remedies *ret)
{
    struct defence_report layers[DEFENCE_COUNT] = {{DEFENCE_ENFORCED, ""}};

    for (int i = 0; i <= DEFENCE_CGROUP_NAMESPACE && (lacks & NO_NAMESPACES); i++)
        layers[i].state = DEFENCE_ABSENT;
    if (lacks & NO_OWN_PROC)
        layers[DEFENCE_PID_NAMESPACE].state = DEFENCE_PARTIAL;
    if (lacks & NO_LANDLOCK)
        layers[DEFENCE_LANDLOCK].state = facts->landlock_abi ? DEFENCE_PARTIAL : DEFENCE_ABSENT;
    if (lacks & NO_GUARD)
        layers[DEFENCE_GUARD] = (struct defence_report){DEFENCE_ABSENT, "the reason"};
    if (lacks & NO_PROXY)
        layers[DEFENCE_PROXY] = (struct defence_report){DEFENCE_ABSENT, "the reason"};
    *ret = (struct remedies){0};
    remedies_find(facts, layers, ret);
}

/* One remedy about `about`, whose cause and lines contain these texts. */
static void assert_one(const struct host_facts *facts, unsigned lacks, const char *finding,
                       const char *about, const char *cause, const char *how)
{
    AUTO(remedies_done) struct remedies found;

    find(facts, lacks, &found);
    assert_int_equal(found.len, 1);
    assert_string_equal(found.items[0].finding, finding);
    assert_string_equal(found.items[0].about, about);
    assert_contains(found.items[0].cause, cause);
    assert_contains(found.items[0].how, how);
}

static void nothing_is_said_where_nothing_is_missing(void **state)
{
    AUTO(remedies_done) struct remedies found;

    find(&plain, 0, &found);
    assert_int_equal(found.len, 0);
}

static void apparmor_gets_a_profile_for_this_very_program(void **state)
{
    struct host_facts facts = plain;

    facts.apparmor_restricts_userns = 1;
    assert_one(&facts, NO_NAMESPACES, "apparmor", "user-namespace", "AppArmor",
               "profile cordon /opt/cordon/bin/cordon flags=(unconfined) {\n"
               "  userns,\n");
    assert_one(&facts, NO_NAMESPACES, "apparmor", "user-namespace", "Ubuntu 24.04",
               "sudo apparmor_parser -r /etc/apparmor.d/cordon\n");
    assert_one(&facts, NO_NAMESPACES, "apparmor", "user-namespace", "",
               "kernel.apparmor_restrict_unprivileged_userns=0");
}

static void switches_are_switched(void **state)
{
    struct host_facts facts = plain;

    facts.max_user_namespaces = 0;
    assert_one(&facts, NO_NAMESPACES, "no-user-namespaces", "user-namespace",
               "user.max_user_namespaces is 0", "sudo sysctl -w user.max_user_namespaces=15000\n");
    facts = plain;
    facts.userns_clone = 0;
    assert_one(&facts, NO_NAMESPACES, "user-namespaces-of-root", "user-namespace",
               "kernel.unprivileged_userns_clone is 0",
               "sudo sysctl -w kernel.unprivileged_userns_clone=1\n");
}

static void what_binds_users_does_not_explain_roots_lack(void **state)
{
    struct host_facts facts = plain;

    facts.is_root = true;
    facts.userns_clone = 0;
    facts.apparmor_restricts_userns = 1;
    assert_one(&facts, NO_NAMESPACES, "namespaces-refused", "user-namespace",
               "none of the known switches", "--sandbox landlock");
    facts.is_filtered = true;
    assert_one(&facts, NO_NAMESPACES, "seccomp-filter", "user-namespace", "A seccomp filter",
               "--sandbox landlock");
    facts.is_chroot = true;
    assert_one(&facts, NO_NAMESPACES, "chroot", "user-namespace", "This is a chroot",
               "systemd-nspawn");
}

static void containers_get_their_options(void **state)
{
    struct host_facts facts = plain;

    strncat(facts.container, "docker", sizeof facts.container - 1);
    assert_one(&facts, NO_NAMESPACES, "container", "user-namespace", "a container (docker)",
               "--security-opt seccomp=unconfined");
    assert_one(&facts, NO_OWN_PROC, "container", "pid-namespace", "hide parts of /proc",
               "--security-opt systempaths=unconfined");
    assert_one(&plain, NO_OWN_PROC, "covered-proc", "pid-namespace",
               "mounted over parts of the /proc", "mountinfo");
}

static void landlock_is_named_by_what_it_lacks(void **state)
{
    struct host_facts facts = plain;

    facts.landlock_abi = 4;
    assert_one(&facts, NO_LANDLOCK, "old-landlock", "landlock", "has Landlock ABI 4", "Linux 6.12");
    facts.landlock_abi = 0;
    facts.landlock_error = ENOSYS;
    assert_one(&facts, NO_LANDLOCK, "no-landlock", "landlock", "has no Landlock", "Linux 6.12");
    facts.landlock_error = EOPNOTSUPP;
    assert_one(&facts, NO_LANDLOCK, "landlock-not-enabled", "landlock", "not enabled at boot",
               "\nlsm=landlock,capability,landlock,yama\n");
}

static void a_profile_that_does_without_landlock_is_no_lack(void **state)
{
    AUTO(remedies_done) struct remedies found;

    find(&plain, NO_LANDLOCK, &found);
    assert_int_equal(found.len, 0);
}

static void wsl1_explains_everything(void **state)
{
    struct host_facts facts = plain;

    facts.is_wsl1 = true;
    facts.max_user_namespaces = 0;
    facts.landlock_abi = 0;
    assert_one(&facts, NO_NAMESPACES | NO_LANDLOCK, "wsl-1", "user-namespace", "WSL 1",
               "wsl --set-version");
}

static void each_lack_gets_its_own(void **state)
{
    AUTO(remedies_done) struct remedies found;
    struct host_facts facts = plain;

    facts.max_user_namespaces = 0;
    facts.landlock_abi = 0;
    facts.landlock_error = ENOSYS;
    find(&facts, NO_NAMESPACES | NO_LANDLOCK, &found);
    assert_int_equal(found.len, 2);
    assert_string_equal(found.items[0].about, "user-namespace");
    assert_string_equal(found.items[1].about, "landlock");
}

static void cgroups_come_from_systemd(void **state)
{
    struct host_facts facts = plain;
    static const struct {
        bool has_systemd;
        bool is_root;
        const char *how;
    } cases[] = {
        {true, false, "systemd-run --user --scope -p Delegate=yes cordon run"},
        {true, true, "systemd-run --scope -p Delegate=yes cordon run"},
        {false, false, "cgroup.subtree_control"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO(remedies_done) struct remedies found = {0};

        facts.has_systemd = cases[i].has_systemd;
        facts.is_root = cases[i].is_root;
        remedies_add_cgroup(&facts, "the reason", &found);
        assert_string_equal(found.items[0].finding, "no-cgroup");
        assert_string_equal(found.items[0].about, "limits");
        assert_contains(found.items[0].cause, "(the reason)");
        assert_contains(found.items[0].how, cases[i].how);
    }
}

static void a_guard_that_cannot_be_asked(void **state)
{
    assert_one(&plain, NO_GUARD, "no-guard", "guard", "(the reason)", "Linux 5.19");
}

static void a_network_that_cannot_be_led(void **state)
{
    assert_one(&plain, NO_PROXY, "no-proxy", "proxy", "(the reason)", "nft_redir");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_said_where_nothing_is_missing),
        cmocka_unit_test(apparmor_gets_a_profile_for_this_very_program),
        cmocka_unit_test(switches_are_switched),
        cmocka_unit_test(what_binds_users_does_not_explain_roots_lack),
        cmocka_unit_test(containers_get_their_options),
        cmocka_unit_test(landlock_is_named_by_what_it_lacks),
        cmocka_unit_test(a_profile_that_does_without_landlock_is_no_lack),
        cmocka_unit_test(wsl1_explains_everything),
        cmocka_unit_test(each_lack_gets_its_own),
        cmocka_unit_test(cgroups_come_from_systemd),
        cmocka_unit_test(a_guard_that_cannot_be_asked),
        cmocka_unit_test(a_network_that_cannot_be_led),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
