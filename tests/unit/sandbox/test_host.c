/* What a failed launch says of the host. */
#include "../base/support.h"

#include "sandbox/linux/host.h"
#include "sandbox/linux/launch_limits.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

static bool steps_down(struct host *host, enum plan_op op, int error)
{
    return host_step_down(host, op, &(struct err){.sys = error});
}

static void test_a_refused_watchpoint(void **state)
{
    struct host host;

    (void)state;
    host_init(&host);
    assert_true(steps_down(&host, PLAN_WATCHPOINT, EPERM));
    assert_false(host.facts.has_fuse);
}

/* It has gone, or the guard has: the next launch may have one. */
static void test_a_watchpoint_that_nobody_takes(void **state)
{
    static const int errors[] = {ENOENT, ENOTDIR, ELOOP, EPIPE, ECONNRESET};
    struct host host;

    (void)state;
    host_init(&host);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        assert_false(steps_down(&host, PLAN_WATCHPOINT, errors[i]));
    assert_true(host.facts.has_fuse);
}

/* What nf_tables lacks is known from then on; that something ran out is not. */
static void test_a_refused_redirection(void **state)
{
    static const int errors[] = {EPROTONOSUPPORT, EOPNOTSUPP, ENOENT, EINVAL, EPERM};
    struct host host;

    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        host_init(&host);
        assert_false(steps_down(&host, PLAN_REDIRECT, ENOMEM));
        assert_true(steps_down(&host, PLAN_REDIRECT, errors[i]));
        assert_false(host.facts.has_redirect);
        assert_non_null(strstr(host.no_redirect, "nf_nat"));
        assert_false(steps_down(&host, PLAN_REDIRECT, errors[i]));
    }
}

/* Once redirected, a refusal is of that launch. */
static void test_what_redirected_once(void **state)
{
    const struct plan plan = {.redirects = true};
    struct host host;

    (void)state;
    host_init(&host);
    host_stood(&host, &(struct plan){.redirects = false}, false);
    assert_false(host_is_proven(&host, &plan, false));
    host_stood(&host, &plan, false);
    assert_true(host_is_proven(&host, &plan, false));
    assert_false(steps_down(&host, PLAN_REDIRECT, EPERM));
}

/* By root, from a version on: before, what is written would be the host's. */
static void test_who_counts_processes(void **state)
{
    static const struct {
        bool is_root, counts_pids;
        uint32_t namespaces;
        int landlock;
        enum process_counter counter;
    } cases[] = {
        {true, true, CLONE_NEWPID, 7, COUNTER_PID_NAMESPACE},
        {true, true, CLONE_NEWPID | CLONE_NEWUSER, 7, COUNTER_PID_NAMESPACE},
        {true, false, CLONE_NEWPID | CLONE_NEWUSER, 7, COUNTER_USER},
        {true, true, 0, 7, COUNTER_USER},
        {true, true, CLONE_NEWUSER, 7, COUNTER_USER},
        {false, false, CLONE_NEWPID | CLONE_NEWUSER, 2, COUNTER_USER_NAMESPACE},
        {false, false, CLONE_NEWPID | CLONE_NEWUSER, 1, COUNTER_USER},
        {false, false, CLONE_NEWPID, 7, COUNTER_USER},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct launch_limits limits = {.processes = 9000000, .files = 5};
        const struct plan_host facts = {.is_root = cases[i].is_root,
                                        .counts_pids = cases[i].counts_pids,
                                        .landlock = cases[i].landlock};
        struct plan_record records[LAUNCH_LIMITS_MAX];
        const bool by_namespace = cases[i].counter == COUNTER_PID_NAMESPACE;

        assert_int_equal(launch_counter(cases[i].namespaces, &facts), cases[i].counter);
        assert_int_equal(launch_limit_records(&limits, cases[i].counter, records), 2);
        assert_int_equal(records[0].op, by_namespace ? PLAN_PIDS : PLAN_LIMIT);
        /* the kernel takes no pid_max above 4194304 */
        assert_int_equal(records[0].value, by_namespace ? (4 << 20) - 300 : 9000000);
        assert_int_equal(records[1].op, PLAN_LIMIT);
    }
}

static void test_processes_that_cannot_be_counted(void **state)
{
    struct host host;

    (void)state;
    host_init(&host);
    host.facts.counts_pids = true;
    assert_false(steps_down(&host, PLAN_PIDS, ENOMEM)); /* says nothing of the host */
    assert_true(steps_down(&host, PLAN_PIDS, EROFS));
    assert_false(host.facts.counts_pids);
    assert_false(steps_down(&host, PLAN_PIDS, EROFS));
    host.facts.counts_pids = host.has_counted = true;
    assert_false(steps_down(&host, PLAN_PIDS, EROFS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_refused_watchpoint),
        cmocka_unit_test(test_a_watchpoint_that_nobody_takes),
        cmocka_unit_test(test_a_refused_redirection),
        cmocka_unit_test(test_what_redirected_once),
        cmocka_unit_test(test_who_counts_processes),
        cmocka_unit_test(test_processes_that_cannot_be_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
