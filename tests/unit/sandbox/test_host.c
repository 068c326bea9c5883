/* What a failed launch says of the host. */
#include "../base/support.h"

#include "sandbox/linux/host.h"

#include <errno.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_refused_watchpoint),
        cmocka_unit_test(test_a_watchpoint_that_nobody_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
