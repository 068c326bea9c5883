/* resource_limits: which limit a command ran into, by how it ended and what it used. */
#include "../base/support.h"

#include "base/clock.h"
#include "process/process.h"
#include "process/resource_limits.h"

#include <signal.h>

static struct resource_limits_report report_of(const struct resource_limits *limits,
                                               const struct process_end *end)
{
    struct resource_limits_scope scope;
    struct resource_limits_report report;

    resource_limits_open(limits, "", &scope);
    resource_limits_report(&scope, end, &report);
    resource_limits_close(&scope);
    return report;
}

static bool is_out_of_cpu_time(struct process_end end)
{
    const struct resource_limits limits = {.cpu_time_ns = 3 * CLOCK_NS_PER_S};

    return report_of(&limits, &end).hit[LIMIT_CPU_TIME];
}

static void cpu_time_is_that_of_the_program_and_of_the_kernel_for_it(void **state)
{
    static const struct {
        long user_us, system_us;
        bool is_hit;
    } cases[] = {
        {3000000, 0, true},
        {0, 3000000, true},
        {1600000, 1400000, true},
        {1400000, 1600000, true},
        {0, 0, false},
        {1000000, 1000000, false},
        {1900000, 100000, false},
        {100000, 1900000, false},
        {2990000, 0, true},
        {1500000, 1490000, true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct timeval user = {cases[i].user_us / 1000000, cases[i].user_us % 1000000};
        const struct timeval sys = {cases[i].system_us / 1000000, cases[i].system_us % 1000000};
        struct process_end end = {.how = PROCESS_SIGNALED,
                                  .signal = SIGKILL,
                                  .usage_known = true,
                                  .usage = {.ru_utime = user, .ru_stime = sys}};

        assert_int_equal(is_out_of_cpu_time(end), cases[i].is_hit);
        end.usage_known = false; /* who killed it cannot be told */
        assert_false(is_out_of_cpu_time(end));
    }
}

static void the_soft_limit_has_a_signal_of_its_own(void **state)
{
    assert_true(
        is_out_of_cpu_time((struct process_end){.how = PROCESS_SIGNALED, .signal = SIGXCPU}));
    assert_true(
        is_out_of_cpu_time((struct process_end){.how = PROCESS_EXITED, .code = 128 + SIGXCPU}));
    assert_false(is_out_of_cpu_time((struct process_end){.how = PROCESS_EXITED, .code = SIGXCPU}));
    assert_false(
        is_out_of_cpu_time((struct process_end){.how = PROCESS_SIGNALED, .signal = SIGXFSZ}));
}

/* A command may send itself any signal. */
static void what_was_not_asked_for_is_not_hit(void **state)
{
    const struct process_end cpu = {.how = PROCESS_SIGNALED, .signal = SIGXCPU};
    const struct process_end file = {.how = PROCESS_SIGNALED, .signal = SIGXFSZ};
    const struct resource_limits file_size = {.file_size = 1000};
    const struct resource_limits cpu_time = {.cpu_time_ns = 1};

    assert_false(report_of(&file_size, &cpu).hit[LIMIT_CPU_TIME]);
    assert_true(report_of(&file_size, &file).hit[LIMIT_FILE_SIZE]);
    assert_int_equal(report_of(&file_size, &file).by[LIMIT_FILE_SIZE], LIMIT_BY_RLIMIT);
    assert_false(report_of(&cpu_time, &file).hit[LIMIT_FILE_SIZE]);
}

static void cpu_time_is_rounded_up_to_seconds(void **state)
{
    static const uint64_t cases[][2] = {
        {0, 0}, {1, 1}, {CLOCK_NS_PER_S, 1}, {CLOCK_NS_PER_S + 1, 2}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct resource_limits_scope scope;

        resource_limits_open(&(struct resource_limits){.cpu_time_ns = cases[i][0]}, "", &scope);
        assert_int_equal(scope.rlimits.cpu_time, cases[i][1]);
        resource_limits_close(&scope);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_time_is_that_of_the_program_and_of_the_kernel_for_it),
        cmocka_unit_test(the_soft_limit_has_a_signal_of_its_own),
        cmocka_unit_test(what_was_not_asked_for_is_not_hit),
        cmocka_unit_test(cpu_time_is_rounded_up_to_seconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
